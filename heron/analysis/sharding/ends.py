"""Results that nobody fixed keep axes along which they would be gathered, where that sends less.

Propagation cannot take every axis through every op. Rows split by x become the minor part of merged rows, and the
result is whole along x. To gather it sends more than to exchange parts for others:

    v = f32[4,4,8] with [{}, {'x'}, {'y'}]  →  f32[16,8]      [{}, {'y'}]: all-gather     [{'x'}, {'y'}]: all-to-all

Only an axis that data is split by is kept. Sums are brought where propagation wants them: a result that is the same on
all devices stays so, because the next call of the program takes it as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from heron.analysis.sharding.fixed import is_fixed
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import ShapeIndex
from heron.hlo.sharding import Axis
from heron.hlo.sharding.atoms import AtomicMesh, Axes, TensorSharding

if TYPE_CHECKING:
    from heron.analysis.sharding.improve import Search


def keep_split(search: Search) -> Iterator[tuple[ShapeIndex, TensorSharding, TensorSharding]]:
    """Give open results of a computation more axes where that is cheaper; the leaves of the root that change, with
    their shardings before and after."""
    for index, i in _ends(search.root):
        given = best = search.shardings.of(search.root, index)
        if not any(given.is_open) or not search.is_chosen(i) or is_fixed(i, search.shardings):
            continue
        while (found := _wider(search, index, i, best)) is not None:
            best = found
        if best is not given:
            yield index, given, best


def _ends(root: Instruction) -> list[tuple[ShapeIndex, Instruction]]:
    """The values that the computation returns and nothing else reads, with their places in the root's tuple."""
    if root.opcode != "tuple":
        return [((), root)]
    pairs = [((n,), o) for n, o in enumerate(root.operands)]
    return [(index, o) for index, o in pairs if len(o.users) == 1 and root.operands.count(o) == 1]


def _wider(search: Search, index: ShapeIndex, i: Instruction, s: TensorSharding) -> TensorSharding | None:
    """The result's sharding with one axis more, if that makes the program cheaper."""
    gone = _lost(search, i, s)
    options = _with_axis(search.mesh, i.shape.dims, s, gone) if gone else ()
    return next((option for option in options if search.gives(i, index, option)), None)


def _lost(search: Search, i: Instruction, s: TensorSharding) -> frozenset[int]:
    """The atoms that split what a result is computed from, up to the first op that moves data, and not the result."""
    while (way := search.choice(i)) is not None and not way.reduced:
        gone = way.results[0].used - s.used
        if gone:
            return gone
        pairs = zip(i.operands, way.operands, way.sent, strict=False)
        moved = [(has, need) for o, need, sent in pairs if sent and (has := search.has[o]) is not None]
        if any(has.unreduced for has, _ in moved):
            break
        if moved:
            return frozenset(a for has, need in moved for a in has.used - need.used - s.used)
        sources = [o for o in i.operands if o.shape.rank and search.has[o] is not None]
        if len(sources) != 1 or len(sources[0].users) != 1:
            break
        i = sources[0]
    return frozenset()


def _with_axis(
    mesh: AtomicMesh, dims: tuple[int, ...], s: TensorSharding, atoms: frozenset[int]
) -> Iterator[TensorSharding]:
    """The sharding with a whole axis of the mesh more, one that has some of the atoms, on an open dimension that it
    divides."""
    for number in range(len(mesh.mesh.axes)):
        axes: Axes = mesh.atoms(Axis(number))
        if atoms.isdisjoint(axes) or not (s.used | s.replicated | s.manual).isdisjoint(axes):
            continue
        for d, size in enumerate(dims):
            both = (*s.dims[d], *axes)
            if s.is_open[d] and size % mesh.size(both) == 0:
                yield replace(s, dims=(*s.dims[:d], both, *s.dims[d + 1 :]))
