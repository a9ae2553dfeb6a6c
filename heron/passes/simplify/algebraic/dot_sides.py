"""Dots of which one side was reversed, padded or repeated along what is summed: the other side takes that over."""

from __future__ import annotations

from heron.analysis.values.splat import is_splat
from heron.hlo.ir.instruction import Instruction
from heron.passes.rewriting.building import applied
from heron.passes.rewriting.rules import Builder, rule

#: how much larger the side that is relieved must be; XLA's threshold
_LARGER = 2


def _partners(i: Instruction, n: int) -> dict[int, int]:
    """The contracting dimensions of operand n of a dot, each with the other operand's it is paired with."""
    sides = (i.lhs_contracting_dims, i.rhs_contracting_dims)
    return dict(zip(sides[n], sides[1 - n], strict=True))


@rule("dot", operand="reverse")
def dot_of_reverse(i: Instruction, b: Builder) -> Instruction | None:
    """dot(reverse(x), y) == dot(x, reverse(y)) along summed dimensions, where y is less than half as large

    r = f32[8,4] reverse(f32[8,4] x), dimensions={1}
    ROOT d = f32[8,2] dot(r, f32[4,2] y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ->
    s = f32[4,2] reverse(y), dimensions={0}
    ROOT d = f32[8,2] dot(x, s), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    """
    if len(i.operands) != 2:
        return None
    for n, r in enumerate(i.operands):
        y = i.operands[1 - n]
        if r.opcode != "reverse" or r.shape.num_elements < _LARGER * y.shape.num_elements:
            continue
        partners = _partners(i, n)
        if any(d not in partners for d in r.attrs["dimensions"]):
            continue
        turned = b.add("reverse", [y], y.shape, dimensions=tuple([partners[d] for d in r.attrs["dimensions"]]))
        return b.like(i, [r.operands[0], turned] if n == 0 else [turned, r.operands[0]], i.shape)
    return None


@rule("dot", operand="pad", math="finite-only")
def dot_of_pad(i: Instruction, b: Builder) -> Instruction | None:
    """dot(pad(x, 0), y) == dot(x, slice(y)) along summed dimensions, for finite y

    zero = f32[] constant(0)
    p = f32[8,6] pad(f32[8,3] x, zero), padding=0_0x2_1
    ROOT d = f32[8,2] dot(p, f32[6,2] y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ->
    s = f32[3,2] slice(y), slice={[2:5], [0:2]}
    ROOT d = f32[8,2] dot(x, s), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    """
    if len(i.operands) != 2:
        return None
    for n, p in enumerate(i.operands):
        y = i.operands[1 - n]
        if p.opcode != "pad" or not is_splat(p.operands[1], 0):
            continue
        x, partners = p.operands[0], _partners(i, n)
        part = [(0, size, 1) for size in y.shape.dims]
        for d, (low, high, within) in enumerate(p.attrs["padding"]):
            if (low, high, within) == (0, 0, 0):
                continue
            if d not in partners or low < 0 or high < 0 or x.shape.dims[d] == 0:
                break
            part[partners[d]] = (low, p.shape.dims[d] - high, within + 1)
        else:
            cut = b.slice(y, part)
            return b.like(i, [x, cut] if n == 0 else [cut, x], i.shape)
    return None


@rule("dot", operand="broadcast", floats="reassociating")
def dot_of_repeated(i: Instruction, b: Builder) -> Instruction | None:
    """dot(broadcast(x), y) == dot(x, sum(y)) along summed dimensions x lacks, for floats up to rounding

    r = f32[8,3,4] broadcast(f32[8,3] x), dimensions={0,1}
    ROOT d = f32[8,2] dot(r, f32[3,4,2] y), lhs_contracting_dims={1,2}, rhs_contracting_dims={0,1}
    ->
    zero = f32[] constant(0)
    s = f32[3,2] reduce(y, zero), dimensions={1}, to_apply=sum
    ROOT d = f32[8,2] dot(x, s), lhs_contracting_dims={1}, rhs_contracting_dims={0}

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT c = f32[] add(a, b)
    }
    """
    if len(i.operands) != 2 or any(o.shape.element_type is not i.shape.element_type for o in i.operands):
        return None
    module = b.computation.module
    assert module is not None
    for n, (r, side, other) in enumerate(zip(i.operands, ("lhs", "rhs"), ("rhs", "lhs"), strict=True)):
        if r.opcode != "broadcast" or list(r.attrs["dimensions"]) != sorted(r.attrs["dimensions"]):
            continue
        kept, partners = r.attrs["dimensions"], _partners(i, n)
        added = [d for d in range(r.shape.rank) if d not in kept]
        if not added or any(d not in partners for d in added):
            continue
        y = i.operands[1 - n]
        gone = tuple(sorted(partners[d] for d in added))
        left = [d for d in range(y.shape.rank) if d not in gone]
        zero = b.scalar(y.shape.element_type, 0)
        dims = tuple([y.shape.dims[d] for d in left])
        add = applied(module, "add", y.shape.element_type)
        summed = b.add("reduce", [y, zero], y.shape.with_dims(dims), dimensions=gone, to_apply=add)
        attrs = dict(i.attrs)
        for name, places in ((side, list(kept)), (other, left)):
            for kind in ("batch", "contracting"):
                key = f"{name}_{kind}_dims"
                attrs[key] = tuple([places.index(d) for d in getattr(i, key) if d in places])
        return b.add("dot", [r.operands[0], summed] if n == 0 else [summed, r.operands[0]], i.shape, **attrs)
    return None
