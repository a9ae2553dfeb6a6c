"""rng-bit-generator-expander: Threefry and Philox as integer ops."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod

from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import Shape, tuple_
from heron.hlo.ir.types import U32, U64, by_name
from heron.passes.expand.model.random_words import Words
from heron.passes.framework.base import Constraint
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array, reshape
from heron.passes.rewriting.expander import Expander
from heron.records import dataclass

_THREEFRY_TURNS = ((13, 15, 26, 6), (17, 29, 16, 24))
_THREEFRY_PARITY = 0x1BD11BDA
_PHILOX_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_PHILOX_STEPS = (0x9E3779B9, 0xBB67AE85)


@register
@dataclass(frozen=True)
class RngBitGeneratorExpander(Expander):
    """Writes rng-bit-generator out: a counter for every 64 or 128 bits, mixed with the key in rounds.

    A round, or group of rounds, is a computation that is called again and again on its own results. The default
    algorithm is Philox. Bits and the state afterwards are those of XLA (Salmon et al., "Parallel random numbers: as
    easy as 1, 2, 3", SC11).

    ROOT r = (u64[2], u32[8]) rng-bit-generator(u64[2] state), algorithm=rng_philox
    ->
    counters = u64[2] add(start, positions)
    x = (u32[2], u32[2], u32[2], u32[2], u32[], u32[]) tuple(low, high, key_low, key_high, k0, k1)
    x1 = (u32[2], u32[2], u32[2], u32[2], u32[], u32[]) call(x), to_apply=philox
    x2 = (u32[2], u32[2], u32[2], u32[2], u32[], u32[]) call(x1), to_apply=philox
    ...
    bits = u32[2,4] select(first, a, others)
    ROOT r = (u64[2], u32[8]) tuple(after, flat_bits)
    """

    name = "rng-bit-generator-expander"
    opcodes = frozenset({"rng-bit-generator"})
    constraints = (Constraint("rng-bit-generator-expander", "call-inliner", "it makes calls of its rounds"),)

    def matches(self, i: Instruction) -> bool:
        state, bits = i.shape.at((0,)), i.shape.at((1,))
        return state.element_type in (U32, U64) and bits.element_type.bits >= 8

    def expand(self, i: Instruction) -> Instruction:
        c = i.parent
        assert c is not None
        w = Words(c, i)
        state, shape = i.operands[0], i.shape.at((1,))
        make = _threefry if i.algorithm == "rng_three_fry" else _philox
        width = 64 if shape.element_type.bits == 64 else 32
        after, bits = make(w, w.unpacked(state), shape.dims, width)
        narrow = w.convert(bits, by_name(f"u{shape.element_type.bits}"))
        if shape.element_type is not narrow.shape.element_type:
            narrow = c.add("bitcast-convert", [narrow], array(shape.element_type, shape.dims), like=i)
        return c.add("tuple", [w.packed(after, state.shape), narrow], like=i)


State = list[Instruction]
Bits = tuple[State, Instruction]


def _rounds(w: Words, name: str, start: State, bodies: list[Callable[[Words, State], State]], count: int) -> State:
    """`start` after `count` calls of the bodies in turn; each body is a computation from a tuple to its like."""
    module = w.c.module
    assert module is not None
    result = tuple_([x.shape for x in start])
    callees = [_as_computation(module, name, result, body) for body in bodies]
    state = w.c.add("tuple", start, result, like=w.like)
    for n in range(count):
        state = w.c.add("call", [state], result, like=w.like, to_apply=callees[n % len(callees)])
    return [w.c.add("get-tuple-element", [state], s, index=n) for n, s in enumerate(result.tuple_shapes or ())]


def _as_computation(module: Module, name: str, state: Shape, body: Callable[[Words, State], State]) -> Computation:
    c = Computation(name)
    given = c.add_parameter(0, state)
    parts = [c.add("get-tuple-element", [given], s, index=n) for n, s in enumerate(state.tuple_shapes or ())]
    c.root = c.add("tuple", body(Words(c, None), parts), state)
    return module.add_computation(c)


# -- Threefry: words (key, counter) ------------------------------------------------------------------------------------
def _threefry(w: Words, words: State, dims: tuple[int, ...], width: int) -> Bits:
    """One counter a 64-bit element, or one for two 32-bit elements next to each other along one dimension."""
    key, counter = words
    split = _split_dimension(dims) if width == 32 else None
    counted = dims if split is None else (*dims[:split], (dims[split] + 1) // 2, *dims[split + 1 :])
    count = prod(counted)
    counters = reshape(w.add(w.spread(counter, (count,)), w.iota(U64, count)), counted)
    k0, k1 = w.halves(key)
    k2 = w.xor(w.xor(k0, k1), w.constant(k0, _THREEFRY_PARITY))
    a, b = (w.add(x, w.spread(k, counted)) for x, k in zip(w.halves(counters), (k0, k1), strict=True))
    groups = [partial(_threefry_group, turns) for turns in _THREEFRY_TURNS]
    a, b, *_ = _rounds(w, "threefry", [a, b, k1, k2, k0, w.constant(k0, 1)], groups, 5)
    after = [key, w.add(counter, w.constant(counter, count))]
    if width == 64:
        return after, w.whole(a, b)
    if split is None:
        return after, a
    return after, w.first(w.interleaved([a, b], split), dims)


def _threefry_group(turns: tuple[int, ...], w: Words, state: State) -> State:
    """Four rounds, then the next two of three keys are added, and the group's number to the second word."""
    a, b, k0, k1, k2, number = state
    dims = a.shape.dims
    for turn in turns:
        a = w.add(a, b)
        b = w.xor(w.rotated(b, turn), a)
    a, b = w.add(a, w.spread(k0, dims)), w.add(b, w.spread(w.add(k1, number), dims))
    return [a, b, k1, k2, k0, w.add(number, w.constant(number, 1))]


def _split_dimension(dims: tuple[int, ...]) -> int | None:
    """The first even dimension, else the largest."""
    if not dims:
        return None
    even = [d for d, n in enumerate(dims) if n % 2 == 0]
    return even[0] if even else max(range(len(dims)), key=lambda d: dims[d])


# -- Philox: words (key, counter) or (key, low counter, high counter) --------------------------------------------------
def _philox(w: Words, words: State, dims: tuple[int, ...], width: int) -> Bits:
    """One counter for four 32-bit or two 64-bit elements, next to each other."""
    key, low, high = words if len(words) == 3 else (words[0], words[1], words[0])
    size = prod(dims)
    count = -(-size * (width // 32) // 4)
    start = w.spread(low, (count,))
    lows = w.add(start, w.iota(U64, count))
    highs = w.add(w.spread(high, (count,)), w.convert(w.less(lows, start), U64))
    x = _rounds(w, "philox", [*w.halves(lows), *w.halves(highs), *w.halves(key)], [_philox_round], 10)[:4]
    if width == 64:
        x = [w.whole(x[0], x[1]), w.whole(x[2], x[3])]
    bits = w.interleaved(x, 0)
    end = w.add(low, w.constant(low, count))
    after = [key, end]
    if len(words) == 3:
        after.append(w.add(high, w.convert(w.less(end, low), U64)))
    return after, reshape(w.first(bits, (size,)), dims)


def _philox_round(w: Words, state: State) -> State:
    x0, x1, x2, x3, k0, k1 = state
    dims = x0.shape.dims
    low0, high0 = w.halves(w.product(x0, _PHILOX_MULTIPLIERS[0]))
    low1, high1 = w.halves(w.product(x2, _PHILOX_MULTIPLIERS[1]))
    y0 = w.xor(w.xor(high1, x1), w.spread(k0, dims))
    y2 = w.xor(w.xor(high0, x3), w.spread(k1, dims))
    keys = (w.add(k, w.constant(k, step)) for k, step in zip((k0, k1), _PHILOX_STEPS, strict=True))
    return [y0, low1, y2, low0, *keys]
