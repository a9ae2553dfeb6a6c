"""``heron eval``: runs a program by the evaluator, which defines the meaning of programs; also on several devices."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import click

from heron.backends.watchdog import watched
from heron.cli import room
from heron.cli.common import examples, file_argument, json_option, late, load_module, timeout_option
from heron.cli.devices import counts, devices_option, own_jobs, settle
from heron.cli.job import Job, job_options
from heron.cli.progress import evaluation, evaluation_on
from heron.trace.summary import seconds

if TYPE_CHECKING:
    from heron.hlo.ir.module import Module


@click.command(
    short_help="Evaluate a program in NumPy: the definition of its meaning.",
    epilog=examples(
        "heron eval model.hlo --random 0",
        "heron eval model.hlo --inputs in.npz --expect golden.npz",
        "heron eval sharded.hlo --devices 8 --random 0",
        "heron eval sharded.hlo --devices 2x4 --inputs 'in-{}.npz' --save 'out-{}.npz'",
    ),
)
@devices_option
@file_argument
@job_options
@timeout_option
@json_option
def command(file: str, job: Job, devices: tuple[int | None, int] | None, timeout: int | None, as_json: bool) -> int:
    """Evaluate FILE (HLO text, - for standard input) in NumPy, slowly and by definition; nothing is compiled.

    Several devices take turns and exchange values in collectives. N alone means N partitions if the program states
    partitions or its collectives have channel ids, otherwise N replicas. All devices get the same inputs, unless a file
    name contains {}, which stands for the device's number: replica times partitions plus partition.
    """

    module = load_module(file, arrays=job.at_hand)
    room.require_for_values(module)
    replicas, partitions = counts(module, devices)
    if replicas * partitions != 1:
        return _on_devices(module, job, replicas, partitions, as_json)
    from heron.cli.report import flat
    from heron.evaluator import evaluate

    arrays = job.arrays(module)
    start = time.perf_counter()
    with evaluation(module.name) as on_value:
        work = partial(evaluate, module, *arrays, on_value=on_value)
        outputs = flat(watched(work, timeout or 0, lambda: late("evaluation", timeout)))
    spent = time.perf_counter() - start
    _say(module, "", spent, as_json)
    return job.finish(arrays, outputs, {"module": module.name, "target": "evaluator", "run_seconds": spent}, as_json)


def _on_devices(module: Module, job: Job, replicas: int, partitions: int, as_json: bool) -> int:
    from heron.evaluator import evaluate_devices
    from heron.evaluator.devices import World

    devices = World(replicas, partitions).devices
    jobs = own_jobs(job, len(devices))
    given = [j.arrays(module) for j in jobs]
    start = time.perf_counter()
    with evaluation_on(len(devices), module.name) as on_value:
        results = evaluate_devices(module, given, replicas, partitions, on_value=on_value)
    spent = time.perf_counter() - start
    _say(module, f" on {len(devices)} devices", spent, as_json)
    document = {"module": module.name, "target": "evaluator", "run_seconds": spent}
    return settle(devices, jobs if len(jobs) > 1 else [job] * len(devices), given, results, document, as_json)


def _say(module: Module, where: str, spent: float, as_json: bool) -> None:
    if not as_json:
        click.echo(f"{module.name} evaluated{where} in {seconds(spent)}")
