"""Known faults of XLA:CPU, and the instructions by which one knows a program that shows one.

A program that differs from XLA's values in such outputs alone says nothing of heron. The conformance tests list all
known differences, op by op; these are those that generated programs run into.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from heron.hlo.facts import reads_part
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module


def excuse(module: Module, outputs: Iterable[int]) -> str | None:
    """The reason for which these outputs may differ from XLA's; None unless each of them has one."""
    found = [_reason(_behind(module, n)) for n in outputs]
    return found[0] if found and all(found) else None


def _reason(seen: set[Instruction]) -> str | None:
    return next((why for why, shows in EXCUSES.items() if any(map(shows, seen))), None)


def _behind(module: Module, output: int) -> set[Instruction]:
    """The instructions that an output depends on, those of called computations too."""
    root = module.entry.root
    waiting = [root.operands[output] if root.opcode == "tuple" else root]
    found = set[Instruction]()
    while waiting:
        i = waiting.pop()
        if i not in found:
            found.add(i)
            waiting += [*i.operands, *(c.root for c in i.called)]
    return found


def _reduces_nothing(i: Instruction) -> bool:
    return i.opcode == "reduce" and all(i.operands[0].shape.dims[d] == 1 for d in i.dimensions)


def _slices_a_slice(i: Instruction) -> bool:
    x = i.operands[0] if i.operands else i
    return i.opcode == "dynamic-slice" and reads_part(x) and len(x.operands) > 1


def _selects_beside_padding(i: Instruction) -> bool:
    return i.opcode == "select-and-scatter" and any(d.pad_low > 0 or d.pad_high > 0 for d in i.window)


EXCUSES: dict[str, Callable[[Instruction], bool]] = {
    "reductions over dimensions of one are dropped with their initial value": _reduces_nothing,
    "dynamic slices of slices are merged: starts are added before either is clamped": _slices_a_slice,
    "of equal elements in a window that ends in padding, another one than the first is selected": (
        _selects_beside_padding
    ),
}
