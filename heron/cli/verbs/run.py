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
from heron.cli.job import Job, job_options
from heron.cli.progress import interruptible, progress
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
    ),
)
@file_argument
@target_option
@click.option(
    "--check",
    metavar="WHAT",
    help="Checks of the simulated GPU: all, or some of races,bounds,uninit,divergence. A finding: exit code 2.",
)
@job_options
@memory_limit_option
@timeout_option
@settings_option
@json_option
def command(
    file: str, target: str, job: Job, timeout: int | None, check: str | None, as_json: bool, **asked: Any
) -> int:
    """Compile FILE (HLO text, - for standard input), run it and show its outputs; or run a saved program (.heron).

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
    module = load_module(file, target, arrays=job.at_hand)
    arrays = job.arrays(module)
    from heron.compiling import compile_module

    trace = Trace(module.name, target)
    trace.options = options.changed()
    start = time.perf_counter()
    with progress(trace, f"compiling {module.name} for {target}"):
        executable = compile_module(module, machine, options, trace)
    compiled = time.perf_counter()
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
    arrays = job.arrays(parse(executable.stage("scheduled")))
    times = {"load_seconds": time.perf_counter() - start}
    outputs = _run(executable, arrays, times)
    if not as_json:
        _say(executable.name, executable.target, "loaded", *times.values())
    return job.finish(arrays, outputs, {"module": executable.name, "target": executable.target, **times}, as_json)


def _run(
    executable: Executable, arrays: Sequence[Any], times: dict[str, float], timeout: int | None = None
) -> list[Any]:
    """The outputs; the seconds of the run go into `times`. Raises CLI048 after ``timeout`` seconds."""
    from heron.cli.report import flat

    start = time.perf_counter()
    with interruptible():
        outputs = flat(watched(lambda: executable(*arrays), timeout or 0, lambda: late("the run", timeout)))
    times["run_seconds"] = time.perf_counter() - start
    return outputs


def _say(name: str, target: str, made: str, making: float, running: float) -> None:

    click.echo(f"{name} on {target}: {made} in {seconds(making)}, ran in {seconds(running)}")
