"""Rules beyond the grammar: attributes implied by operands, redundant ones, and ones that exclude each other.

Each rule sees an instruction's operands and attributes once all are read; `seen` maps the attributes' names in the text
to their tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from heron.errors import HeronError
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.layout import layout
from heron.hlo.ir.op import Op
from heron.hlo.ir.shape import Shape, scalar, token, tuple_
from heron.hlo.ir.types import PRED, U32, ElementType
from heron.hlo.text import async_sugar

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


def settled_shape(opcode: str, operands: list[Instruction], stated: Shape | None) -> Shape | None:
    """The shape of an op that has no choice of it, whatever the text states, as in XLA; else the one stated."""
    settle = _SETTLED.get(opcode)
    return stated if settle is None else settle([o.shape for o in operands], stated)


def _send(operands: list[Shape], stated: Shape | None) -> Shape | None:
    return tuple_([operands[0], scalar(U32), token()]) if operands else stated


def _recv(_operands: list[Shape], stated: Shape | None) -> Shape | None:
    return tuple_([stated.tuple_shapes[0], scalar(U32), token()]) if stated and stated.tuple_shapes else stated


def _recv_done(operands: list[Shape], stated: Shape | None) -> Shape | None:
    parts = operands[0].tuple_shapes if operands else None
    return tuple_([parts[0], token()]) if parts else stated


_SETTLED: dict[str, Callable[[list[Shape], Shape | None], Shape | None]] = {
    "after-all": lambda _operands, _stated: token(),
    "add-dependency": lambda operands, stated: operands[0] if operands else stated,
    "outfeed": lambda _operands, _stated: token(),
    "send": _send,
    "send-done": lambda _operands, _stated: token(),
    "recv": _recv,
    "recv-done": _recv_done,
}


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
    if i.opcode == "transpose":
        return _transposed(i)
    if not i.operands or not (i.op.is_elementwise or i.opcode in _GIVES_OPERAND):
        return i.shape
    if i.shape.is_tuple and i.opcode == "sort":
        return tuple_([o.shape for o in i.operands])
    like = i.operands[i.opcode == "clamp"].shape
    if i.shape.bare is like.bare:
        return like
    return i.shape.with_layout(like.layout) if like.rank == i.shape.rank else i.shape


def _transposed(i: Instruction) -> Shape:
    """A transposition that moves nothing in memory."""
    order = i.operands[0].shape.layout
    if order is None or i.shape.layout is None:
        return i.shape
    place = {old: new for new, old in enumerate(i.dimensions)}
    minor_to_major = tuple(place[d] for d in order.minor_to_major)
    return i.shape.with_layout(layout(minor_to_major, order.tiles, order.element_size, order.memory_space))


def literal_shape(shape: Shape) -> Shape:
    """The shape of a constant stated as `shape`: as in XLA, a literal has no size of elements in memory of its own."""
    if shape.is_tuple:
        return tuple_([literal_shape(s) for s in shape.tuple_shapes or ()])
    lay = shape.layout
    if lay is None or not lay.element_size:
        return shape
    return shape.with_layout(layout(lay.minor_to_major, lay.tiles, 0, lay.memory_space, lay.extra, lay.tail))


def _compare(_p: Cursor, operands: list[Instruction], attrs: dict[str, Any], _seen: Seen) -> None:
    if attrs.get("type") == comparison_kind(operands[0].shape.element_type):
        del attrs["type"]


def _broadcast(_p: Cursor, operands: list[Instruction], attrs: dict[str, Any], _seen: Seen) -> None:
    """A scalar has no dimensions to name."""
    if operands[0].shape.is_scalar:
        attrs.setdefault("dimensions", ())


def _map(_p: Cursor, operands: list[Instruction], attrs: dict[str, Any], _seen: Seen) -> None:
    """A map is over all dimensions unless the text says otherwise."""
    attrs["dimensions"] = attrs.get("dimensions") or tuple(range(operands[0].shape.rank))


def _outfeed(_p: Cursor, operands: list[Instruction], attrs: dict[str, Any], _seen: Seen) -> None:
    """The data sent has the operand's layout unless the text states another."""
    attrs.setdefault("outfeed_shape", operands[0].shape)


def _conditional(p: Cursor, operands: list[Instruction], _attrs: dict[str, Any], seen: Seen) -> None:
    """Only a predicate chooses between true and false; a list of branches also serves it."""
    named = [name for name in ("true_computation", "false_computation") if name in seen]
    if len(named) == 1 or (named and "branch_computations" in seen):
        hint = "write branch_computations={A, B}, or both true_computation=A and false_computation=B"
        p.fail("TXT004", "the branches of this conditional are incomplete, or given twice", seen[named[0]], hint=hint)
    if named and operands[0].shape.element_type is not PRED:
        why = f"the first operand is {operands[0].shape}"
        hint = "write branch_computations={A, B}"
        p.fail("TXT004", "only a predicate chooses a true_computation", seen["true_computation"], why=why, hint=hint)


def _follows(p: Cursor, operands: list[Instruction], attrs: dict[str, Any], seen: Seen) -> None:
    """An update or done need not repeat the attributes of its start, and may not contradict them."""
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
    "map": _map,
    "outfeed": _outfeed,
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
