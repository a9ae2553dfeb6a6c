"""The base of passes that replace one op by others."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import PurePath
from typing import ClassVar

from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.rewriting.building import is_static
from heron.records import dataclass


@dataclass(frozen=True)
class Expander(Pass):
    """Replaces every instruction with one of `opcodes` that `matches` by what `expand` makes of it.

    Instructions with dynamic dimensions stay, unless the pass is ``dynamic``: expansions are written for static sizes.
    Those in fusions that a program came with stay, unless it is for them, too (``fused``): for forms without a kernel.
    What `expand` adds to the computation gets the metadata of what it stands for.
    """

    opcodes: ClassVar[frozenset[str]] = frozenset()
    dynamic: ClassVar[bool] = False
    fused: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        if cls.run is Expander.run:  # others may do more
            cls.looks_for = cls.opcodes

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        code = type(self).expand.__code__
        where = f"{PurePath(code.co_filename).name}:{code.co_firstlineno}"
        for c in module.computations if self.fused else module.computations_to_rewrite():
            found = [i for i in c.instructions if i.opcode in self.opcodes and self._takes(i)]
            for i in found:
                if not ctx.may_fire("expand", where, i):
                    return changed
                ctx.fired("expand", where)
                changed = True
                before = len(c)
                new = self.expand(i)
                _hand_on_metadata(c, i, len(c) - before)
                c.replace(i, new)
                if i.parent is c:  # its effects are those of what stands for it now
                    c.remove(i)
        return changed

    def _takes(self, i: Instruction) -> bool:
        return (self.dynamic or is_static(i)) and self.matches(i)

    def matches(self, i: Instruction) -> bool:
        """Whether this one is to be replaced."""
        return True

    @abstractmethod
    def expand(self, i: Instruction) -> Instruction:
        """The replacement of `i`, created in its computation."""


def _hand_on_metadata(c: Computation, i: Instruction, count: int) -> None:
    if i.metadata is None or count <= 0:
        return
    for new in c.instructions[-count:]:
        if new.metadata is None:
            new.metadata = i.metadata


def home(i: Instruction) -> Computation:
    """The computation an attached instruction stands in."""
    assert i.parent is not None
    return i.parent
