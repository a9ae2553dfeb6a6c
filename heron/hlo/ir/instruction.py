"""Instruction: one node of an HLO computation."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from heron.errors import HeronError
from heron.hlo.ir import op as ops
from heron.hlo.ir.attribute_types import AttributeTypes
from heron.hlo.ir.metadata import Metadata
from heron.hlo.ir.op import Op, Trait
from heron.hlo.ir.operators import Operators
from heron.hlo.ir.providers import provided
from heron.hlo.ir.shape import Shape

if TYPE_CHECKING:
    from heron.hlo.ir.computation import Computation
    from heron.hlo.sharding import Sharding


#: gives a number greater than all it gave before: the time of a change
clock = itertools.count(1).__next__


class Instruction(Operators, AttributeTypes):
    """An op applied to operands. Attributes of the op (`i.dimensions`, `i.to_apply`, …) read like fields.

    ``users`` maps each using instruction to its number of uses. ``extras`` holds what any instruction may carry
    (sharding, frontend_attributes, backend_config, …) as parsed. Make with `Computation.add` or the builder.

    ``version`` is a value of the global `clock`, renewed when the instruction is created, gets a new operand or loses a
    user. ``i.version > t`` means it changed after time t. Call `mark_changed` after assigning a shape or attribute.
    """

    __slots__ = (
        "name",
        "op",
        "opcode",
        "shape",
        "operands",
        "users",
        "attrs",
        "extras",
        "metadata",
        "parent",
        "control_predecessors",
        "control_successors",
        "version",
    )

    def __init__(
        self,
        op: Op,
        operands: Sequence[Instruction],
        shape: Shape | None,
        attrs: dict[str, Any],
        name: str = "",
        extras: dict[str, Any] | None = None,
        metadata: Metadata | None = None,
    ) -> None:
        self.op, self.opcode, self.name = op, op.name, name
        self.operands = list(operands)
        self.users: dict[Instruction, int] = {}
        self.attrs = attrs
        self.extras: dict[str, Any] = extras if extras is not None else {}
        self.metadata = metadata
        self.parent: Computation | None = None
        self.control_predecessors: list[Instruction] = []
        self.control_successors: list[Instruction] = []
        self.version = clock()
        self.shape: Shape = shape  # type: ignore[assignment]
        if shape is None:
            self.shape = op.shape(self, *[o.shape for o in operands])
        for operand in self.operands:
            operand.users[self] = operand.users.get(self, 0) + 1

    if not TYPE_CHECKING:  # type checkers know them by `AttributeTypes`

        def __getattr__(self, name: str) -> Any:
            # reached only for names that are no slot: the op's own attributes
            if name.startswith("__"):
                raise AttributeError(name)
            found = self.attrs.get(name, self)
            if found is not self:
                return found
            declared = self.op.attributes.get(name)
            if declared is None:
                raise AttributeError(f"'{self.opcode}' has no attribute '{name}'")
            return declared.default

    def __str__(self) -> str:
        return provided("print_instruction")(self)

    def __repr__(self) -> str:
        return f"<{self.name} = {self.opcode}>"

    # -- questions ---------------------------------------------------------------------------------------------------
    @property
    def called(self) -> list[Computation]:
        """Computations this instruction calls, in attribute order."""
        found: list[Computation] = []
        for name in self.op.calling:
            value = self.attrs.get(name)
            if value is not None:
                found += value if isinstance(value, tuple) else (value,)
        return found

    @property
    def is_root(self) -> bool:
        return self.parent is not None and self.parent.root is self

    @property
    def has_side_effect(self) -> bool:
        """Whether the instruction, or anything it calls, must not be removed."""
        if self.op.has_side_effect or self.attrs.get("custom_call_has_side_effect"):
            return True
        if not self.op.calling:
            return False
        work = self.called
        seen = set(work)
        while work:  # no recursion: chains of calls may be long
            for i in work.pop()._instructions:  # pyright: ignore[reportPrivateUsage]
                op = i.op
                if op.has_side_effect or i.attrs.get("custom_call_has_side_effect"):
                    return True
                if op.calling:
                    fresh = [c for c in i.called if c not in seen]
                    seen.update(fresh)
                    work.extend(fresh)
        return False

    @property
    def sharding(self) -> Sharding | None:
        """The sharding of the value, if it has one. Raises HLO027 if its text is invalid."""
        text = self.extras.get("sharding")
        return None if text is None else provided("parse_sharding")(text)

    @sharding.setter
    def sharding(self, sharding: Sharding | None) -> None:
        if sharding is None:
            self.extras.pop("sharding", None)
        else:
            self.extras["sharding"] = str(sharding)

    def has(self, trait: Trait) -> bool:
        return trait in self.op.traits

    def operand(self, name: str) -> Instruction:
        """The operand of that name in the op's declaration. Raises KeyError for a name of no single operand."""
        return self.operands[self.op.places[name]]

    def places_of(self, operand: Instruction) -> list[int]:
        """The numbers of the operands that are this one."""
        found: list[int] = []  # a list finds an element much sooner than a loop over thousands of operands does
        for _ in range(operand.users.get(self, 0)):
            found.append(self.operands.index(operand, found[-1] + 1 if found else 0))
        return found

    @property
    def fused_root(self) -> Instruction:
        """The root of a fusion's computation."""
        return self.attrs["calls"].root

    # -- changes -----------------------------------------------------------------------------------------------------
    def set_operand(self, n: int, new: Instruction) -> None:
        """Replace operand `n`."""
        old = self.operands[n]
        if old is new:
            return
        self._drop_use(old)
        self.operands[n] = new
        self.mark_changed()
        new.users[self] = new.users.get(self, 0) + 1

    def append_operand(self, new: Instruction) -> None:
        self.operands.append(new)
        self.mark_changed()
        new.users[self] = new.users.get(self, 0) + 1

    def set_operands(self, operands: Iterable[Instruction]) -> None:
        """Replace the whole operand list."""
        for old in self.operands:
            self._drop_use(old)
        self.operands = []
        for new in operands:
            self.append_operand(new)

    def _drop_use(self, operand: Instruction) -> None:
        left = operand.users[self] - 1
        if left:
            operand.users[self] = left
        else:
            del operand.users[self]
        operand.mark_changed()

    def mark_changed(self) -> None:
        """Say that the shape or an attribute has changed."""
        self.version = clock()
        if self.parent is not None:
            self.parent.version = self.version

    def replace_uses_with(self, new: Instruction, only: Iterable[Instruction] | None = None) -> None:
        """Make users (all, or `only` these) use `new` instead; moves the root mark when all are replaced."""
        if new is self:
            return
        for user in list(self.users) if only is None else list(only):
            if user is new:
                continue
            for n in user.places_of(self):
                user.set_operand(n, new)
        if only is None and self.is_root:
            assert self.parent is not None
            self.parent.root = new

    def add_control_predecessor(self, before: Instruction) -> None:
        """Order `before` ahead of this instruction."""
        if before not in self.control_predecessors:
            self.control_predecessors.append(before)
            before.control_successors.append(self)
            self.mark_changed()

    def drop_control_edges(self) -> None:
        """Cut all control edges; orders between the two sides stay."""
        if not (self.control_predecessors or self.control_successors):
            return
        for before in self.control_predecessors:
            before.control_successors.remove(self)
            for after in self.control_successors:
                after.add_control_predecessor(before)
        for after in self.control_successors:
            after.control_predecessors.remove(self)
        self.control_predecessors, self.control_successors = [], []
        self.mark_changed()

    def clone(
        self,
        operands: Sequence[Instruction] | None = None,
        shape: Shape | None = None,
        **attrs: Any,
    ) -> Instruction:
        """An unattached copy (same name), with other operands, shape or attributes where given."""
        return Instruction(
            self.op,
            self.operands if operands is None else operands,
            self.shape if shape is None else shape,
            {**self.attrs, **attrs},
            self.name,
            dict(self.extras),
            self.metadata,
        )

    def walk_operands(self) -> Iterator[Instruction]:
        """Operands and control predecessors: all that must come before."""
        yield from self.operands
        yield from self.control_predecessors


def make(
    opcode: str,
    operands: Sequence[Instruction] = (),
    shape: Shape | None = None,
    name: str = "",
    **attrs: Any,
) -> Instruction:
    """An unattached instruction; the shape is inferred when not given.

    Raises HLO003 (unknown op), HLO004 (operand count), HLO010 (shape rule).
    """
    found = ops.get(opcode)
    count = len(operands)
    if count < found.min_operands or (found.max_operands is not None and count > found.max_operands):
        raise HeronError(
            "HLO004",
            f"{opcode} takes {operand_count_text(found)}, {count} given",
            why="operands: " + (", ".join(found.operands) or "none"),
        )
    return Instruction(found, operands, shape, attrs, name)


def operand_count_text(op: Op) -> str:
    """The number of operands of an op, in words."""
    low, high = op.min_operands, op.max_operands
    if high is None:
        return f"at least {low} operands" if low else "any number of operands"
    return f"{low} operand{'s' * (low != 1)}" if low == high else f"{low} to {high} operands"
