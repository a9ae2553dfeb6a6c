"""How two compiles differ: the first cause comes first, and what came of it is counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from heron.cli.main import invoke
from heron.trace import Decision, Trace
from heron.trace.difference import difference

EXAMPLES = Path(__file__).parents[2] / "examples"


def _step(name: str, seconds: float, runs: float = 1.0) -> dict[str, Any]:
    return {"name": name, "seconds": seconds, "runs": runs}


def _trace(fuses: bool) -> Trace:
    """`exp` is fused into `sum`, or not; what comes after follows."""
    t = Trace("m", "cpu")
    t.record_pass("dce", True, 0.1, 9, 8)
    t.record_pass("fusion", True, 0.2, 8, 7 if fuses else 8)
    t.decide(Decision(True, "no user", "dce", "dead"))
    t.decide(Decision(fuses, "one reader" if fuses else "too large", "priority-fusion", "exp", "sum", 3.0, 2.0))
    t.decide(Decision(True, "one reader", "priority-fusion", "neg", "exp", 5.0 if fuses else 6.0, 1.0))
    t.decide(Decision(True, "no reader is left" if fuses else "small", "copy", "neg"))
    if fuses:
        t.became = {"exp": "fused", "sum": "fused"}
        t.decide(Decision(True, "in place", "buffers", "fused"))
    steps = [_step("fused", 3e-6), _step("tail", 1e-6)] if fuses else [_step("exp", 2e-6), _step("tail", 1e-6, 2.0)]
    t.costs = {"seconds": 4e-6 if fuses else 4.5e-6, "bytes": 64, "flops": 8, "steps": steps}
    t.memory = {"temp": 16 if fuses else 32, "peak": 64}
    t.kernel("k", "loop", ["fused" if fuses else "exp"])
    return t


def test_the_first_cause_comes_first() -> None:
    d = difference(_trace(True), _trace(False))
    assert [(c.kind, c.either.subject) for c in d.decisions] == [
        ("other answer", "exp"),
        ("other cost", "neg"),
        ("other reason", "neg"),
        ("only one", "fused"),
    ]
    first = d.decisions[0]
    assert first.a_kernels == (("fused", 3e-6),) and first.b_kernels == (("exp", 2e-6),)


def test_what_came_of_it_is_counted() -> None:
    d = difference(_trace(True), _trace(False))
    assert d.first_pass is not None and d.first_pass[0] == 1
    totals = {t.name: (t.a, t.b) for t in d.totals}
    assert totals["run, estimated"] == (4e-6, 4.5e-6)
    assert totals["memory: temp"] == (16, 32) and totals["bytes moved"] == (64, 64)
    assert [(s.name, s.a_runs, s.b_runs) for s in d.steps] == [("fused", 1, 0), ("exp", 0, 1), ("tail", 1, 2)]


def test_a_compile_does_not_differ_from_itself() -> None:
    d = difference(_trace(True), _trace(True))
    assert d.is_empty and d.to_json()["same"] is True


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: setattr(t, "target", "sm_90"), "A is for cpu, B for sm_90"),
        (lambda t: setattr(t, "module", "n"), "A is of m, B of n"),
        (lambda t: t.passes.insert(0, t.passes[1]), "A has 9 instructions, B 8"),
    ],
)
def test_other_programs_are_said_to_be_others(change: Any, said: str) -> None:
    other = _trace(True)
    change(other)
    d = difference(_trace(True), other)
    assert said in d.programs and not d.is_empty


def test_two_saved_traces_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = tmp_path / "a.trace", tmp_path / "b.trace"
    _trace(True).save(a)
    _trace(False).save(b)
    assert invoke(["diff", str(a), str(b)]) == 0
    text = capsys.readouterr().out
    assert "the same up to pass run 2, fusion: 8 -> 7 instructions in A, 8 -> 8 in B" in text
    assert text.index("priority-fusion: exp -> sum") < text.index("priority-fusion: neg -> exp")
    assert "A yes one reader (3 -> 2)" in text and "B no  too large (3 -> 2)" in text and "+100.0 %" in text
    assert all(len(line) <= 100 for line in text.splitlines() if not line.startswith(("A ", "B ")))
    assert invoke(["diff", str(a), str(b), "--exit-code", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["same"] is False and found["decisions"][0]["b"]["reason"] == "too large"
    assert found["first_pass"]["run"] == 1
    assert invoke(["diff", str(a), str(a), "--exit-code"]) == 0
    assert invoke(["diff", str(a), str(b), "--with", "math=fast"]) == 2
    assert invoke(["diff", str(a), str(b), "--view", "x.txt"]) == 2


def test_one_program_under_two_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, page = str(EXAMPLES / "softmax.small.hlo"), tmp_path / "diff.html"
    assert invoke(["diff", file, file, "--target", "sm_90", "--with", "math=fast", "--view", str(page)]) == 0
    assert "option math: A as by default, B fast" in capsys.readouterr().out
    assert '"difference":{"same":false' in page.read_text()


def test_memory_from_a_trace_is_that_of_the_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, trace = str(EXAMPLES / "transformer_block.small.hlo"), str(tmp_path / "x.trace")
    assert invoke(["mem", file, "--target", "sm_90", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert invoke(["compile", file, "--target", "sm_90", "-o", trace]) == 0
    capsys.readouterr()
    assert invoke(["mem", trace, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == {key: told[key] for key in found}
    assert invoke(["mem", trace]) == 0
    assert "intermediate values over the schedule" in capsys.readouterr().out
    assert invoke(["mem", trace, "-o", "x.svg"]) == 2
