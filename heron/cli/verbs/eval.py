"""``heron eval``: runs a program by the evaluator, which defines the meaning of programs; also on several devices."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

import click

from heron.backends.watchdog import watched
from heron.cli import room
from heron.cli.common import examples, file_argument, json_option, late, load_module, print_json, timeout_option
from heron.cli.job import Job, exit_code, job_options
from heron.errors import HeronError
from heron.trace.summary import seconds

if TYPE_CHECKING:
    from heron.hlo.ir.module import Module


class Devices(click.ParamType):
    """``8``, or ``2x4``: replicas x partitions."""

    name = "devices"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int | None, int]:
        match = re.fullmatch(r"(?:(\d{1,9})x)?(\d{1,9})", str(value))
        if match is None:
            self.fail(f"{value!r} is neither a number nor like 2x4", param, ctx)
        return int(match[1]) if match[1] else None, int(match[2])


@click.command(
    short_help="Evaluate a program in NumPy: the definition of its meaning.",
    epilog=examples(
        "heron eval model.hlo --random 0",
        "heron eval model.hlo --inputs in.npz --expect golden.npz",
        "heron eval sharded.hlo --devices 8 --random 0",
        "heron eval sharded.hlo --devices 2x4 --inputs 'in-{}.npz' --save 'out-{}.npz'",
    ),
)
@click.option(
    "--devices",
    type=Devices(),
    metavar="N|RxP",
    help="Run on N devices, or on R replicas of P partitions (default: the program's own counts).",
)
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
    replicas, partitions = _counts(module, devices)
    if replicas * partitions != 1:
        return _on_devices(module, job, replicas, partitions, as_json)
    from heron.cli.report import flat
    from heron.evaluator import evaluate

    arrays = job.arrays(module)
    start = time.perf_counter()
    outputs = flat(watched(lambda: evaluate(module, *arrays), timeout or 0, lambda: late("evaluation", timeout)))
    spent = time.perf_counter() - start
    _say(module, "", spent, as_json)
    return job.finish(arrays, outputs, {"module": module.name, "target": "evaluator", "run_seconds": spent}, as_json)


def _counts(module: Module, devices: tuple[int | None, int] | None) -> tuple[int, int]:
    """Replicas and partitions."""
    if devices is None:
        return module.replica_count, module.num_partitions
    replicas, count = devices
    if replicas is not None:
        return replicas, count
    if count == module.replica_count * module.num_partitions:
        return module.replica_count, module.num_partitions
    channels = any(i.attrs.get("channel_id") is not None for c in module.computations for i in c.instructions)
    return (1, count) if channels or module.num_partitions > 1 else (count, 1)


def _on_devices(module: Module, job: Job, replicas: int, partitions: int, as_json: bool) -> int:
    from heron.evaluator import evaluate_devices
    from heron.evaluator.devices import World

    if job.save is not None and "{}" not in job.save:
        what = f"every device would be saved to '{job.save}'"
        raise HeronError("CLI037", what, hint="write {} where the device's number goes")
    devices = World(replicas, partitions).devices
    jobs = [job.for_device(d.number) for d in devices]
    own = jobs[0] != jobs[1]
    given = [j.arrays(module) for j in (jobs if own else jobs[:1])]
    start = time.perf_counter()
    results = evaluate_devices(module, given, replicas, partitions)
    spent = time.perf_counter() - start
    _say(module, f" on {len(devices)} devices", spent, as_json)
    documents: list[dict[str, Any]] = []
    code = 0
    for device, own_job, outputs in zip(devices, jobs, results, strict=True):
        documents.append({"device": device.number, "replica": device.replica, "partition": device.partition})
        rows = own_job.settle(given[device.number if own else 0], outputs, documents[-1])
        code = max(code, exit_code(rows))
        if not as_json:
            click.echo(f"\ndevice {device.number} ({device})")
            own_job.show(outputs, rows)
    if as_json:
        print_json({"module": module.name, "target": "evaluator", "run_seconds": spent, "devices": documents})
    return code


def _say(module: Module, where: str, spent: float, as_json: bool) -> None:
    if not as_json:
        click.echo(f"{module.name} evaluated{where} in {seconds(spent)}")
