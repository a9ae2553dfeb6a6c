"""Reductions by any combiner: each element goes along with whether it counts."""

from __future__ import annotations

from collections.abc import Sequence

from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import PRED_SCALAR, tuple_
from heron.hlo.ir.types import PRED
from heron.passes.dynamic.model.padded import Padded, chosen, static
from heron.passes.rewriting.building import scalar
from heron.passes.rewriting.expander import home


def counting(i: Instruction, arrays: list[Padded], inits: list[Instruction], dims: Sequence[int]) -> Instruction:
    """A reduce or reduce-window that takes, of two elements of which one counts, that one."""
    c = home(i)
    assert c.module is not None
    inside, init = arrays[0].inside(dims), scalar(c, PRED, True)
    results = [static(s) for s in (i.shape.tuple_shapes or (i.shape,))]
    flags = results[0].with_type(PRED)
    reducer = c.module.add_computation(_of_those_that_count(i.to_apply, len(arrays)))
    operands = [*(a.x for a in arrays), inside, *inits, init]
    made = c.attach(i.clone(operands, tuple_([*results, flags]), to_apply=reducer))
    parts = [c.add("get-tuple-element", [made], s, index=n) for n, s in enumerate(results)]
    return c.add("tuple", parts, like=i) if i.shape.is_tuple else parts[0]


def _of_those_that_count(old: Computation, count: int) -> Computation:
    """``(a..., p), (b..., q)`` to ``old(a, b)`` where both count, else the one that does; and whether any does."""
    new = old.clone()
    parameters, root = new.parameters, new.root
    found = [root] if not root.shape.is_tuple else [
        new.add("get-tuple-element", [root], index=n) for n in range(count)
    ]  # fmt: skip
    for p in reversed(parameters[count:]):  # the second element's come after the first one's flag
        p.attrs["number"] += 1
    a = new.add_parameter(count, PRED_SCALAR)
    b = new.add_parameter(2 * count + 1, PRED_SCALAR)
    kept = [
        chosen(b, chosen(a, r, q), p) for r, p, q in zip(found, parameters[:count], parameters[count:], strict=True)
    ]
    new.root = new.add("tuple", [*kept, a | b])
    return new
