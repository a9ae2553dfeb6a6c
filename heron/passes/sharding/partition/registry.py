"""Ops that are partitioned in their own way, by opcode."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from heron.hlo.ir.instruction import Instruction
    from heron.passes.sharding.partition.context import Partitioner
    from heron.passes.sharding.partition.part import Part

#: what a rule gives: the part of each leaf of the result, a single one without a list, or None: the default is to do it
Result: TypeAlias = "Part | list[Part] | None"
Rule: TypeAlias = "Callable[[Partitioner, Instruction, list[Part]], Result]"

_RULES: dict[str, Rule] = {}
_KEEPING_SUMS: set[str] = set()


def partitions(*opcodes: str, keeps_sums: bool = False) -> Callable[[Rule], Rule]:
    """Decorator for `f(p, i, operands)`, which partitions ops of these opcodes, or ``custom-call:TARGET``.

    `operands` are the parts of all leaves of all operands in order. Partial sums among them are added up before, as
    propagation wants these values, unless the rule says `keeps_sums`: then it takes parts with unreduced atoms.
    """

    def add(rule: Rule) -> Rule:
        for opcode in opcodes:
            _RULES[opcode] = rule
        if keeps_sums:
            _KEEPING_SUMS.update(opcodes)
        return rule

    return add


@cache
def rules() -> dict[str, Rule]:
    """Every registered rule by opcode."""
    from heron.passes.sharding.partition import special

    for found in pkgutil.iter_modules(special.__path__, special.__name__ + "."):
        importlib.import_module(found.name)
    return _RULES


def name_of(i: Instruction) -> str:
    """The name under which the rule of an instruction is registered: its opcode, ``custom-call:TARGET`` for some."""
    if i.opcode != "custom-call":
        return i.opcode
    name = f"custom-call:{i.custom_call_target}"
    return name if name in rules() else i.opcode


def keeps_sums(opcode: str) -> bool:
    """Whether the rule of an op takes partial sums."""
    return opcode in _KEEPING_SUMS
