"""The table of sharding rules by opcode, and the opcodes that have none, each with the reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from heron.analysis.sharding.rule import OpRule
from heron.hlo.ir.instruction import Instruction

#: makes the rule of an instruction; None for one that has no rule
Rule: TypeAlias = "Callable[[Instruction], OpRule | None]"

RULES: dict[str, Rule] = {}
#: opcodes without a rule → why
WITHOUT: dict[str, str] = {}


def rule(*opcodes: str) -> Callable[[Rule], Rule]:
    """Decorator: the rule of these ops."""

    def register(make: Rule) -> Rule:
        RULES.update(dict.fromkeys(opcodes, make))
        return make

    return register


def no_rule(reason: str, *opcodes: str) -> None:
    """Say that these ops have no rule, and why."""
    WITHOUT.update(dict.fromkeys(opcodes, reason))
