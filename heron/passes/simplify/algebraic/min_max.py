"""Larger and smaller of two, and clamps."""

from __future__ import annotations

from heron.analysis.values.splat import is_splat, splat_value
from heron.hlo.facts import having, is_device_id
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import Trait
from heron.passes.rewriting.rules import KNOWN, Builder, rule

LAYOUTS = "kept"


@rule("maximum", operand="maximum")
def maximum_again(i: Instruction, b: Builder) -> Instruction | None:
    """max(max(x, y), y) == max(x, y), max(x, max(x, y)) == max(x, y)

    m = f32[] maximum(f32[] x, f32[] y)
    ROOT r = f32[] maximum(m, y)
    ->
    ROOT r = f32[] maximum(x, y)
    """
    return _again(i)


@rule("minimum", operand="minimum")
def minimum_again(i: Instruction, b: Builder) -> Instruction | None:
    """min(min(x, y), y) == min(x, y), min(x, min(x, y)) == min(x, y)

    m = f32[] minimum(f32[] x, f32[] y)
    ROOT r = f32[] minimum(m, y)
    ->
    ROOT r = f32[] minimum(x, y)
    """
    return _again(i)


def _again(i: Instruction) -> Instruction | None:
    x, y = i.operands
    if x.opcode == i.opcode and y in x.operands:
        return x
    return y if y.opcode == i.opcode and x in y.operands else None


@rule("maximum", "minimum", operand=KNOWN)
def clamp_between_constants(i: Instruction, b: Builder) -> Instruction | None:
    """max(c, min(x, d)) == clamp(c, x, d), min(d, max(x, c)) == clamp(c, x, d), where c < d

    c = f32[] constant(1)
    d = f32[] constant(6)
    m = f32[] minimum(f32[] x, d)
    ROOT r = f32[] maximum(c, m)
    ->
    ROOT r = f32[] clamp(c, x, d)
    """
    inner, bound = i.operands
    if splat_value(bound) is None:
        inner, bound = bound, inner
    if inner.opcode != ("minimum" if i.opcode == "maximum" else "maximum") or splat_value(bound) is None:
        return None
    x, other = inner.operands
    if splat_value(other) is None:
        x, other = other, x
    low, high = (bound, other) if i.opcode == "maximum" else (other, bound)
    c, d = splat_value(low), splat_value(high)
    if c is None or d is None or splat_value(x) is not None or not bool(c < d):
        return None
    return b.add("clamp", [low, x, high], i.shape)


@rule("maximum", operand="clamp")
def maximum_of_clamp(i: Instruction, b: Builder) -> Instruction | None:
    """max(c, clamp(c, x, d)) == clamp(c, x, d) where c <= d

    c = f32[] constant(1)
    d = f32[] constant(6)
    m = f32[] clamp(c, f32[] x, d)
    ROOT r = f32[] maximum(m, c)
    ->
    ROOT m
    """
    for n, m in enumerate(i.operands):
        if m.opcode != "clamp":
            continue
        bound, (low, _, high) = splat_value(i.operands[1 - n]), m.operands
        c, d = splat_value(low), splat_value(high)
        if bound is None or c is None or d is None or bound.tobytes() != c.tobytes() or not bool(c <= d):
            continue
        return m
    return None


@rule("maximum", operand=having(Trait.MONOTONE), math="reassociating")
def maximum_of_rising(i: Instruction, b: Builder) -> Instruction | None:
    """max(tanh(x), tanh(y)) == tanh(max(x, y)) for functions that never fall, as far as their roundings do not either

    XLA does it by default.

    p = f32[] tanh(f32[] x)
    q = f32[] tanh(f32[] y)
    ROOT r = f32[] maximum(p, q)
    ->
    m = f32[] maximum(x, y)
    ROOT r = f32[] tanh(m)
    """
    p, q = i.operands
    if p.opcode != q.opcode or not p.has(Trait.MONOTONE):
        return None
    return b.add(p.opcode, [b.add("maximum", [p.operands[0], q.operands[0]], i.shape)], i.shape)


@rule("clamp", operand="clamp")
def clamp_again(i: Instruction, b: Builder) -> Instruction | None:
    """clamp(c, clamp(c, x, d), d) == clamp(c, x, d)

    m = f32[] clamp(f32[] c, f32[] x, f32[] d)
    ROOT r = f32[] clamp(c, m, d)
    ->
    ROOT m
    """
    low, m, high = i.operands
    return m if m.opcode == "clamp" and m.operands[0] is low and m.operands[2] is high else None


@rule("clamp", operand=having(Trait.DEVICE_ID))
def clamp_device_id(i: Instruction, b: Builder) -> Instruction | None:
    """clamp(0, partition-id(), n) == partition-id() where n or fewer follow the first one; replica-id() alike

    low = u32[] constant(0)
    high = u32[] constant(7)
    id = u32[] partition-id()
    ROOT r = u32[] clamp(low, id, high)
    ->
    ROOT id
    """
    low, x, high = i.operands
    if not is_device_id(x) or not is_splat(low, 0):
        return None
    last, module = splat_value(high), b.computation.module
    if last is None or module is None:
        return None
    count = module.num_partitions if x.opcode == "partition-id" else module.replica_count
    return x if count <= int(last) + 1 else None
