"""Steps of `program` that call computations or sum products: reductions, scatters, sorts, dots, loops, branches."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from heron.fuzz.programs.state import MAX_ELEMENTS, State, epsilon, exact_limit, top
from heron.hlo.builder import Builder
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape, row_major, scalar, tuple_
from heron.hlo.ir.types import PRED, S32, ElementType
from heron.hlo.ir.window import WindowDim


def _reducer(s: State, element_type: ElementType) -> str:
    if element_type is PRED:
        return s.one_of(("and", "or", "xor"))
    ints = ("add", "minimum", "maximum", "xor", "multiply")
    return s.one_of(ints if element_type.is_integer else ints[:3])


def _neutral(opcode: str, element_type: ElementType) -> bool | int | float:
    """A value the reduction starts from; not always the one that changes nothing."""
    if element_type is PRED:
        return opcode == "and"
    return {"add": 0, "xor": 5, "multiply": 1, "minimum": 19, "maximum": -3 if element_type.is_signed else 3}[opcode]


def _summed(s: State, x: Instruction, opcode: str, count: int) -> tuple[Instruction, float, float]:
    """`x`, made small enough for a sum of `count`, with bound and error of the result."""
    element_type = x.shape.element_type
    if opcode == "add" and element_type.is_float:
        x = s.within(x, max(exact_limit(element_type) // count, 1))
    facts = s.facts[x]
    if not element_type.is_float:
        return x, (1 if element_type is PRED else top(element_type)), 0.0
    if opcode != "add":
        return x, max(facts.bound, 19), facts.error
    return x, facts.bound * count, (facts.error + epsilon(element_type) * facts.bound) * count if facts.error else 0.0


def _reduce(s: State) -> Instruction | None:
    x = s.pick(fits=lambda v: v.shape.rank > 0)
    if x is None:
        return None
    over = sorted(s.choices.several(range(x.shape.rank), 1, x.shape.rank, unique=True))
    element_type = x.shape.element_type
    opcode = _reducer(s, element_type)
    count = prod(x.shape.dims[d] for d in over)
    if opcode == "add" and element_type.is_float and count > exact_limit(element_type):
        return None
    x, bound, error = _summed(s, x, opcode, count)
    init = s.b.constant(_neutral(opcode, element_type), element_type)
    made = s.b.reduce(x, init, dimensions=over, to_apply=s.b.reducer(opcode, element_type))
    return s.keep(made, bound, error)


def _arg_max(s: State) -> Instruction | None:
    """A reduction of two arrays at once: the largest value and where it is."""
    x = s.pick("signed float", exact=True, fits=lambda v: v.shape.rank > 0)
    if x is None:
        return None
    d, element_type = s.integer(0, x.shape.rank - 1), x.shape.element_type
    inner = s.b.nested(f"arg_max_{len(s.values)}")
    p = [inner.parameter(n, scalar(t)) for n, t in enumerate((element_type, S32, element_type, S32))]
    later = inner.compare(p[2], p[0], direction="GT")
    tie = inner.and_(inner.compare(p[2], p[0], direction="EQ"), inner.compare(p[3], p[1], direction="LT"))
    taken = inner.or_(later, tie)
    inner.finish(inner.tuple(inner.select(taken, p[2], p[0]), inner.select(taken, p[3], p[1])))
    places = s.b.iota(row_major(S32, *x.shape.dims), d)
    low, none = s.b.constant(-100, element_type), s.b.constant(0, S32)
    both = s.b.reduce(x, places, low, none, dimensions=[d], to_apply=inner.computation)
    if s.integer(0, 1):
        return s.keep(s.b.get_tuple_element(both, index=1), 33)
    return s.keep(s.b.get_tuple_element(both, index=0), max(s.facts[x].bound, 100))


def _reduce_window(s: State) -> Instruction | None:
    x = s.pick(fits=lambda v: 0 < v.shape.rank <= 3 and v.shape.num_elements <= 600)
    if x is None:
        return None
    dims = []
    for size in x.shape.dims:
        window, low, high = s.integer(1, 3), s.integer(0, 1), s.integer(0, 1)
        if size + low + high < window:
            window, low, high = 1, 0, 0
        dims.append(WindowDim(size=window, stride=s.integer(1, 2), pad_low=low, pad_high=high))
    element_type = x.shape.element_type
    opcode = _reducer(s, element_type)
    x, bound, error = _summed(s, x, opcode, prod(d.size for d in dims))
    init = s.b.constant(_neutral(opcode, element_type), element_type)
    made = s.b.reduce_window(x, init, window=tuple(dims), to_apply=s.b.reducer(opcode, element_type))
    return s.keep(made, bound, error)


def _matches(s: State, x: Instruction, y: Instruction) -> list[tuple[int, int]]:
    """One to three pairs of dimensions of `x` and `y` that have one size, no dimension twice."""
    free = list(range(y.shape.rank))
    pairs: list[tuple[int, int]] = []
    for d in s.choices.shuffled(range(x.shape.rank)):
        match = next((e for e in free if y.shape.dims[e] == x.shape.dims[d]), None)
        if match is not None and len(pairs) < 3 and (not pairs or s.integer(0, 1)):
            pairs.append((d, match))
            free.remove(match)
    return pairs


def _dot(s: State) -> Instruction | None:
    x = s.pick("float signed unsigned", fits=lambda v: v.shape.rank > 0)
    if x is None:
        return None
    element_type = x.shape.element_type
    y = s.pick(fits=lambda v: v.shape.element_type is element_type and set(v.shape.dims) & set(x.shape.dims) != set())
    if y is None:
        return None
    pairs = _matches(s, x, y)
    batch = pairs[1:] if s.integer(0, 1) else []
    contracted = [p for p in pairs if p not in batch]
    count = prod(x.shape.dims[d] for d, _ in contracted)
    elements = x.shape.num_elements * y.shape.num_elements // count // count
    most = int((exact_limit(element_type) / count) ** 0.5) if element_type.is_float else 0
    if elements > MAX_ELEMENTS * 4 or (element_type.is_float and most < 1):
        return None
    if element_type.is_float:
        x, y = s.within(x, most), s.within(y, most)
    a, b = s.facts[x], s.facts[y]
    made = s.b.dot(
        x,
        y,
        lhs_contracting_dims=[d for d, _ in contracted],
        rhs_contracting_dims=[e for _, e in contracted],
        lhs_batch_dims=[d for d, _ in batch],
        rhs_batch_dims=[e for _, e in batch],
    )
    if made.shape.num_elements > MAX_ELEMENTS:
        return None
    if not element_type.is_float:
        return s.keep(made, top(element_type))
    bound, error = count * a.bound * b.bound, count * (a.bound * b.error + b.bound * a.error + a.error * b.error)
    return s.keep(made, bound, error + epsilon(element_type) * bound if error else 0.0)


def _scatter(s: State) -> Instruction | None:
    """Rows added into an array, some of them twice, some out of range."""
    x = s.pick("float signed unsigned", fits=lambda v: v.shape.rank > 0)
    if x is None:
        return None
    starts = s.pick(fits=lambda v: v.shape.element_type is S32 and v.shape.rank == 1)
    if starts is None:
        return None
    element_type, rest = x.shape.element_type, x.shape.dims[1:]
    opcode = s.one_of(("add", "maximum", "minimum"))
    count = starts.shape.num_elements + 1
    if count * prod(rest) > MAX_ELEMENTS or (element_type.is_float and count > exact_limit(element_type)):
        return None
    x, bound, error = _summed(s, x, opcode, count)
    update = s.b.full(s.integer(0, 1), row_major(element_type, starts.shape.num_elements, *rest))
    made = s.b.scatter(
        x,
        starts,
        update,
        update_window_dims=list(range(1, len(rest) + 1)),
        inserted_window_dims=[0],
        scatter_dims_to_operand_dims=[0],
        index_vector_dim=1,
        to_apply=s.b.reducer(opcode, element_type),
    )
    return s.keep(made, max(bound, count), error)


def _sort(s: State) -> Instruction | None:
    x = s.pick("float signed unsigned", exact=True, fits=lambda v: v.shape.rank > 0)
    if x is None:
        return None
    t = x.shape.element_type
    inner = s.b.nested(f"order_{len(s.values)}")
    a, b = inner.parameter(0, scalar(t)), inner.parameter(1, scalar(t))
    order = inner.finish(inner.compare(a, b, direction=s.one_of(("LT", "GT"))))
    made = s.b.sort(x, dimensions=[s.integer(0, x.shape.rank - 1)], is_stable=True, to_apply=order)
    return s.keep(made, s.facts[x].bound)


def _while(s: State) -> Instruction | None:
    """A counted loop over one or two values of a shape: swapped, updated in place, combined."""
    x = s.pick()
    y, shape = s.like(x), x.shape
    state = tuple_([scalar(S32), shape, shape])
    condition = s.b.nested(f"again_{len(s.values)}")
    p = condition.parameter(0, state)
    count = condition.constant(s.integer(0, 4), S32)
    condition.finish(condition.compare(condition.get_tuple_element(p, index=0), count, direction="LT"))
    body = s.b.nested(f"step_{len(s.values)}")
    p = body.parameter(0, state)
    k, a, b = (body.get_tuple_element(p, index=n) for n in range(3))
    one = body.constant(1, S32)
    first, second = _mixed(s, body, k, a, b), s.one_of((a, b))
    body.finish(body.tuple(body.add(k, one), first, second))
    start = s.b.constant(s.integer(0, 1), S32)
    loop = s.b.while_(s.b.tuple(start, x, y), condition=condition.computation, body=body.computation)
    for n in (1, 2):
        value = s.b.get_tuple_element(loop, index=n)
        s.keep(value, max(s.facts[x].bound, s.facts[y].bound, 33), max(s.facts[x].error, s.facts[y].error))
        if n == 1:
            s.values.append(value)
    return value


def _mixed(s: State, inner: Builder, k: Instruction, a: Instruction, b: Instruction) -> Instruction:
    """A value from two of a shape that is no larger than either, or than a dimension."""
    shape, kind = a.shape, a.shape.element_type.kind
    way = s.integer(0, 5)
    if way == 0:
        return b
    if way == 1 and shape.rank:
        sizes = [1, *shape.dims[1:]]
        zero = inner.constant(0, S32)
        row = inner.dynamic_slice(b, k, *[zero] * (shape.rank - 1), dynamic_slice_sizes=sizes)
        return inner.dynamic_update_slice(a, row, *[zero] * (shape.rank - 1), k if shape.rank == 1 else zero)
    if way == 2 and shape.rank:
        return inner.reverse(b, dimensions=[s.integer(0, shape.rank - 1)])
    if way == 3:
        return inner.select(inner.compare(k, inner.constant(1, S32), direction="LE"), a, b)
    if way == 4 and kind != "pred":
        filled = inner.broadcast(inner.convert(k, shape=scalar(shape.element_type)), shape=shape, dimensions=[])
        return inner.maximum(a, filled)
    if kind == "pred":
        return inner.xor(a, b)
    return inner.minimum(a, b)


def _conditional(s: State) -> Instruction | None:
    x = s.pick()
    index = s.pick(fits=lambda v: v.shape.element_type in (S32, PRED) and not v.shape.rank)
    if index is None:
        index = s.b.constant(s.integer(-1, 3), S32)
    y, shape = s.like(x), x.shape
    count = 2 if index.shape.element_type is PRED else s.integer(1, 3)
    branches = [_branch(s, n, shape) for n in range(count)]
    operand = s.b.tuple(x, y)
    made = s.b.conditional(index, *[operand] * count, branch_computations=branches)
    return s.keep(made, max(s.facts[x].bound, s.facts[y].bound, 33), max(s.facts[x].error, s.facts[y].error))


def _branch(s: State, number: int, shape: Shape) -> Computation:
    inner = s.b.nested(f"branch_{len(s.values)}_{number}")
    p = inner.parameter(0, tuple_([shape, shape]))
    a, b = (inner.get_tuple_element(p, index=n) for n in range(2))
    return inner.finish(_mixed(s, inner, inner.constant(number, S32), a, b))


def _call(s: State) -> Instruction | None:
    x = s.pick()
    inner = s.b.nested(f"called_{len(s.values)}")
    a, b = inner.parameter(0, x.shape), inner.parameter(1, x.shape)
    inner.finish(_mixed(s, inner, inner.constant(2, S32), a, b))
    y = s.like(x)
    made = s.b.call(x, y, to_apply=inner.computation)
    return s.keep(made, max(s.facts[x].bound, s.facts[y].bound, 33), max(s.facts[x].error, s.facts[y].error))


CALLS: dict[str, Callable[[State], Instruction | None]] = {
    "reduce": _reduce,
    "arg-max": _arg_max,
    "reduce-window": _reduce_window,
    "dot": _dot,
    "scatter": _scatter,
    "sort": _sort,
    "while": _while,
    "conditional": _conditional,
    "call": _call,
}
