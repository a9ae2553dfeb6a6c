"""The statements of a program about shardings, before they are axes of one mesh."""

from __future__ import annotations

from dataclasses import field

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import ShapeIndex
from heron.hlo.sharding import NamedSharding, ShardGroup
from heron.records import dataclass

#: custom calls by which a value is sharded, and by which it enters and leaves a manual computation
CONSTRAINT, ENTER, LEAVE = "Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape"
BARRIER = "xla.sdy.PropagationBarrier"


@dataclass
class Annotations:
    """Shardings by axes of any mesh.

    Attributes:
        leaves: the shardings of the leaves of a value, in order; None for a leaf of which nothing is said.
        groups: the group of values that are sharded alike.
        results: the shardings of the entry's result.
        manual: for borders and calls by Shardy, the axes that become manual, or cease to be.
        changed: whether the program was rewritten.
    """

    leaves: dict[Instruction, list[NamedSharding | None]] = field(default_factory=dict)
    groups: dict[Instruction, ShardGroup] = field(default_factory=dict)
    results: dict[ShapeIndex, NamedSharding] = field(default_factory=dict)
    manual: dict[Instruction, NamedSharding] = field(default_factory=dict)
    changed: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether the program says nothing of shardings."""
        return not (self.leaves or self.results or self.manual)

    def replace(self, old: Instruction, new: Instruction) -> None:
        """Let `new` take over all uses of `old`, which goes together with what is said of it."""
        assert old.parent is not None
        for about in (self.leaves, self.groups, self.manual):
            about.pop(old, None)
        old.replace_uses_with(new)
        old.drop_control_edges()
        old.parent.remove(old)
        self.changed = True

    def copy(self, copies: dict[Instruction, Instruction]) -> None:
        """Say the same of the copies of instructions."""
        for old, new in copies.items():
            if old in self.leaves:
                self.leaves[new] = self.leaves[old]
            if old in self.groups:
                self.groups[new] = self.groups[old]
            if old in self.manual:
                self.manual[new] = self.manual[old]


def target(i: Instruction) -> str:
    """The target of a custom call; empty for other ops."""
    return i.custom_call_target if i.opcode == "custom-call" else ""
