"""select-and-scatter and scan: what does not count must neither be chosen nor change what is carried."""

from __future__ import annotations

from math import prod

from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import PRED_SCALAR, scalar, tuple_
from heron.hlo.ir.types import PRED, S32
from heron.hlo.ir.window import WindowDim
from heron.passes.dynamic.model.padded import Padded, chosen, number, refused, remade, spread
from heron.passes.dynamic.rules.table import rule
from heron.passes.rewriting.building import array, reshape
from heron.passes.rewriting.building import scalar as constant_scalar
from heron.passes.rewriting.expander import home


@rule("select-and-scatter")
def _select_and_scatter(i: Instruction, operands: list[Padded]) -> Instruction:
    """Each window looks for the place it selects among those that count; sources that count are scattered there."""
    x, source, init = operands
    sliding = [d for d, w in enumerate(i.window) if w != WindowDim(1)]
    if not x.dynamic_of(sliding) and not source.dynamic_of(sliding):
        return remade(i, [x.x, source.x, init.x])
    c, size, count = home(i), prod(i.shape.dims), prod(source.x.shape.dims)
    flat = c.add("iota", [], array(S32, (size,)), iota_dimension=0)
    place = _selected(i, x, reshape(flat, i.shape.dims))
    at = Padded(place, source.sizes, source.numbers).masked(sliding, -1)
    made = c.add(
        "scatter",
        [
            spread(init.x, array(i.shape.element_type, (size,))),
            reshape(at, (count, 1)),
            reshape(source.x, (count,)),
        ],
        like=i,
        update_window_dims=(),
        inserted_window_dims=(0,),
        scatter_dims_to_operand_dims=(0,),
        index_vector_dim=1,
        to_apply=i.scatter,
    )
    return reshape(made, i.shape.dims)


def _selected(i: Instruction, x: Padded, places: Instruction) -> Instruction:
    """The place each window selects; -1 where nothing in it counts."""
    c = home(i)
    assert c.module is not None
    t = x.x.shape.element_type
    inits = [constant_scalar(c, t, 0), number(c, -1), constant_scalar(c, PRED, False)]
    arrays = [x.x, places, x.inside(range(i.shape.rank))]
    dims = i.operands[1].shape.dims
    result = tuple_([array(init.shape.element_type, dims) for init in inits])
    best = c.module.add_computation(_best(i.select))
    made = c.add("reduce-window", [*arrays, *inits], result, like=i, window=i.window, to_apply=best)
    return c.add("get-tuple-element", [made], index=1)


def _best(select: Computation) -> Computation:
    """``(a, place, counts), (b, place, counts)`` to the one that is selected among those that count."""
    new = select.clone()
    stays = new.root
    a, b = new.parameters
    b.attrs["number"] = 3
    value = a.shape.element_type
    at_a, in_a = new.add_parameter(1, scalar(S32)), new.add_parameter(2, PRED_SCALAR)
    at_b, in_b = new.add_parameter(4, scalar(S32)), new.add_parameter(5, PRED_SCALAR)
    kept = ~in_b | (in_a & stays)
    parts = [chosen(kept, a, b), chosen(kept, at_a, at_b), in_a | in_b]
    new.root = new.add("tuple", parts, tuple_([scalar(value), scalar(S32), PRED_SCALAR]))
    return new


@rule("scan")
def _scan(i: Instruction, operands: list[Padded]) -> Instruction:
    """Steps that do not count hand their carries on."""
    (along,) = i.dimensions
    split = len(operands) - i.num_carries
    scanned, carries = operands[:split], operands[split:]
    for o in operands:
        if o.dynamic_of(d for d in range(o.x.shape.rank) if d != along or o not in scanned):
            raise refused(i, "the size of what a step sees is dynamic")
    dynamic = next((o for o in scanned if o.dynamic_of([along])), None)
    if dynamic is None or not carries:
        return remade(i, [o.x for o in operands])
    c = home(i)
    assert c.module is not None
    n = dynamic.x.shape.dims[along]
    line = c.add("iota", [], array(S32, (*[1] * along, n)), iota_dimension=along)
    counts = line.lt(spread(dynamic.number(along), line.shape))
    body = c.module.add_computation(_of_steps_that_count(i.to_apply, split, counts.shape.dims[:along]))
    return remade(i, [*(o.x for o in scanned), counts, *(o.x for o in carries)], to_apply=body)


def _of_steps_that_count(old: Computation, scanned: int, dims: tuple[int, ...]) -> Computation:
    """`old` with one thing more that is scanned, of size one: whether the step counts."""
    new = old.clone()
    carried = new.parameters[scanned:]
    root = new.root
    results = [root]
    if root.shape.is_tuple:
        results = [new.add("get-tuple-element", [root], index=n) for n in range(len(root.shape.tuple_shapes or ()))]
    for p in reversed(carried):
        p.attrs["number"] += 1
    counts = reshape(new.add_parameter(scanned, array(PRED, dims)), ())
    first = len(results) - len(carried)
    for n, before in enumerate(carried, first):
        results[n] = chosen(spread(counts, before.shape.with_type(PRED)), results[n], before)
    new.root = new.add("tuple", results) if root.shape.is_tuple else results[0]
    return new
