"""sort: what does not count is sorted behind all that does."""

from __future__ import annotations

from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import PRED_SCALAR, tuple_
from heron.passes.dynamic.model.padded import Padded, remade
from heron.passes.dynamic.rules.table import rule
from heron.passes.rewriting.expander import home


@rule("sort")
def _sort(i: Instruction, operands: list[Padded]) -> Instruction:
    (d,) = i.dimensions
    arrays = [o.x for o in operands]
    dynamic = next((o for o in operands if o.dynamic_of([d])), None)
    if dynamic is None:
        return remade(i, arrays)
    c = home(i)
    assert c.module is not None
    line = [*arrays, dynamic.inside([d])]
    shape = tuple_([x.shape.with_default_layout() for x in line])
    comparator = c.module.add_computation(_outside_last(i.to_apply, len(arrays)))
    made = c.attach(i.clone(line, shape, to_apply=comparator))
    parts = [c.add("get-tuple-element", [made], x.shape, index=n) for n, x in enumerate(arrays)]
    return c.add("tuple", parts, like=i) if i.shape.is_tuple else parts[0]


def _outside_last(old: Computation, count: int) -> Computation:
    """`old(a, b)` where both count; else whether a alone does."""
    new = old.clone()
    order = new.root
    a, b = (new.add_parameter(2 * count + n, PRED_SCALAR) for n in range(2))
    new.root = new.add("select", [a & b, order, a & ~b], PRED_SCALAR)
    return new
