"""What the programs gave on each platform, and whether it is the same."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests.devices.program import Program

COUNT = 8
#: how a process becomes each platform
_ENVIRONMENT = {
    "heron": {"JAX_PLATFORMS": "heron", "HERON_DEVICES": str(COUNT)},
    "as-cpu": {"JAX_PLATFORMS": "cpu", "HERON_AS": "cpu", "HERON_DEVICES": str(COUNT)},
    "cpu": {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": f"--xla_force_host_platform_device_count={COUNT}"},
    "one": {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": ""},
}
ROOT = Path(__file__).parent.parent.parent


@dataclass
class Verdict:
    """What is wrong, and what is only different."""

    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def outcomes(folder: Path, platform: str, names: Sequence[str], target: str = "cpu") -> dict[str, dict[str, Any]]:
    """Each program's outcome in a process with this platform; a program that ends the process is told of."""
    found: dict[str, dict[str, Any]] = {}
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    env = {**os.environ, "HERON_TARGET": target, **_ENVIRONMENT[platform], "PYTHONPATH": path}
    left = list(names)
    while left:
        out = folder / f"{platform}.pickle"
        command = [sys.executable, "-m", "tests.devices.child", str(out), platform, *left]
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        found |= _read(out)
        left = [n for n in left if n not in found]
        if left:
            found[left[0]] = {"error": f"the process ended with {done.returncode}", "where": done.stderr[-3000:]}
            left = left[1:]
    return found


def _read(path: Path) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    if path.exists():
        with path.open("rb") as file:
            while True:
                try:
                    name, outcome = pickle.load(file)
                except EOFError:
                    break
                found[name] = outcome
        path.unlink()
    return found


def compare(p: Program, ours: dict[str, Any], theirs: dict[str, Any], one: dict[str, Any]) -> Verdict:
    """heron's outcome against that of JAX's CPU with as many devices, and with one."""
    verdict = Verdict()
    if "error" in ours or "error" in theirs:
        kinds = [o.get("error", "").split(":")[0] for o in (ours, theirs)]
        if kinds[0] and kinds[1]:
            verdict.notes.append(f"both raise: {ours['error'][:100]} / {theirs['error'][:100]}".replace("\n", " "))
        elif kinds[0]:
            verdict.faults.append(f"raises {ours['error'][:300]}".replace("\n", " "))
        elif not p.alone:
            verdict.notes.append(f"the CPU raises {theirs['error'][:100]}".replace("\n", " "))
        if "error" in ours:
            return verdict
    peers = [("eight devices", theirs), *([("one device", one)] if p.alone else [])]
    told = {name: _difference(p, ours["leaves"], peer["leaves"]) for name, peer in peers if "error" not in peer}
    wrong = [f"{name}: {text}" for name, text in told.items() if text]
    # where XLA contradicts itself, one of its answers is enough
    (verdict.notes if 0 < len(wrong) < len(told) else verdict.faults).extend(wrong)
    if "error" not in theirs:
        verdict.notes += _others(ours["leaves"], theirs["leaves"])
    return verdict


def _difference(p: Program, ours: Sequence[dict[str, Any]], theirs: Sequence[dict[str, Any]]) -> str:
    if len(ours) != len(theirs):
        return f"{len(ours)} results, not {len(theirs)}"
    for n, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        text = _unlike(a["value"], b["value"], p.tolerance)
        if text:
            return f"result {n}: {text}"
    return ""


def _unlike(got: np.ndarray, want: np.ndarray, tolerance: float) -> str:
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{got.dtype}{list(got.shape)}, not {want.dtype}{list(want.shape)}"
    if got.dtype.kind in "biu" or not tolerance:
        return (
            ""
            if np.array_equal(got, want, equal_nan=got.dtype.kind in "fc")
            else f"{int((got != want).sum())} elements differ"
        )
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    a, b = got.astype(wide), want.astype(wide)
    if not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return "other elements are finite"
    finite = np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return "other infinities"
    if not finite.any():
        return ""
    error = np.abs(a[finite] - b[finite]).max() / max(np.abs(b[finite]).max(), 1e-30)
    return "" if error <= tolerance else f"off by {error:.1e} of the largest element"


def _others(ours: Sequence[dict[str, Any]], theirs: Sequence[dict[str, Any]]) -> list[str]:
    """Facts of results other than values that the two platforms do not share."""
    found = []
    for n, (a, b) in enumerate(zip(ours, theirs, strict=False)):
        if a["parts"] != b["parts"]:
            found.append(f"result {n} is spread otherwise")
        found += [f"result {n}: {fact} {a.get(fact)}" for fact in ("weak", "committed") if a.get(fact) != b.get(fact)]
    return found
