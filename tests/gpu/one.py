"""One program on the device, in a process of its own: ``python -m tests.gpu.one NAME [--full] [--streams]``.

A kernel that faults takes a process's device with it, so that every program has a process. The last line printed is
JSON: whether values agree, what is wrong if not, and seconds of each part. The exit status is 1 for wrong values.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import click
import numpy as np

import heron
from benchmarks.gpu import expected, prepare
from heron.cli import compare, values
from heron.errors import HeronError
from heron.options import Options
from heron.runtime.cuda.executable import CudaExecutable
from heron.runtime.thunks import HostThunk
from tests.support import golden_values, program, tolerances

Check = Callable[[list[np.ndarray]], list[str]]


@dataclass
class Run:
    """How a program is run. ``recorder``: the driver of a rehearsal; ``prepared``: a folder of compiled programs;
    ``ptx``: a rehearsal computes kernels by their PTX."""

    name: str
    small: bool
    graphs: bool
    prepared: str
    recorder: Any = None
    ptx: bool = False
    seconds: dict[str, float] = field(default_factory=dict)
    graph_facts: dict[str, Any] = field(default_factory=dict)

    def timed(self, what: str, work: Callable[[], Any]) -> Any:
        """Do it and keep its seconds."""
        start = time.perf_counter()
        done = work()
        self.seconds[what] = round(time.perf_counter() - start, 3)
        return done

    def executable(self) -> CudaExecutable:
        """The program for the device."""
        module = heron.parse(program(self.name, self.small, platform="cuda").read_text())
        options = Options(graphs=self.graphs)
        if self.recorder is not None:
            from tests.rehearsal.compiling import compile, learn

            if not self.prepared:
                return compile(module, self.recorder, options=options, by_ptx=self.ptx)
            made = prepare.find(self.prepared, self.name, self.small, graphs=self.graphs).executable
            learn(made, module, self.recorder, options, self.ptx)
            return made
        return prepare.find(self.prepared, self.name, self.small, graphs=self.graphs).executable

    def inputs_and_check(self) -> tuple[list[np.ndarray], Check]:
        """Arguments, and what says how far outputs are from what they should be."""
        words = iter(tolerances(self.name))
        given: dict[str, Any] = {str(key).removeprefix("--"): value for key, value in zip(words, words, strict=True)}
        if not self.small:
            arrays = expected.inputs(self.name)
            wanted = self.timed("expected", lambda: prepare.wanted(self.prepared, self.name, arrays))
            given["close"] = expected.CLOSE.get(self.name)
            return arrays, lambda got: _errors(expected.settled(self.name, got), wanted, given)
        module = heron.parse(program(self.name, platform="cuda").read_text())
        held = values.read(str(golden_values(self.name)))

        def check(got: list[np.ndarray]) -> list[str]:
            same = expected.settled(self.name, got), expected.settled(self.name, held.outputs)
            rows = compare.compare_all(*same, given.get("rtol"), given.get("atol"), self.name)
            return [str(r) for r in rows if not r.ok]

        return values.fit(held.inputs, module, held.name), check


def _errors(got: Sequence[np.ndarray], wanted: Sequence[expected.Output], given: dict[str, Any]) -> list[str]:
    if len(got) != len(wanted):
        return [f"{len(got)} outputs instead of {len(wanted)}"]
    found = [w.error(g, **given) for g, w in zip(got, wanted, strict=True)]
    return [f"output {n}: {e}" for n, e in enumerate(found) if e]


def check(run: Run) -> list[str]:
    """Run three times, since the second call finds everything there, and the third one graphs that were made after the
    first calls of libraries; what is wrong. A graph that the driver refused is wrong: its program would be right, and
    slow, and nobody would know."""
    executable: CudaExecutable = run.timed("compile", run.executable)
    arrays, compared = run.inputs_and_check()
    run.timed("load", executable.load)
    wrong = compared(run.timed("first", lambda: executable.run(arrays)))
    for turn in ("second", "third"):
        wrong = wrong or [f"{turn} call: {w}" for w in compared(run.timed(turn, lambda: executable.run(arrays)))]
    run.graph_facts = executable.load().facts()
    if run.graphs:
        wrong = wrong or [f"no graph: {why}" for why in run.graph_facts["refused"]]
    if run.recorder is not None and run.graphs and not wrong:
        thunks = executable.program.thunks
        if not (run.recorder.count("cuGraphLaunch") or len(thunks) == 1 or HostThunk in {type(t) for t in thunks}):
            wrong = ["no graph was launched"]
    return wrong


@click.command()
@click.argument("name")
@click.option("--full", is_flag=True, help="At full scale, against the CPU's values.")
@click.option("--streams", is_flag=True, help="Without graphs.")
@click.option("--rehearse", is_flag=True, help="On a driver that records.")
@click.option("--ptx", is_flag=True, help="Rehearse kernels by what their PTX means, not the text before it.")
@click.option("--prepared", default="", help="A folder that benchmarks.gpu.prepare filled.")
def main(name: str, full: bool, streams: bool, rehearse: bool, ptx: bool, prepared: str) -> None:
    run = Run(name, not full, not streams, prepared, ptx=ptx)
    facts: dict[str, Any] = {"name": name, "full": full, "graphs": not streams}
    with contextlib.ExitStack() as stack:
        if rehearse:
            from tests.rehearsal.compiling import rehearsed

            run.recorder = stack.enter_context(rehearsed(memory=8 << 30))
        try:
            facts["wrong"] = check(run)
        except HeronError as error:
            facts["wrong"] = [error.render()]
    click.echo(json.dumps({**facts, "seconds": run.seconds, "device": run.graph_facts}))
    sys.exit(1 if facts["wrong"] else 0)


if __name__ == "__main__":
    main()
