"""Some of the programs; ``python -m tests.devices`` runs all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("jax")
pytest.importorskip("flax")
pytest.importorskip("equinox")

from tests.devices.comparing import compare, outcomes  # noqa: E402
from tests.devices.program import Program, library  # noqa: E402

#: one for each mechanism: uneven constraints on parameters and in branches, custom gradients, part of the devices in
#: another order, nested manual axes, groups of pmap, uneven sorts, halos
QUICK = (
    "moe_top2", "conds_inside_scans", "custom_vjp_clipped", "nested_shard_map", "pmap_with_groups",
    "cumulative_uneven", "copies_between_meshes", "explicit_axes",
)  # fmt: skip


def test_quick_programs(tmp_path: Path) -> None:
    ours, theirs = (outcomes(tmp_path, platform, QUICK) for platform in ("as-cpu", "cpu"))
    for name in QUICK:
        verdict = compare(library()[name], ours[name], theirs[name], {"error": "not run"})
        assert not verdict.faults, f"{name}: {verdict.faults}\n{ours[name].get('where', '')}"


def _leaf(value: np.ndarray, parts: object = None) -> dict[str, object]:
    return {"value": value, "parts": parts, "weak": False, "committed": True}


def test_what_differs_is_told() -> None:
    p = Program("p", lambda d: None)
    a = np.array([1, np.nan, np.inf], np.float32)
    right = {"leaves": [_leaf(a)]}
    assert not compare(p, right, right, right).faults
    for wrong in (a.astype(np.float64), a[:2], np.array([1, np.nan, -np.inf], np.float32), a * np.float32(1.001)):
        assert compare(p, {"leaves": [_leaf(wrong)]}, right, right).faults, wrong
    assert compare(p, {"error": "ValueError: no"}, right, right).faults
    assert not compare(p, {"error": "ValueError: no"}, {"error": "KeyError"}, right).faults
    assert compare(p, {"leaves": [_leaf(a, {0: ((0, 3),)})]}, right, right).notes
    other = {"leaves": [_leaf(a * 2)]}
    assert not compare(p, right, other, right).faults and compare(p, right, other, other).faults
