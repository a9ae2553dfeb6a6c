"""Kernel: what an emitter hands on: one MLIR module, how to call it, how to launch it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from heron.hlo.shape import Shape
from heron.trace import Decision

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


@dataclass(frozen=True, slots=True)
class KernelArg:
    """One pointer argument. ``index``: operand number of the fusion ('in') or flat output number ('out').

    ``alias``: position of the argument whose buffer this one shares (in-place updates), or None.
    """

    shape: Shape
    kind: Literal["in", "out"]
    index: int
    alias: int | None = None


@dataclass(frozen=True, slots=True)
class Launch:
    """GPU: blocks and threads (x, y, z). CPU: ``work_items``, the range the trailing lo/hi arguments cover.

    ``grain``: work items a CPU thread takes at least when threads share the range; 0: they do not.
    """

    grid: tuple[int, int, int] = (1, 1, 1)
    block: tuple[int, int, int] = (1, 1, 1)
    shared_bytes: int = 0
    work_items: int = 1
    grain: int = 0


@dataclass(slots=True)
class Kernel:
    """An emitted kernel; its entry function has its name.

    ``notes`` are facts worth telling: vector width, tile, form. ``decision``: why this emitter, and whether it is the
    one its hero asked for.
    """

    name: str
    module: ModuleOp
    args: tuple[KernelArg, ...]
    launch: Launch
    emitter: str
    notes: dict[str, str] = field(default_factory=dict)
    decision: Decision | None = None
