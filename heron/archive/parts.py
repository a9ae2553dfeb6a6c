"""The parts of a saved program that depend on the kind of its machine."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from heron.records import dataclass


@dataclass(frozen=True, slots=True)
class Parts:
    """``machine``: its kind and the facts by which code fits it, as plain JSON. ``plan``: thunks and kernels, by name
    of the field. ``members``: code, by name of the file's member."""

    machine: dict[str, Any]
    plan: dict[str, Any]
    members: dict[str, bytes] = field(default_factory=dict)
