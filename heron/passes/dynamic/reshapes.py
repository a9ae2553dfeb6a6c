"""Reshapes of padded arrays: elements that count must come to stand in front again."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from heron.hlo.instruction import Instruction
from heron.hlo.types import S32
from heron.passes.building import array, reshape
from heron.passes.dynamic.padded import Padded, greatest, number, of_array, refused, spread, static
from heron.passes.expand.expander import home


def reshaped(i: Instruction, x: Padded) -> Padded:
    """A reshape whose result's sizes follow from the operand's."""
    marks = i.shape.dynamic or (False,) * i.shape.rank
    sizes: dict[int, Instruction | None] = {}
    in_place = True
    for source, result in runs(x.x.shape.dims, i.shape.dims):
        dynamic, unknown = x.dynamic_of(source), [d for d in result if marks[d]]
        if not dynamic:
            continue
        if len(unknown) != 1:
            raise refused(i, "one dynamic dimension of the result must make up for the size")
        count = _product(x, source)
        others = prod(i.shape.dims[d] for d in result if d != unknown[0])
        sizes[unknown[0]] = count / max(others, 1)
        in_place &= _is_outermost(x.x.shape.dims, source, dynamic) and _is_outermost(i.shape.dims, result, unknown)
    if in_place:
        return of_array(home(i).add("reshape", [x.x], static(i.shape), like=i), sizes)
    return _moved(i, x, of_array(x.x, sizes))


def dynamic_reshape(i: Instruction, x: Padded, given: Sequence[Instruction]) -> Padded:
    """A reshape to sizes the program computes."""
    marks = i.shape.dynamic or (False,) * i.shape.rank
    sizes = {d: size for d, size in enumerate(given) if marks[d]}
    return _moved(i, x, of_array(x.x, dict(sizes)))


def runs(a: Sequence[int], b: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Dimensions of two shapes of as many elements, matched in the shortest runs of equal products."""
    if not prod(a):
        return [(list(range(len(a))), list(range(len(b))))]
    found: list[tuple[list[int], list[int]]] = []
    n = m = 0
    while n < len(a) or m < len(b):
        first, second = n, m
        n, m = min(n + 1, len(a)), min(m + 1, len(b))
        while prod(a[first:n]) != prod(b[second:m]):
            if prod(a[first:n]) < prod(b[second:m]):
                n += 1
            else:
                m += 1
        found.append((list(range(first, n)), list(range(second, m))))
    return found


def _is_outermost(dims: Sequence[int], run: Sequence[int], dynamic: Sequence[int]) -> bool:
    """Whether the only dynamic dimension of a run is its first, those of size 1 aside: then padding is at the end."""
    real = [d for d in run if dims[d] != 1 or d in dynamic]
    return len(dynamic) == 1 and real[0] == dynamic[0]


def _product(x: Padded, dims: Sequence[int]) -> Instruction:
    count = number(home(x.x), 1)
    for d in dims:
        count = count * x.size_or_bound(d)
    return count


def _moved(i: Instruction, x: Padded, to: Padded) -> Padded:
    """Every element of the result looked up: its number among those that count, then its place in the operand."""
    c, dims = home(i), i.shape.dims
    size = prod(dims)
    if not size:
        return Padded(c.add("reshape", [x.x], static(i.shape), like=i), to.sizes)
    where = array(S32, dims)
    order = spread(number(c, 0), where)
    for d, bound in enumerate(dims):
        n = to.sizes.get(((), d), number(c, bound))
        order = order * spread(n, where) + c.add("iota", [], where, iota_dimension=d)
    place, stride = spread(number(c, 0), where), 1
    for d in reversed(range(x.x.shape.rank)):
        n = spread(greatest(x.size_or_bound(d), number(c, 1)), where)
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
    return Padded(reshape(flat, dims), to.sizes)
