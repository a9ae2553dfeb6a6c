"""The performance page: rates are measured, profiles become limits, figures become goals, tables and plots."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks import programs as all_programs
from benchmarks.compare import Measured
from benchmarks.compare import Row as Compared
from benchmarks.performance import calls, growth, limits, machine, page, plots
from benchmarks.performance.__main__ import main
from benchmarks.performance.growth import Growth
from benchmarks.performance.limits import Limits, Part
from benchmarks.performance.machine import Rates
from benchmarks.performance.numpy_forms import FORMS
from benchmarks.performance.page import Figures
from benchmarks.performance.programs import Program
from benchmarks.performance.startup import Startup
from heron.backends.cpu.profile import Row
from heron.cli import values
from heron.evaluator import evaluate
from heron.hlo.text import parse

RATES = Rates(threads=2, f32=1e11, f64=5e10, read=1e10, copy=8e9)


def row(
    name: str, kind: str = "kernel", runs: int = 1, seconds: float = 1e-3, flops: float = 0, bytes: float = 0
) -> Row:
    return Row(name, kind, [], runs, seconds, flops, bytes, max(flops / 1e11, bytes / 1e10))


def test_rates_are_measured() -> None:
    found = machine.measure(1, size=1 << 20, seconds=0.01)
    assert found.f32 > 1e6 and found.f64 > 1e6
    assert found.bandwidth >= found.copy > 1e5
    assert machine.measured_target(found).memory_bandwidth == int(found.bandwidth)


def test_steps_are_told_apart_by_what_bounds_them() -> None:
    found = limits.limits(
        [
            row("copies", bytes=4e6),
            row("sums", flops=8e7, bytes=1e3),
            row("product", "gemm", flops=9e7),
            row("scan", seconds=5e-3, bytes=1e5),
            row("tiny", runs=1000, seconds=1e-3),
        ],
        total=10e-3,
        rates=RATES,
        alone={"scan", "tiny"},
    )
    seconds = {p.kind: round(p.seconds, 6) for p in found.parts}
    assert seconds == {"memory": 1e-3, "compute": 1e-3, "library": 1e-3, "one thread": 5e-3, "latency": 2e-3}
    assert found.next == "one thread: 50% of the time"
    assert found.roofline == pytest.approx((4e-4 + 8e-4 + 9e-4 + 1e-5) / 10e-3)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (row("a", seconds=1e-3, bytes=9.5e6), "memory: at the machine's rate"),
        (row("a", seconds=2e-3, bytes=1e7), "memory: 100% of the time, at 50% of its rate"),
        (row("a", "gemm", seconds=2e-3, flops=1e8), "library: 100% of the time, at 50% of its rate"),
    ],
)
def test_the_next_limit_in_words(found: Row, words: str) -> None:
    assert limits.limits([found], found.seconds, RATES, set()).next == words


def test_a_program_has_limits() -> None:
    found = limits.measure(all_programs.path("softmax", small=True), RATES, runs=1)
    assert 0 < found.roofline <= 1 and found.parts and found.seconds > 0


@pytest.mark.parametrize("op", growth.OPS)
def test_sizes_run(op: str) -> None:
    found = growth.measure(op, (4096, 16384), seconds=0.0)
    assert len(found.seconds) == 2 and math.isfinite(found.exponent)


def test_growth_is_a_power_of_size() -> None:
    sizes = (1 << 10, 1 << 12, 1 << 14)
    assert Growth("x", sizes, tuple(1e-9 * n**2 for n in sizes)).exponent == pytest.approx(2)


def test_calls_are_measured() -> None:
    found = calls.measure(repeats=1, number=10)
    assert [c.name for c in found][:3] == ["one array in, one out", "20 arrays in, 20 out", "one array in, donated"]
    assert all(c.microseconds > 0 for c in found)


@pytest.mark.parametrize("name", sorted(set(FORMS) - {"uniform"}))
def test_numpy_forms_compute_what_the_programs_do(name: str) -> None:
    module = parse(all_programs.path(name, small=True).read_text())
    inputs = values.random(module, 0)
    wanted, found = evaluate(module, *inputs), FORMS[name](*inputs)
    found, wanted = (x if isinstance(x, (tuple, list)) else (x,) for x in (found, wanted))
    for a, b in zip(found, wanted, strict=True):
        assert np.allclose(a, b, rtol=1e-4, atol=1e-4)


def figures() -> Figures:
    one, two = (
        Limits(1e-3, 2.0, True, (Part("compute", 1e-3, 5e-4),)),
        Limits(1e-3, 0.1, False, (Part("memory", 1e-3, 1e-3),)),
    )
    programs = [
        Program(
            "nbody",
            Compared("nbody", Measured([0.1], [1.0], 0, 100), Measured([0.2], [4.0], 8, 100)),
            0.02,
            0.5,
            1.9,
            one,
        ),
        Program(
            "row_sum",
            Compared("row_sum", Measured([0.1], [1.2], 0, 100), Measured([0.1], [1.0], 0, 40)),
            0.03,
            1.2,
            1.1,
            two,
        ),
        Program("broken", Compared("broken", Measured(refused="compile: GEN001"), Measured([0.1], [1.0]))),
    ]
    return Figures(
        RATES, RATES, False, programs, [Growth("x", (1, 2, 4), (1.0, 2.0, 4.0))], [calls.Call("one array in, one out", 0.5)],
        Startup(0.02, 0.5, 0.2),
    )  # fmt: skip


def test_goals_say_what_is_met() -> None:
    found = {g.text.split(":")[0]: g for g in page.goals(figures())}
    assert found["run time, geometric mean"].met is False  # 0.25 and 1.2
    assert found["run time of each program, against XLA"].measured == "1 of 2 above: row_sum 1.2"
    assert found["run time against NumPy"].met is False
    assert found["compile time with a warm cache, geometric mean"].met is True
    assert found["compile time of gpt2_12l_train_step, against XLA"].met is None
    assert found["peak memory of a compile, against XLA"].measured == "1 of 2 above: row_sum 2.5"
    assert found["temp bytes, against XLA"].met is True
    assert found["2 threads against one, where arithmetic counts"].met is True
    assert found["time grows with size linearly"].met is True
    assert found["a call of a one-kernel program"].met is True and found["`import heron`"].met is True


def test_the_page_has_every_program() -> None:
    text = page.page(figures())
    assert "| nbody | 1000 | 0.25 | 0.5 | 100 | 0.5 | 0.1 |" in text
    assert "- broken: heron: compile: GEN001" in text
    assert "nan" not in text


def test_plots_are_the_same_every_time(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="plots need the extra 'bench'")
    f = figures()
    first, second = (plots.draw(f.programs, f.growths, tmp_path / part) for part in "ab")
    assert [p.name for p in first] == ["ratios.svg", "roofline.svg", "threads.svg", "growth.svg"]
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in second]


def test_the_command_measures_a_program(tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    done = CliRunner().invoke(main, ["softmax", "--small", "--repeats", "1", "--only-programs", "--json", str(out)])
    assert done.exit_code == 0, done.output
    assert "| softmax |" in done.output
    (measured,) = json.loads(out.read_text())["programs"]
    assert measured["name"] == "softmax" and measured["warm"] > 0 and measured["row"]["heron"]["peak_bytes"] > 1 << 20
