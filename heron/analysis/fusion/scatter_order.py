"""Scatters: whether the order of their updates matters, and which updates can meet."""

from __future__ import annotations

from math import prod

from heron.hlo.facts import is_combiner, opcodes, reindexes
from heron.hlo.ir.instruction import Instruction

#: a GPU thread may compare its update with that many others
FEW = 128
#: how a kernel finds the updates of an element: it looks at all, or bisects sorted indices
ALL, SORTED = "all looked at", "bisected"
_COMMUTATIVE = opcodes(is_combiner)


def update_count(i: Instruction) -> int:
    """The number of windows that a scatter updates."""
    updates = i.operands[-1].shape.dims
    return prod(n for d, n in enumerate(updates) if d not in i.update_window_dims)


def takes_update(i: Instruction) -> bool:
    """Whether the combiner gives the updates as they are."""
    root, n = i.to_apply.root, len(i.operands) // 2
    results = root.operands if root.opcode == "tuple" else [root]
    return all(r.opcode == "parameter" and r.number == n + k for k, r in enumerate(results))


def order_is_free(i: Instruction) -> bool:
    """Whether updates of one element give the same bits in any order: a commutative op on integers of up to 64 bits."""
    root, t = i.to_apply.root, i.operands[0].shape.element_type
    if len(i.operands) > 3 or t.is_float or t.is_complex or root.opcode not in _COMMUTATIVE:
        return False
    return all(o.opcode == "parameter" for o in root.operands) and len(set(root.operands)) == 2


def writes_one_value(i: Instruction) -> bool:
    """Whether all updates of an array are the same number and replace what is there: the last one is as good as any."""
    return takes_update(i) and all(_is_one_value(u) for u in i.operands[len(i.operands) // 2 + 1 :])


def _is_one_value(i: Instruction) -> bool:
    while reindexes(i) and i.opcode != "broadcast":
        i = i.operands[0]
    return i.opcode == "broadcast" and i.operands[0].shape.num_elements == 1 or i.shape.num_elements == 1


def has_whole_windows(i: Instruction) -> bool:
    """Whether two updates write the same elements or none in common: windows of size 1 along the indexed dimensions."""
    rank = i.operands[0].shape.rank
    gone = {*i.inserted_window_dims, *i.input_batching_dims}
    sizes = dict(zip((d for d in range(rank) if d not in gone), i.update_window_dims, strict=True))
    updates = i.operands[-1].shape.dims
    return all(d not in sizes or updates[sizes[d]] == 1 for d in i.scatter_dims_to_operand_dims)


def finds_updates(i: Instruction) -> str:
    """The way in which a kernel over result elements finds their updates, in order; empty if it cannot."""
    if update_count(i) <= FEW:
        return ALL
    dims, t = i.scatter_dims_to_operand_dims, i.operands[len(i.operands) // 2].shape.element_type
    orders = t.is_integer and (t.is_signed or t.bits < 64) and list(dims) == sorted(dims)
    whole = has_whole_windows(i) and not i.input_batching_dims
    return SORTED if i.indices_are_sorted and orders and whole else ""
