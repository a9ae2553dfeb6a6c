"""Windows that slide over an array: reduce-window and select-and-scatter."""

from __future__ import annotations

from heron.analysis.sharding.rule import FactorKind, OpRule
from heron.analysis.sharding.rules.builder import RuleBuilder
from heron.analysis.sharding.rules.registry import rule
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.window import WindowDim


def is_still(w: WindowDim) -> bool:
    """Whether a window sees one element and visits each of them: the dimension passes through."""
    return w.size == w.stride == w.base_dilation == 1 and w.pad_low == w.pad_high == 0


@rule("reduce-window")
def reduce_window(i: Instruction) -> OpRule:
    """Along other dimensions windows reach into neighbours."""
    b = RuleBuilder.of(i)
    kinds = [FactorKind.PASS_THROUGH if is_still(w) else FactorKind.PERMUTATION for w in i.window]
    return b.same(b.results[0], kinds).build()


@rule("select-and-scatter")
def select_and_scatter(i: Instruction) -> OpRule:
    """Along other dimensions the source is whole and windows reach into neighbours."""
    b = RuleBuilder.of(i)
    x, source, _ = b.operands
    for d, w in enumerate(i.window):
        if is_still(w):
            b.add(x[d], (d, d, None), d)
        else:
            b.add(source[d], (None, d, None), None, FactorKind.NEED_REPLICATION)
            b.add(x[d], (d, None, None), d, FactorKind.PERMUTATION)
    return b.build()
