"""Whole programs: heron and its peers in turn, each in a process of its own."""

from __future__ import annotations

import contextlib
import math
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.compare import Measured, Refused
from benchmarks.gpu import sources
from benchmarks.gpu.side import Side
from benchmarks.gpu.worker import CALLS
from heron.cli import compare, values
from heron.errors import HeronError
from heron.hlo.ir.module import Module
from heron.hlo.ir.types import F32
from heron.hlo.text import parse

PEERS = ("xla", "torch")


def whole(name: str, workers: Mapping[str, Side], small: bool, repeats: int, folder: Path) -> dict[str, Any]:
    """One program on all sides: seconds of a call, of compiling, and how far outputs differ from heron's.

    The sides compile and run in turn: what one tunes by measuring must not be disturbed by another. The first run after
    a compile warms up.
    """
    path = sources.path(name, small, folder)
    module = parse(path.read_text(), filename=str(path))
    values.write(str(folder / "in.npz"), sources.arguments(name, small), [])
    sides = {side: Measured() for side in workers}

    def ask(side: str, action: str, **request: Any) -> None:
        m = sides[side]
        if m.refused:
            return
        try:
            reply = workers[side].ask(do=action, **request)
        except Refused as refusal:
            m.refused = f"{action}: {refusal}"
            return
        if action in ("compile", "run"):
            getattr(m, action).append(reply["seconds"])

    def get_ready(side: str) -> None:
        ask(side, "parse", path=str(path))
        ask(side, "compile")
        ask(side, "bind", path=str(folder / "in.npz"))
        ask(side, "run")
        sides[side].run.clear()

    for side in workers:
        get_ready(side)
    for _ in range(repeats):
        for side in workers:
            ask(side, "run")
    row: dict[str, Any] = {"name": name, "tf32": rounds_to_tf32(module)}
    for side, m in sides.items():
        times = [s / CALLS for s in m.run]
        seconds = statistics.median(times) if times else math.nan
        best = min(times, default=math.nan)
        row[side] = {"seconds": seconds, "best": best, "compile_seconds": m.median("compile"), "refused": m.refused}
    if not sides["heron"].refused:
        with contextlib.suppress(Refused):
            facts = workers["heron"].ask(do="facts")["facts"]
            row["heron"] |= {"graphs": facts["graphs"], "rebuilt": facts["rebuilt"], "notes": facts["notes"]}
            row["heron"]["refused_graphs"] = facts["refused"]
    row["errors"] = _errors(workers, sides, folder)
    return row


def rounds_to_tf32(module: Module) -> bool:
    """Whether XLA multiplies f32 in tf32 in a program: it does where none of its products says how."""
    return any(
        i.opcode in ("dot", "convolution")
        and i.operands[0].shape.element_type is F32
        and not i.attrs.get("algorithm")
        and not {str(w) for w in i.attrs.get("operand_precision") or ()} & {"high", "highest"}
        for i in module.instructions()
    )


def _errors(workers: Mapping[str, Side], sides: dict[str, Measured], folder: Path) -> dict[str, float]:
    """By peer: the largest difference of an output from heron's, over the largest magnitude in it."""
    if sides["heron"].refused:
        return {}
    held = {}
    for side, m in sides.items():
        with contextlib.suppress(Refused):
            if not m.refused:
                workers[side].ask(do="outputs", path=str(folder / f"{side}.npz"))
                held[side] = values.read(str(folder / f"{side}.npz")).outputs
    found = {}
    for side, theirs in held.items():
        with contextlib.suppress(HeronError, KeyError):
            if side != "heron":
                rows = compare.compare_all(held["heron"], theirs, rtol=0.0)
                scales = [compare.magnitude(t) for t in theirs]
                found[side] = max((c.max_abs / s for c, s in zip(rows, scales, strict=True) if s), default=0.0)
    return found
