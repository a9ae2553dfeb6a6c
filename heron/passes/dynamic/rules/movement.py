"""Ops that move elements: those that count must stand in front afterwards."""

from __future__ import annotations

from math import prod

from heron.analysis.dynamic_sizes.rules import runs
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import S32
from heron.passes.dynamic.model.padded import Padded, number, refused, remade, spread, static
from heron.passes.dynamic.rules.table import rule
from heron.passes.rewriting.building import array, reshape, scalar
from heron.passes.rewriting.expander import home


@rule("broadcast", "transpose", "slice")
def _as_it_is(i: Instruction, operands: list[Padded]) -> Instruction:
    return remade(i, [operands[0].x])


@rule("reverse")
def _reverse(i: Instruction, operands: list[Padded]) -> Instruction:
    """The reversed array has its padding in front: it is moved down by as much."""
    (x,) = operands
    turned = remade(i, [x.x])
    dynamic = x.dynamic_of(i.dimensions)
    if not dynamic:
        return turned
    c, dims = home(i), turned.shape.dims
    padding = tuple((0, n if d in dynamic else 0, 0) for d, n in enumerate(dims))
    wide = c.add("pad", [turned, scalar(c, turned.shape.element_type, 0)], padding=padding)
    starts = [number(c, n) - x.number(d) if d in dynamic else number(c, 0) for d, n in enumerate(dims)]
    return c.add("dynamic-slice", [wide, *starts], dynamic_slice_sizes=dims)


@rule("concatenate")
def _concatenate(i: Instruction, operands: list[Padded]) -> Instruction:
    """Each array is written where those before it end; the next one overwrites its padding."""
    (along,) = i.dimensions
    if not any(o.dynamic_of([along]) for o in operands):
        return remade(i, [o.x for o in operands])
    c, found = home(i), operands[0].numbers.found
    result = spread(scalar(c, i.shape.element_type, 0), static(i.shape))
    at, zero = found.number(0), number(c, 0)
    for o, old in zip(operands, i.operands, strict=True):
        starts = [o.numbers[at] if d == along else zero for d in range(i.shape.rank)]
        result = c.add("dynamic-update-slice", [result, o.x, *starts], like=i)
        at = at + found.whole(old, along)
    return result


@rule("pad")
def _pad(i: Instruction, operands: list[Padded]) -> Instruction:
    x, fill = operands
    return remade(i, [x.masked(range(i.shape.rank), fill.x), fill.x])


@rule("dynamic-slice")
def _dynamic_slice(i: Instruction, operands: list[Padded]) -> Instruction:
    """A window over a part of a dynamic dimension moves in the whole bound, where zeros stand beyond the size."""
    x, *starts = operands
    return remade(i, [x.masked(parts(i.dynamic_slice_sizes, x), 0), *(s.x for s in starts)])


def parts(window: tuple[int, ...], x: Padded) -> list[int]:
    """The dimensions of which a window takes a part."""
    return [d for d, n in enumerate(window) if n != x.x.shape.dims[d]]


@rule("dynamic-update-slice")
def _dynamic_update_slice(i: Instruction, operands: list[Padded]) -> Instruction:
    """Of the update only what counts is written: the rest is what is there already."""
    x, update, *starts = operands
    c, dims = home(i), update.x.shape.dims
    written, at = update.x, [s.x for s in starts]
    if update.dynamic_of(range(len(dims))):
        there = c.add("dynamic-slice", [x.x, *at], dynamic_slice_sizes=dims)
        written = c.add("select", [update.inside(range(len(dims))), update.x, there])
    return remade(i, [x.x, written, *at])


# -- reshapes ----------------------------------------------------------------------------------------------------------
@rule("reshape")
def _reshape(i: Instruction, operands: list[Padded]) -> Instruction:
    """Nothing moves where a dynamic dimension is the outermost of what is merged and of what it is split into."""
    (x,) = operands
    to = Padded(x.x, x.numbers.found.of(i), x.numbers)
    in_place = True
    for source, result in runs(x.x.shape.dims, i.shape.dims):
        dynamic = x.dynamic_of(source)
        unknown = [d for d in result if to.size(d) is not None]
        if not dynamic:
            continue
        if len(unknown) > 1:
            raise refused(i, "one dynamic dimension of the result must make up for the size")
        in_place &= _is_outermost(x.x.shape.dims, source, dynamic) and _is_outermost(i.shape.dims, result, unknown)
    if in_place:
        return home(i).add("reshape", [x.x], static(i.shape), like=i)
    return _looked_up(i, x, to)


def _is_outermost(dims: tuple[int, ...], run: list[int], dynamic: list[int]) -> bool:
    """Whether the only dynamic dimension of a run is its first, those of size 1 aside: then padding is at the end."""
    real = [d for d in run if dims[d] != 1 or d in dynamic]
    return len(dynamic) == 1 and real[0] == dynamic[0]


@rule("dynamic-reshape")
def _dynamic_reshape(i: Instruction, operands: list[Padded]) -> Instruction:
    x = operands[0]
    return _looked_up(i, x, Padded(x.x, x.numbers.found.of(i), x.numbers))


def _looked_up(i: Instruction, x: Padded, to: Padded) -> Instruction:
    """Every element of the result looked up: its number among those that count, then its place in the operand."""
    c, dims = home(i), i.shape.dims
    size = prod(dims)
    if not size:
        return c.add("reshape", [x.x], static(i.shape), like=i)
    where = array(S32, dims)
    order = spread(number(c, 0), where)
    for d, bound in enumerate(dims):
        known = to.size(d)
        n = number(c, bound) if known is None else to.numbers[known]
        order = order * spread(n, where) + c.add("iota", [], where, iota_dimension=d)
    place, stride = spread(number(c, 0), where), 1
    for d in reversed(range(x.x.shape.rank)):
        n = spread(c.add("maximum", [x.number(d), number(c, 1)]), where)
        place = place + order % n * stride
        order = order / n
        stride *= x.x.shape.dims[d]
    flat = c.add(
        "gather",
        [reshape(x.x, (size,)), reshape(place, (size, 1))],
        offset_dims=(),
        collapsed_slice_dims=(0,),
        start_index_map=(0,),
        index_vector_dim=1,
        slice_sizes=(1,),
    )
    return reshape(flat, dims)
