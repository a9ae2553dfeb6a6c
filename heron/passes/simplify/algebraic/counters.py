"""Integers made of iotas and constants only: how large they are is known, and they cost the same in any type."""

from __future__ import annotations

from heron.analysis.values.splat import splat_value
from heron.analysis.values.upper_bound import upper_bound
from heron.hlo.ir.instruction import Instruction
from heron.passes.rewriting.rules import KNOWN, Builder, rule

LAYOUTS = "kept"


@rule("shift-right-logical", operand=KNOWN)
def shift_out_everything(i: Instruction, b: Builder) -> Instruction | None:
    """x >> n == 0 where x < 2^n

    it = u64[8] iota(), iota_dimension=0
    n = u64[] constant(32)
    ns = u64[8] broadcast(n), dimensions={}
    ROOT high = u64[8] shift-right-logical(it, ns)
    ->
    zero = u64[] constant(0)
    ROOT high = u64[8] broadcast(zero), dimensions={}
    """
    x, n = i.operands
    by, bound = splat_value(n), upper_bound(x)
    if by is None or bound is None or int(by) < 0 or bound >> int(by):
        return None
    return b.splat(i.shape, 0)


@rule("convert", operand=("add", "multiply"))
def count_in_the_narrow_type(i: Instruction, b: Builder) -> Instruction | None:
    """convert(x + y) == convert(x) + convert(y) for narrower integers, done for counters, where converting is free

    it = u64[8,4] iota(), iota_dimension=0
    jt = u64[8,4] iota(), iota_dimension=1
    sum = u64[8,4] add(it, jt)
    ROOT r = u32[8,4] convert(sum)
    ->
    n = u32[8,4] convert(it)
    m = u32[8,4] convert(jt)
    ROOT r = u32[8,4] add(n, m)
    """
    x = i.operands[0]
    narrow, wide = i.shape.element_type, x.shape.element_type
    if not (narrow.is_integer and wide.is_integer and 8 <= narrow.bits < wide.bits):
        return None
    if upper_bound(x) is None:
        return None
    return b.like(x, [b.add("convert", [o], o.shape.with_type(narrow)) for o in x.operands], i.shape)
