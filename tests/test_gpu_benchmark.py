"""The benchmark of the GPU, rehearsed: its figures mean nothing here, the way to them is what is tried."""

from __future__ import annotations

import json
import signal
import subprocess
import tomllib
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import heron
from benchmarks import programs
from benchmarks.compare import Refused
from benchmarks.gpu import bundle, expected, prepare, side, sources
from benchmarks.gpu.__main__ import main
from benchmarks.gpu.kernels import KernelRow, measure
from benchmarks.gpu.report import kernel_figures, page, plain, unplain
from benchmarks.gpu.side import Side
from benchmarks.gpu.whole import rounds_to_tf32
from heron.cli import values
from heron.errors import HeronError
from heron.runtime.cuda.device import device
from heron.runtime.cuda.timer import Timer
from tests.rehearsal import compiling
from tests.support import program


def test_rehearsal(tmp_path: Path) -> None:
    arguments = [
        "softmax",
        "cond_switch",
        "reach.offloaded",
        "--small",
        "--rehearse",
        "--repeats",
        "1",
        "--peers",
        "none",
    ]
    ran = CliRunner().invoke(main, [*arguments, "--out", str(tmp_path)], catch_exceptions=False)
    assert ran.exit_code == 0, ran.output
    figures = json.loads((tmp_path / "results.json").read_text())
    assert figures["device"] == "NVIDIA H200 (rehearsed)" and figures["rehearsed"]
    assert {r["program"] for r in figures["kernels"]} == {"softmax", "cond_switch", "reach.offloaded"}
    assert all(p["heron"]["seconds"] > 0 and not p["heron"]["refused"] for p in figures["programs"])
    assert "| softmax |" in (tmp_path / "results.md").read_text()


def test_programs_of_every_part_of_the_path_are_measured() -> None:
    names = sources.of_reach()
    assert {"reach.radix_sort", "reach.f8", "reach.copy_engine", "reach.offloaded_layers"} <= set(names)
    for name in names:
        shapes = [p.shape for p in heron.parse(sources.text(name, small=True)).entry.parameters]
        arrays = sources.arguments(name, small=True)
        assert [(a.dtype, a.shape) for a in arrays] == [(s.element_type.dtype, s.dims) for s in shapes], name
    assert sources.options("reach.f8").math == "reassociate"
    with pytest.raises(HeronError, match="no benchmark program 'reach.nothing'"):
        sources.text("reach.nothing", small=True)


SCAN = """HloModule scan

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  x = f32[65536] parameter(0)
  zero = f32[] constant(0)
  ROOT y = f32[65536] reduce-window(x, zero), window={size=65536 pad=65535_0}, to_apply=add
}
"""
SORT = """HloModule sort

less {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT
}

ENTRY main {
  x = s32[65536] parameter(0)
  ROOT y = s32[65536] sort(x), dimensions={0}, to_apply=less
}
"""


@pytest.mark.parametrize("text", [SCAN, SORT], ids=["scan", "sort"])
def test_kernels_with_counters_are_measured_with_what_clears_them(text: str) -> None:
    """One of them alone, launched again, would go beyond its arrays: the rehearsed device faults then."""
    module = heron.parse(text)
    (x,) = values.random(module, 0)
    with compiling.rehearsed(memory=1 << 28) as recorder:
        executable = compiling.compile(module, recorder)
        kernels = {k.name for k in executable.kernels}
        assert len(kernels) > 1
        d = device()
        with d.at_work():
            timer = Timer(d, 1 << 16, 0.0, 0.0)
        rows = list(measure("p", executable, prepare.facts_of(executable), [x], 1e12, timer, 3))
        assert {name for r in rows for name in r.kernel.split(" + ")} == kernels
        assert all(0 < r.best <= r.seconds for r in rows)
        np.testing.assert_allclose(executable(x), heron.evaluate(module, x)[0], rtol=1e-4)


def test_it_goes_on_where_it_ended(tmp_path: Path) -> None:
    common = ["--small", "--rehearse", "--repeats", "1", "--peers", "none", "--no-kernels", "--out", str(tmp_path)]
    for names, seconds, wanted in ((["row_sum"], "60", 1), (["row_sum", "col_sum"], "0", 1), (["col_sum"], "60", 2)):
        ran = CliRunner().invoke(main, [*names, "--seconds", seconds, *common], catch_exceptions=False)
        assert ran.exit_code == 0, ran.output
        assert ("not begun: col_sum" in ran.output) == (seconds == "0")
        assert len(json.loads((tmp_path / "results.json").read_text())["programs"]) == wanted
    ran = CliRunner().invoke(main, ["row_sum", "--out", str(tmp_path)])
    assert "figures of another kind" in ran.output


def test_the_page() -> None:
    row = KernelRow("p", "k", 3, 1e-5, 8e-6, 4e7, 0.0, 4.4e12, 6e13, "HLO k")
    assert row.roofline == pytest.approx(4e7 / 4.4e12 / 1e-5)
    sides = {"heron": {"seconds": 1e-5, "refused": ""}, "xla": {"seconds": 2e-5, "refused": ""}}
    torch = {"seconds": float("nan"), "refused": "run: no such program"}
    held = {"device": "D", "driver": 13000, "copy_bytes_per_second": 4.4e12, "memory_bandwidth": 4.8e12}
    held |= {"programs": [{"name": "p", "tf32": True, **sides, "torch": torch, "errors": {"xla": 1e-7}}]}
    text = page(unplain(json.loads(json.dumps(plain({**held, "kernels": [kernel_figures(row)]})))))
    assert "| p | 10.0 | 30.0 | 20.0 | 0.50 | - | - | 1.0e-07 |" in text  # three launches of 10 us
    assert "ratios say little of: `p`." in text
    assert "| p | k | 3 | 10.0 | 8.0 | 40.00 | 4,000 | 91% |" in text
    assert "Geometric mean over xla: 0.50 x." in text and "- p, torch: run: no such program" in text


@pytest.mark.parametrize(
    ("element", "attribute", "rounds"),
    [
        ("f32", "", True),
        ("f32", ", operand_precision={highest,highest}", False),
        ("f32", ", algorithm=dot_f32_f32_f32", False),
        ("bf16", "", False),
    ],
)
def test_products_that_xla_rounds_to_tf32(element: str, attribute: str, rounds: bool) -> None:
    given = "lhs_contracting_dims={1}, rhs_contracting_dims={0}" + attribute
    text = f"  x = {element}[8,8] parameter(0)\n  ROOT d = {element}[8,8] dot(x, x), {given}\n"
    assert rounds_to_tf32(heron.parse(f"HloModule m\n\nENTRY e {{\n{text}}}\n")) == rounds


def test_a_side_that_ends_is_begun_again(monkeypatch: pytest.MonkeyPatch) -> None:
    heron = Side("heron", "--rehearse")
    path = str(programs.path("row_sum", small=True, platform="cuda"))
    heron.ask(do="parse", path=path)
    assert heron._worker is not None
    heron._worker.process.send_signal(signal.SIGSTOP)  # it never answers
    monkeypatch.setattr(side, "LIMIT", 0.0)
    with pytest.raises(Refused, match="ended with -9"):
        heron.ask(do="compile")
    monkeypatch.setattr(side, "LIMIT", 1800.0)
    heron.ask(do="parse", path=path)
    heron.close()


@pytest.mark.parametrize("name", sorted(expected.CLOSE))
def test_values_near_those_in_f64(name: str) -> None:
    """The CPU's are within the bounds, also of a small program; others and those of another scale are not."""
    text = program(name, platform="cuda").read_text()
    module = heron.parse(text)
    arrays = values.random(module, 0)
    wide, more = expected.in_f64(text, arrays)
    exact = [expected.Output.of(a) for a in heron.compile(heron.parse(wide)).run(more)]
    got, bound = heron.compile(module).run(arrays), expected.CLOSE[name]
    assert all(e.values.dtype == np.float64 for e in exact)
    assert [e.error(g, close=bound) for e, g in zip(exact, got, strict=True)] == [""] * len(exact)
    wrong = [
        e.error(np.asarray(g, np.float64) * (1 + 3 * bound.most), close=bound) for e, g in zip(exact, got, strict=True)
    ]
    assert all("of the largest" in w for w in wrong)
    assert "nan" in exact[-1].error(np.full_like(got[-1], np.nan), close=bound)


def test_signs_that_a_library_chooses() -> None:
    """Any signs of the rows of R are right, and other values are not; other outputs and programs have their own."""
    r, values_ = np.triu(np.arange(1.0, 10.0, dtype=np.float32).reshape(3, 3)), np.array([-1.0, 2.0], np.float32)
    signs = np.array([1, -1, -1], np.float32)
    one, other = (expected.settled("linalg_lapack", [values_, x]) for x in (r, r * signs[:, None]))
    np.testing.assert_array_equal(one[1], other[1])
    assert one[1].dtype == np.float32 and (np.diagonal(one[1]) > 0).all()
    assert one[0] is values_ and expected.settled("matmul_f32", [values_, r * -1])[1][0, 0] == -1
    assert not np.array_equal(expected.settled("linalg_lapack", [values_, r * signs])[1], one[1])


def test_what_is_expected_of_full_programs(tmp_path: Path) -> None:
    whole = np.arange(100_000, dtype=np.float32).reshape(1000, 100)
    few = np.arange(3, dtype=np.int32)
    path = str(tmp_path / "x.npz")
    expected.write(path, [expected.Output.of(whole), expected.Output.of(few)])
    first, second = expected.read(path)
    assert first.values.size <= expected.PLACES and not first.error(whole) and not second.error(few)
    assert "values differ by up to" in first.error(whole * 1.001) and not first.error(whole * 1.000001)
    assert not first.error(whole * 1.001, close=expected.Bound(2e-3, 2e-3))
    assert "1 of 3 values" in second.error(few + (few == 1)) and "instead of" in second.error(few[:2])


def test_prepared_programs_are_not_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare.write(tmp_path, "row_sum", True, "sm_90")
    monkeypatch.setattr(prepare, "compiled", None)
    found = prepare.find(tmp_path, "row_sum", True)
    assert set(found.kernels) == set(found.executable.program.kernels) and found.compile_seconds > 0
    assert found.executable.program.graphs
    assert not prepare.find(tmp_path, "row_sum", True, graphs=False).executable.program.graphs


def test_a_bundle_brings_what_heron_needs() -> None:
    project = tomllib.loads((bundle.REPOSITORY / "pyproject.toml").read_text())["project"]
    assert set(project["dependencies"]) <= {*bundle.NEEDED, *bundle.OTHERS.values()}


def test_what_a_bundle_holds(tmp_path: Path) -> None:
    bundle.copy_sources(tmp_path)
    assert (tmp_path / "tests" / "gpu" / "test_workloads.py").exists()
    assert (tmp_path / "benchmarks" / "gpu" / "__main__.py").exists()
    compile(bundle._INSTALL, "install.py", "exec")
    script = tmp_path / "run.sh"
    script.write_text(bundle._RUN)
    subprocess.run(["sh", "-n", str(script)], check=True)
