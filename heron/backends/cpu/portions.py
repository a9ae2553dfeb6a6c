"""Divides the kernels of a CPU program into portions, so that several threads compile one program.

By the kernels alone, never by what the machine has: the same program is the same code everywhere. Kernels on single
elements stay with the program itself, into which they melt.
"""

from __future__ import annotations

from heron.backends.lower import KernelUse
from heron.codegen.native.program import melts

#: MLIR ops that make a portion. LLVM takes half a millisecond for one, and two for a module however small it is
_OPS = 60


def portions(uses: dict[str, KernelUse]) -> tuple[dict[str, KernelUse], list[dict[str, KernelUse]]]:
    """The kernels that stay with the program, and the portions of the others.

    Where there would be one portion, all stay: it would only be one module more.
    """
    here: dict[str, KernelUse] = {}
    found: list[dict[str, KernelUse]] = []
    room = 0
    for name, use in uses.items():
        if melts(use.kernel):
            here[name] = use
            continue
        if room <= 0:
            found.append({})
            room = _OPS
        found[-1][name] = use
        room -= sum(1 for _ in use.kernel.module.walk())
    return (here, found) if len(found) > 1 else (uses, [])
