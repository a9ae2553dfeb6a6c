"""Machine code as data: what a compiler hands to those who run it."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from heron.records import dataclass


@dataclass(slots=True)
class Timing:
    """Seconds spent in the stages of one LLVM compile."""

    parse_s: float = 0.0
    opt_s: float = 0.0
    emit_s: float = 0.0


@dataclass(slots=True)
class Object:
    """One compiled module: its object code, its compile time, and (once linked) the addresses of its functions."""

    name: str
    code: bytes
    timing: Timing
    cached: bool = False
    addresses: dict[str, int] = field(default_factory=dict)
    keep: Any = None  # the linker and its tracker: code is unloaded when they die
