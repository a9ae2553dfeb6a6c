"""Groups of values that are sharded alike, as markers in the program name them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from heron.errors import HeronError
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape
from heron.hlo.sharding import ShardGroup
from heron.hlo.sharding.atoms import TensorSharding
from heron.hlo.sharding.tiles import reject
from heron.records import dataclass


def is_free(s: TensorSharding) -> bool:
    """Whether nothing is said of the value but where it is manual."""
    return all(s.is_open) and not any(s.dims) and not s.unreduced and not s.replicated


@dataclass(frozen=True, slots=True)
class Member:
    """A marker `at` that names a group: the slot of the value it marks, and that of the marker itself."""

    at: Instruction
    marked: int
    own: int


@dataclass(slots=True)
class Groups:
    """The members of each group, in the order of the program."""

    exact: dict[int, list[Member]] = field(default_factory=dict)
    loose: dict[int, list[Member]] = field(default_factory=dict)

    def add(self, group: ShardGroup, member: Member) -> None:
        (self.exact if group.exactly else self.loose).setdefault(group.number, []).append(member)

    def merged(self, shapes: list[Shape], initial: list[TensorSharding]) -> list[int]:
        """For each slot the one that stands for it: members of a group that is sharded exactly alike have one slot.

        The marked values join in, unless two of them start with different shardings; then only the markers are alike.
        `initial` of the slots that stand for others is changed to the sharding of the group.

        Raises HLO027 for members of different shapes, or on two sides of the border of a manual computation.
        """
        slots = _Slots(len(initial))
        for number, members in self.exact.items():
            _need_alike(number, members, shapes, initial)
            markers = [m.own for m in members]
            marked = [m.marked for m in members if is_free(initial[m.own])]
            if len(_given(slots, markers + marked, initial)) > 1:
                marked = []
            while len(_given(slots, markers, initial)) > 1:  # a constraint of its own stays as it is
                markers.remove(next(m for m in reversed(markers) if not is_free(initial[slots.of(m)])))
            given = _given(slots, markers + marked, initial)
            first = slots.join([*markers, *marked])
            if given:
                initial[first] = given[0]
        return [slots.of(n) for n in range(len(initial))]

    def edges(self) -> Iterator[tuple[Instruction, list[int]]]:
        """Members of a group that is alike as well as can be, with the instruction that names it first."""
        for members in self.loose.values():
            if len(members) > 1:
                yield members[0].at, [m.own for m in members]


class _Slots:
    """Slots joined to sets, each known by its least member."""

    def __init__(self, count: int) -> None:
        self.parent = list(range(count))

    def of(self, n: int) -> int:
        while self.parent[n] != n:
            n = self.parent[n]
        return n

    def join(self, members: list[int]) -> int:
        first = min(map(self.of, members))
        for m in members:
            self.parent[self.of(m)] = first
        return first


def _given(slots: _Slots, members: list[int], initial: list[TensorSharding]) -> list[TensorSharding]:
    """The different shardings that members start with."""
    return list(dict.fromkeys(s for m in members if not is_free(s := initial[slots.of(m)])))


def _need_alike(number: int, members: list[Member], shapes: list[Shape], initial: list[TensorSharding]) -> None:
    first = members[0]
    for m in members[1:]:
        try:
            if shapes[first.own].dims != shapes[m.own].dims:
                why = f"they are {shapes[first.own]} and {shapes[m.own]}"
                reject(f"members of group {number} have different shapes", why)
            if initial[first.own].manual != initial[m.own].manual:
                why = "a group's members are inside one manual computation, or all outside"
                reject(f"group {number} crosses the border of a manual computation", why)
        except HeronError as error:
            raise error.located(str(m.at)[:200]) from None
