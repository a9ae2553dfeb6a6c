"""Steps of `odd` that call computations, make tuples or have effects."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from heron.errors import HeronError
from heron.hlo.builder import Builder
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape, row_major, scalar, token, tuple_
from heron.hlo.ir.types import F32, PRED, S32, U32, U64, ElementType
from tests.hlo.odd import DIRECTIONS, Odd


def _scalars(inner: Builder, *types: ElementType) -> list[Instruction]:
    return [inner.parameter(n, scalar(t)) for n, t in enumerate(types)]


def _order(t: ElementType) -> tuple[str, ...]:
    if t is PRED:
        return "and", "or", "xor"
    if t.is_complex:
        return ("add",)
    return ("maximum", "minimum") if t.is_float else ("maximum", "minimum", "add", "multiply", "xor", "and")


def _reducer(d: Odd, t: ElementType) -> Computation:
    """A commutative and associative computation, said in a way of its own."""
    opcode = str(d.one_of(_order(t) if d.special or not t.is_float else (*_order(t), "add")))
    inner = d.b.nested(f"reducer_{len(d.b.module.computations)}")
    a, b = _scalars(inner, t, t)
    way = d.number(0, 4)
    if way == 0:
        a, b = b, a
    elif way == 1:
        inner.computation.add("copy", [a])  # nobody reads it
    elif way == 2:
        return inner.finish(inner.call(a, b, to_apply=d.b.reducer(opcode, t)))
    elif way == 3 and opcode in ("maximum", "minimum"):
        taken = inner.compare(a, b, direction="GE" if opcode == "maximum" else "LE")
        if not t.is_float:
            return inner.finish(inner.select(taken, a, b))
    return inner.finish(inner.computation.add(opcode, [a, b]))


def _reduce(d: Odd) -> Instruction | None:
    x = d.pick()
    if x is None or (d.special and x.shape.element_type.is_complex):
        return None
    t = x.shape.element_type
    over = d.some(list(range(x.shape.rank)))
    return d.b.reduce(x, d.array([], t), dimensions=over, to_apply=_reducer(d, t))


def _reduce_two(d: Odd) -> Instruction | None:
    """The largest value with its place, or two reductions side by side."""
    x = d.pick("signed unsigned float", exact=True, ranked=True)
    if x is None:
        return None
    t, at = x.shape.element_type, d.number(0, x.shape.rank - 1)
    inner = d.b.nested(f"two_{len(d.b.module.computations)}")
    a, i, b, j = _scalars(inner, t, S32, t, S32)
    if d.chance(0.5):
        first = inner.maximum(a, b)
        inner.finish(inner.tuple(first, inner.add(i, j)))
    else:
        later = inner.compare(b, a, direction="GT")
        tie = inner.and_(inner.compare(b, a, direction="EQ"), inner.compare(j, i, direction="LT"))
        taken = inner.or_(later, tie)
        inner.finish(inner.tuple(inner.select(taken, b, a), inner.select(taken, j, i)))
        x = d.b.select(d.b.compare(x, x, direction="EQ"), x, d.b.full(0, x.shape))  # NaN has no order
    places = d.b.iota(row_major(S32, *x.shape.dims), at)
    low = d.b.full(0 if t.is_unsigned else -4, scalar(t))
    both = d.b.reduce(x, places, low, d.b.constant(0, S32), dimensions=[at], to_apply=inner.computation)
    return d.b.get_tuple_element(both, index=d.number(0, 1))


def _reduce_window(d: Odd) -> Instruction | None:
    x = d.pick()
    if x is None or x.shape.rank > 4 or (d.special and x.shape.element_type.is_complex):
        return None
    window = d.window(list(x.shape.dims))
    t = x.shape.element_type
    return d.b.reduce_window(x, d.array([], t), window=window, to_apply=_reducer(d, t))


def _scan_window(d: Odd) -> Instruction | None:
    """A running maximum or sum."""
    from heron.hlo.ir.window import WindowDim

    x = d.pick(ranked=True)
    if x is None or not x.shape.num_elements or (d.special and x.shape.element_type.is_complex):
        return None
    at, t = d.number(0, x.shape.rank - 1), x.shape.element_type
    n = x.shape.dims[at]
    forward = d.chance(0.5)
    window = [WindowDim(size=1)] * x.shape.rank
    window[at] = WindowDim(size=n, pad_low=n - 1 if forward else 0, pad_high=0 if forward else n - 1)
    return d.b.reduce_window(x, d.array([], t), window=tuple(window), to_apply=_reducer(d, t))


def _sort(d: Odd) -> Instruction | None:
    x = d.pick("signed unsigned float pred", exact=True, ranked=True)
    if x is None:
        return None
    t = x.shape.element_type
    inner = d.b.nested(f"order_{len(d.b.module.computations)}")
    a, b, i, j = _scalars(inner, t, t, S32, S32)
    way = d.number(0, 4)
    if way == 0:
        inner.finish(inner.constant(False, PRED))
    elif way == 1:
        inner.finish(inner.compare(i, j, direction=d.one_of(("LT", "GT"))))
    elif way == 2 and t.is_float:
        inner.finish(inner.compare(a, b, direction=d.one_of(("LT", "GT")), type="TOTALORDER"))
    elif way == 3 and t.is_signed:
        inner.finish(inner.compare(inner.abs(a), inner.abs(b), direction="LT"))
    else:
        inner.finish(inner.compare(a, b, direction=d.one_of(("LT", "GT"))))
    at = d.number(0, x.shape.rank - 1)
    places = d.b.iota(row_major(S32, *x.shape.dims), d.number(0, x.shape.rank - 1))
    if t.is_float and way != 2:
        x = d.b.select(d.b.compare(x, x, direction="EQ"), x, d.b.full(0, x.shape))  # NaN has no order
    both = d.b.sort(x, places, dimensions=[at], is_stable=True, to_apply=inner.computation)
    return d.b.get_tuple_element(both, index=d.number(0, 1))


def _topk(d: Odd) -> Instruction | None:
    x = d.pick("signed unsigned float", exact=True, ranked=True)
    if x is None:
        return None
    both = d.b.topk(x, k=d.number(0, x.shape.dims[-1]), largest=d.chance(0.5))
    return d.b.get_tuple_element(both, index=d.number(0, 1))


def _map(d: Odd) -> Instruction | None:
    x = d.pick()
    if x is None:
        return None
    t, dims = x.shape.element_type, list(x.shape.dims)
    y = d.array(dims, t)
    inner = d.b.nested(f"mapped_{len(d.b.module.computations)}")
    a, b = _scalars(inner, t, t)
    way = d.number(0, 4)
    if way == 0:
        inner.finish(b)
    elif way == 1:
        inner.finish(inner.constant(1, t))
    elif way == 2 and t.kind in ("signed", "unsigned", "float") and not {x, y} & d.rough:
        inner.finish(inner.select(inner.compare(a, b, direction=d.one_of(DIRECTIONS)), a, inner.constant(1, t)))
    elif way == 3 and t is not PRED:
        inner.finish(inner.computation.add("call", [a, b], scalar(t), to_apply=d.b.reducer("add", t)))
    else:
        inner.finish(inner.computation.add("or" if t is PRED else "multiply", [a, b]))
    return d.b.map(x, y, to_apply=inner.computation, dimensions=list(range(len(dims))))


# -- calls ---------------------------------------------------------------------------------------------------------------
def _mixed(d: Odd, inner: Builder, a: Instruction, b: Instruction) -> Instruction:
    """A value of the shape of `a` and `b`, by a few steps inside a computation."""
    t, rank = a.shape.element_type, a.shape.rank
    for _ in range(d.number(0, 3)):
        way = d.number(0, 5)
        if way == 0 and rank:
            a = inner.reverse(a, dimensions=[d.number(0, rank - 1)])
        elif way == 1 and rank:
            order = d.shuffled(rank)
            if [a.shape.dims[k] for k in order] == list(a.shape.dims):
                a = inner.transpose(a, dimensions=order)
        elif way == 2:
            a, b = b, a
        elif way == 3:
            b = inner.copy(a)
        elif way == 4:
            a = inner.computation.add("xor" if t is PRED else "add" if not t.is_float else "maximum", [a, b])
        elif rank and a.shape.num_elements:
            starts = [inner.constant(d.number(-1, 2), S32) for _ in range(rank)]
            part = inner.dynamic_slice(b, *starts, dynamic_slice_sizes=[max(1, n - 1) for n in a.shape.dims])
            a = inner.dynamic_update_slice(a, part, *reversed(starts))
    return a


def _two(d: Odd) -> tuple[Instruction, Instruction] | None:
    x = d.pick()
    if x is None or x.shape.dynamic:
        return None
    return x, d.array(list(x.shape.dims), x.shape.element_type)


def _call(d: Odd) -> Instruction | None:
    two = _two(d)
    if two is None:
        return None
    inner = d.b.nested(f"called_{len(d.b.module.computations)}")
    a, b = (inner.parameter(n, x.shape.with_default_layout()) for n, x in enumerate(two))
    result = _mixed(d, inner, a, b)
    kind = d.one_of(("call", "call", "fusion", "async"))
    if kind == "fusion":
        body = inner.finish(result)
        return d.b.fusion(*two, calls=body, kind=d.one_of(("kLoop", "kInput", "kOutput", "kCustom")))
    if d.chance(0.3):
        body = inner.finish(inner.tuple(result, inner.tuple(a, result)))
        made = d.b.call(*two, to_apply=body)
        if d.chance(0.5):
            return d.b.get_tuple_element(made, index=0)
        return d.b.get_tuple_element(d.b.get_tuple_element(made, index=1), index=d.number(0, 1))
    made = d.b.call(*two, to_apply=inner.finish(result))
    return d.b.call(made, two[1], to_apply=inner.computation) if d.chance(0.3) else made


def _while(d: Odd) -> Instruction | None:
    """A loop that carries a nested tuple, some of it for nothing; it may not run at all."""
    two = _two(d)
    if two is None:
        return None
    x, y = two
    shape, number = x.shape.with_default_layout(), d.b.module
    dead = d.array([], F32 if d.special else S32)
    state = tuple_([scalar(S32), tuple_([shape, shape]), dead.shape, shape])
    again = d.b.nested(f"again_{len(number.computations)}")
    p = again.parameter(0, state)
    if d.chance(0.1):
        again.finish(again.constant(False, PRED))
    else:
        count = again.constant(d.number(-1, 4), S32)
        k = again.get_tuple_element(p, index=0)
        way = d.number(0, 2)
        less = again.compare(k, count, direction="LT") if way else again.compare(count, k, direction="GT")
        again.finish(again.and_(less, again.constant(True, PRED)) if way == 2 else less)
    step = d.b.nested(f"step_{len(number.computations)}")
    p = step.parameter(0, state)
    k, pair, unused, same = (step.get_tuple_element(p, index=n) for n in range(4))
    a, b = (step.get_tuple_element(pair, index=n) for n in range(2))
    first = _mixed(d, step, a, same if d.chance(0.5) else b)
    if d.chance(0.2):
        first = _branch(d, step, k, first, b)
    second = d.one_of((a, b, first))
    pair = step.tuple(first, second)
    carried = unused if d.chance(0.7) else step.computation.add("add", [unused, unused])
    next_k = step.add(k, step.constant(d.one_of((1, 1, 2)), S32))
    step.finish(step.tuple(next_k, pair, carried, same))
    begin = d.b.constant(d.number(0, 2), S32) if d.chance(0.8) else d.array([], S32, 0, 3)
    if begin.opcode != "constant":
        begin = d.b.clamp(d.b.constant(0, S32), begin, d.b.constant(3, S32))
    start = d.b.tuple(begin, d.b.tuple(x, y), dead, x if d.chance(0.3) else y)
    loop = d.b.while_(start, condition=again.computation, body=step.computation)
    if d.chance(0.2):
        return d.b.get_tuple_element(loop, index=3)
    return d.b.get_tuple_element(d.b.get_tuple_element(loop, index=1), index=d.number(0, 1))


def _branch(d: Odd, b: Builder, index: Instruction, x: Instruction, y: Instruction) -> Instruction:
    """A conditional in `b`; branches take and ignore different things."""
    count = 2 if index.shape.element_type is PRED else d.number(1, 3)
    branches, operands = [], []
    for n in range(count):
        inner = d.b.nested(f"branch_{len(d.b.module.computations)}_{n}")
        if d.chance(0.4):
            operands.append(b.tuple(x, b.tuple(y, x)))
            p = inner.parameter(0, operands[-1].shape)
            values = [inner.get_tuple_element(p, index=0)]
            values.append(inner.get_tuple_element(inner.get_tuple_element(p, index=1), index=d.number(0, 1)))
        elif d.chance(0.2):
            operands.append(b.tuple())
            inner.parameter(0, operands[-1].shape)
            values = [inner.full(1, x.shape)] * 2
        else:
            operands.append(x if d.chance(0.5) else y)
            values = [inner.parameter(0, operands[-1].shape)] * 2
        branches.append(inner.finish(inner.tuple(_mixed(d, inner, *values), values[0])))
    made = b.conditional(index, *operands, branch_computations=branches)
    return b.get_tuple_element(made, index=0 if d.chance(0.7) else 1)


def _conditional(d: Odd) -> Instruction | None:
    two = _two(d)
    if two is None:
        return None
    return _branch(d, d.b, d.array([], PRED if d.chance(0.4) else S32, -1, 3), *two)


# -- tuples, tokens, effects -----------------------------------------------------------------------------------------------
def _tuple(d: Odd) -> Instruction | None:
    """Values packed, handed on, and unpacked again."""
    x = d.pick()
    if x is None:
        return None
    y = d.pick() or x
    packed = d.b.tuple(y, d.b.tuple(x, y), d.b.tuple())
    way = d.number(0, 3)
    if way == 0:
        packed = d.b.opt_barrier(packed)
    elif way == 1:
        packed = d.b.copy(packed)
    elif way == 2:
        packed = d.b.tuple(*(d.b.get_tuple_element(packed, index=n) for n in range(3)))
    return d.b.get_tuple_element(d.b.get_tuple_element(packed, index=1), index=d.number(0, 1))


def _after(d: Odd) -> Instruction | None:
    x = d.pick()
    if x is None:
        return None
    before = d.b.after_all()
    if d.chance(0.4):
        before = d.b.outfeed(x, before, shape=token(), outfeed_shape=x.shape)
    return d.b.add_dependency(d.pick() or x, d.b.after_all(before))


def _random_bits(d: Odd) -> Instruction | None:
    algorithm = d.one_of(("rng_default", "rng_three_fry", "rng_philox"))
    state = d.array([2], U64)
    bits = row_major(d.one_of((U32, U64)), *d.dims(3))  # type: ignore[arg-type]
    made = d.b.rng_bit_generator(state, shape=tuple_([state.shape, bits]), algorithm=algorithm)
    return d.b.get_tuple_element(made, index=d.number(0, 1))


def _scan(d: Odd) -> Instruction | None:
    x = d.pick(ranked=True)
    if x is None or x.shape.dynamic:
        return None
    at = d.number(0, x.shape.rank - 1)
    part: Shape = row_major(x.shape.element_type, *(n for k, n in enumerate(x.shape.dims) if k != at))
    inner = d.b.nested(f"scanned_{len(d.b.module.computations)}")
    a, carry = inner.parameter(0, part), inner.parameter(1, part)
    new = _mixed(d, inner, a, carry)
    inner.finish(inner.tuple(new, new))
    first = d.array(list(part.dims), part.element_type)
    shape = tuple_([x.shape.with_default_layout(), part])
    made = d.b.scan(
        x, first, shape=shape, dimensions=[at], num_carries=1, is_reverse=d.chance(0.3), to_apply=inner.computation
    )
    return d.b.get_tuple_element(made, index=d.number(0, 1))


# -- algebra -----------------------------------------------------------------------------------------------------------------
def _definite(d: Odd, dims: list[int], t: ElementType) -> Instruction:
    """A parameter of matrices that have a factor, but for the first one at times."""
    a = d.given(row_major(t, *dims))
    x = d.arrays[-1]
    d.arrays[-1] = (x @ np.swapaxes(x, -1, -2).conj() + np.eye(dims[-1])).astype(t.dtype)
    if d.arrays[-1].size and d.chance(0.2):
        d.arrays[-1].reshape(-1)[0] = -1
    return a


def _solve(d: Odd) -> Instruction | None:
    t = d.t
    if d.special or not (t.is_float or t.is_complex) or t.bits < 32:
        return None
    n, batch = d.number(0, 4), d.dims(1)
    if d.chance(0.5):
        return d.b.cholesky(_definite(d, [*batch, n, n], t), lower=d.chance(0.5))
    a = d.array([*batch, n, n], t)
    left = d.chance(0.5)
    x = d.array([*batch, n, 3] if left else [*batch, 3, n], t)
    way = d.one_of(("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"))
    return d.b.triangular_solve(a, x, left_side=left, lower=d.chance(0.5), unit_diagonal=d.chance(0.8), transpose_a=way)


def _norm(d: Odd) -> Instruction | None:
    x = d.pick("float", ranked=True)
    if x is None or d.special or x.shape.element_type.bits < 16 or not x.shape.num_elements:
        return None
    at = d.number(0, x.shape.rank - 1)
    vectors = [d.array([x.shape.dims[at]], x.shape.element_type) for _ in range(3)]
    positive = d.b.abs(d.array([x.shape.dims[at]], x.shape.element_type))
    attrs = {"epsilon": 0.125, "feature_index": at}
    way = d.number(0, 2)
    if way == 0:
        made = d.b.batch_norm_training(x, *vectors[:2], **attrs)
        return d.b.get_tuple_element(made, index=d.number(0, 2))
    if way == 1:
        return d.b.batch_norm_inference(x, *vectors, positive, **attrs)
    g = d.array(list(x.shape.dims), x.shape.element_type)
    made = d.b.batch_norm_grad(x, *vectors[:2], positive, g, **attrs)
    return d.b.get_tuple_element(made, index=d.number(0, 2))


def _guarded(step: Callable[[Odd], Instruction | None]) -> Callable[[Odd], Instruction | None]:
    """A step that leaves no half-made computation behind when the shape rules refuse it."""

    def guarded(d: Odd) -> Instruction | None:
        known = set(d.b.module.computations)
        try:
            return step(d)
        except HeronError:
            called = {c for i in d.b.computation.instructions for c in i.called}
            for c in [c for c in d.b.module.computations if c not in known and c not in called]:
                d.b.module.remove_computation(c)
            raise

    return guarded


CALLS: dict[str, Callable[[Odd], Instruction | None]] = {
    name: _guarded(step)
    for name, step in {
        "odd reduce": _reduce,
        "reduce two": _reduce_two,
        "odd reduce-window": _reduce_window,
        "scan window": _scan_window,
        "odd sort": _sort,
        "topk": _topk,
        "map": _map,
        "call": _call,
        "while": _while,
        "while again": _while,
        "conditional": _conditional,
        "tuple": _tuple,
        "after": _after,
        "random bits": _random_bits,
        "scan": _scan,
        "solve": _solve,
        "norm": _norm,
    }.items()
}
