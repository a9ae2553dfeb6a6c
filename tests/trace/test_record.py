"""The trace: what is written is what is read, saved, loaded and summarised."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from heron import HeronError
from heron.trace import Decision, Trace


def _trace() -> Trace:
    trace = Trace("model", "cpu")
    trace.options = {"math": "fast"}
    with trace.stage("passes"), trace.stage("simplify"):
        trace.record_pass("dce", True, 0.002, 10, 7, "simplify")
        trace.record_pass("dce", False, 0.001, 7, 7, "simplify")
        trace.record_pass("cse", True, 0.004, 7, 6, "simplify")
    with trace.stage("emit"):
        trace.stage_add("mlir", 0.25)
        trace.stage_add("mlir", 0.5)
    trace.kernel("fusion_1", "loop", ["fusion.1", "fusion.2"], {"grid": [4, 1, 1]}, 2048, 0.01)
    trace.kernel("reduce", "reduction", ["reduce.1"], code_size=100)
    trace.count_thunk("gemm", 2)
    trace.count_thunk("copy")
    trace.decide(Decision(True, "one consumer", "fusion", "a", "b", 10.0, 4.0))
    trace.decide(Decision(False, "too many operands", "fusion", "a", "c"))
    trace.memory = {"arguments": 4096, "temp": 3 << 20}
    trace.note("no BLAS found")
    trace.note("no BLAS found")
    return trace


def test_stages_nest_and_add_up() -> None:
    trace = _trace()
    assert [s.name for s in trace.stages] == ["passes", "emit"]
    assert [s.name for s in trace.stages[0].children] == ["simplify"]
    assert trace.seconds == sum(s.seconds for s in trace.stages)


def test_a_stage_that_raises_is_closed() -> None:
    trace = Trace()
    with pytest.raises(ValueError), trace.stage("outer"):
        raise ValueError
    with trace.stage("next"):
        pass
    assert [s.name for s in trace.stages] == ["outer", "next"]


def test_begins_and_lengths_make_a_timeline(tmp_path: Path) -> None:
    trace = Trace()
    with trace.stage("first"):
        trace.record_pass("dce", True, 0.0, 2, 1)
        with trace.beside("LLVM"):
            pass
        trace.span("fusion_1", "kernel", 0.0)
    with trace.stage("second"):
        pass
    trace.save(tmp_path / "x.trace")
    found = Trace.load(tmp_path / "x.trace")
    first, second = found.stages
    assert first.start is not None and second.start is not None
    inside = [found.passes[0].start, *(s.start for s in found.spans)]
    assert [(s.name, s.kind) for s in found.spans] == [("LLVM", "thread"), ("fusion_1", "kernel")]
    assert all(first.start <= t <= first.start + first.seconds for t in inside)
    assert second.start >= first.start + first.seconds


def test_decisions_answer_as_booleans() -> None:
    assert Decision(True, "yes")
    assert not Decision(False, "no")


def test_kernel_uses() -> None:
    assert [k.uses for k in _trace().kernels] == [2, 1]


def test_listener_hears_stages_and_kernels() -> None:
    heard: list[str] = []
    trace = Trace()
    trace.on_event = heard.append
    with trace.stage("passes"):
        trace.begin("dce")
    trace.kernel("k", "loop")
    assert heard == ["passes", "dce", "k"]


def test_save_and_load(tmp_path: Path) -> None:
    trace = _trace()
    trace.save(tmp_path / "x.trace")
    again = Trace.load(tmp_path / "x.trace")
    assert again.to_json() == trace.to_json()
    assert again.summary() == trace.summary()
    json.loads((tmp_path / "x.trace").read_text())


def test_any_text_is_kept(tmp_path: Path) -> None:
    trace = Trace("m")
    reasons = ["plain", "a\x1fb\0c", '"], ["', "}, {", "two\nlines", "é€𝄞", "half a pair: \ud834"]
    for reason in reasons:
        trace.decide(Decision(False, reason))
        trace.note(reason)
        trace.save(tmp_path / "x.trace")
        again = Trace.load(tmp_path / "x.trace")
        assert [d.reason for d in again.decisions] == again.notes == trace.notes


def test_summary() -> None:
    text = _trace().summary()
    for part in (
        "model for cpu math=fast: 3 kernel launches (2 distinct), 1 copy, 2 gemm",
        "3.0 MiB",
        "2.0 KiB",
        "1 x fusion: too many operands",
        "note: no BLAS found",
    ):
        assert part in text
    assert text.count("no BLAS found") == 1
    assert max(map(len, text.splitlines())) <= 100
    assert "dce" in text and "-3" in text


def test_empty_summary() -> None:
    assert "0 kernel launches" in Trace("m").summary()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[1]", "format"),
        ('{"format": "heron-trace", "version": 99}', "version is 99"),
        ('{"format": "heron-trace", "version": 4}', "missing"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_load_refuses_what_is_no_trace(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "x").write_text(text)
    with pytest.raises(HeronError, match=why) as caught:
        Trace.load(tmp_path / "x")
    assert caught.value.code == "CLI013"


def test_save_on_a_full_disk() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    with pytest.raises(HeronError, match="the disk is full"):
        _trace().save("/dev/full")
