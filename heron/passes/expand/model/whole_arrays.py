"""Scalar computations applied to whole arrays, element by element."""

from __future__ import annotations

from collections.abc import Sequence

from heron.hlo.facts import is_given
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction


def is_elementwise(computation: Computation) -> bool:
    """Whether all a scalar computation consists of is elementwise ops and constants; its root may be a tuple."""
    return all(
        i.op.is_elementwise or is_given(i) or i.opcode == "tuple" and i is computation.root
        for i in computation.instructions
    )


def apply_to_arrays(
    c: Computation, computation: Computation, arguments: Sequence[Instruction], like: Instruction
) -> list[Instruction]:
    """The results of an elementwise `computation` on arrays of equal dimensions, made in `c`."""
    dims = arguments[0].shape.dims
    whole: dict[Instruction, Instruction] = {}
    for k in computation.post_order():
        if k.opcode == "parameter":
            whole[k] = arguments[k.attrs["number"]]
            continue
        if k.opcode == "tuple":
            return [whole[o] for o in k.operands]
        shape = k.shape.with_dims(dims).with_default_layout()
        if k.opcode == "constant":
            scalar = c.attach(k.clone())
            whole[k] = c.add("broadcast", [scalar], shape, dimensions=()) if shape.rank else scalar
        else:
            whole[k] = c.add(k.opcode, [whole[o] for o in k.operands], shape, like=like, **k.attrs)
    return [whole[computation.root]]
