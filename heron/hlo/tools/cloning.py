"""Deep copies: instructions and computations with all they call, into one module, each copied once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from heron.hlo.ir.computation import Computation, remap_calls
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.order import reachable


class CloneContext:
    """One act of copying: what was copied stays in `computations` and `instructions` (old to new).

    Copies go to `module`; ``suffix`` is put behind every name (``add`` → ``add.clone``) before it is made unique. A
    computation copied twice in one context is copied once::

        context = CloneContext(module, "remat")
        copy = context.computation(loop.body)          # with all it calls
        twin = context.instruction(loop, [state])      # calls the copy
    """

    def __init__(self, module: Module, suffix: str = "clone") -> None:
        self.module, self.suffix = module, suffix
        self.computations: dict[Computation, Computation] = {}
        self.instructions: dict[Instruction, Instruction] = {}

    def computation(self, c: Computation) -> Computation:
        """The copy of a computation and of all it calls, in the module."""
        for callee in reachable(c):  # callees first, `c` itself last
            if callee not in self.computations:
                self._copy(callee)
        return self.computations[c]

    def instruction(self, i: Instruction, operands: Sequence[Instruction] | None = None, **attrs: Any) -> Instruction:
        """An unattached copy that calls copies; operands are the given ones, else copies where there are some."""
        if operands is None:
            operands = [self.instructions.get(o, o) for o in i.operands]
        for c in i.called:
            self.computation(c)
        copy = i.clone(operands, **attrs)
        copy.name = self._name(i.name)
        remap_calls(copy, self.computations)
        self.instructions[i] = copy
        return copy

    def _copy(self, c: Computation) -> None:
        copy = c.clone(self._name(c.name), self.computations)
        for old, new in zip(c.instructions, copy.instructions, strict=True):
            new.name = self._name(old.name)
            self.instructions[old] = new
        self.computations[c] = self.module.add_computation(copy)

    def _name(self, name: str) -> str:
        return f"{name}.{self.suffix}" if self.suffix and not name.endswith("." + self.suffix) else name
