"""Sorting, in place: the kernels of a `sort` find the operands in the output buffers and leave them there in order.

`emit_sort` gives the kernels to run one after another; one on the CPU (a stable merge sort), several on the GPU (a
bitonic network, not stable: a stable sort carries an iota operand there, see the stable-sort-expander pass).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod

from xdsl.dialects import scf
from xdsl.ir import Block, Region, SSAValue

from heron.analysis.indexing.expr import Expr
from heron.analysis.indexing.hlo_maps import Index, delinearize
from heron.codegen.elemental import Value
from heron.codegen.elemental.control import apply
from heron.codegen.heroes.base import Entry, as_fusion, entry
from heron.codegen.kernel import Kernel
from heron.codegen.partition import partition
from heron.hlo.instruction import Instruction
from heron.targets import Target


@dataclass(frozen=True, slots=True)
class Sort:
    """A sort taken apart: ``length`` elements in each of ``rows`` rows along dimension ``d``."""

    i: Instruction
    d: int

    @staticmethod
    def of(i: Instruction) -> Sort:
        return Sort(i, i.dimensions[0])

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.i.operands[0].shape.dims

    @property
    def length(self) -> int:
        return self.sizes[self.d]

    @property
    def rows(self) -> int:
        return prod(n for d, n in enumerate(self.sizes) if d != self.d)

    def frame(self, name: str, target: Target) -> Entry:
        """The entry of a kernel whose only arguments are the outputs."""
        fusion = replace(as_fusion(self.i), inputs=())
        return entry(fusion, partition([]), name, target)

    def index(self, frame: Entry, row: Expr, position: Expr) -> Index:
        """Where element `position` of a row stands."""
        outer = delinearize(row, [n for d, n in enumerate(self.sizes) if d != self.d])
        return frame.e.simplify((*outer[: self.d], position, *outer[self.d :]))

    def before(self, frame: Entry, a: Sequence[Value], b: Sequence[Value]) -> SSAValue:
        """Whether the elements `a` come before `b`."""
        return apply(frame.e, self.i.to_apply, [v for pair in zip(a, b, strict=True) for v in pair])


def emit_sort(i: Instruction, name: str, target: Target) -> list[Kernel]:
    """The kernels of a sort, to be run in this order; equal steps are the same object.

    Their arguments are the outputs only, which hold the operands beforehand.
    """
    from heron.codegen.heroes import sort_cpu, sort_gpu

    sort = Sort.of(i)
    if target.kind == "cpu":
        return [sort_cpu.emit(sort, name, target)]
    return sort_gpu.emit(sort, name, target)


# -- loops and branches over tensors ----------------------------------------------------------------------------------


def when(
    frame: Entry, condition: SSAValue, inits: Sequence[SSAValue], body: Callable[[], Sequence[SSAValue]]
) -> list[SSAValue]:
    """`scf.if` that changes tensors, or leaves them."""
    e = frame.e
    then, otherwise = Block(), Block()
    with e.region(then):
        e.b.terminate(scf.YieldOp, body())
    with e.region(otherwise):
        e.b.terminate(scf.YieldOp, inits)
    op = scf.IfOp.create(
        operands=[condition], result_types=[v.type for v in inits], regions=[Region(then), Region(otherwise)]
    )
    return list(e.b.add(op).results)
