"""The benchmark of the GPU, rehearsed: its figures mean nothing here, the way to them is what is tried."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.gpu import bundle
from benchmarks.gpu.__main__ import main
from benchmarks.gpu.kernels import KernelRow
from benchmarks.gpu.report import page


def test_rehearsal(tmp_path: Path) -> None:
    arguments = ["softmax", "cond_switch", "--small", "--rehearse", "--repeats", "1", "--peers", "none"]
    ran = CliRunner().invoke(main, [*arguments, "--out", str(tmp_path)], catch_exceptions=False)
    assert ran.exit_code == 0, ran.output
    figures = json.loads((tmp_path / "results.json").read_text())
    assert figures["device"] == "NVIDIA H200 (rehearsed)" and figures["rehearsed"]
    assert {r["program"] for r in figures["kernels"]} == {"softmax", "cond_switch"}
    assert all(p["heron"]["seconds"] > 0 and not p["heron"]["refused"] for p in figures["programs"])
    assert "| softmax |" in (tmp_path / "results.md").read_text()


def test_the_page() -> None:
    row = KernelRow("p", "k", 3, 1e-5, 8e-6, 4e7, 0.0, 4.4e12, 6e13, "HLO k")
    assert row.roofline == pytest.approx(4e7 / 4.4e12 / 1e-5)
    facts = {"device": "D", "driver": 13000, "copy_bytes_per_second": 4.4e12, "memory_bandwidth": 4.8e12}
    sides = {"heron": {"seconds": 1e-5, "refused": ""}, "xla": {"seconds": 2e-5, "refused": ""}}
    torch = {"seconds": float("nan"), "refused": "run: no such program"}
    text = page(facts, [{"name": "p", **sides, "torch": torch, "errors": {"xla": 1e-7}}], [row])
    assert "| p | 10.0 | 20.0 | 0.50 | - | - | 1.0e-07 |" in text
    assert "| p | k | 3 | 10.0 | 8.0 | 40.00 | 4,000 | 91% |" in text
    assert "Geometric mean over xla: 0.50 x." in text and "- p, torch: run: no such program" in text


def test_what_a_bundle_holds(tmp_path: Path) -> None:
    bundle.copy_sources(tmp_path)
    assert (tmp_path / "tests" / "gpu" / "test_workloads.py").exists()
    assert (tmp_path / "benchmarks" / "gpu" / "__main__.py").exists()
    compile(bundle._INSTALL, "install.py", "exec")
