"""Fusions whose outputs are cut into boxes: by concatenations they are computed from, or because they are slices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from math import prod

from heron.analysis.fusion.fusion import Fusion, is_pointwise
from heron.analysis.indexing.hlo_maps import is_reshape_like
from heron.hlo.facts import keeps_order
from heron.hlo.ir.instruction import Instruction

#: pieces, and instructions in all of them together, that are worth their code
MAX_PIECES = 64
MAX_INSTRUCTIONS = 1 << 11


@dataclass(frozen=True, slots=True)
class Cuts:
    """The cuts of the outputs' ``dimension``: at ``borders``, 0 and its size included. ``hero``: a concatenation."""

    hero: Instruction
    dimension: int
    borders: tuple[int, ...]


def cuts_of(fusion: Fusion) -> Cuts | None:
    """The cuts by concatenations along one dimension that all outputs are computed from element by element.

    Reshapes between them and the outputs may give that dimension another place and size. None without concatenations,
    when outputs differ in their dimensions, or where pieces would be too many.
    """
    if not fusion.outputs or any(o.part is not None for o in fusion.outputs):
        return None
    dims = fusion.outputs[0].shape.dims
    if any(o.shape.dims != dims for o in fusion.outputs):
        return None
    hero: Instruction | None = None
    dimension, borders = -1, set[int]()
    for i in _concatenations(fusion.roots):
        found = _seen_in(dims, i)
        if found is not None and (hero is None or found[0] == dimension):
            hero, dimension = hero or i, found[0]
            borders |= found[1]
    pieces = len(borders) - 1
    if hero is None or not 1 < pieces <= MAX_PIECES or pieces * len(fusion.computation) > MAX_INSTRUCTIONS:
        return None
    return Cuts(hero, dimension, tuple(sorted(borders)))


def _concatenations(roots: Iterable[Instruction]) -> Iterator[Instruction]:
    """The concatenations above `roots` whose elements have the roots' own row-major numbers."""
    seen: set[Instruction] = set()
    stack = list(roots)[::-1]
    while stack:
        i = stack.pop()
        if i in seen:
            continue
        seen.add(i)
        if i.opcode == "concatenate":
            yield i
        elif i.opcode == "reshape" or i.opcode == "bitcast" and is_reshape_like(i) and _row_major(i):
            stack.append(i.operands[0])
        elif is_pointwise(i):
            stack.extend(o for o in reversed(i.operands) if o.shape.dims == i.shape.dims)


def _row_major(i: Instruction) -> bool:
    return all(s.layout is None or s.layout.is_default for s in (i.shape, i.operands[0].shape))


def _seen_in(dims: tuple[int, ...], i: Instruction) -> tuple[int, set[int]] | None:
    """A concatenation's dimension and borders as those of outputs of `dims`; None when no dimension shows them."""
    (d,) = i.dimensions
    sizes = i.shape.dims
    ends = accumulate((o.shape.dims[d] for o in i.operands), initial=0)
    if sizes == dims:
        return d, set(ends)
    outer, stretch = prod(sizes[:d]), prod(sizes[d + 1 :])
    places = [end * stretch for end in ends]
    for k in range(len(dims)):
        inner = prod(dims[k + 1 :])
        if prod(dims[:k]) == outer and dims[k] > 1 and inner and not any(place % inner for place in places):
            return k, {place // inner for place in places}
    return None


def are_slices(fusion: Fusion) -> bool:
    """Whether the fusion has several outputs and all of them are slices, or views of such."""
    return len(fusion.outputs) > 1 and all(_is_slice(o.instruction) for o in fusion.outputs)


def _is_slice(i: Instruction) -> bool:
    while keeps_order(i):
        i = i.operands[0]
    return i.opcode == "slice"
