"""What passes that replace one op by others have in common."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from heron.hlo.instruction import Instruction
from heron.hlo.module import Module
from heron.passes.base import Pass
from heron.passes.context import PassContext


@dataclass(frozen=True)
class Expander(Pass):
    """Replaces every instruction with one of `opcodes` that `matches` by what `expand` makes of it."""

    opcodes: ClassVar[frozenset[str]] = frozenset()

    def run(self, module: Module, ctx: PassContext) -> bool:
        found = [i for i in module.instructions() if i.opcode in self.opcodes and self.matches(i)]
        for i in found:
            assert i.parent is not None
            i.parent.replace(i, self.expand(i))
        return bool(found)

    def matches(self, i: Instruction) -> bool:
        """Whether this one is to be replaced."""
        return True

    @abstractmethod
    def expand(self, i: Instruction) -> Instruction:
        """What stands for `i`, made in its computation."""
