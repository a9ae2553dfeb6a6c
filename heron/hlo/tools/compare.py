"""Structural comparison: whether two modules or computations are the same program, and if not, where they differ.

Instructions are matched by their place in the printed order, so neither names nor the order of insertion count.
"""

from __future__ import annotations

from typing import Any

from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.order import computation_order, print_order, reachable
from heron.records import dataclass


@dataclass(frozen=True, slots=True)
class What:
    """The properties compared besides structure: opcodes, element types, dimensions, attributes, called computations.

    ``names`` of modules, computations and instructions; ``metadata`` and origins; ``layouts`` of shapes; ``sharding``;
    ``backend_config``; ``channels``: the numbers of channels.
    """

    names: bool = False
    metadata: bool = False
    layouts: bool = True
    sharding: bool = True
    backend_config: bool = True
    channels: bool = True


def equal(a: Module, b: Module, **what: bool) -> bool:
    """Whether two modules are the same program; `What` has the keywords that say what counts."""
    return difference(a, b, **what) is None


def equal_computations(a: Computation, b: Computation, **what: bool) -> bool:
    """Whether two computations, with all they call, are the same; `What` has the keywords."""
    return _Comparison(What(**what)).called(a, b) is None


def difference(a: Module, b: Module, **what: bool) -> str | None:
    """The first difference in words, or None; `What` has the keywords."""
    return _Comparison(What(**what)).modules(a, b)


class _Comparison:
    def __init__(self, what: What) -> None:
        self.names, self.metadata, self.layouts = what.names, what.metadata, what.layouts
        flags = {"origin": what.metadata, "sharding": what.sharding, "backend_config": what.backend_config}
        self.ignored_extras = {name for name, counts in flags.items() if not counts}
        self.ignored_attributes = set() if what.channels else {"channel_id"}
        self.computations: dict[Computation, Computation] = {}
        self.instructions: dict[Instruction, Instruction] = {}

    def modules(self, a: Module, b: Module) -> str | None:
        if self.names and a.name != b.name:
            return f"module '{a.name}' is '{b.name}'"
        if a.header != b.header:
            return f"headers differ: {a.header} and {b.header}"
        ours, theirs = computation_order(a), computation_order(b)
        if len(ours) != len(theirs):
            return f"{len(ours)} computations, {len(theirs)} in the other"
        for c, d in zip(ours, theirs, strict=True):
            found = self.bodies(c, d)
            if found is not None:
                return found
        if self.computations[a.entry] is not b.entry:
            return "the entries differ"
        return self._entry_layouts(a, b) or self._schedules(a, b)

    def _entry_layouts(self, a: Module, b: Module) -> str | None:
        if not self.layouts:
            return None
        one, other = a.entry_layout or _own_layout(a), b.entry_layout or _own_layout(b)
        return None if one == other else f"entry layouts differ: {one} and {other}"

    def _schedules(self, a: Module, b: Module) -> str | None:
        if (a.schedule is None) != (b.schedule is None):
            return "only one module is scheduled"
        for c, order in (a.schedule or {}).items():
            other = (b.schedule or {}).get(self.computations[c])
            if other is None or [self.instructions[i] for i in order] != other:
                return f"the schedules of '{c.name}' differ"
        return None

    def called(self, a: Computation, b: Computation) -> str | None:
        """Compare two computations and, first, those they call."""
        for c, d in zip(reachable(a), reachable(b), strict=False):
            found = self.bodies(c, d)
            if found is not None:
                return found
        return None if self.computations.get(a) is b else f"'{a.name}' and '{b.name}' call differently"

    def bodies(self, a: Computation, b: Computation) -> str | None:
        if self.names and a.name != b.name:
            return f"computation '{a.name}' is '{b.name}'"
        if a.extras != b.extras:
            return f"'{a.name}' has {a.extras}, '{b.name}' has {b.extras}"
        if len(a) != len(b):
            return f"'{a.name}' has {len(a)} instructions, '{b.name}' has {len(b)}"
        for i, j in zip(print_order(a), print_order(b), strict=True):
            if self._differ(i, j):
                return f"in '{a.name}': {i}\n   and in '{b.name}': {j}"
            self.instructions[i] = j
        if self.instructions[a.root] is not b.root:
            return f"'{a.name}' returns {a.root.name}, '{b.name}' returns {b.root.name}"
        self.computations[a] = b
        return None

    def _differ(self, i: Instruction, j: Instruction) -> bool:
        if i.opcode != j.opcode or len(i.operands) != len(j.operands) or (self.names and i.name != j.name):
            return True
        if (i.shape is not j.shape) if self.layouts else (i.shape.bare is not j.shape.bare):
            return True
        return (
            any(self.instructions.get(o) is not p for o, p in zip(i.operands, j.operands, strict=True))
            or [self.instructions.get(o) for o in i.control_predecessors] != j.control_predecessors
            or self._attributes_differ(i, j)
            or self._extras(i) != self._extras(j)
            or (self.metadata and i.metadata != j.metadata)
        )

    def _attributes_differ(self, i: Instruction, j: Instruction) -> bool:
        for name in {**i.attrs, **j.attrs}:
            if name in self.ignored_attributes:
                continue
            spec = i.op.attributes.get(name)
            default = None if spec is None else spec.default
            if self._mapped(i.attrs.get(name, default)) != j.attrs.get(name, default):
                return True
        return False

    def _mapped(self, value: Any) -> Any:
        """An attribute of ours in the other's terms."""
        if isinstance(value, Computation):
            return self.computations.get(value)
        if isinstance(value, tuple) and value and isinstance(value[0], Computation):
            return tuple(self.computations.get(c) for c in value)
        return value

    def _extras(self, i: Instruction) -> dict[str, Any]:
        return {k: v for k, v in i.extras.items() if k not in self.ignored_extras} if i.extras else i.extras


def _own_layout(module: Module) -> Any:
    return tuple(p.shape for p in module.entry.parameters), module.entry.root.shape
