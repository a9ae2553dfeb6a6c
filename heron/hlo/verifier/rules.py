"""The declaration of a verifier rule: once, with its code, its subject and its mode.

A rule looks at the whole module, or at the instructions of some opcodes, or at those that carry some extra::

    @rule("HLO131", on=("async-start",))
    def async_computations_are_one_op(i: Instruction) -> Iterator[Problem]:
        \"\"\"The computation of an async-start is a single op.\"\"\"

The first line of its docstring is what the docs and `heron verify --rules` say of it.
"""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import fields
from functools import cache
from typing import Any

from heron.errors import HeronError, Span
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.records import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """A broken rule: its code, what is wrong, and the instruction or computation it was found at."""

    code: str
    what: str
    instruction: Instruction | None = None
    computation: Computation | None = None
    why: str | None = None
    hint: str | None = None

    def error(self, where: Span | str | None = None) -> HeronError:
        """The error to raise; `where` is the place in a text, if the caller knows it."""
        if where is None and self.instruction is not None:
            where = _place(self.instruction)
        if where is None and self.computation is not None:
            where = f"computation '{self.computation.name}'"
        return HeronError(self.code, self.what, where=where, why=self.why, hint=self.hint)


def _place(i: Instruction) -> str:
    parent = f" (in '{i.parent.name}')" if i.parent is not None else ""
    return f"{i}{parent}"


@dataclass(frozen=True, slots=True)
class VerifierOptions:
    """Demands beyond the rules that always hold; each field is a mode, named by the rules it switches."""

    #: layouts: all there, and kept by the ops that cannot change them; on after layout assignment
    layout_sensitive: bool = False
    #: every computation that runs in sequence has its order; on after scheduling
    scheduled: bool = False
    #: reductions over element types other than their operands'
    allow_mixed_precision: bool = True
    #: one channel id serves one kind of op
    unique_channel_ids: bool = False
    #: broadcasts keep the order of their operand's dimensions
    ordered_broadcasts: bool = False
    #: reshapes outside fusions move no data
    reshapes_are_bitcasts: bool = False
    #: nothing lives in the host's memory
    no_host_memory: bool = False
    #: instructions are named as they were when they were scheduled
    names_unchanged: bool = False


class Stage(enum.Enum):
    """Rules of a stage run when those of the stages before it found nothing, so that they can rely on them."""

    STRUCTURE = "edges, names, calls"
    SHAPES = "shapes, as each op's rule gives them"
    USES = "what ops, annotations, the header and the schedule say, against one another"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; `check` takes the module, or an instruction when there are opcodes or an extra to look at."""

    code: str
    check: Callable[[Any], Iterator[Problem]]
    stage: Stage
    opcodes: tuple[str, ...]
    carrying: str
    mode: str
    waived_by: str

    @property
    def theme(self) -> str:
        """The topic of the rule's file."""
        return (inspect.getdoc(inspect.getmodule(self.check)) or "").partition("\n\n")[0].replace("\n", " ")

    @property
    def looks_at(self) -> str:
        """The subject of the rule: opcodes, an annotation of instructions, or the module."""
        return ", ".join(self.opcodes) or self.carrying or "the module"

    @property
    def switch(self) -> str:
        """The mode it counts in, by its name on the command line; empty for always."""
        return next((name for name, field in modes().items() if field == (self.mode or self.waived_by)), "")

    @property
    def summary(self) -> str:
        """The demand of the rule, as a sentence."""
        return (inspect.getdoc(self.check) or "").partition("\n\n")[0].replace("\n", " ")

    def counts(self, options: VerifierOptions) -> bool:
        """Whether the rule holds in these modes."""
        if self.waived_by and getattr(options, self.waived_by):
            return False
        return not self.mode or getattr(options, self.mode)


def modes() -> dict[str, str]:
    """The name of each mode on the command line, and the field of `VerifierOptions` that it sets."""
    return {f.name.replace("_", "-").replace("allow-", "no-"): f.name for f in fields(VerifierOptions)}


def in_modes(names: Iterable[str]) -> VerifierOptions:
    """The options with these modes on, by their names in `modes`."""
    known = modes()
    return VerifierOptions(**{known[n]: not getattr(VerifierOptions(), known[n]) for n in names})


RULES: list[Rule] = []
_MODES = tuple(f.name for f in fields(VerifierOptions))


def rule(
    code: str,
    stage: Stage = Stage.USES,
    *,
    on: Collection[str] = (),
    carrying: str = "",
    mode: str = "",
    waived_by: str = "",
) -> Callable[[Callable[[Any], Iterator[Problem]]], Callable[[Any], Iterator[Problem]]]:
    """Declare a rule. `on`: opcodes; `carrying`: a name in `Instruction.extras`; `mode`, `waived_by`: options."""
    assert all(m in _MODES for m in (mode, waived_by) if m), code

    def register(check: Callable[[Any], Iterator[Problem]]) -> Callable[[Any], Iterator[Problem]]:
        RULES.append(Rule(code, check, stage, tuple(sorted(on)), carrying, mode, waived_by))
        return check

    return register


@dataclass(frozen=True, slots=True)
class Plan:
    """The rules of a stage by what they look at."""

    module: tuple[Rule, ...]
    opcodes: dict[str, tuple[Rule, ...]]
    extras: dict[str, tuple[Rule, ...]]


@cache
def plans(options: VerifierOptions) -> tuple[Plan, ...]:
    """The plan of each stage in these modes."""
    return tuple(_plan([r for r in RULES if r.stage is stage and r.counts(options)]) for stage in Stage)


def _plan(rules: list[Rule]) -> Plan:
    by_opcode: dict[str, tuple[Rule, ...]] = {}
    by_extra: dict[str, tuple[Rule, ...]] = {}
    for r in rules:
        for opcode in r.opcodes:
            by_opcode[opcode] = (*by_opcode.get(opcode, ()), r)
        if r.carrying:
            by_extra[r.carrying] = (*by_extra.get(r.carrying, ()), r)
    return Plan(tuple(r for r in rules if not r.opcodes and not r.carrying), by_opcode, by_extra)
