"""What the grammar alone cannot say: attributes that operands imply, that say nothing, or that do not go together.

Each rule sees an instruction's operands and attributes once all are read; `seen` maps the attributes' names in the text
to their tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from heron.errors import HeronError
from heron.hlo.instruction import Instruction
from heron.hlo.op import Op
from heron.hlo.shape import Shape, tuple_
from heron.hlo.text import async_sugar
from heron.hlo.types import PRED, ElementType

if TYPE_CHECKING:
    from heron.hlo.text.cursor import Cursor

#: ops that give what they are given, elementwise ones aside
_GIVES_OPERAND = ("reverse", "sort", "copy", "set-dimension-size", "add-dependency", "domain", "while")
#: ops whose sizes are those of their operands
_KEEPS_SIZES = (*_GIVES_OPERAND, "tuple", "get-tuple-element", "transpose", "opt-barrier", "get-dimension-size")

Seen = dict[str, int]
Rule = Callable[["Cursor", list[Instruction], dict[str, Any], Seen], None]

_KINDS = {"signed": "SIGNED", "unsigned": "UNSIGNED", "pred": "UNSIGNED", "float": "FLOAT", "complex": "FLOAT"}


def comparison_kind(element_type: ElementType) -> str:
    """The order in which elements of a type are compared unless the text says otherwise."""
    return _KINDS.get(element_type.kind, "")


def need_sizes(op: Op, operands: list[Instruction]) -> None:
    """Raises TXT019 where a shape left out would have to be computed from sizes nobody knows."""
    for o in operands:
        if o.shape.is_unbounded and not (op.is_elementwise or op.name in _KEEPS_SIZES):
            what = f"the shape of a {op.name} of unbounded dimensions must be given"
            raise HeronError("TXT019", what, why=f"operand '{o.name}' is {o.shape.bare}")


def inferred_shape(i: Instruction) -> Shape:
    """An inferred shape with XLA's choice of layouts: that of the operand the result is like, else the default one."""
    if i.opcode == "conditional":
        return i.branch_computations[0].root.shape
    if not i.operands or not (i.op.is_elementwise or i.opcode in _GIVES_OPERAND):
        return i.shape
    if i.shape.is_tuple and i.opcode == "sort":
        return tuple_([o.shape for o in i.operands])
    like = i.operands[i.opcode == "clamp"].shape
    if i.shape.bare is like.bare:
        return like
    return i.shape.with_layout(like.layout) if like.rank == i.shape.rank else i.shape


def _compare(_p: Cursor, operands: list[Instruction], attrs: dict[str, Any], _seen: Seen) -> None:
    if attrs.get("type") == comparison_kind(operands[0].shape.element_type):
        del attrs["type"]


def _broadcast(_p: Cursor, operands: list[Instruction], attrs: dict[str, Any], _seen: Seen) -> None:
    """A scalar has no dimensions to name."""
    if operands[0].shape.is_scalar:
        attrs.setdefault("dimensions", ())


def _conditional(p: Cursor, operands: list[Instruction], _attrs: dict[str, Any], seen: Seen) -> None:
    """Only a predicate chooses between true and false; a list of branches also serves it."""
    if "true_computation" in seen and operands[0].shape.element_type is not PRED:
        why = f"the first operand is {operands[0].shape}"
        hint = "write branch_computations={A, B}"
        p.fail("TXT004", "only a predicate chooses a true_computation", seen["true_computation"], why=why, hint=hint)


def _follows(p: Cursor, operands: list[Instruction], attrs: dict[str, Any], seen: Seen) -> None:
    """What goes on or ends need not repeat what its start says, and may not say otherwise."""
    start = async_sugar.start_of(operands[0])
    if start is None:
        return
    for name, own in ((async_sugar.THREAD, start.async_execution_thread), ("calls", start.attrs.get("calls"))):
        value = attrs.pop(name, own)
        if value is not own and value != own:
            shown, wanted = (getattr(v, "name", v) for v in (value, own))
            p.fail("TXT016", f"'{name}' is {shown}, but {start.name} has {wanted}", seen[name])


_RULES: dict[str, Rule] = {
    "compare": _compare,
    "broadcast": _broadcast,
    "conditional": _conditional,
    "async-update": _follows,
    "async-done": _follows,
}


def apply(opcode: str, p: Cursor, operands: list[Instruction], attrs: dict[str, Any], seen: Seen) -> None:
    """Complete and check the attributes of one instruction. Raises TXT004, TXT016."""
    rule = _RULES.get(opcode)
    if rule is not None and operands:
        rule(p, operands, attrs, seen)
    precision = attrs.get("operand_precision")
    if precision is not None and set(precision) == {"default"}:
        del attrs["operand_precision"]
