"""The one custom call that kernels compute: which row the row swaps of an LU factorisation bring to each place."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from heron.analysis.indexing.expr import Const
from heron.analysis.indexing.hlo_maps import Index
from heron.codegen.elemental.emitter import FunctionEmitter
from heron.codegen.elemental.positions import index_to_scalar
from heron.codegen.elemental.registry import rule
from heron.codegen.elemental.values import Value, scalar_of
from heron.hlo.calls.lapack import PIVOTS
from heron.hlo.ir.instruction import Instruction


def _only_pivots(i: Instruction) -> str | None:
    return None if i.custom_call_target in PIVOTS.targets else f"a call of {i.custom_call_target}"


@rule("custom-call", check=_only_pivots)
def _permutation(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    """Backwards through the swaps: the place that what is at `index` in the end was at before each of them."""
    pivots, t = i.operands[0], i.shape.element_type
    *batch, place = index
    count = pivots.shape.dims[-1]

    def before(variables: Index, carried: Sequence[SSAValue]) -> list[SSAValue]:
        step = e.simplify((Const(count - 1) - variables[0],))[0]
        one, other, at = scalar_of(index_to_scalar(e, step, t)), e.scalar(pivots, (*batch, step)), carried[0]
        moved = e.b.select(e.b.cmpi("eq", at, other), one, at)
        return [e.b.select(e.b.cmpi("eq", at, one), other, moved)]

    return e.loop([count], [scalar_of(index_to_scalar(e, place, t))], before)[0]
