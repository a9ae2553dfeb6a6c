"""The text of a module for traces.

A program of many layers has many fusions that differ in names and annotations alone. The text of one of them is a
template for the others: to fill it in takes a third of the time that printing takes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING

from heron.hlo.ir.op import Trait
from heron.hlo.ir.order import print_order
from heron.hlo.text.options import PrintOptions
from heron.hlo.text.printer import Printer, plan_of

if TYPE_CHECKING:
    from heron.hlo.ir.computation import Computation
    from heron.hlo.ir.instruction import Instruction
    from heron.hlo.ir.module import Module

_OPTIONS = PrintOptions(digest_constants=True, signatures=False, index_comments=False)
#: fewer computations that are alike are printed one by one
_LEAST = 3
#: stands for the annotations of an instruction
_MARK = "\0"
_SLOT = re.compile(rf"%[\w.\-]+|{_MARK}")
_name = attrgetter("name")


def record(module: Module, alike: Mapping[Computation, Hashable] | None = None) -> str:
    """The text of a module with digests of its long constants, without what a reader knows from the rest of the text.

    ``alike``: computations by key; those of one key have the same fingerprint.
    """
    return _RecordPrinter(alike or {}).module(module)


class _RecordPrinter(Printer):
    def __init__(self, alike: Mapping[Computation, Hashable]) -> None:
        super().__init__(_OPTIONS)
        many = Counter(alike.values())
        self._alike = {c: key for c, key in alike.items() if many[key] >= _LEAST}
        self._templates: dict[Hashable, _Template | None] = {}
        self._marks = False

    def computation(self, c: Computation, order: Sequence[Instruction] | None = None) -> str:
        """By the template of those that are alike, where there is one."""
        key = self._alike.get(c)
        if key is None or order is not None:
            return super().computation(c, order)
        instructions = print_order(c)
        if not all([i.users for i in instructions[:-1]]):  # the order of operands does not settle that of instructions
            return super().computation(c)
        if key not in self._templates:
            self._marks = True
            self._templates[key] = _template(super().computation(c), c, instructions)
            self._marks = False
        template = self._templates[key]
        if template is None:
            return super().computation(c)
        return template.filled(
            c, instructions, [self._annotations(i) if _is_annotated(i) else "" for i in instructions]
        )

    def instruction(self, i: Instruction) -> str:
        """Most lines have operands and the op's own attributes alone: those are put together at once."""
        op = i.op
        if Trait.ASYNC in op.traits:
            return super().instruction(i)
        operands = ", ".join(["%" + o.name for o in i.operands]) if i.operands else self._operands(i)
        parts = [f"%{i.name} = {i.shape.text} {op.name}({operands})"]
        if i.attrs or op.shows:
            self._declared(i, plan_of(op), i.attrs, parts)
        if self._marks:
            return ", ".join(parts) + _MARK
        return ", ".join(parts) + (self._annotations(i) if _is_annotated(i) else "")

    def _annotations(self, i: Instruction) -> str:
        parts = [""]
        self._extra(i.extras, "parameter_replication", parts)
        self._common(i, i.extras, parts)
        return ", ".join(parts)


class _Template:
    """``text`` has a ``%s`` for each of ``slots``, numbers of the values of a computation; ``calling``: the places of
    instructions that call others."""

    def __init__(self, text: str, slots: Sequence[int], calling: Sequence[int]) -> None:
        self._text, self._calling = text, calling
        self._shown = itemgetter(*slots)

    def filled(self, c: Computation, instructions: Sequence[Instruction], annotations: Sequence[str]) -> str:
        """The text of a computation that is alike, by its instructions in order."""
        called = [k.name for n in self._calling for k in instructions[n].called]
        return self._text % self._shown([c.name, *map(_name, instructions), *annotations, *called])


def _template(text: str, c: Computation, instructions: Sequence[Instruction]) -> _Template | None:
    """A template of the text of `c`; None where that shows other names than its instructions have."""
    count, calls = len(instructions), 1 + 2 * len(instructions)
    place = {i: n for n, i in enumerate(instructions, 1)}
    shown, slots, calling = ["%" + c.name], [0], []
    for n, i in enumerate(instructions):
        called = i.called
        shown += [*(f"%{k.name}" for k in (i, *i.operands, *called)), _MARK]
        slots += [n + 1, *(place[o] for o in i.operands), *range(calls, calls + len(called)), 1 + count + n]
        calling += [n] if called else []
        calls += len(called)
    if _SLOT.findall(text) != shown:
        return None
    pieces = [piece.replace("%", "%%") for piece in _SLOT.split(text)]
    gaps = ["%s" if name is _MARK else "%%%s" for name in shown]
    return _Template("".join([p for pair in zip(pieces, [*gaps, ""], strict=True) for p in pair]), slots, calling)


def _is_annotated(i: Instruction) -> bool:
    return bool(i.extras or i.metadata is not None or i.control_predecessors or "result_accuracy" in i.attrs)
