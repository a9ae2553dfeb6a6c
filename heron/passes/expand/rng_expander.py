"""rng-expander: draws from distributions by random bits."""

from __future__ import annotations

from itertools import pairwise
from math import pi

import numpy as np

from heron.hlo.facts import having
from heron.hlo.ir import literal
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.hlo.ir.shape import tuple_
from heron.hlo.ir.types import F32, F64, S32, S64, U32, U64, ElementType
from heron.hlo.meaning.draws import counters
from heron.passes.framework.base import Constraint
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array, bits_of, constant, convert, reshape, splat
from heron.passes.rewriting.expander import Expander, home
from heron.records import dataclass

#: what reads and advances the module's random state
_DRAWS = having(Trait.RANDOM)


@register
@dataclass(frozen=True)
class RngExpander(Expander):
    """Draws by Philox bits from the module's random state, which advances by what is used.

    Uniform floats are the upper 24 (f64: 53) bits as a fraction of the range; uniform integers the remainder of the
    bits by the range. Normal numbers are made by Box and Muller's transformation, of two uniform ones each. The draws
    of a computation get the order they have in the program, so that each gets the numbers the evaluator gives it.

    a = s32[] constant(3)
    b = s32[] constant(4)
    ROOT r = s32[4] rng(a, b), distribution=rng_uniform
    ->
    at = u64[2] rng-get-and-update-state(), delta=1
    key = u64[1] constant({0})
    state = u64[3] concatenate(key, at), dimensions={0}
    both = (u64[3], u32[4]) rng-bit-generator(state), algorithm=rng_philox
    bits = u32[4] get-tuple-element(both), index=1
    ...
    drawn = u32[4] add(rest, low)
    ROOT r = s32[4] convert(drawn)
    """

    name = "rng-expander"
    opcodes = frozenset({"rng"})
    looks_for = _DRAWS
    constraints = (Constraint("rng-expander", "rng-bit-generator-expander", "it draws bits", all_runs=True),)

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in {i.parent: None for i in module.instructions() if i.opcode in _DRAWS}:
            assert c is not None
            changed |= _in_order(c)
        return super().run(module, ctx) or changed

    def expand(self, i: Instruction) -> Instruction:
        if i.distribution == "rng_normal":
            return _normal(i)
        if i.shape.element_type.is_float:
            return _uniform_floats(i)
        # [a, b) of pred holds a alone
        return _uniform_integers(i) if i.shape.element_type.is_integer else _spread(i.operands[0], i.shape.dims)


def _in_order(c: Computation) -> bool:
    """Control edges from each draw to the next."""
    changed = False
    for first, second in pairwise(i for i in c.post_order() if i.opcode in _DRAWS):
        if first not in second.control_predecessors:
            second.add_control_predecessor(first)
            changed = True
    return changed


def _bits(i: Instruction, t: ElementType, dims: tuple[int, ...]) -> Instruction:
    c, shape = home(i), array(t, dims)
    at = c.add("rng-get-and-update-state", [], array(U64, (2,)), like=i, delta=counters(dims, t))
    for before in i.control_predecessors:
        at.add_control_predecessor(before)
    for after in i.control_successors:
        after.add_control_predecessor(at)
    state = c.add("concatenate", [_key(c), at], array(U64, (3,)), like=i, dimensions=(0,))
    both = c.add("rng-bit-generator", [state], tuple_([state.shape, shape]), like=i, algorithm="rng_philox")
    return c.add("get-tuple-element", [both], shape, index=1)


def _key(c: Computation) -> Instruction:
    """A word of its own for every device."""
    module = c.module
    assert module is not None
    if module.replica_count == module.num_partitions == 1:
        return constant(c, literal.of(np.zeros(1, np.uint64)))
    replica = convert(c.add("replica-id", [], array(U32, ())), U64)
    partition = convert(c.add("partition-id", [], array(U32, ())), U64)
    return reshape(replica | partition << 32, (1,))


def _spread(x: Instruction, dims: tuple[int, ...]) -> Instruction:
    return home(x).add("broadcast", [x], array(x.shape.element_type, dims), dimensions=()) if dims else x


def _uniform_integers(i: Instruction) -> Instruction:
    dims, t = i.shape.dims, i.shape.element_type
    word, signed = (U64, S64) if t.bits > 32 else (U32, S32)
    a, b = (convert(x, signed if t.is_signed else word) for x in i.operands[:2])
    low = bits_of(a, word)
    span = bits_of(b, word) - low
    drawn = _bits(i, word, dims) % _spread(span, dims) + _spread(low, dims)
    # an empty range, [a, a), gives a
    empty = _spread(a.ge(b), dims)
    return convert(home(i).add("select", [empty, _spread(low, dims), drawn]), t)


def _fractions(i: Instruction, wide: ElementType, dims: tuple[int, ...]) -> Instruction:
    """Floats of equal distance in [0, 1)."""
    word, kept = (U64, 53) if wide is F64 else (U32, 24)
    bits = _bits(i, word, dims)
    return convert(bits >> (word.bits - kept), wide) * 2.0**-kept


def _uniform_floats(i: Instruction) -> Instruction:
    dims, t = i.shape.dims, i.shape.element_type
    wide = F64 if t is F64 else F32
    low, high = (_spread(convert(x, wide), dims) for x in i.operands[:2])
    drawn = convert(_fractions(i, wide, dims) * (high - low) + low, t)
    low, high = (_spread(x, dims) for x in i.operands[:2])
    outside = drawn.ge(high) & high.gt(low)  # what rounds up to the limit is outside
    return home(i).add("select", [outside, low, drawn])


def _normal(i: Instruction) -> Instruction:
    dims, t, c = i.shape.dims, i.shape.element_type, home(i)
    wide = F64 if t is F64 else F32
    mean, deviation = (_spread(convert(x, wide), dims) for x in i.operands[:2])
    pair = _fractions(i, wide, (2, *dims))
    first, second = (reshape(pair[n : n + 1], dims) for n in range(2))
    size = c.add("sqrt", [c.add("log", [splat(c, first.shape, 1) - first]) * -2.0])
    turned = size * c.add("cosine", [second * (2 * pi)])
    return convert(turned * deviation + mean, t)
