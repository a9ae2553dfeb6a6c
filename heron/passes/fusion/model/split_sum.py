"""The sum of a product in parts: a product of each part, whose results are added: by which, when few tiles would leave
cores idle, more of them have work. The parts depend on shapes alone, so the bits do, too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from heron.analysis.blocks.cost import Freedom, Plan, plans
from heron.analysis.blocks.tiling import Refusal, Tiling
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape
from heron.hlo.ir.types import F32, F64, S32, ElementType
from heron.passes.fusion.model.build import inside_order
from heron.passes.fusion.model.tiled import needed
from heron.passes.rewriting.building import applied, array, convert, reshape, scalar
from heron.targets import Target

#: parts that are worth a look, and the elements of a sum that a part has at least
PARTS = (2, 4, 8, 16, 32)
LEAST = 256
#: results that a core computes at once where it is busy: with that many for each of them, there is nothing to gain
_BUSY = 64 * 64
#: by how much parts have to be quicker: what adds them is one more kernel
LEAD = 1.25


def in_parts(dot: Instruction, parts: int) -> Instruction:
    """A new product beside `dot`: its sum in parts, which are the first dimension; what the last one lacks is zeros."""
    assert dot.parent is not None
    attrs, operands = dict(dot.attrs), []
    for side, x in zip(("lhs", "rhs"), dot.operands, strict=True):
        (d,) = attrs[f"{side}_contracting_dims"]
        operands.append(_cut(x, d, parts))
        batch = attrs.get(f"{side}_batch_dims", ())
        attrs[f"{side}_batch_dims"] = (d, *(n + (n > d) for n in batch))
        attrs[f"{side}_contracting_dims"] = (d + 1,)
    return dot.parent.add("dot", operands, _shape_of_parts(dot, parts), like=dot, **attrs)


def _cut(x: Instruction, d: int, parts: int) -> Instruction:
    """`x` with dimension `d` cut into parts of equal size, filled up by zeros."""
    c, sizes = x.parent, list(x.shape.dims)
    assert c is not None
    size = -(-sizes[d] // parts)
    missing = parts * size - sizes[d]
    if missing:
        padding = tuple([(0, missing if n == d else 0, 0) for n in range(len(sizes))])
        sizes[d] += missing
        shape = array(x.shape.element_type, sizes)
        x = c.add("pad", [x, scalar(c, x.shape.element_type, 0)], shape, like=x, padding=padding)
    return reshape(x, (*sizes[:d], parts, size, *sizes[d + 1 :]))


def _shape_of_parts(dot: Instruction, parts: int) -> Shape:
    return array(_summed_in(dot), (parts, *dot.shape.dims))


def _summed_in(dot: Instruction) -> ElementType:
    if dot.shape.element_type.is_integer:
        return S32
    return F64 if F64 in (dot.shape.element_type, *(o.shape.element_type for o in dot.operands)) else F32


def added(product: Instruction, dot: Instruction) -> Instruction:
    """The parts added up, in the type and shape of `dot`."""
    c, t = product.parent, product.shape.element_type
    assert c is not None and c.module is not None
    zero, add = scalar(c, t, 0), applied(c.module, "add", t)
    total = c.add("reduce", [product, zero], dot.shape.with_type(t), like=dot, dimensions=(0,), to_apply=add)
    return convert(total, dot.shape.element_type)


# -- what it costs -----------------------------------------------------------------------------------------------------


def plans_in_parts(
    dot: Instruction, members: set[Instruction], target: Target, free: Freedom | None = None, most: int = 1
) -> list[Plan]:
    """The quickest ways to compute a product in parts, with what is before it: `most` for each number of parts. Their
    seconds are without the sum of the parts; empty when whole sums keep the cores busy."""
    found: list[Plan] = []
    before = needed(dot, members)
    for parts in _useful_parts(dot, target):
        product = in_parts(_alone(dot, before), parts)
        assert product.parent is not None
        tiling = Tiling(product, frozenset(product.parent.instructions))
        ways = [] if tiling.refusals else plans(tiling, target, free)
        if not isinstance(ways, Refusal):
            found += [replace(w, config=replace(w.config, split=parts)) for w in ways[:most]]
    return found


def _useful_parts(dot: Instruction, target: Target) -> Iterator[int]:
    """Numbers of parts by which more cores would have work."""
    if dot.shape.num_elements >= target.cores * _BUSY:
        return
    k = dot.operands[0].shape.dims[dot.lhs_contracting_dims[0]]
    yield from (n for n in PARTS if k % n == 0 and k // n >= LEAST)


def _alone(dot: Instruction, members: set[Instruction]) -> Instruction:
    """A copy of the product, with the members it is computed from, in a computation of its own."""
    c = Computation("parts")
    copies: dict[Instruction, Instruction] = {}
    for i in inside_order([dot], members):
        for o in i.operands:
            if o not in copies:
                copies[o] = c.add_parameter(len(c.parameters), o.shape)
        copies[i] = c.attach(i.clone([copies[o] for o in i.operands]))
    return copies[dot]


def extra_bytes(dot: Instruction, parts: int) -> int:
    """Bytes that are read more when parts are added than when a product is."""
    return _shape_of_parts(dot, parts).byte_size - dot.shape.byte_size
