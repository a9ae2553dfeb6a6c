"""Sorting: the kernels of a `sort`, or of a fusion around one, to be run one after another.

One on the CPU, in the output buffers, which hold the operands beforehand: a radix sort of long rows where the
comparator orders by keys (of floats in the partial order for rows without NaNs), else a merge sort, both stable. On the
GPU a bitonic network, not stable (a stable sort carries positions there, see the stable-sort-expander pass): its first
kernel reads, or computes, the operands and leaves sorted tiles in the outputs, further ones work there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from xdsl.ir import SSAValue

from heron.analysis.fusion.sort_keys import keys_of
from heron.analysis.indexing.expr import Expr
from heron.analysis.indexing.hlo_maps import Index, delinearize
from heron.codegen.elemental import Value
from heron.codegen.elemental.control import apply
from heron.codegen.emitters.base import Entry, Fusion, Output, as_fusion, entry
from heron.codegen.kernel import Kernel
from heron.codegen.partition import partition
from heron.errors import HeronError
from heron.hlo.ir.instruction import Instruction
from heron.targets import Target


@dataclass(frozen=True, slots=True)
class Kept:
    """What an output holds: ``size`` places of each sorted row of an operand, from ``start`` on."""

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

    def frame(self, name: str, target: Target) -> Entry:
        """The entry of a kernel that may compute the operands."""
        return entry(self.fusion, partition(list(dict.fromkeys(self.i.operands))), name, target)

    def frame_in_place(self, name: str, target: Target) -> Entry:
        """The entry of a kernel whose only arguments are the outputs."""
        return entry(replace(self.fusion, inputs=()), partition([]), name, target)

    def index(self, frame: Entry, row: Expr, position: Expr) -> Index:
        """Where element `position` of a row stands."""
        outer = delinearize(row, [n for d, n in enumerate(self.sizes) if d != self.d])
        return frame.e.simplify((*outer[: self.d], position, *outer[self.d :]))

    def before(self, frame: Entry, a: Sequence[Value], b: Sequence[Value]) -> SSAValue:
        """Whether the elements `a` come before `b`."""
        return apply(frame.e, self.i.to_apply, [v for pair in zip(a, b, strict=True) for v in pair])


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
            "a kernel that sorts has no other outputs than what it sorted, or slices of it along the rows",
            where=str(output.instruction),
        )
    return Kept(operand, start, size)


def _cuts_only(i: Instruction, d: int) -> bool:
    whole = [(0, n, 1) for n in i.operands[0].shape.dims]
    return i.attrs["slice"][d][2] == 1 and all(k == d or w == whole[k] for k, w in enumerate(i.attrs["slice"]))


def emit_sort(i: Instruction, name: str, target: Target) -> list[Kernel]:
    """The kernels of a sort, to be run in this order; equal steps are the same object.

    Those whose arguments are the outputs only find there what the one before left; on the CPU, the operands. Raises
    GEN133 for a fusion with other outputs, GEN134 for one that drops results of a sort of several kernels.
    """
    from heron.codegen.emitters.sort import cpu, cpu_partial, cpu_radix, gpu

    sort = Sort.of(as_fusion(i))
    assert sort is not None
    if target.kind == "cpu":
        keys = keys_of(sort.i.to_apply, partial=True)
        if keys is not None and cpu_radix.is_worth(sort, keys):
            by_keys = cpu_partial if any(k.partial for k in keys) else cpu_radix
            return [by_keys.emit(sort, keys, name, target)]
        return [cpu.emit(sort, name, target)]
    return gpu.emit(sort, name, target)
