"""The simulator's own native code: the scheduler, the collectives and the checks, compiled once for the process.

Like kernels it is there in two forms: made fast (level 0), for launches of few threads, and made to be fast (level 1).
"""

from __future__ import annotations

import threading

from heron.codegen.llvm.jit import Jit, public_functions
from heron.codegen.llvm.text import Module
from heron.codegen.sim import checks, collectives, scheduler
from heron.once import once

_LOCK = threading.Lock()


def text() -> str:
    """LLVM text of the whole."""
    module = Module()
    for part in (scheduler, collectives, checks):
        part.write(module)
    return module.text()


def symbols(level: int) -> dict[str, int]:
    """Addresses of the functions kernels call."""
    with _LOCK:
        return _compiled(level).addresses


def compiler(level: int) -> Jit:
    """A compiler for kernels; those of one program share theirs, a fifth of the time each takes."""
    return Jit(level=level, symbols=symbols(level))


@once
def _compiled(level: int) -> Jit:
    jit, source = Jit(level=level, shaped=not level), text()
    jit.add(source, "sim.native", exports=public_functions(source))
    return jit
