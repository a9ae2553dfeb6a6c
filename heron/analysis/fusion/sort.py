"""A kernel that sorts: the sort, and the parts of its results that are outputs."""

from __future__ import annotations

from math import prod

from heron.analysis.fusion.fusion import Fusion, Output
from heron.errors import HeronError
from heron.hlo.ir.instruction import Instruction
from heron.records import dataclass


@dataclass(frozen=True, slots=True)
class Kept:
    """The content of an output: ``size`` places of each sorted row of an operand, from ``start`` on."""

    operand: int
    start: int
    size: int


@dataclass(frozen=True, slots=True)
class Sort:
    """A sort taken apart: ``length`` elements in each of ``rows`` rows along dimension ``d``."""

    fusion: Fusion
    i: Instruction
    d: int
    outputs: tuple[Kept, ...]

    @staticmethod
    def of(fusion: Fusion) -> Sort | None:
        """The sort whose results, or slices of them, all outputs are; None where there is none.

        Raises GEN133 for an output that is anything else.
        """
        found = next((i for i in fusion.computation.instructions if i.opcode == "sort"), None)
        if found is None:
            return None
        outputs = tuple(_kept(o, found) for o in fusion.outputs)
        return Sort(fusion, found, found.dimensions[0], outputs)

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.i.operands[0].shape.dims

    @property
    def length(self) -> int:
        return self.sizes[self.d]

    @property
    def rows(self) -> int:
        return prod(n for d, n in enumerate(self.sizes) if d != self.d)

    @property
    def keeps_all(self) -> bool:
        """Whether the outputs are the sorted operands, each in its place."""
        return self.outputs == tuple(Kept(n, 0, self.length) for n in range(len(self.i.operands)))


def _kept(output: Output, sort: Instruction) -> Kept:
    i, (d,) = output.instruction, sort.dimensions
    start, size = 0, sort.operands[0].shape.dims[d]
    if i.opcode == "slice" and _cuts_only(i, d):
        start, end, _ = i.attrs["slice"][d]
        i, size = i.operands[0], end - start
    operand = output.part or 0
    if i.opcode == "get-tuple-element":
        i, operand = i.operands[0], i.attrs["index"]
    if i is not sort:
        raise HeronError(
            "GEN133",
            "a kernel that sorts can output only the sorted arrays, or slices of them along the rows",
            where=str(output.instruction),
        )
    return Kept(operand, start, size)


def _cuts_only(i: Instruction, d: int) -> bool:
    whole = [(0, n, 1) for n in i.operands[0].shape.dims]
    return i.attrs["slice"][d][2] == 1 and all(k == d or w == whole[k] for k, w in enumerate(i.attrs["slice"]))
