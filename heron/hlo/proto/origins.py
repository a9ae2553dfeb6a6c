"""Origin text ↔ OriginalValueProto: which value of the unoptimised program a value, or each part of a tuple, was."""

from __future__ import annotations

from typing import Any

from heron.errors import HeronError
from heron.hlo.ir import original_value
from heron.hlo.ir.quoting import quote
from heron.hlo.proto.schema import Message

_SYNTHETIC = "[synthetic_call]"
_DEPTH = 60


def write_origin(text: str, to: Message) -> None:
    """Fill an empty OriginalValueProto from ``{({"a" {0}}, {"b"})}``, with or without the outer braces."""
    to.SetInParent()
    parts = original_value.read_origin(text)
    if parts is None:
        to.is_synthetic_call = True
        return
    for part in parts:
        element = to.elements.add(shape_index=part.part)
        if part.name is not None:
            element.original_array.instruction_name = part.name
            element.original_array.shape_index.extend(part.shape_index)


def read_origin(proto: Message) -> str:
    """The text. Raises PROTO003 when the parts make no tree."""
    if proto.is_synthetic_call:
        return "{" + _SYNTHETIC + "}"
    tree: dict[int, Any] = {}
    for element in proto.elements:
        index = tuple(element.shape_index)
        if not index and len(proto.elements) == 1:
            return "{" + _leaf_text(element) + "}"
        _place(tree, index, _leaf_text(element))
    return "{" + _tree_text(tree) + "}"


def _place(tree: dict[int, Any], index: tuple[int, ...], leaf: str) -> None:
    if not 0 < len(index) <= _DEPTH:
        raise HeronError("PROTO003", f"an origin has a part at depth {len(index)}")
    for n in index[:-1]:
        tree = tree.setdefault(n, {})
        if not isinstance(tree, dict):
            break
    if not isinstance(tree, dict) or index[-1] in tree:
        raise HeronError("PROTO003", f"an origin names its part {list(index)} twice")
    tree[index[-1]] = leaf


def _tree_text(tree: dict[int, Any] | str) -> str:
    if isinstance(tree, str):
        return tree
    if sorted(tree) != list(range(len(tree))):
        raise HeronError("PROTO003", "an origin leaves out parts of a tuple", why=f"it has parts {sorted(tree)[:8]}")
    return "(" + ", ".join(_tree_text(tree[n]) for n in range(len(tree))) + ")"


def _leaf_text(element: Message) -> str:
    if not element.HasField("original_array"):
        return "{}"
    array = element.original_array
    index = f" {{{','.join(map(str, array.shape_index))}}}" if array.shape_index else ""
    return f"{{{quote(array.instruction_name)}{index}}}"
