"""The table of elemental rules, and the question whether an instruction has one.

A rule ``(e, i, index) -> Value`` emits the value of `i` at `index` through the `FunctionEmitter` `e`. A rule may come
with a check ``(i) -> reason or None``: why this very instruction (a type, an attribute) cannot be emitted.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from heron.errors import HeronError
from heron.hlo.facts import having, is_boundary
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import Trait, all_ops

if TYPE_CHECKING:
    from heron.analysis.indexing.hlo_maps import Index
    from heron.codegen.elemental.emitter import FunctionEmitter

Rule: TypeAlias = "Callable[[FunctionEmitter, Instruction, Index], Any]"
Check: TypeAlias = Callable[[Instruction], "str | None"]

RULES: dict[str, Rule] = {}
CHECKS: dict[str, Check] = {}

#: the files that register rules, one a family
_FAMILIES = (
    "arithmetic",
    "logic",
    "transcendental",
    "convert",
    "bits",
    "complex",
    "movement",
    "dynamic",
    "reduction",
    "windows",
    "products",
    "control",
    "pivots",
)


#: ops whose computation is inlined into their own
_INLINED = having(Trait.CALL)


class Support(NamedTuple):
    """Whether an instruction can be emitted, and if not, why: truthy when it can."""

    ok: bool
    reason: str = ""

    def __bool__(self) -> bool:
        return self.ok


def rule(*opcodes: str, check: Check | None = None) -> Callable[[Rule], Rule]:
    """Register a function as the rule of those ops."""

    def register(function: Rule) -> Rule:
        for opcode in opcodes:
            RULES[opcode] = function
            if check is not None:
                CHECKS[opcode] = check
        return function

    return register


@cache
def load() -> dict[str, Rule]:
    """All rules, by opcode."""
    for family in _FAMILIES:
        import_module(f"heron.codegen.elemental.{family}")
    return RULES


def supported(i: Instruction) -> Support:
    """Whether elemental emission knows `i`: op, types and attributes; called computations included."""
    if i.opcode not in load() and i.opcode not in _INLINED:
        return Support(False, f"'{i.opcode}' has no elemental rule")
    shapes = [i.shape, *(o.shape for o in i.operands)]
    for shape in (leaf for s in shapes for _, leaf in s.leaves()):
        if not shape.is_array:
            return Support(False, f"{i.opcode} on {shape}: not an array")
        if any(shape.dynamic):
            return Support(False, f"{i.opcode} on {shape}: dynamic dimensions")
        if shape.layout is not None and shape.layout.tiles:
            return Support(False, f"{i.opcode} on {shape}: tiled layouts")
    check = CHECKS.get(i.opcode)
    reason = None if check is None else check(i)
    if reason is not None:
        return Support(False, f"{i.opcode}: {reason}")
    for computation in i.called:
        for inner in computation.instructions:
            if is_boundary(inner):
                continue
            found = supported(inner)
            if not found:
                return found
    return Support(True)


def require(i: Instruction, target: str = "") -> None:
    """Raise GEN001 when `i` cannot be emitted, naming the op, its types and the target."""
    found = supported(i)
    if not found:
        types = ", ".join(dict.fromkeys(s.element_type.name for o in i.operands for _, s in o.shape.leaves()))
        raise HeronError(
            "GEN001",
            f"no kernel{f' of {target}' if target else ''} can compute {i.opcode}{f' of {types}' if types else ''}",
            where=str(i),
            why=found.reason,
            hint="a pass or a library call must replace this op before code generation; `heron eval` runs it",
        )


def uncovered_ops() -> list[str]:
    """Declared ops that have no elemental rule."""
    known = load()
    return [o.name for o in all_ops() if o.name not in known]
