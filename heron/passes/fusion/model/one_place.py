"""Elements that a kernel computes once although several gathers ask for them: the places of reads, exactly.

A bilinear sample reads four neighbours of an image. Its four gathers have an index each, put together of the same row,
the row below, the same column and the next one: every part is read by two of them, at the same place. Counting reads
says that a kernel computes each part twice; the kernel's code does it once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TypeAlias

from heron.analysis.cost.reuse import reads
from heron.analysis.cost.work import first_array
from heron.analysis.indexing.expr import Const, Expr, dims
from heron.analysis.indexing.hlo_maps import moves_elements, operand_index
from heron.analysis.indexing.simplify import simplifier
from heron.hlo.facts import is_tuple_op
from heron.hlo.ir.instruction import Instruction

#: in which loops, of which sizes, and at which index there
Place: TypeAlias = tuple[object, tuple[int, ...], tuple[Expr, ...]]
#: how many elements are computed at each place
Places: TypeAlias = dict[Place, float]

#: members of the largest kernel whose places are looked for
_MOST = 256


class OnePlace:
    """The places at which the members of a kernel are computed; they are found when they are asked for.

    ``evaluations``: the members with how many elements of each are computed, readers first; ``has_gathers``: whether
    one of them is a gather.
    """

    def __init__(self, evaluations: Mapping[Instruction, float]) -> None:
        self.evaluations, self.has_gathers = evaluations, False
        self._known: dict[Instruction, Places] = {}

    def times(self, i: Instruction) -> float | None:
        """The number of elements of `i` that the kernel would compute, if it has gathers and all that read `i` do so at
        one place; None otherwise."""
        if not self.has_gathers or len(self.evaluations) > _MOST:
            return None
        for member, count in islice(self.evaluations.items(), len(self._known), None):
            self._known[member] = self._places(member) or {_own(member, None): count}
        found = self._places(i)
        return next(iter(found.values())) if len(found) == 1 else None

    def _places(self, i: Instruction) -> Places:
        found: Places = {}
        for user in dict.fromkeys(i.users):
            for place, count in self._known.get(user, {}).items():
                for n, operand in enumerate(user.operands):
                    if operand is i:
                        for at, times in _read(user, n, place):
                            found[at] = max(found.get(at, 0.0), count * times)
        return found


def _read(user: Instruction, n: int, place: Place) -> Iterator[tuple[Place, float]]:
    """The places at which `user`, computed at one, reads operand `n`, and the elements for each of its own."""
    space, sizes, index = place
    if is_tuple_op(user):
        yield place, 1.0
    elif moves_elements(user):
        yield (space, sizes, _simple(operand_index(user, n, index), sizes)), reads(user, n)
    elif user.opcode == "concatenate":
        yield from _piece(user, n, place)
    elif user.opcode == "gather" and n == 1:
        own = [e for d, e in enumerate(index) if d not in user.offset_dims]
        at = user.index_vector_dim
        if at == user.operands[1].shape.rank:
            yield (space, sizes, tuple(own)), 1.0
        for part in range(len(user.start_index_map) if at < user.operands[1].shape.rank else 0):
            yield (space, sizes, (*own[:at], Const(part), *own[at:])), 1.0
    else:
        yield _own(user.operands[n], (user, n)), reads(user, n)


def _piece(user: Instruction, n: int, place: Place) -> Iterator[tuple[Place, float]]:
    """The read of one operand of a concatenation: of all its elements, or of none where the index is a constant."""
    space, sizes, index = place
    (d,) = user.dimensions
    start = sum(o.shape.dims[d] for o in user.operands[:n])
    at = _simple((index[d] - start,), sizes)[0]
    if not isinstance(at, Const):
        yield (space, sizes, (*index[:d], at, *index[d + 1 :])), reads(user, n)
    elif 0 <= at.value < user.operands[n].shape.dims[d]:
        yield (space, sizes, (*index[:d], at, *index[d + 1 :])), 1.0


def _simple(index: tuple[Expr, ...], sizes: tuple[int, ...]) -> tuple[Expr, ...]:
    ranges = simplifier(tuple((0, size - 1) for size in sizes))
    return tuple(ranges.simplify(e) for e in index)


def _own(i: Instruction, space: object) -> Place:
    sizes = first_array(i).dims
    return space, sizes, dims(len(sizes))
