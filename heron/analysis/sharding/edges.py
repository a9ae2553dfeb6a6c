"""The ways on which shardings pass between the values of a program.

Values are the array leaves of instructions. A tuple, a get-tuple-element and a called computation hand on the same
value. Values that must have one sharding share a *slot*: the carried value of a loop with the parameters of its body
and condition, and the members of a group that is sharded alike. A *link* ties slots together by a sharding rule: an op,
or an edge of the data flow (initial value and body result of a loop, results of branches, an optimization barrier),
whose rule is the identity.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import field
from functools import lru_cache

from heron.analysis.sharding.groups import Groups, Member, is_free
from heron.analysis.sharding.program import ProgramShardings
from heron.analysis.sharding.rule import Factor, OpRule
from heron.analysis.sharding.rules import rule_of
from heron.hlo.calls.markers import BORDERS, MARKERS
from heron.hlo.facts import is_view
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.hlo.ir.shape import Shape, ShapeIndex
from heron.hlo.sharding.atoms import TensorSharding
from heron.records import dataclass


class Tie(enum.Enum):
    """The kind of a link."""

    __hash__ = object.__hash__

    #: an op with a rule
    OP = "op"
    #: an elementwise op, a constraint, or a barrier of propagation
    ELEMENTWISE = "elementwise op"
    #: an edge of the data flow between values that should have one sharding
    EDGE = "data-flow edge"
    #: the border of a manual computation: its two values differ in the manual atoms
    BORDER = "border of a manual computation"
    #: a result of the program and the value it returns
    RESULT = "result"


class Direction(enum.IntFlag):
    """The directions in which a link may pass axes on."""

    NONE = 0
    FORWARD = 1
    BACKWARD = 2
    BOTH = 3


#: GSPMD's barriers, with the direction in which shardings still pass: nothing comes from, or nothing to, the operand
BARRIERS = {"ShardBarrierFrom": Direction.BACKWARD, "ShardBarrierTo": Direction.FORWARD}


@dataclass(slots=True)
class Link:
    """Slots tied together by a rule.

    Attributes:
        at: the instruction that ties them.
        tie: the kind of link.
        rule: the sharding rule, one array for each of the slots.
        slots: the slots of the operands, then of the results.
        is_pass_through: whether the link is among the first to pass shardings on, as ops that move no data are.
        has_single_uses: whether no operand that can be split has another use.
        allowed: what a barrier allows; both directions for all others.
    """

    at: Instruction
    tie: Tie
    rule: OpRule
    slots: tuple[int, ...]
    is_pass_through: bool = False
    has_single_uses: bool = True
    allowed: Direction = Direction.BOTH


@dataclass(slots=True)
class Flow:
    """The slots of a program and the links between them.

    Attributes:
        links: in the order of the program: those of a loop's or branch's computations ahead of its edges.
        shapes: the shape of each slot's values.
        initial: the sharding each slot starts with.
        names: for each slot the instruction and index that it is known by.
        leaves: the slot of each leaf of each instruction; -1 for tokens.
        results: the slots of the program's result, which may differ from the root's value.
    """

    links: list[Link] = field(default_factory=list)
    shapes: list[Shape] = field(default_factory=list)
    initial: list[TensorSharding] = field(default_factory=list)
    names: list[tuple[Instruction, ShapeIndex]] = field(default_factory=list)
    leaves: dict[Instruction, list[int]] = field(default_factory=dict)
    results: list[int] = field(default_factory=list)

    def slot(self, i: Instruction, index: ShapeIndex = ()) -> int:
        """The slot of a leaf of a value; -1 for a token. Raises IndexError when there is no such leaf."""
        indices = [at for at, _ in i.shape.leaves()]
        if index not in indices:
            raise IndexError(f"{i.name} has no leaf {list(index)}")
        is_result = i.is_root and i.parent is not None and i.parent.is_entry and Trait.TUPLE in i.op.traits
        return (self.results if is_result else self.leaves[i])[indices.index(index)]


_free = lru_cache(TensorSharding.free)


@lru_cache(4096)
def identity(dims: tuple[int, ...], sources: int) -> OpRule:
    """The rule that gives some operands and one result of these dimensions the same sharding."""
    array = tuple((d,) for d in range(len(dims)))
    return OpRule(tuple(map(Factor, dims)), (array,) * sources, (array,))


def flow_of(module: Module, shardings: ProgramShardings) -> Flow:
    """The flow of a module whose values start with `shardings`.

    Raises HLO027 when the members of a group have different shapes, or are in different manual computations.
    """
    builder = _Builder(shardings)
    builder.computation(module.entry)
    builder.results(module.entry.root)
    return builder.finish()


@dataclass(slots=True)
class _Draft:
    """A link whose operands' uses are still being counted; `values` are numbers of values, not slots."""

    at: Instruction
    tie: Tie
    rule: OpRule
    values: tuple[int, ...]
    operands: int
    allowed: Direction = Direction.BOTH


class _Builder:
    """Walks the computations of a program, callers first, and numbers the values it meets."""

    def __init__(self, shardings: ProgramShardings) -> None:
        self.shardings = shardings
        self.flow = Flow()
        self.drafts: list[_Draft] = []
        #: for each value: its slot, its shape and the number of its uses
        self.slot_of: list[int] = []
        self.uses: list[int] = []
        self.ranks: list[int] = []
        #: for each instruction the values of its leaves; -1 for tokens
        self.values: dict[Instruction, list[int]] = {}
        self.visited: set[Computation] = set()
        self.groups = Groups()

    # -- values ------------------------------------------------------------------------------------------------------
    def new(self, i: Instruction, index: ShapeIndex, shape: Shape, slot: int = -1) -> int:
        """The number of a new value, in a slot of its own or in the one given; -1 for a token."""
        if not shape.is_array:
            return -1
        flow = self.flow
        sharding = self.shardings.of(i, index) if self.shardings.has(i) else _free(shape.rank)
        if slot < 0:
            slot = len(flow.shapes)
            flow.shapes.append(shape)
            flow.names.append((i, index))
            flow.initial.append(sharding)
        elif is_free(flow.initial[slot]):
            flow.initial[slot] = sharding
        self.slot_of.append(slot)
        self.uses.append(0)
        self.ranks.append(shape.rank)
        return len(self.slot_of) - 1

    def fresh(self, i: Instruction, like: Sequence[int] = ()) -> list[int]:
        """New values for all leaves of `i`; in the slots of the values `like` where they are given."""
        if not like and i.shape.is_array:
            return [self.new(i, (), i.shape)]
        slots = (self.slot_of[v] if v >= 0 else -1 for v in like) if like else iter(())
        return [self.new(i, index, leaf, next(slots, -1)) for index, leaf in i.shape.leaves()]

    def operand_values(self, i: Instruction) -> list[int]:
        return [v for o in i.operands for v in self.values[o]]

    def use(self, values: Iterable[int]) -> None:
        uses = self.uses
        for v in values:
            if v >= 0:
                uses[v] += 1

    # -- walking -----------------------------------------------------------------------------------------------------
    def computation(self, c: Computation) -> None:
        """Number the values of `c` and draft its links; its parameters may have values already."""
        if c in self.visited:
            return
        self.visited.add(c)
        values = self.values
        for i in c.post_order():
            if i not in values:
                values[i] = self.instruction(i)
        self.use(values[c.root])

    def instruction(self, i: Instruction) -> list[int]:
        """The values of an instruction's leaves."""
        traits = i.op.traits
        if Trait.TUPLE in traits:
            return self.handed_on(i)
        if i.opcode == "while":
            return self.loop(i)
        if i.opcode == "conditional":
            return self.branches(i)
        if Trait.CALL in traits and i.called:
            return self.call(i)
        operands = self.operand_values(i)
        self.use(operands)
        if i.opcode == "opt-barrier":
            found = self.fresh(i)
            self.edges(i, [operands], found)
            return found
        if i.opcode == "custom-call":
            return self.custom_call(i, operands)
        found = self.fresh(i)
        if i.opcode == "copy" and i.shape.is_tuple:
            self.alike(i, operands, found)
            return found
        rule = rule_of(i)
        if rule is not None:
            self.draft(i, Tie.ELEMENTWISE if i.op.is_elementwise else Tie.OP, rule, operands, found)
        return found

    def handed_on(self, i: Instruction) -> list[int]:
        """The values in a tuple, or those of one element; a sharding written here counts for values without one."""
        if i.opcode == "tuple":
            found = self.operand_values(i)
        else:
            source = i.operands[0]
            begin = sum(map(_leaf_count, (source.shape.tuple_shapes or ())[: i.index]))
            found = self.values[source][begin : begin + _leaf_count(i.shape)]
        if self.shardings.has(i) and not (i.is_root and i.parent is not None and i.parent.is_entry):
            initial = self.flow.initial
            for v, (index, _) in zip(found, i.shape.leaves(), strict=True):
                if v >= 0 and is_free(initial[self.slot_of[v]]):
                    initial[self.slot_of[v]] = self.shardings.of(i, index)
        return found

    def loop(self, i: Instruction) -> list[int]:
        """Results of a while with the slots of the body's and condition's parameters; edges from start and body."""
        start = self.operand_values(i)
        self.use(start)
        body, condition = i.body, i.condition
        known = self.values.get(body.parameters[0], ())
        found = self.fresh(i, known)
        for c in (condition, body):
            for p in c.parameters:
                if p not in self.values:
                    self.values[p] = self.fresh(p, found)
            self.computation(c)
        self.edges(i, [start, self.values[body.root]], found)
        return found

    def branches(self, i: Instruction) -> list[int]:
        """Results of a conditional, with edges from the branches' results; what branches get is the operand itself."""
        self.use(self.values[i.operands[0]])
        for c, operand in zip(i.called, i.operands[1:], strict=True):
            self.pass_to(c, [operand])
        found = self.fresh(i)
        self.edges(i, [self.values[c.root] for c in i.called], found)
        return found

    def call(self, i: Instruction) -> list[int]:
        """The values that the computation gives back."""
        c = i.called[0]
        self.pass_to(c, i.operands)
        return self.values[c.root]

    def pass_to(self, c: Computation, operands: Sequence[Instruction]) -> None:
        """Make the parameters of `c` the operands' values; edges to them from the operands of other callers."""
        for p, operand in zip(c.parameters, operands, strict=True):
            given = self.values[operand]
            if p not in self.values:
                self.values[p] = given
            elif self.values[p] != given:
                self.use(given)
                self.edges(operand, [given], self.values[p])
        self.computation(c)

    def custom_call(self, i: Instruction, operands: list[int]) -> list[int]:
        target = i.custom_call_target
        if target in BORDERS:
            found = self.fresh(i)
            for a, b in zip(operands, found, strict=True):
                if a >= 0:
                    local = tuple(map(min, *(self.flow.shapes[self.slot_of[v]].dims for v in (a, b))))
                    self.link(i, Tie.BORDER, identity(local, 1), (a, b), 1)
            return found
        if target not in MARKERS or [o.shape.bare for o in i.operands] != [i.shape.bare]:
            found = self.fresh(i)
            rule = rule_of(i)
            if rule is not None:
                self.draft(i, Tie.OP, rule, operands, found)
            return found
        found = self.grouped(i, operands)
        allowed = BARRIERS.get(target, Direction.BOTH)
        if target == "xla.sdy.PropagationBarrier":
            allowed = Direction[i.extras.get("frontend_attributes", {}).get("xla.sdy.allowed_direction", "NONE")]
        self.alike(i, operands, found, allowed)
        return found

    def alike(
        self, i: Instruction, operands: Sequence[int], found: Sequence[int], allowed: Direction = Direction.BOTH
    ) -> None:
        """Tie each leaf of the value to that of the operand."""
        for a, b in zip(operands, found, strict=True):
            if a >= 0:
                rule = identity(self.flow.shapes[self.slot_of[b]].dims, 1)
                self.link(i, Tie.ELEMENTWISE, rule, (a, b), 1, allowed)

    def grouped(self, i: Instruction, operands: Sequence[int]) -> list[int]:
        """The values of a marker; one that names a group becomes a member of it."""
        found = self.fresh(i)
        group = self.shardings.groups.get(i)
        if group is not None and not i.shape.is_tuple:
            self.groups.add(group, Member(i, self.slot_of[operands[0]], self.slot_of[found[0]]))
        return found

    def results(self, root: Instruction) -> None:
        """Slots for the results of the program, with edges from what the root's tuple holds."""
        if root.shape.is_tuple and Trait.TUPLE not in root.op.traits:
            self.flow.results = [self.slot_of[v] if v >= 0 else -1 for v in self.values[root]]
            return
        returned, found = self.values[root], self.fresh(root)
        if _says_of_itself(root):
            self.flow.initial[self.slot_of[found[0]]] = TensorSharding.free(root.shape.rank)
        for a, b in zip(returned, found, strict=True):
            if a >= 0:
                self.link(root, Tie.RESULT, identity(self.flow.shapes[self.slot_of[b]].dims, 1), (a, b), 1)
        self.flow.results = [self.slot_of[v] if v >= 0 else -1 for v in found]

    # -- links -------------------------------------------------------------------------------------------------------
    def draft(self, i: Instruction, tie: Tie, rule: OpRule, operands: Sequence[int], results: Sequence[int]) -> None:
        values = tuple(v for v in (*operands, *results) if v >= 0)
        if len(values) != len(rule.operands) + len(rule.results):
            raise AssertionError(f"{i}: {len(values)} arrays, but the rule is {rule}")
        self.link(i, tie, rule, values, len(rule.operands))

    def link(
        self,
        i: Instruction,
        tie: Tie,
        rule: OpRule,
        values: tuple[int, ...],
        operands: int,
        allowed: Direction = Direction.BOTH,
    ) -> None:
        self.drafts.append(_Draft(i, tie, rule, values, operands, allowed))

    def edges(self, i: Instruction, sources: Sequence[Sequence[int]], targets: Sequence[int]) -> None:
        """An edge for each target, from the values at the same place in all sources."""
        for n, target in enumerate(targets):
            if target >= 0 and self.ranks[target]:
                values = (*(s[n] for s in sources), target)
                self.link(i, Tie.EDGE, identity(self.flow.shapes[self.slot_of[target]].dims, len(sources)), values, 0)

    def finish(self) -> Flow:
        flow, slot_of, uses, ranks = self.flow, self.slot_of, self.uses, self.ranks
        merged = self.groups.merged(flow.shapes, flow.initial)
        for d in self.drafts:
            slots = tuple([merged[slot_of[v]] for v in d.values])
            single = all(uses[v] == 1 or not ranks[v] for v in d.values[: d.operands])
            flow.links.append(Link(d.at, d.tie, d.rule, slots, _is_pass_through(d), single, d.allowed))
        for i, members in self.groups.edges():
            slots = tuple(merged[m] for m in members)
            flow.links.append(Link(i, Tie.EDGE, identity(i.shape.dims, len(slots) - 1), slots, True))
        flow.leaves = {i: [merged[slot_of[v]] if v >= 0 else -1 for v in found] for i, found in self.values.items()}
        flow.results = [merged[slot] if slot >= 0 else -1 for slot in flow.results]
        return flow


def _is_pass_through(d: _Draft) -> bool:
    """Whether the link moves no data: an elementwise op, an edge, a view, a transpose, a move to another memory."""
    i = d.at
    return d.tie is not Tie.OP or is_view(i) or i.opcode == "transpose"


def _says_of_itself(root: Instruction) -> bool:
    """Whether the sharding written at the root is not that of the result: a parameter's, a constraint's."""
    if root.shape.is_tuple or not root.shape.is_array:
        return False
    return root.opcode == "parameter" or (root.opcode == "custom-call" and root.custom_call_target in MARKERS)


@lru_cache(4096)
def _leaf_count(shape: Shape) -> int:
    return sum(1 for _ in shape.leaves())
