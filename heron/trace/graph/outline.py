"""A part of a graph as text: the operands of an instruction above it, its users below."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from heron.hlo.ir.instruction import Instruction


def outline(centre: Instruction, steps: int) -> list[str]:
    """Lines of text: operands as a tree towards the top, then the instruction, then its users as a tree."""
    above = list(_tree(centre, steps, lambda i: dict.fromkeys(i.operands), "└─ ", "├─ "))
    below = list(_tree(centre, steps, lambda i: i.users, "└─ ", "├─ "))
    lines = ["computed from:", *above] if above else []
    return [*lines, f"{centre}", *(["read by:", *below] if below else [])]


def _tree(
    i: Instruction, steps: int, near: Callable[[Instruction], Iterable[Instruction]], last: str, more: str
) -> Iterator[str]:
    if steps == 0:
        return
    children = list(dict.fromkeys(near(i)))
    for n, child in enumerate(children):
        end = n == len(children) - 1
        yield f"{last if end else more}{child.name} = {child.shape} {child.opcode}"
        for line in _tree(child, steps - 1, near, last, more):
            yield ("   " if end else "│  ") + line
