"""Calls between an array whose sizes are known at run time and one of static shape that has room for the largest."""

from __future__ import annotations

from heron.hlo.calls.declaration import Call
from heron.hlo.ir.instruction import Instruction


def _padded(i: Instruction) -> str:
    """``PadToStatic``: the array filled up to its bounds, and the size of each of its dimensions."""
    names = [f"n{d}" for d in range(_rank(i))]
    dims = ",".join(names)
    return f"x:T[{dims}] -> " + ", ".join([f"filled:T[{dims}]", *(f"size_{n}:s32[]" for n in names)])


def _sliced(i: Instruction) -> str:
    """``SliceToDynamic``: the first elements of an array, whose sizes are operands."""
    names = [f"n{d}" for d in range(_rank(i))]
    given = ", ".join([f"x:T[{','.join(names)}]", *(f"size_{n}:s32[]" for n in names)])
    return f"{given} -> first:T[{','.join('_' for _ in names)}]"


def _rank(i: Instruction) -> int:
    return i.operands[0].shape.rank if i.operands and i.operands[0].shape.is_array else 0


PAD = Call("pad_to_static", ("PadToStatic",), _padded)
SLICE = Call("slice_to_dynamic", ("SliceToDynamic",), _sliced)
