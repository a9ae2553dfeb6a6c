"""The table of rules, by opcode."""

from __future__ import annotations

from collections.abc import Callable

from heron.hlo.ir.instruction import Instruction
from heron.passes.dynamic.model.padded import Padded, refused

#: what stands for an instruction, given its padded operands
Rule = Callable[[Instruction, list[Padded]], Instruction]
_RULES: dict[str, Rule] = {}


def rule(*opcodes: str) -> Callable[[Rule], Rule]:
    """Decorator: how these ops work on padded arrays."""

    def register(function: Rule) -> Rule:
        _RULES.update(dict.fromkeys(opcodes, function))
        return function

    return register


def padded_form(i: Instruction, operands: list[Padded]) -> Instruction:
    """The instruction on padded operands. Raises PASS020 where no rule tells how."""
    found = _RULES.get(i.opcode)
    if found is not None:
        return found(i, operands)
    if i.op.is_elementwise and all(o.shape.rank in (0, i.shape.rank) for o in i.operands):
        return _RULES["add"](i, operands)
    raise refused(i, "there is no rule for it")
