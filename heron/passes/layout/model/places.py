"""Values of a program as layout-assignment sees them: what must lie alike is one `Value`, what may differ is an `Edge`.

An array is a value. The parts of tuples, of loops' states and of what branches and calls take and give are one value
with all that stands for the same memory. Between an op's operand and its result is an edge: both have an order, and
where the two do not fit the operand is copied. Values and edges are made when they are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from functools import cached_property

from heron.errors import HeronError
from heron.hlo.calls.declared import takes_any_order
from heron.hlo.calls.markers import is_identity
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import Shape, ShapeIndex
from heron.passes.layout.model.orders import Order, in_order, is_default, order
from heron.passes.layout.model.preferences import Preferences
from heron.passes.layout.model.relations import Factor, Fixed, Relation, Stepped, relation_of
from heron.records import dataclass

Place = tuple[Instruction, ShapeIndex]

#: ops of which all results have one order
_VARIADIC = frozenset({"reduce"})


@dataclass(eq=False)
class Value:
    """Arrays that have one order; ``fixed`` says why it is not to be chosen. Arrays of one dimension have no values."""

    shape: Shape
    members: list[Place]
    order: Order
    fixed: str = ""
    #: orders that were asked for, and whether it can have them
    possible: dict[Order, bool] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.members[0][0].name

    @cached_property
    def is_carried(self) -> bool:
        """Whether a loop has it in its state."""
        return any(i.opcode == "while" for i, _ in self.members)


@dataclass(eq=False, slots=True)
class Edge:
    """Operand `n` of `user`; with no user the entry's result. ``result``: the value the operand goes into, if any."""

    user: Instruction | None
    n: int
    source: Value
    relation: Relation
    result: Value | None
    #: bytes by the orders of the operand and of what it becomes
    known: dict[tuple[Order, Order], int] = field(default_factory=dict)

    def cost(self, orders: dict[Value, Order]) -> int:
        """Bytes that must be moved where the orders do not fit, and those that a loop moves in vain as it goes through
        the array part by part."""
        given = orders.get(self.source, self.source.order)
        wanted = self.source.order if self.result is None else orders.get(self.result, self.result.order)
        found = self.known.get((given, wanted))
        if found is None:
            found = self.known[given, wanted] = self._cost(given, wanted)
        return found

    def _cost(self, given: Order, wanted: Order) -> int:
        fits = self.relation.fits(given, wanted)
        moved = 0 if fits else self.relation.operand.byte_size
        if isinstance(self.relation, Stepped) and self.source.is_carried:
            return moved + self.relation.waste(given if fits else wanted)
        return moved


@dataclass
class Places:
    """The values and edges of a module whose entry has `parameters` and `result` as their layouts; parts of the
    result in `open_results` may have any."""

    module: Module
    parameters: tuple[Shape, ...]
    result: Shape
    likes: Preferences
    open_results: frozenset[ShapeIndex] = frozenset()
    _values: dict[Place, Value] = field(default_factory=dict)
    _edges: dict[tuple[Instruction, int], Edge | None] = field(default_factory=dict)
    _around: dict[Value, list[Edge]] = field(default_factory=dict)

    # -- values ------------------------------------------------------------------------------------------------------
    def of(self, i: Instruction, index: ShapeIndex = ()) -> Value:
        """The value of an array, or of an array in a tuple."""
        place = self._groups.get((i, index), (i, index))
        found = self._values.get(place)
        if found is None:
            found = self._values[place] = self._value(place)
        return found

    @cached_property
    def stated(self) -> list[Value]:
        """The values that are fixed in another than row-major order: by callers, or by libraries."""
        entry = self.module.entry
        ends = list(zip(entry.parameters, self.parameters, strict=True))
        if entry.root.shape.is_tuple:
            ends.append((entry.root, self.result))
        calls = (i for c in self.computations for i in c.instructions if i.opcode == "custom-call")
        ends += [(i, i.shape) for i in calls if not takes_any_order(i)]
        places = ((i, index, leaf) for i, s in ends if not is_default(s) for index, leaf in s.leaves())
        arrays = (self.of(i, index) for i, index, leaf in places if leaf.is_array and leaf.rank > 1)
        return [v for v in dict.fromkeys(arrays) if v.order != tuple(range(len(v.order)))]

    def _value(self, place: Place) -> Value:
        shape, members = place[0].shape.at(place[1]), self._members.get(place, [place])
        v = Value(shape.bare, members, tuple(range(shape.rank)))
        for i, index in members:
            wanted, why = self._fixed(i, index)
            if not why:
                continue
            if v.fixed and wanted != v.order:
                raise _contradiction(v, i, wanted, why)
            v.order, v.fixed = wanted, why
        return v

    def _fixed(self, i: Instruction, index: ShapeIndex) -> tuple[Order, str]:
        """The only order a result may have, and why; no reason where it may have others."""
        rows = tuple(range(i.shape.at(index).rank))
        is_entry = i.parent is self.module.entry
        if i.opcode == "parameter":
            return (order(self.parameters[i.number].at(index)), "callers give it so") if is_entry else (rows, "")
        if is_entry and i.is_root and i.shape.is_tuple and index not in self.open_results:
            return order(self.result.at(index)), "callers are given it so"
        if i.opcode == "custom-call" and not takes_any_order(i):
            return order(i.shape.at(index)), "the library gives it so"
        if i.opcode in _FREE or i.op.is_elementwise or i.opcode in self.likes.one_order or _is_marker(i):
            return rows, ""
        return rows, f"{i.opcode} gives it so"

    @cached_property
    def computations(self) -> list[Computation]:
        """The computations that run as control flow; in all others every array is row-major."""
        return self.module.non_fusion_computations()

    @cached_property
    def _groups(self) -> dict[Place, Place]:
        """The representative of each place that is joined with others."""
        parents: dict[Place, Place] = {}

        def find(p: Place) -> Place:
            while (up := parents.get(p, p)) != p:
                p = up
            return p

        for c in self.computations:
            for i in c.instructions:
                for a, b in _same_memory(i):
                    one, other = find(a), find(b)
                    parents.setdefault(one, one)
                    parents[other] = one
        return {p: find(p) for p in parents}

    @cached_property
    def _members(self) -> dict[Place, list[Place]]:
        found: dict[Place, list[Place]] = {}
        for p, root in self._groups.items():
            found.setdefault(root, []).append(p)
        return found

    # -- edges -------------------------------------------------------------------------------------------------------
    def edge(self, user: Instruction, n: int) -> Edge | None:
        """Between operand `n` of `user` and its result; None where their orders have nothing to do with each other."""
        key = user, n
        if key not in self._edges:
            self._edges[key] = self._edge(user, n)
        return self._edges[key]

    def _edge(self, user: Instruction, n: int) -> Edge | None:
        x = user.operands[n]
        if not x.shape.is_array or x.shape.rank < 2 or user.opcode == "get-tuple-element":
            return None
        relation, into = relation_of(user, n, self.likes), self._into(user, n)
        if relation is None or (into is None and not isinstance(relation, Fixed | Factor)):
            return None
        return Edge(user, n, self.of(x), relation, into)

    def _into(self, user: Instruction, n: int) -> Value | None:
        """The value that an array operand becomes."""
        match user.opcode:
            case "tuple":
                return self.of(user, (n,))
            case "while":
                return self.of(user)
            case "call":
                return self.of(user.attrs["to_apply"].parameters[n])
            case "conditional":
                return self.of(user.called[n - 1].parameters[0])
        if user.shape.is_array:
            return self.of(user) if user.shape.rank > 1 else None
        return self.of(user, (0,)) if user.opcode in _VARIADIC and user.shape.at((0,)).rank > 1 else None

    def around(self, v: Value) -> list[Edge]:
        """All edges of a value."""
        found = self._around.get(v)
        if found is None:
            found = self._around[v] = list(dict.fromkeys(self._edges_of(v)))
        return found

    def _edges_of(self, v: Value) -> Iterator[Edge]:
        if self.handed_out is not None and self.handed_out.source is v:
            yield self.handed_out
        for i, index in v.members:
            if index == () or i.opcode in _VARIADIC:
                yield from self.above(i)
            elif i.opcode == "tuple" and len(index) == 1 and (edge := self.edge(i, index[0])) is not None:
                yield edge
            if index == ():
                for user in i.users:
                    for n, o in enumerate(user.operands):
                        if o is i and (edge := self.edge(user, n)) is not None:
                            yield edge
            if i.opcode == "parameter":
                yield from self._arguments(i)

    @cached_property
    def handed_out(self) -> Edge | None:
        """From a root that is an array to what callers are given."""
        root = self.module.entry.root
        if not root.shape.is_array or root.shape.rank < 2 or () in self.open_results:
            return None
        return Edge(None, 0, self.of(root), Fixed(root.shape.bare, order(self.result)), None)

    def above(self, i: Instruction) -> Iterator[Edge]:
        """The edges of an op's operands."""
        for n in range(len(i.operands)):
            edge = self.edge(i, n)
            if edge is not None:
                yield edge

    def _arguments(self, parameter: Instruction) -> Iterator[Edge]:
        """The edges of array operands that become a parameter of what is called."""
        for user, n in self._callers.get(parameter, ()):
            edge = self.edge(user, n)
            if edge is not None:
                yield edge

    @cached_property
    def _callers(self) -> dict[Instruction, list[tuple[Instruction, int]]]:
        found: dict[Instruction, list[tuple[Instruction, int]]] = {}
        for c in self.computations:
            for i in c.instructions:
                for n, p in _passed(i) if i.opcode in _JOINS else ():
                    found.setdefault(p, []).append((i, n))
        return found

    def can_be(self, v: Value, wanted: Order) -> bool:
        """Whether what makes a value can make it in that order."""
        if v.fixed:
            return False
        found = v.possible.get(wanted)
        if found is None:
            found = v.possible[wanted] = all(self._makes(i, wanted) for i, index in v.members if _computes(i, index))
        return found

    def _makes(self, i: Instruction, wanted: Order) -> bool:
        if i.opcode == "constant":
            return i.shape.num_elements <= _LARGEST_CONSTANT
        for n, o in enumerate(i.operands):
            rank = o.shape.rank
            if rank == 0 or (rank == 1 and i.opcode not in ("reshape", "dot")):
                continue
            edge = self.edge(i, n)
            relation = edge.relation if edge is not None else relation_of(i, n, self.likes) if rank == 1 else None
            if relation is not None and relation.up(wanted) is None:
                return False
        return True


def _computes(i: Instruction, index: ShapeIndex) -> bool:
    """Whether a member of a value is what makes it, and does not only hand it on."""
    return i.opcode not in _HANDING_ON and (not index or i.opcode in _VARIADIC)


#: ops whose operands and results are one value, or have edges
_HANDING_ON = frozenset({"tuple", "while", "call", "conditional"})
#: elements of a constant that may be stored in another order
_LARGEST_CONSTANT = 1 << 16
#: ops whose results are in the order that suits
_FREE = frozenset(
    "broadcast call conditional constant dot get-tuple-element iota opt-barrier reduce reshape transpose tuple "
    "while".split()
)


def _contradiction(v: Value, i: Instruction, wanted: Order, why: str) -> HeronError:
    one, other = in_order(v.shape, v.order), in_order(v.shape, wanted)
    return HeronError(
        "PASS023",
        f"'{v.name}' and '{i.name}' share memory but not a layout",
        where=str(i),
        why=f"{one} ({v.fixed}), {other} ({why})",
        hint="put a copy between the two",
    )


def _passed(i: Instruction) -> Iterator[tuple[int, Instruction]]:
    """Operands that become parameters: the number of each, and the parameter."""
    match i.opcode:
        case "while":
            yield 0, i.attrs["body"].parameters[0]
        case "call":
            yield from enumerate(i.attrs["to_apply"].parameters)
        case "conditional":
            yield from ((n, c.parameters[0]) for n, c in enumerate(i.called, 1))


def _same_memory(i: Instruction) -> Iterator[tuple[Place, Place]]:
    """Pairs of places that are one: parts of tuples handed on, and what is called with them."""
    joins = _JOINS.get(i.opcode)
    if joins is None:
        return
    yield from joins(i)
    for n, p in _passed(i):
        if p.shape.is_tuple:
            yield from _pairs(i.operands[n], p)


def _taken_out(i: Instruction) -> Iterator[tuple[Place, Place]]:
    yield from _pairs(i, i.operands[0], (i.attrs["index"],))


def _packed(i: Instruction) -> Iterator[tuple[Place, Place]]:
    for n, o in enumerate(i.operands):
        if o.shape.is_tuple:
            yield from _pairs(o, i, (n,))


def _carried(i: Instruction) -> Iterator[tuple[Place, Place]]:
    body, condition = i.attrs["body"], i.attrs["condition"]
    for other in (body.root, body.parameters[0], condition.parameters[0]):
        yield from _pairs(i, other)


def _returned(i: Instruction) -> Iterator[tuple[Place, Place]]:
    for c in i.called:
        yield from _pairs(i, c.root)


def _given_alike(i: Instruction) -> Iterator[tuple[Place, Place]]:
    for n in range(1, len(i.shape.tuple_shapes or ())):
        yield (i, (0,)), (i, (n,))


def _forwarded(i: Instruction) -> Iterator[tuple[Place, Place]]:
    if i.shape.is_tuple:
        yield from _pairs(i, i.operands[0])


#: ops that make one value of several places, and the pairs of these
_JOINS = {
    "get-tuple-element": _taken_out,
    "tuple": _packed,
    "while": _carried,
    "call": _returned,
    "conditional": _returned,
    "copy": _forwarded,
    "opt-barrier": _forwarded,
    **dict.fromkeys(_VARIADIC, _given_alike),
}


def _pairs(a: Instruction, b: Instruction, at: ShapeIndex = ()) -> Iterator[tuple[Place, Place]]:
    """The arrays of `a` with those of the part of `b`."""
    for index, leaf in a.shape.leaves():
        if leaf.is_array and leaf.rank > 1:
            yield (a, index), (b, (*at, *index))


def _is_marker(i: Instruction) -> bool:
    return i.opcode == "custom-call" and i.shape.is_array and is_identity(i)
