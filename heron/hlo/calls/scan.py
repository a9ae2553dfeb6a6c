"""Scans of one pass as custom calls: operands → the results of the called computation, and control words.

The called computation ends in the reduce-window that is the scan. The words are two arrays, flags and partial results,
by which blocks of a launch speak; they mean nothing afterwards.
"""

from __future__ import annotations

from heron.errors import HeronError
from heron.hlo.calls.declaration import Call, what_misfits
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape

TARGET = "__heron$scan"


def body_of(i: Instruction) -> Computation:
    """The computation of the results; its root is the scan."""
    return i.called_computations[0]


def _form(i: Instruction) -> str:
    """Operands and results are those of the called computation. They go by numbers: names of a program may hold any
    letters."""
    if not i.attrs.get("called_computations"):
        raise HeronError("HLO172", what_misfits(i), where=str(i), why="it calls no computation, which is the scan")
    body = body_of(i)
    made = body.root.shape.tuple_shapes or (body.root.shape,)
    operands = ", ".join(f"x{n}{_sized(p.shape)}" for n, p in enumerate(body.parameters))
    results = ", ".join(f"y{n}{_sized(s)}" for n, s in enumerate(made))
    return f"{operands} -> {results}, flags:u32[_], partial:u32[_]"


def _sized(shape: Shape) -> str:
    return f":{shape.element_type}[{','.join(map(str, shape.dims))}]"


CALL = Call("scan", (TARGET,), _form, gpu="kernel")
