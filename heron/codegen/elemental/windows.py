"""select-and-scatter without atomics: each result element looks at the windows it lies in and sums what chose it."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from heron.analysis.indexing.expr import Const, Expr, floordiv, mod
from heron.analysis.indexing.hlo_maps import Index, window_index
from heron.analysis.indexing.map import Constraint
from heron.codegen.elemental.constants import scalar_constant
from heron.codegen.elemental.control import apply
from heron.codegen.elemental.emitter import FunctionEmitter
from heron.codegen.elemental.logic import select
from heron.codegen.elemental.registry import rule
from heron.codegen.elemental.values import Value, scalar_of
from heron.codegen.ir.types import I1
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import scalar


def _plain_window(i: Instruction) -> str | None:
    plain = all(w.base_dilation == w.window_dilation == 1 and not w.reversal for w in i.window)
    return None if plain else "dilated windows"


@rule("select-and-scatter", check=_plain_window)
def _select_and_scatter(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    source, initial = i.operands[1:]
    shape = scalar(i.shape.element_type)
    inits = e.pack(e.value(initial, ()), shape)
    if not source.shape.num_elements:
        return e.unpack(iter(inits), shape)

    def window_of(variables: Index) -> tuple[Index, list[Constraint]]:
        """The window the element is the (size - 1 - variable)-th of (so windows come in order), and when it is one."""
        places: list[Expr] = []
        constraints: list[Constraint] = []
        for w, p, v, count in zip(i.window, index, variables, source.shape.dims, strict=True):
            start = p + (w.pad_low - w.size + 1) + v
            places.append(floordiv(start, Const(w.stride)))
            constraints.append((start, 0, (count - 1) * w.stride))
            if w.stride > 1:
                constraints.append((mod(start, Const(w.stride)), 0, 0))
        return tuple(places), constraints

    def body(variables: Index, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        place = e.simplify(window_of(variables)[0])
        chosen = _is_chosen(e, i, place, index)
        total = e.unpack(iter(carried), shape)
        more = apply(e, i.scatter, [total, e.value(source, place)])
        return e.pack(select(e, chosen, more, total), shape)

    sums = e.loop([w.size for w in i.window], inits, body, lambda v: window_of(v)[1])
    return e.unpack(iter(sums), shape)


def _is_chosen(e: FunctionEmitter, i: Instruction, place: Index, index: Index) -> SSAValue:
    """Whether the window at `place` selects the element at `index`, the first `select` keeps against all others."""
    operand = i.operands[0]
    shape = scalar(operand.shape.element_type)
    zero, none = e.b.integer(0), e.b.integer(0, I1)
    nothing = e.pack(scalar_constant(e, 0, operand.shape.element_type), shape)
    rank = operand.shape.rank

    def body(variables: Index, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        found, at, best = carried[0], carried[1 : 1 + rank], e.unpack(iter(carried[1 + rank :]), shape)
        where = e.simplify(window_index(i.window, operand.shape.dims, place, variables)[0])
        value = e.value(operand, where)
        stays = e.b.op(arith.AndIOp, found, scalar_of(apply(e, i.select, [best, value])))
        kept = [e.b.select(stays, old, new) for old, new in zip(at, e.index_values(where), strict=True)]
        return [e.b.integer(1, I1), *kept, *e.pack(select(e, stays, best, value), shape)]

    def inside(variables: Index) -> Sequence[Constraint]:
        return window_index(i.window, operand.shape.dims, place, variables)[1]

    result = e.loop([w.size for w in i.window], [none, *[zero] * rank, *nothing], body, inside)
    chosen = result[0]
    for at, wanted in zip(result[1 : 1 + rank], e.index_values(index), strict=True):
        chosen = e.b.op(arith.AndIOp, chosen, e.b.cmpi("eq", at, wanted))
    return chosen
