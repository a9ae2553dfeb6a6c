"""layout-assignment: every array gets a layout, so that as little as possible is moved."""

from __future__ import annotations

from collections.abc import Iterator

from heron.errors import HeronError
from heron.hlo.calls.declared import takes_any_order
from heron.hlo.facts import rearranges
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.layout import layout
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import Shape, ShapeIndex, tuple_
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.layout.bitcast_decomposer import decompose, moves_elements
from heron.passes.layout.model.orders import Order, has_layouts, in_order, is_default, is_laid_out, is_plain, order
from heron.passes.layout.model.places import Edge, Places, Value
from heron.passes.layout.model.preferences import preferences
from heron.passes.layout.model.regions import Region, best
from heron.passes.layout.model.relations import Fixed, Relation, Stated, Stepped
from heron.passes.rewriting.expander import home
from heron.passes.rewriting.tuples import arranged, packed, part_of, take_apart
from heron.records import dataclass


@register
@dataclass(frozen=True)
class LayoutAssignment(Pass):
    """Gives every array a layout: the order of its dimensions in memory.

    Callers fix those of parameters and results, by the header's entry layout (else by what the parameters and the root
    have); of results without a layout there, callers take what is chosen. Libraries fix those of what they take and
    give; most ops work in any order, if it is one for all they read and give. Everything begins row-major. Then each
    transpose, and each operand that is not as its op needs it, is a chance: values around it take another order where
    that moves fewer bytes in all. Where two orders still meet, a copy stands between them. The preferences of a target
    are data (`preferences.py`); tiles and memory spaces are not kept.

    n = f32[2,3]{1,0} negate(f32[2,3]{0,1} x)
    t = f32[3,2]{1,0} transpose(n), dimensions={1,0}
    ROOT r = f32[3,2]{1,0} abs(t)
    ->
    n = f32[2,3]{0,1} negate(x)
    t = f32[3,2]{1,0} transpose(n), dimensions={1,0}
    ROOT r = f32[3,2]{1,0} abs(t)
    """

    name = "layout-assignment"

    def run(self, module: Module, ctx: PassContext) -> bool:
        open_results = _open_results(module)
        given = tuple([_order_only(s) for s in module.parameter_shapes])
        result = _order_only(module.result_shape)
        laid_out = has_layouts(module) or not all(map(is_default, (*given, result)))
        before = {i: i.shape for i in module.instructions()}
        changed = False
        if laid_out:
            _need_plain_calls(module)
            changed = decompose([i for i in module.instructions() if i.opcode == "bitcast" and moves_elements(i)])
            changed |= _split_stated(module, given, result)
        places = Places(module, given, result, preferences(ctx.target), open_results)
        orders = _as_given(places) if laid_out else {}
        orders = _search(places, orders, ctx)
        _lay_out(places, orders)
        changed |= _copy_between(places, orders, ctx)
        result = _chosen(result, module.entry.root.shape, open_results)
        if module.entry_layout not in (None, (given, result)):
            module.entry_layout = given, result
            changed = True
        return changed or any(i.shape is not before.get(i) for i in module.instructions())


def _open_results(module: Module) -> frozenset[ShapeIndex]:
    """The parts of the result whose order callers leave open."""
    if module.entry_layout is None:
        return frozenset()
    leaves = module.entry_layout[1].leaves()
    return frozenset(index for index, leaf in leaves if leaf.is_array and leaf.rank > 1 and leaf.layout is None)


def _chosen(seen: Shape, own: Shape, open_parts: frozenset[ShapeIndex], at: ShapeIndex = ()) -> Shape:
    """The result as callers see it, with the layouts of `own` where they are open."""
    if seen.tuple_shapes is not None:
        parts = zip(seen.tuple_shapes, own.tuple_shapes or (), strict=True)
        return tuple_([_chosen(s, o, open_parts, (*at, n)) for n, (s, o) in enumerate(parts)])
    return own if at in open_parts else seen


def _order_only(shape: Shape) -> Shape:
    """The shape with the order of its dimensions in memory, and nothing else of its layouts."""
    if shape.tuple_shapes is not None:
        return tuple_([_order_only(s) for s in shape.tuple_shapes])
    if shape.layout is None or any(shape.dynamic):
        return shape.with_default_layout()
    return shape.with_layout(layout(shape.layout.minor_to_major))


# -- what is fixed -----------------------------------------------------------------------------------------------------
def _need_plain_calls(module: Module) -> None:
    """Raises PASS023 for a library call that wants tiles, another memory, or an alias in two layouts."""
    for i in module.instructions():
        wanted = i.attrs.get("operand_layout_constraints") if i.opcode == "custom-call" else None
        if not wanted or takes_any_order(i):
            continue
        for n, shape in enumerate(wanted):
            if not is_plain(shape):
                why = f"operand {n} must be {shape}; heron keeps arrays without tiles, in one memory space"
                raise HeronError("PASS023", f"'{i.name}' requires an unsupported layout", where=str(i), why=why)
        for output, n, index in i.attrs.get("output_to_operand_aliasing", ()):
            gives, takes = i.shape.at(tuple(output)), wanted[n].at(tuple(index))
            if order(gives) != order(takes):
                why = f"the output is {gives}, operand {n} is to be {takes}"
                raise HeronError("PASS023", f"'{i.name}' has an alias in two layouts", where=str(i), why=why)


def _split_stated(module: Module, given: tuple[Shape, ...], result: Shape) -> bool:
    """Split tuples whose arrays have layouts that callers or libraries state, so that each array has one place."""
    changed = False
    for p, shape in zip(module.entry.parameters, given, strict=True):
        if shape.is_tuple and not is_default(shape):
            changed |= take_apart(p)
    for c in module.non_fusion_computations():
        for i in c.instructions:
            if i.opcode == "custom-call" and i.shape.is_tuple and not takes_any_order(i):
                changed |= take_apart(i)
    root = module.entry.root
    if result.is_tuple and (root.users or not _is_put_together(root)):
        parts = arranged(root.shape, lambda index: part_of(root, index))
        module.entry.root = packed(module.entry, parts, root.shape, root)
        module.entry.remove_dead_from(root)
        changed = True
    return changed


def _is_put_together(i: Instruction) -> bool:
    """Whether a tuple is made of arrays, its parts in turn, each for it alone."""
    parts = [o for o in i.operands if o.shape.is_tuple]
    return i.opcode == "tuple" and all(sum(o.users.values()) == 1 and _is_put_together(o) for o in parts)


# -- orders ------------------------------------------------------------------------------------------------------------
def _as_given(places: Places) -> dict[Value, Order]:
    """The orders values have in the program, if nothing but transposes and copies moves bytes with them; else none."""
    orders: dict[Value, Order] = {}
    for i, index in _laid_out(places):
        v = places.of(i, index)
        orders[v] = order(i.shape.at(index))
        agree = all(order(m.shape.at(at)) == orders[v] for m, at in v.members)
        if not agree or not (v.order == orders[v] if v.fixed else places.can_be(v, orders[v])):
            return {}
    for v in orders:
        if any(e.cost(orders) for e in places.around(v) if e.user is not None and not rearranges(e.user)):
            return {}
    return orders


def _laid_out(places: Places) -> Iterator[tuple[Instruction, ShapeIndex]]:
    """The arrays that are said to be in other than row-major order."""
    for c in places.computations:
        for i in c.instructions:
            if not is_laid_out(i.shape):
                continue
            for index, leaf in i.shape.leaves():
                if leaf.is_array and leaf.rank > 1 and not is_default(leaf):
                    yield i, index


def _search(places: Places, orders: dict[Value, Order], ctx: PassContext) -> dict[Value, Order]:
    """Better orders than those, for every place where bytes are moved, the most first; again where it has changed."""
    refused: dict[Edge, tuple[str, Region | None]] = {}
    chances = dict.fromkeys(_chances(places, orders))
    while chances:
        changed: dict[Value, None] = {}
        for edge in sorted(chances, key=lambda e: -e.cost(orders)):
            region = best(places, orders, edge) if edge.cost(orders) else None
            subject = edge.user.name if edge.user is not None else places.module.entry.root.name
            if region is None or region.after >= region.before:
                refused[edge] = subject, region
                continue
            orders = {**orders, **region.orders}
            changed |= dict.fromkeys(region.orders)
            _tell(region, subject, ctx)
        near = dict.fromkeys(v for c in changed for e in places.around(c) for v in (e.source, e.result))
        chances = {e: None for v in near if v is not None for e in places.around(v) if e.cost(orders)}
    for edge, (subject, region) in refused.items():
        if edge.cost(orders) and region is not None:
            _tell(region, subject, ctx)
        elif edge.cost(orders):
            ctx.decide(False, f"moved: {_fixed_sides(edge)}", subject=subject, object=edge.source.name)
    return orders


def _fixed_sides(edge: Edge) -> str:
    ends = [v for v in (edge.source, edge.result) if v is not None and v.fixed]
    return "; ".join(f"'{v.name}' is {in_order(v.shape, v.order)}, {v.fixed}" for v in ends) or "no other order fits"


def _tell(region: Region, subject: str, ctx: PassContext) -> None:
    pays = region.after < region.before
    shown = ", ".join(f"'{v.name}' {in_order(v.shape, o).layout}" for v, o in list(region.orders.items())[:4])
    more = f" and {len(region.orders) - 4} more" if len(region.orders) > 4 else ""
    why = "fewer bytes are moved" if pays else "no fewer bytes would be moved"
    ctx.decide(
        pays,
        f"{why} with {shown}{more}",
        subject=subject,
        object=", ".join(v.name for v in region.orders),
        cost_before=float(region.before),
        cost_after=float(region.after),
    )


def _chances(places: Places, orders: dict[Value, Order]) -> Iterator[Edge]:
    """The edges at which bytes may be moved."""
    for c in places.computations:
        for i in c.instructions:
            if rearranges(i):  # it realises a difference of orders itself: no copy is needed before it
                yield from (e for e in places.above(i) if e.cost(orders))
    yield from (e for e in _stated(places) if e.cost(orders))


def _stated(places: Places) -> Iterator[Edge]:
    """The edges of what callers and libraries want or give in an order that they state."""
    if places.handed_out is not None:
        yield places.handed_out
    for v in places.stated:
        yield from places.around(v)
    for c in places.computations:
        for i in c.instructions:
            if i.opcode == "custom-call" and not takes_any_order(i):
                yield from places.above(i)


# -- the program -------------------------------------------------------------------------------------------------------
def _lay_out(places: Places, orders: dict[Value, Order]) -> None:
    """Give all instructions their layouts."""
    own: dict[Instruction, dict[ShapeIndex, Order]] = {}
    for v, wanted in _not_rows(places, orders).items():
        for i, index in v.members:
            own.setdefault(i, {})[index] = wanted
    new: dict[Shape, Shape] = {}
    for i in places.module.instructions():
        if i in own:
            i.shape = _with_orders(i.shape, own[i])
            continue
        shape = new.get(i.shape)
        if shape is None:
            shape = new[i.shape] = i.shape.with_default_layout()
        i.shape = shape


def _not_rows(places: Places, orders: dict[Value, Order]) -> dict[Value, Order]:
    """All values that are not row-major, with their orders."""
    stated = {v: v.order for v in places.stated}
    return {v: o for v, o in {**stated, **orders}.items() if o != tuple(range(len(o)))}


def _with_orders(shape: Shape, orders: dict[ShapeIndex, Order], at: ShapeIndex = ()) -> Shape:
    """`shape` with those parts in those orders and the others row-major."""
    if shape.tuple_shapes is not None:
        return tuple_([_with_orders(s, orders, (*at, n)) for n, s in enumerate(shape.tuple_shapes)])
    return in_order(shape, orders[at]) if at in orders else shape.with_default_layout()


def _copy_between(places: Places, orders: dict[Value, Order], ctx: PassContext) -> bool:
    """Insert a copy where an operand does not have the layout its op needs; whether there are any."""
    made: dict[tuple[Instruction, Order], Instruction] = {}
    edges = [*(e for v in _not_rows(places, orders) for e in places.around(v)), *_stated(places)]
    for edge in dict.fromkeys(edges):
        wanted = _wanted(edge, orders)
        x = edge.user.operands[edge.n] if edge.user is not None else places.module.entry.root
        if wanted is None or wanted == order(x.shape):
            continue
        copy = made.get((x, wanted))
        if copy is None:
            copy = made[x, wanted] = home(x).add("copy", [x], in_order(x.shape, wanted), like=x)
        if edge.user is not None:
            edge.user.set_operand(edge.n, copy)
        else:
            places.module.entry.root = copy
        user, cost = edge.user.name if edge.user is not None else "the caller", edge.cost(orders)
        if cost:
            why = f"copied for {user}: {x.shape} to {copy.shape}"
            ctx.decide(False, why, subject=x.name, object=user, cost_after=float(cost))
    return bool(made)


def _wanted(edge: Edge, orders: dict[Value, Order]) -> Order | None:
    """The order an operand must be brought into; None where it may stay as it is."""
    is_mover = edge.user is not None and rearranges(edge.user)
    # where one order is not told from another by bytes, it is by name: both sides have the same
    by_name = type(edge.relation) in (Relation, Stepped, Fixed, Stated)
    if is_mover or not (by_name or edge.cost(orders)):
        return None
    return edge.relation.up(orders.get(edge.result, edge.result.order) if edge.result is not None else ())
