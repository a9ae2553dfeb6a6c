"""Groups: kernels in the making, and how often each of their instructions would be computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from math import prod

from heron.analysis.cost.code_size import CodeLimit, Places, places_of
from heron.analysis.cost.reuse import evaluations_of, is_guarded
from heron.analysis.fusion.cuts import made_of_one
from heron.analysis.fusion.joined_rows import is_within_row
from heron.analysis.indexing.hlo_maps import divides_index
from heron.hlo.facts import is_indirect, is_view
from heron.hlo.ir.instruction import Instruction
from heron.passes.fusion.model.in_turn import slowdown
from heron.passes.fusion.model.one_place import OnePlace
from heron.records import dataclass

#: elements that a vector loop computes in the time of one outside of it
LANES = 8.0
#: operands of a concatenation that a kernel may tell apart in the loop of each of them: code grows with their square
_FEW_PIECES = 4
#: LLVM instructions of a function; elements of a kernel of which the extra time is more than that of another kernel
_FUNCTION, _FEW = 30, 256
#: elements of a transpose's rows, before and after it, that are too few for vectors with functions along them
_SHORT_ROWS = 32, 64
#: elements of an operand of a concatenation inside of others that are written out one by one; more are vectors
_SHORT_PIECE = 3


@dataclass(slots=True, eq=False)
class Group:
    """One kernel: its ``root`` and all it computes, `root` included.

    ``evaluations[i]``: how many elements of member `i` the kernel computes; more than `i` has when some are computed
    again for several readers. ``code_of``: LLVM instructions for one element. ``inputs``: what it reads from memory.
    ``places``: where each member is computed, which makes ``code`` LLVM instructions; ``is_full``: something was
    refused because that would be too many. ``slower``: times that an element takes longer than in vector loops of all
    threads. ``guarded``: members computed only where a condition holds. ``joints``: concatenations through which each
    member is read, itself included; ``divisions``: views through which it is read that take dimensions apart, likewise.
    ``turns``, ``applies``: whether all elements go through a transpose of short rows, and through a function such as
    exp. ``chosen``: members of which a gather chooses the elements; ``branches``: whether one chooses them from the
    operands of a concatenation, which takes a branch for each.
    """

    root: Instruction
    limit: CodeLimit
    code_of: Callable[[Instruction], float]
    evaluations: dict[Instruction, float] = field(default_factory=dict)
    inputs: dict[Instruction, None] = field(default_factory=dict)
    places: dict[Instruction, Places] = field(default_factory=dict)
    code: float = 0.0
    is_full: bool = False
    slower: float = 1.0
    guarded: set[Instruction] = field(default_factory=set)
    joints: dict[Instruction, int] = field(default_factory=dict)
    divisions: dict[Instruction, int] = field(default_factory=dict)
    chosen: set[Instruction] = field(default_factory=set)
    branches: bool = False
    turns: bool = False
    applies: bool = False
    _one_place: OnePlace = field(init=False)
    _asked: Instruction | None = field(init=False, default=None)
    _found: Places = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._one_place = OnePlace(self.evaluations)
        self._one_place.has_gathers = self.root.opcode == "gather"
        self.joints[self.root] = int(self.root.opcode == "concatenate")
        self.divisions[self.root] = int(divides_index(self.root))
        self._note_loop(self.root)

    @staticmethod
    def of(root: Instruction, limit: CodeLimit, code_of: Callable[[Instruction], float]) -> Group:
        """The kernel of `root` alone."""
        size = (root.shape.tuple_shapes or (root.shape,))[0].num_elements
        inputs, code = dict.fromkeys(root.operands), code_of(root)
        return Group(root, limit, code_of, {root: float(size)}, inputs, {root: {None: 1}}, code, slower=slowdown(root))

    def __contains__(self, i: Instruction) -> bool:
        return i in self.evaluations

    def add(self, i: Instruction, evaluations: float, users: Iterable[Instruction]) -> None:
        """Compute `i` inside, for the members that use it, `users`."""
        self.evaluations[i] = evaluations
        self._one_place.has_gathers |= i.opcode == "gather"
        users = list(users)
        self.joints[i] = self._joints_above(users) + (i.opcode == "concatenate")
        self.divisions[i] = self.divisions_at(i, users)
        self._note_loop(i)
        if is_guarded(i, users, self.guarded):
            self.guarded.add(i)
        if self.chooses(i, users):
            self.chosen.add(i)
        places = self.places[i] = self.places_at(i, users)
        self.code += self.code_of(i) * sum(places.values())
        self.inputs.pop(i, None)
        for operand in i.operands:
            if operand not in self.evaluations:
                self.inputs[operand] = None

    def places_at(self, i: Instruction, users: Iterable[Instruction]) -> Places:
        """The places at which its users, `users`, would compute `i`."""
        if self._asked is not i:  # its users are here all before it is asked about
            found = places_of(i, self.places, users, self.limit)
            several = sum(found.values()) > 1 and self._one_place.times(i) is not None
            self._asked, self._found = i, {i: 1} if several else found
        return self._found

    def shares(self, i: Instruction, users: Iterable[Instruction]) -> bool:
        """Whether gathers among its users, `users`, share the place at which they read `i`."""
        return self._one_place.has_gathers and self.places_at(i, users).keys() == {i}

    def copies_of(self, i: Instruction, users: Iterable[Instruction]) -> int:
        """The number of places at which the kernel would compute `i`."""
        return sum(self.places_at(i, users).values())

    def spreads(self, i: Instruction, users: Iterable[Instruction]) -> bool:
        """Whether the kernel would have to tell for every element which operand of `i` that comes from, in the loop of
        every operand.

        A kernel tells once which operand its elements come from, in a loop for each. Where a concatenation or an
        interleaved value is read at places of its own, a branch would have to choose the operand for every element.
        """
        if i.opcode == "concatenate" and len(i.operands) > _FEW_PIECES:
            places = self.places_at(i, users)
            return len(places) > 1 and None in places
        is_pad = i.opcode == "pad"
        if not (is_pad and _has_room(i) or any(o.opcode == "pad" and _has_room(o) for o in i.operands)):
            return False
        return self.places_at(i, users).keys() != {None} and any(
            x.opcode == "pad" and _has_room(x) for x in self.evaluations
        )

    def nests(self, i: Instruction, users: Iterable[Instruction]) -> bool:
        """Whether `i` is a concatenation inside of others, so that a CPU's loop would choose among operands anew for
        every element: that keeps it from vectors.

        The outer one is cut into a loop for each operand, and one inside of it along rows, too, unless its operands
        come by turns. Rows of few elements are written out element by element.
        """
        if i.opcode != "concatenate" or made_of_one(i) is not None:
            return False
        piece = max([prod(o.shape.dims[i.dimensions[0] :]) for o in i.operands])
        if self._joints_above(users) < (1 if piece == 1 else 2):
            return False
        return piece > _SHORT_PIECE or not is_within_row(i, self.root.shape)

    def turns_functions(self, i: Instruction) -> bool:
        """Whether `i` would put a function and a transpose of short rows in one loop.

        Elements of a short row are read apart then, and the functions go one by one where the machine has no masks. By
        itself the function has one long loop.
        """
        return self.turns and self._is_function(i) or self.applies and self._turns_rows(i)

    def _note_loop(self, i: Instruction) -> None:
        self.branches |= _chooses_operand(i)
        self.applies |= self._is_function(i)
        self.turns |= self._turns_rows(i)

    def _is_whole(self, i: Instruction) -> bool:
        """Whether as many elements of `i` are computed as the kernel has, and not only few."""
        return (
            i.shape.is_array
            and self.root.shape.is_array
            and _FEW <= i.shape.num_elements == self.root.shape.num_elements
        )

    def _is_function(self, i: Instruction) -> bool:
        is_long = i.op.is_elementwise and self.code_of(i) >= _FUNCTION
        return is_long and self._is_whole(i) and i.shape.element_type.is_float

    def _turns_rows(self, i: Instruction) -> bool:
        if i.opcode != "transpose" or i.dimensions[-1] == i.shape.rank - 1 or not self._is_whole(i):
            return False
        (before, after), rows = (i.operands[0].shape.dims[-1], i.shape.dims[-1]), _SHORT_ROWS
        return 1 < before < rows[0] and 1 < after < rows[1]

    def chooses(self, i: Instruction, users: Iterable[Instruction]) -> bool:
        """Whether a gather chooses the elements of `i` that its users, `users`, ask for."""
        return any([u in self.chosen or is_indirect(u) and u.operands[0] is i for u in users])

    def _joints_above(self, users: Iterable[Instruction]) -> int:
        return max([self.joints[u] for u in users], default=0)

    def divisions_at(self, i: Instruction, users: Iterable[Instruction]) -> int:
        """The views that take dimensions apart through which its users, `users`, would read `i`, itself included."""
        return max([self.divisions[u] for u in users], default=0) + divides_index(i)

    def evaluations_of(self, i: Instruction, users: Iterable[Instruction]) -> float:
        """The number of elements of `i` that its users in the group, `users`, would compute if it were fused."""
        found = evaluations_of(i, self.evaluations, users=users, lanes=LANES, guarded=self.guarded)
        if not i.shape.is_array or found <= i.shape.num_elements:
            return found
        times = self._one_place.times(i)
        return found if times is None else min(found, times)

    def code_with(self, i: Instruction, users: Iterable[Instruction], below: Callable[[Instruction], float]) -> float:
        """LLVM instructions of the kernel, were `i` inside.

        ``below``: those of an element's own operands. They count where `i` is read at an index of its own: a kernel
        that has room for a part of them would end at many values in place of one.
        """
        places = self.places_at(i, users)
        apart = sum(copies for place, copies in places.items() if isinstance(place, tuple))
        return self.code + self.code_of(i) * sum(places.values()) + (apart * below(i) if apart else 0.0)


def _chooses_operand(i: Instruction) -> bool:
    """Whether `i` is a gather of a concatenation: any element may come from any of its operands."""
    if i.opcode != "gather":
        return False
    x = i.operands[0]
    while is_view(x):
        x = x.operands[0]
    return x.opcode == "concatenate"


def _has_room(pad: Instruction) -> bool:
    return any(interior for _, _, interior in pad.padding)
