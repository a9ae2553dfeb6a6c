"""Kernel: what an emitter hands on: one MLIR module, how to call it, how to launch it."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Literal

from heron.hlo.ir.shape import Shape
from heron.records import dataclass
from heron.trace import Decision

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


#: a tensor of scratch lies on a CPU thread's stack up to this size, larger ones are taken from the heap
STACK_BYTES = 1 << 15


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
    ``heap_bytes``: what a CPU thread takes from the heap while it runs work items.
    """

    grid: tuple[int, int, int] = (1, 1, 1)
    block: tuple[int, int, int] = (1, 1, 1)
    shared_bytes: int = 0
    work_items: int = 1
    grain: int = 0
    heap_bytes: int = 0


@dataclass(slots=True)
class Kernel:
    """An emitted kernel; its entry function has its name.

    ``notes`` are facts worth telling: vector width, tile, form. ``decision``: why this emitter, and whether it is the
    one its hero asked for. ``parts``: it is called on some of as many parts of its work items at a time.
    ``is_one_step``: it computes one element, with little code.
    """

    name: str
    module: ModuleOp
    args: tuple[KernelArg, ...]
    launch: Launch
    emitter: str
    notes: dict[str, str] = field(default_factory=dict)
    decision: Decision | None = None
    parts: int = 0
    is_one_step: bool = False
