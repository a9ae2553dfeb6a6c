"""Buffers of a saved program: which memory a run needs, without the module the answer came from."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from heron.buffers.assignment import Allocation, BufferAssignment, Slice
from heron.hlo.ir.literal import Literal
from heron.hlo.ir.shape import array
from heron.hlo.ir.types import U8
from heron.records import dataclass


@dataclass(slots=True)
class SavedAllocation(Allocation):
    """An allocation whose values are not known any more. ``is_written``: a program writes into it."""

    label: str = ""
    is_written: bool = False

    @property
    def writable(self) -> bool:
        return self.is_written

    @property
    def name(self) -> str:
        return self.label


def to_plain(assignment: BufferAssignment) -> dict[str, Any]:
    """All but the constants' values."""
    rows = [
        {
            "kind": a.kind,
            "size": a.size,
            "parameter": a.parameter,
            "index": list(a.index),
            "output": a.output,
            "memory_space": a.memory_space,
            "label": a.name,
            "is_written": a.writable,
        }
        for a in assignment.allocations
    ]
    outputs = [[s.allocation, s.offset, s.size] for s in assignment.outputs]
    return {"allocations": rows, "outputs": outputs, "peak": assignment.peak_bytes, "alignment": assignment.alignment}


def from_plain(plain: dict[str, Any], constants: dict[int, np.ndarray]) -> BufferAssignment:
    """The assignment again. ``constants``: bytes by allocation number."""
    allocations: list[Allocation] = []
    for number, row in enumerate(plain["allocations"]):
        row = {**row, "index": tuple(row["index"])}
        value = constants.get(number)
        literal = None if value is None else Literal(array(U8, value.shape), value)
        allocations.append(SavedAllocation(number=number, literal=literal, **row))
    nothing = cast(Any, None)
    outputs = [Slice(*s) for s in plain["outputs"]]
    return BufferAssignment(nothing, nothing, nothing, allocations, {}, outputs, plain["peak"], plain["alignment"])
