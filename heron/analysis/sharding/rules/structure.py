"""Random numbers, sizes known at run time, and the ops that have no rule."""

from __future__ import annotations

from heron.analysis.sharding.rule import FactorKind, OpRule
from heron.analysis.sharding.rules.builder import RuleBuilder
from heron.analysis.sharding.rules.registry import no_rule, rule
from heron.hlo import facts
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import Trait

_WHOLE = FactorKind.NEED_REPLICATION


@rule("rng-bit-generator")
def rng_bit_generator(i: Instruction) -> OpRule:
    """Every device has the whole state; bits follow from the state and their position."""
    b = RuleBuilder.of(i)
    state, bits = b.results
    for d, size in enumerate(state):
        b.add(size, d, (d, None), _WHOLE, is_blocked=True)
    for d, size in enumerate(bits):
        b.add(size, None, (None, d), is_positional=True)
    return b.build()


@rule("rng")
def rng(i: Instruction) -> OpRule:
    """Numbers follow from the module's state and their position."""
    return RuleBuilder.of(i).same(i.shape.dims, is_positional=True).build()


@rule("set-dimension-size")
def set_dimension_size(i: Instruction) -> OpRule:
    """The dimension that is cut is whole."""
    dims = i.shape.dims
    kinds = [_WHOLE if d in i.dimensions else FactorKind.PASS_THROUGH for d in range(len(dims))]
    return RuleBuilder.of(i).same(dims, kinds).build()


no_rule("it has no operands, and every device can make any part of it", "parameter", "constant", "iota")
no_rule("it has no dimensions", "get-dimension-size", *facts.having(Trait.DEVICE_ID))
no_rule("each device draws the same", "rng-get-and-update-state")
no_rule("its parts are values of their own", *facts.having(Trait.TUPLE))
no_rule("edges join what goes in and what comes out", "while", "conditional", "opt-barrier")
no_rule("it is inlined before shardings propagate", "call")
no_rule("programs are partitioned before it is made", "fusion", "bitcast", "copy-start", "copy-done")
no_rule("collectives are made asynchronous after partitioning", *facts.having(Trait.ASYNC))
no_rule(
    "collectives are made asynchronous after partitioning",
    *facts.opcodes(lambda op: Trait.COLLECTIVE in op.traits and op.name.endswith(("-start", "-done"))),
)
no_rule("it exchanges whole values with the host or one other device", *facts.having(Trait.HOST, Trait.CHANNEL))
no_rule("it orders effects and has no array", "after-all")
no_rule("the sizes of its dimensions are known at run time only", "dynamic-reshape")
