"""Divides the kernels of a CPU program into portions, so that several threads compile one program.

By the kernels alone, never by what the machine has: the same program is the same code everywhere. Kernels on single
elements stay with the program itself, into which they melt. Kernels that LLVM's optimiser is spared are in a portion
without the others, with the program where its own kernels are of this kind, too.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from heron.backends.lower import KernelUse
from heron.codegen.ir.editing import ops_within
from heron.codegen.native.program import melts

#: MLIR ops that make a portion. LLVM takes half a millisecond for one, and two for a module however small it is
_OPS = 60


class Portion(NamedTuple):
    """Kernels of one LLVM module. ``quick``: it is compiled without the optimiser."""

    uses: dict[str, KernelUse]
    quick: bool


def portions(
    uses: dict[str, KernelUse], quick: Collection[str] = (), computes: bool = False
) -> tuple[Portion, list[Portion]]:
    """The kernels that stay with the program, and the portions of the others; ``quick`` are those without optimiser.
    ``computes``: the program itself is for the optimiser.

    Where there would be one portion, all stay: it would only be one module more.
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
    found: list[Portion] = []
    room = 0
    for name, use in uses.items():
        if room <= 0:
            found.append(Portion({}, quick=False))
            room = _OPS
        found[-1].uses[name] = use
        room -= len(ops_within(use.kernel.module))
    return found
