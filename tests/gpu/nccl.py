"""NCCL with one GPU: ``python -m tests.gpu.nccl [--rehearse]``. Each collective of a device with itself alone goes through
everything that several devices use: communicator, threads, streams, capture, the kernels that tell where a device is.

The last line printed is JSON, as that of `tests.gpu.one`.
"""

from __future__ import annotations

import contextlib
import json
import sys
from dataclasses import replace
from typing import Any

import click
import numpy as np

import heron
from heron.errors import HeronError
from heron.hlo.ir.types import F32
from heron.runtime.collectives.exchange import Reduction, Way, exchanged, gathered, in_rows, scattered, whole
from heron.runtime.cuda.devices import CudaDevices
from heron.runtime.cuda.executable import CudaExecutable
from heron.runtime.cuda.nccl.binding import nccl
from heron.runtime.cuda.program import GpuProgram
from heron.runtime.executable import ProgramInfo
from heron.runtime.thunks import CollectiveThunk, KernelThunk
from tests.rehearsal.compiling import learn

DIMS = (3, 1000)
TEXT = """HloModule alone

ENTRY main {
  x = f32[3,1000] parameter(0)
  i = s32[2] parameter(1)
  ROOT y = f32[3,1000] negate(x)
}
"""
SUM = Reduction("add", (F32,))
#: way, how the array is cut, and what is said beside it; each gives back what it gets
FORMS: dict[str, tuple[Way, Any, dict[str, Any]]] = {
    "all-reduce": (Way.ALL_REDUCE, whole(DIMS, 4), {"reduction": SUM}),
    "reduce-scatter": (Way.REDUCE, scattered(DIMS, 4, 1, 1), {"reduction": SUM}),
    "all-gather": (Way.EACH, gathered(DIMS, 4, 1, 1), {}),
    "all-to-all": (Way.EACH, exchanged(DIMS, 4, 1, 1), {}),
    "all-to-all of a tuple": (Way.PAIRED, whole(DIMS, 4), {}),
    "collective-broadcast": (Way.FROM, whole(DIMS, 4), {"senders": (0,)}),
    "ragged-all-to-all": (Way.RAGGED, in_rows(DIMS, 4), {}),
}


class _Alone(CudaExecutable):
    """The program with a collective behind its kernel."""

    def __init__(self, info: ProgramInfo, program: GpuProgram) -> None:
        super().__init__(info)
        self._program = program

    @property
    def program(self) -> GpuProgram:
        return self._program


def alone(form: str, made: CudaExecutable) -> CudaDevices:
    """A program of one device that negates its argument and exchanges the result with itself, in place."""
    way, piece, more = FORMS[form]
    (kernel,) = made.program.thunks
    assert isinstance(kernel, KernelThunk)
    out = kernel.args[-1]
    operands, pieces = (out,), (piece,)
    if way is Way.RAGGED:  # one run of rows, its numbers from the second argument: {0, 3}
        number = next(a for a in made.assignment.allocations if a.parameter == 1)
        zero, three = (replace(out, allocation=number.number, offset=at, size=4) for at in (0, 4))
        operands = (out, out, zero, three, zero, three)
        pieces = (piece, piece, *[whole((1,), 4)] * 4)
    given = {"senders": (), "reduction": None, **more}
    exchange = CollectiveThunk(
        form, way, ((0,),), given["senders"], operands, (out,), pieces, (), form, given["reduction"]
    )
    facts = (made.name, made.target, made.signature, made.kernels, made.assignment, made.trace, made.stages)
    info = ProgramInfo(*facts, made.spread)
    return CudaDevices(info, _Alone(info, replace(made.program, thunks=(kernel, exchange))), 60)


def check(recorder: Any = None) -> list[str]:
    """Run each form three times; what is wrong."""
    module = heron.parse(TEXT)
    made: Any = heron.compile(module, "sm_90" if recorder is not None else "cuda")
    if recorder is not None:
        learn(made, module, recorder, heron.Options())
    x = np.random.default_rng(0).standard_normal(DIMS).astype(np.float32)
    wrong: list[str] = []
    for form in FORMS:
        program = alone(form, made)
        try:
            for turn in range(3):
                found = program.run_devices([[x, np.array([0, 3], np.int32)]])[0][0]
                if not np.array_equal(found, -x):
                    wrong.append(f"{form}, call {turn}: {np.count_nonzero(found != -x)} elements differ")
        except HeronError as error:
            wrong.append(f"{form}: {error.render()}")
        wrong += [f"{form}: {note}" for note in program.trace.notes if "no graph" in note]
        made.trace.notes.clear()
    return wrong


@click.command()
@click.option("--rehearse", is_flag=True, help="On a driver and an NCCL in Python.")
def main(rehearse: bool) -> None:
    facts: dict[str, Any] = {"name": "nccl"}
    with contextlib.ExitStack() as stack:
        recorder = None
        if rehearse:
            from tests.rehearsal.nccl import rehearsed_devices

            recorder = stack.enter_context(rehearsed_devices(1)).recorder
        try:
            facts["version"] = nccl().version
            facts["wrong"] = check(recorder)
        except HeronError as error:
            facts["wrong"] = [error.render()]
    click.echo(json.dumps(facts))
    sys.exit(1 if facts["wrong"] else 0)


if __name__ == "__main__":
    main()
