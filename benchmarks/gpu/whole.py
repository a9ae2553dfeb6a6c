"""Whole programs: heron and its peers in turn, each in a process of its own."""

from __future__ import annotations

import contextlib
import math
import statistics
from pathlib import Path
from typing import Any

from benchmarks import programs
from benchmarks.compare import Measured, Refused, Worker
from benchmarks.gpu.worker import CALLS
from heron.cli import compare, values
from heron.errors import HeronError
from heron.hlo.text import parse

PEERS = ("xla", "torch")


def whole(name: str, workers: dict[str, Worker], small: bool, repeats: int, folder: Path) -> dict[str, Any]:
    """One program on all sides, in turn: seconds of a call, of compiling, and how far outputs differ from heron's."""
    path = programs.path(name, small, "cuda")
    module = parse(path.read_text(), filename=str(path))
    values.write(str(folder / "in.npz"), values.random(module, 0), [])
    sides = {side: Measured() for side in workers}

    def turn(action: str, **request: Any) -> None:
        for side, m in sides.items():
            if m.refused:
                continue
            try:
                reply = workers[side].ask(do=action, **request)
            except Refused as refusal:
                m.refused = f"{action}: {refusal}"
                continue
            if "seconds" in reply:
                getattr(m, action).append(reply["seconds"])

    turn("parse", path=str(path))
    turn("compile")
    turn("bind", path=str(folder / "in.npz"))
    turn("run")
    for m in sides.values():
        m.run.clear()  # the first run warms up
    for _ in range(repeats):
        turn("run")
    row: dict[str, Any] = {"name": name}
    for side, m in sides.items():
        seconds = statistics.median(m.run) / CALLS if m.run else math.nan
        row[side] = {"seconds": seconds, "compile_seconds": m.median("compile"), "refused": m.refused}
    row["errors"] = _errors(workers, sides, folder)
    return row


def _errors(workers: dict[str, Worker], sides: dict[str, Measured], folder: Path) -> dict[str, float]:
    """By peer: the largest difference of an output from heron's, over the largest magnitude in it."""
    if sides["heron"].refused:
        return {}
    held = {}
    for side, m in sides.items():
        if not m.refused:
            workers[side].ask(do="outputs", path=str(folder / f"{side}.npz"))
            held[side] = values.read(str(folder / f"{side}.npz")).outputs
    found = {}
    for side, theirs in held.items():
        with contextlib.suppress(HeronError):
            if side != "heron":
                rows = compare.compare_all(held["heron"], theirs, rtol=0.0)
                scales = [compare.magnitude(t) for t in theirs]
                found[side] = max((c.max_abs / s for c, s in zip(rows, scales, strict=True) if s), default=0.0)
    return found
