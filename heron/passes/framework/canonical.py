"""Canonical forms of computations: equal exactly when two graphs are the same but for names.

Used to merge equal instructions (their called computations compare by form), to notice that a fixed-point loop came
back to a module it has seen, and to compare the examples in docstrings.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module

#: extras that say nothing about what an instruction computes
_SILENT_EXTRAS = frozenset({"carried", "origin", "statistics", "metadata"})


class Forms:
    """Numbers computations so that equal graphs get equal numbers; remembers what it has seen.

    Valid while the computations stay unchanged; make a new one (with the same ``numbers`` to compare across) after.
    """

    def __init__(self, numbers: dict[object, int] | None = None) -> None:
        self._numbers = numbers if numbers is not None else {}
        self._known: dict[Computation, int] = {}

    def of(self, c: Computation) -> int:
        """The number of `c`'s form: instructions reachable from the root or with side effects, without names."""
        known = self._known.get(c)
        if known is None:
            form = self._form(c)
            known = self._known[c] = self._numbers.setdefault(form, len(self._numbers))
        return known

    def attributes(self, i: Instruction) -> tuple[Any, ...]:
        """`i`'s attributes that are not default, and extras that matter, as a key."""
        if not i.attrs and not i.extras:
            return ()
        declared = i.op.attributes
        key: list[tuple[str, Any]] = []
        for name, value in i.attrs.items():
            spec = declared.get(name)
            if spec is not None and value == spec.default:
                continue
            if isinstance(value, Computation):
                value = self.of(value)
            elif isinstance(value, tuple) and value and isinstance(value[0], Computation):
                value = tuple(map(self.of, value))
            key.append((name, value))
        if i.extras:
            key += [(name, str(value)) for name, value in i.extras.items() if name not in _SILENT_EXTRAS]
        if len(key) > 1:
            key.sort(key=lambda item: item[0])
        return tuple(key)

    def of_part(self, order: Sequence[Instruction], read: Container[Instruction]) -> int:
        """The number of the form of a part of a computation, given operands first. Its operands count by shape and
        by being the same thing; readers outside, of those in ``read``, by opcode."""
        number: dict[Instruction, int] = {}
        lines: list[tuple[Any, ...]] = []
        inside = set(order)
        for i in order:
            inputs = [o for o in i.operands if o not in number]
            for o in inputs:
                number[o] = len(number)
            number[i] = len(number)
            readers = sorted([u.opcode for u in i.users if u not in inside]) if i in read else ()
            operands = tuple([number[o] for o in i.operands])
            outside = tuple([o.shape for o in inputs])
            alone = i.is_root or bool(i.control_predecessors or i.control_successors)
            lines.append((i.opcode, i.shape, operands, outside, self.attributes(i), tuple(readers), alone))
        return self._numbers.setdefault(tuple(lines), len(self._numbers))

    def _form(self, c: Computation) -> tuple[Any, ...]:
        number: dict[Instruction, int] = {}
        lines: list[tuple[Any, ...]] = []
        for i in canonical_order(c):
            number[i] = len(number)
            lines.append(
                (
                    i.opcode,
                    i.shape.bare,
                    tuple([number[o] for o in i.operands]),
                    self.attributes(i),
                    tuple([number[p] for p in i.control_predecessors]),
                )
            )
        parameters = tuple(p.shape.bare for p in c.parameters)
        return (parameters, number[c.root], tuple(lines))


def canonical_order(c: Computation) -> list[Instruction]:
    """Operands first, by depth-first search from the root; then what only side effects keep. Dead ones are left out."""
    done: set[Instruction] = set()
    order: list[Instruction] = []
    starts = [c.root, *(i for i in c.instructions if not i.users and i is not c.root and i.has_side_effect)]
    stack = starts[::-1]
    while stack:
        i = stack[-1]
        if i in done:
            stack.pop()
            continue
        waiting = [o for o in i.walk_operands() if o not in done]
        if waiting:
            stack.extend(reversed(waiting))
            continue
        stack.pop()
        done.add(i)
        order.append(i)
    return order


class Fingerprints:
    """Numbers modules over time: a module that is again what it was gets its old number."""

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}

    def of(self, module: Module) -> int:
        return Forms(self._numbers).of(module.entry)


def same_program(a: Module, b: Module) -> bool:
    """Whether two modules are the same but for names, layouts and order of text."""
    fingerprints = Fingerprints()
    return fingerprints.of(a) == fingerprints.of(b)


def nameless_text(module: Module) -> str:
    """The entry computation with numbers for names, one instruction a line: what `same_program` compares."""
    return "\n".join(_nameless_lines(module.entry, ""))


def _nameless_lines(c: Computation, indent: str) -> list[str]:
    number: dict[Instruction, int] = {}
    lines: list[str] = []
    for i in canonical_order(c):
        number[i] = len(number)
        operands = ", ".join(f"%{number[o]}" for o in i.operands)
        attrs = "".join(
            f", {name}={value!r}"
            for name, value in sorted(i.attrs.items())
            if not (name in i.op.attributes and value == i.op.attributes[name].default)
        )
        root = "ROOT " if i is c.root else ""
        lines.append(f"{indent}{root}%{number[i]} = {i.shape.bare} {i.opcode}({operands}){attrs}")
        for callee in i.called:
            lines += _nameless_lines(callee, indent + "  | ")
    return lines
