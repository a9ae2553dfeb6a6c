"""Results that nobody fixed keep axes along which they would be gathered, where that sends less.

Propagation cannot take every axis through every op. Rows split by x become the minor part of merged rows, and the
result is whole along x. To gather it sends more than to exchange parts for others:

    v = f32[4,4,8] with [{}, {'x'}, {'y'}]  →  f32[16,8]      [{}, {'y'}]: all-gather     [{'x'}, {'y'}]: all-to-all

Only data that is rearranged is kept so. Slices, products and sums are brought where propagation wants them: a result
that is the same on all devices stays so, because the next call of the program takes it as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from heron.analysis.sharding.fixed import is_fixed
from heron.analysis.sharding.rule import FactorKind
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
        if not any(given.is_open) or _rearranged(search, i) is None:
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
    """The atoms that split the data which becomes a result, and not the result: of what the last ops work on that give
    as many elements as they take and add up nothing."""
    while (source := _rearranged(search, i)) is not None:
        has = search.has[source]
        if has is None or has.unreduced:
            break
        gone = has.used - s.used
        if gone or len(source.users) > 1:
            return gone
        i = source
    return frozenset()


def _rearranged(search: Search, i: Instruction) -> Instruction | None:
    """The one array that `i` works on, where the value has as many elements and is no sum of them. Constraints say how
    what follows is split."""
    is_free = search.is_chosen(i) and not is_fixed(i, search.shardings)
    asked = search.asked(i) if is_free else None
    sources = [o for o in i.operands if o.shape.rank and search.has.get(o) is not None]
    if asked is None or len(sources) != 1 or asked.rule.of_kind(FactorKind.REDUCTION):
        return None
    return sources[0] if sources[0].shape.num_elements == i.shape.num_elements else None


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
