"""Divides the kernels of a CPU program into portions, so that several threads compile one program.

By the kernels alone, never by what the machine has: the same program is the same code everywhere. Kernels on single
elements stay with the program itself, into which they melt. Kernels that LLVM's optimiser is spared are in a portion
without the others, with the program where its own kernels are of this kind, too.
"""

from __future__ import annotations

from collections.abc import Collection
from heapq import heappop, heappush
from typing import NamedTuple

from heron.backends.lower import KernelUse
from heron.codegen.ir.editing import ops_within
from heron.codegen.native.program import melts
from heron.codegen.transforms.lib.math_names import FUNCTIONS

#: what LLVM's time for a kernel is estimated by, in a twelfth of a millisecond each: a kernel takes as long as so many
#: MLIR ops, however small it is, and a mathematical function as so many
_KERNEL, _FUNCTION = 40, 25
#: ops that make a portion, and those that are worth two, which two threads compile side by side. LLVM takes two
#: milliseconds for a module with nothing in it
_PORTION, _PAIR = 160, 140


class Portion(NamedTuple):
    """Kernels of one LLVM module. ``quick``: it is compiled without the optimiser."""

    uses: dict[str, KernelUse]
    quick: bool


def portions(
    uses: dict[str, KernelUse], quick: Collection[str] = (), computes: bool = False
) -> tuple[Portion, list[Portion]]:
    """The kernels that stay with the program, and the portions of the others; ``quick`` are those without optimiser.
    ``computes``: the program itself is for the optimiser.

    Where there would be one portion, it stays with the program: it would only be one module more.
    """
    own = {name: use for name, use in uses.items() if melts(use.kernel)}
    slow = {name: use for name, use in uses.items() if name not in own and name not in quick}
    others = {name: use for name, use in uses.items() if name not in own and name in quick}
    found, is_quick = _cut(slow), not computes and all(name in quick for name in own)
    if others and is_quick:
        return Portion({n: u for n, u in uses.items() if n not in slow}, quick=True), found
    apart = [Portion(others, quick=True)] if others else []
    if len(found) > 1:
        return Portion(own, quick=is_quick), found + apart
    stays = {n: u for n, u in uses.items() if n not in others}
    return Portion(stays, quick=not slow and is_quick), apart


def _cut(uses: dict[str, KernelUse]) -> list[Portion]:
    """Portions of about the same size, the largest first: each kernel, by falling size, goes to the smallest so far."""
    sizes = {name: _size(use) for name, use in uses.items()}
    total = sum(sizes.values())
    count = min(len(uses), max(round(total / _PORTION), 2 if total >= _PAIR else 1))
    found: list[list[str]] = [[] for _ in range(count)]
    filled = [(0, n) for n in range(count)]
    for name in sorted(sizes, key=lambda name: -sizes[name]):
        size, n = heappop(filled)
        found[n].append(name)
        heappush(filled, (size + sizes[name], n))
    order = [n for _, n in sorted(filled, key=lambda at: (-at[0], at[1]))]
    return [Portion({name: use for name, use in uses.items() if name in found[n]}, quick=False) for n in order]


def _size(use: KernelUse) -> int:
    ops = ops_within(use.kernel.module)
    return _KERNEL + len(ops) + _FUNCTION * sum(type(op) in FUNCTIONS for op in ops)
