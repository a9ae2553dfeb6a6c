"""The figures as Markdown and as plain values for JSON."""

from __future__ import annotations

import datetime
import math
from dataclasses import asdict
from typing import Any

from benchmarks.compare import geomean
from benchmarks.gpu.kernels import KernelRow
from benchmarks.gpu.whole import PEERS
from benchmarks.gpu.worker import CALLS

#: what moves data and computes little: at least this part of a copy's bandwidth is the goal
GOAL = 0.9


def page(held: dict[str, Any]) -> str:
    """Both tables as Markdown, of what `results.json` holds."""
    programs_, rows, copy = held["programs"], held["kernels"], held.get("copy_bytes_per_second", math.nan)
    share = copy / max(1, held.get("memory_bandwidth", 1))
    versions = ", ".join(f"{name}: {v}" for name, v in held.get("versions", {}).items())
    lines = [
        f"# heron on {held.get('device', 'no device')}",
        "",
        *(["**Rehearsed with no GPU: these figures mean nothing.**", ""] if held.get("rehearsed") else []),
        f"{datetime.date.today()}, driver {held.get('driver', '-')}, by `python -m benchmarks.gpu`. A copy on the "
        f"device moved {copy / 1e9:,.0f} GB/s, read and written, {share:.0%} of what the driver's figures make. "
        f"{versions}.",
        "",
        "## Whole programs",
        "",
        f'Microseconds of a call among {CALLS}, on arrays on the device; ratios are heron over the peer. "kernels": of',
        "heron's own kernels one after the other, by the device's clock. Where a call takes far longer, the host or a",
        "library is what counts.",
        "",
        "| program | heron | kernels | XLA | ratio | torch.compile | ratio | error |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    on_device: dict[str, float] = {}
    for r in rows:
        on_device[r["program"]] = on_device.get(r["program"], 0.0) + r["seconds"] * r["launches"]
    for p in programs_:
        ours = p["heron"]["seconds"]
        cells = [p["name"], _us(ours), _us(on_device.get(p["name"], math.nan))]
        for side in PEERS:
            theirs = p.get(side, {}).get("seconds", math.nan)
            cells += [_us(theirs), _ratio(ours / theirs)]
        error = max(p["errors"].values(), default=math.nan)
        lines.append("| " + " | ".join([*cells, "-" if math.isnan(error) else f"{error:.1e}"]) + " |")
    for side in PEERS:
        ratios = [p["heron"]["seconds"] / p[side]["seconds"] for p in programs_ if side in p]
        lines += ["", f"Geometric mean over {side}: {_ratio(geomean(ratios))} x."]
    rounded = ", ".join(f"`{p['name']}`" for p in programs_ if p.get("tf32"))
    if rounded:
        lines += ["", f"XLA multiplies f32 in tf32, heron and torch do not, so that ratios say little of: {rounded}."]
    refused = [
        f"- {p['name']}, {s}: {p[s]['refused']}"
        for p in programs_
        for s in ("heron", *PEERS)
        if p.get(s, {}).get("refused")
    ]
    lines += ["", *refused] if refused else []
    notes = [
        f"- {p['name']}: {note}"
        for p in programs_
        for note in (*p["heron"].get("refused_graphs", ()), *p["heron"].get("notes", ()))
    ]
    lines += ["", "Not as planned:", "", *notes] if notes else []
    lines += [
        "",
        "## Kernels",
        "",
        'One launch, caches swept. "roofline": the time memory (at the rate of the copy) or arithmetic needs, over the '
        f"time it took; the goal for what moves data is {GOAL:.0%}.",
        "",
        "| program | kernel | launches | us | model us | MB | GB/s | roofline |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for r in sorted(rows, key=lambda r: (r["program"], -r["seconds"] * r["launches"])):
        lines.append(
            f"| {r['program']} | {r['kernel']} | {r['launches']} | {1e6 * r['seconds']:.1f} | "
            f"{1e6 * r['model_seconds']:.1f} | {r['bytes'] / 1e6:.2f} | {r['bandwidth'] / 1e9:,.0f} | "
            f"{r['roofline']:.0%} |"
        )
    return "\n".join(lines) + "\n"


def _us(seconds: float) -> str:
    return "-" if math.isnan(seconds) else f"{1e6 * seconds:,.1f}"


def _ratio(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2f}"


def kernel_figures(r: KernelRow) -> dict[str, Any]:
    """A row with what follows from it."""
    return {**asdict(r), "bandwidth": r.bandwidth, "roofline": r.roofline}


def unplain(value: Any) -> Any:
    """What was None in JSON is NaN."""
    if isinstance(value, dict):
        return {k: unplain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [unplain(v) for v in value]
    return math.nan if value is None else value


def plain(value: Any) -> Any:
    """NaN has no JSON."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [plain(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
