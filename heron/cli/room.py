"""Checks that a program's arrays fit in memory before they are made; a system out of memory kills silently."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from heron.errors import HeronError
from heron.trace.summary import size

if TYPE_CHECKING:
    from heron.hlo.ir.module import Module


def require(needed: int, what: str) -> None:
    """Raise CLI003 when `needed` bytes are more than this machine, or this container, has free."""
    free = available()
    if free is not None and needed > free:
        why = f"{size(free)} ({free:,} bytes) are free"
        hint = "`heron compile` shows what a program needs, and runs none of it"
        raise HeronError("CLI003", f"{what} {size(needed)} ({needed:,} bytes) of memory", why=why, hint=hint)


def require_for_inputs(module: Module) -> None:
    """Raise CLI003 when the parameters alone do not fit."""
    require(_parameters(module), f"the parameters of {module.name} take")


def require_for_values(module: Module) -> None:
    """Raise CLI003 when a single value of any computation does not fit beside the parameters."""
    parameters = _parameters(module)
    for computation in module.computations:
        for i in computation.instructions:
            if i.opcode not in ("parameter", "broadcast"):  # NumPy broadcasts without copying
                require(parameters + i.shape.byte_size, f"'{i.name}' and the parameters of {module.name} take")


def available() -> int | None:
    """Bytes available without swapping; None if the system does not report them."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, StopIteration):
        return None
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        return free if limit == "max" else min(free, int(limit))
    except (OSError, ValueError):
        return free


def _parameters(module: Module) -> int:
    return sum(p.shape.total_bytes for p in module.entry.parameters)
