"""``heron run``: compiles a program, runs it, and shows or checks its outputs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from heron import targets
from heron.backends.watchdog import watched
from heron.cli import room
from heron.cli.common import (
    examples,
    file_argument,
    json_option,
    late,
    load_module,
    make_options,
    memory_limit_option,
    settings_option,
    target_option,
    timeout_option,
)
from heron.cli.devices import devices_option, own_jobs, settle, with_counts
from heron.cli.job import Job, job_options
from heron.cli.progress import progress, running
from heron.errors import HeronError
from heron.trace import Trace
from heron.trace.summary import seconds

if TYPE_CHECKING:
    from heron.runtime.executable import Executable


@click.command(
    short_help="Compile a program, run it, show or check its outputs.",
    epilog=examples(
        "heron run model.hlo --random 0",
        "heron run model.py:layer --random 0",
        "heron run model.hlo --inputs in.npz --save out.npz",
        "heron run model.hlo --target sim:sm_90 --expect golden.npz",
        "heron run model.hlo --target sim:sm_90 --check all --random 0",
        "cat model.hlo | heron run - --random 0 --json",
        "heron run model.heron --random 0",
        "heron run 'open.mlir(f32[8,4])' --random 0",
        "heron run sharded.hlo --devices 8 --random 0",
        "heron run local.hlo --devices 2x4 --inputs 'in-{}.npz' --save 'out-{}.npz'",
    ),
)
@file_argument
@target_option
@click.option(
    "--check",
    metavar="WHAT",
    help="Checks of the simulated GPU: all, or some of races,bounds,uninit,divergence. A finding: exit code 2.",
)
@devices_option
@job_options
@memory_limit_option
@timeout_option
@settings_option
@json_option
def command(
    file: str, target: str, job: Job, timeout: int | None, check: str | None, as_json: bool, **asked: Any
) -> int:
    """Compile FILE (HLO text, - for standard input), run it and show its outputs; or run a saved program (.heron).

    On several devices a program with shardings takes global arrays, which it cuts, and gives global arrays. One that is
    partitioned already runs on the arrays of each device: the same for all, unless a file name contains {}, which
    stands for the device's number.

    With --expect, compare the outputs: exit code 0 if all agree, 1 if values differ.
    """
    from heron.archive.loading import is_program

    if is_program(file):
        return _run_saved(file, job, as_json)
    machine, options = targets.get(target), make_options(asked["settings"], asked["memory_limit"], timeout)
    if check is not None:
        options = options.with_settings([f"sim_check={check}"])
    if check and not machine.sim:
        raise HeronError(
            "CLI040",
            f"{target} has no checks of kernels",
            why="the simulated GPU has them",
            hint=f"--target sim:{target if target.startswith('sm_') else 'sm_90'}",
        )
    module = with_counts(load_module(file, target, arrays=job.at_hand), asked["devices"])
    from heron.compiling import compile_module

    trace = Trace(module.name, target)
    trace.options = options.changed()
    start = time.perf_counter()
    with progress(trace, f"compiling {module.name} for {target}"):
        executable = compile_module(module, machine, options, trace)
    compiled = time.perf_counter()
    if executable.devices > 1 and not executable.spread.is_known:
        return _on_each(executable, job, {"compile_seconds": compiled - start}, as_json)
    arrays = job.arrays(module)
    room.require(executable.memory["peak"] - executable.memory["arguments"], f"the buffers of {module.name} take")
    times = {"compile_seconds": compiled - start}
    outputs = _run(executable, arrays, times, timeout)
    if not as_json:
        _say(module.name, target, "compiled", *times.values())
    return job.finish(arrays, outputs, {"module": module.name, "target": target, **times}, as_json)


def _run_saved(file: str, job: Job, as_json: bool) -> int:
    """Run a program that `heron compile -o FILE.heron` wrote, for the machine it is for."""
    from heron.archive.loading import load_program
    from heron.hlo.text import parse

    start = time.perf_counter()
    executable = load_program(file)
    if executable.devices > 1:
        return _on_each(executable, job, {"load_seconds": time.perf_counter() - start}, as_json)
    arrays = job.arrays(parse(executable.stage("scheduled")))
    times = {"load_seconds": time.perf_counter() - start}
    outputs = _run(executable, arrays, times)
    if not as_json:
        _say(executable.name, executable.target, "loaded", *times.values())
    return job.finish(arrays, outputs, {"module": executable.name, "target": executable.target, **times}, as_json)


def _on_each(executable: Executable, job: Job, times: dict[str, float], as_json: bool) -> int:
    """Run a program on the arrays of each device."""
    from heron.evaluator.devices import World
    from heron.hlo.text import parse

    devices = World(executable.spread.replicas, executable.spread.partitions).devices
    jobs, local = own_jobs(job, len(devices)), parse(executable.stage("scheduled"))
    given = [j.arrays(local) for j in jobs]
    start = time.perf_counter()
    with running(executable):
        results = executable.run_devices(given if len(given) > 1 else given * len(devices))
    times["run_seconds"] = time.perf_counter() - start
    if not as_json:
        where = f"{executable.target}, {len(devices)} devices"
        _say(executable.name, where, "loaded" if "load_seconds" in times else "compiled", *times.values())
    document = {"module": executable.name, "target": executable.target, **times}
    each = jobs if len(jobs) > 1 else [job] * len(devices)
    return settle(devices, each, given, results, document, as_json)


def _run(
    executable: Executable, arrays: Sequence[Any], times: dict[str, float], timeout: int | None = None
) -> list[Any]:
    """The outputs; the seconds of the run go into `times`. Raises CLI048 after ``timeout`` seconds."""
    from heron.cli.report import flat

    start = time.perf_counter()
    with running(executable):
        outputs = flat(watched(lambda: executable(*arrays), timeout or 0, lambda: late("the run", timeout)))
    times["run_seconds"] = time.perf_counter() - start
    return outputs


def _say(name: str, target: str, made: str, making: float, running: float) -> None:

    click.echo(f"{name} on {target}: {made} in {seconds(making)}, ran in {seconds(running)}")
