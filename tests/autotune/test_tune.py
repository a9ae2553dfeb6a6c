"""Tuning with recorded times: what is measured, what is chosen, what the lock file does to a compile."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from heron import lockfile, targets
from heron.analysis.blocks.config import BlockConfig, config_of
from heron.autotune.device import RUNS, WARM_UP, check, inputs_of
from heron.autotune.fragments import executable_of, fragments
from heron.autotune.tune import tune
from heron.backends.compiler import Compilation
from heron.errors import HeronError
from heron.evaluator import evaluate
from heron.hlo.text import parse
from heron.options import Options
from heron.passes.framework.measured import Fragment
from heron.runtime.cuda.device import device
from heron.runtime.cuda.libraries.base import Proposal
from heron.trace import Trace
from tests.autotune.on_recorder import ON, OnRecorder
from tests.rehearsal.compiling import rehearsed
from tests.support import program

SM = targets.get("sm_90")
SIM = targets.get("sim:sm_90")


#: a product that block kernels do not do, and one more that they do
CALLS = """
HloModule calls

ENTRY main {
  x = f32[16,32] parameter(0)
  y = f32[32,16] parameter(1)
  a = bf16[32,48] parameter(2)
  b = bf16[48,32] parameter(3)
  d = f32[16,16] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  e = bf16[32,32] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  n = bf16[32,32] negate(e)
  ROOT t = (f32[16,16], bf16[32,32]) tuple(d, n)
}
"""


def swiglu(target: targets.Target = SM, options: Options = ON) -> list[Fragment]:
    return fragments(parse(program("rmsnorm_swiglu").read_text()), target, options)


def tiles(fragment: Fragment) -> list[str]:
    return [w for w in fragment.ways if w not in ("cublaslt", "own")]


def test_fragments() -> None:
    """Every product once, the model's choice first, all who could do it; the same in every compile."""
    found = swiglu()
    assert len(found) == 2 and all(f.kind == "product" and len(tiles(f)) > 1 for f in found)
    assert all({"cublaslt", "own"} <= set(f.ways) <= set(f.model) for f in found)
    assert any(" tma" in way for f in found for way in f.ways)  # of the one whose sum is a loop
    assert [(f.key, f.ways) for f in found] == [(f.key, f.ways) for f in swiglu()]


def test_what_the_libraries_compute_is_asked_for_too() -> None:
    """Of a product that no block kernel does, which of the library's algorithms; of the other first of all who."""
    found = {f.name: f for f in fragments(parse(CALLS), SM, ON)}
    assert {f.kind for f in found.values()} == {"product", "algorithm"}
    assert found["d"].ways == ("cublaslt 0",) and found["d"].kind == "algorithm"


def test_convolutions_have_algorithms() -> None:
    text = program("flax_cnn_grad", small=False).read_text()
    found = fragments(parse(text), SM, Options(triton="off"))
    assert {w for f in found for w in f.ways} == {"cublaslt 0", "cudnn 1"}


@pytest.mark.parametrize("name", ["rmsnorm_swiglu", "matmul_bf16_gelu"])
def test_every_way_is_right(name: str) -> None:
    """On the simulated GPU, which runs the very kernels that would be measured."""
    for fragment in fragments(parse(program(name).read_text()), SIM, ON):
        inputs = inputs_of(fragment)
        wanted = evaluate(fragment.module, *inputs)
        for way in {fragment.ways[0], tiles(fragment)[-1], "cublaslt", "own"}:
            check(fragment, executable_of(fragment, way, SIM, ON).run(inputs), wanted)


def test_an_algorithm_is_the_calls() -> None:
    fragment = next(f for f in fragments(parse(CALLS), SM, ON) if f.kind == "algorithm")
    assert "candidate=5" in executable_of(fragment, "cublaslt 5", SM, ON).stage("thunks")


def test_a_wrong_candidate_is_found() -> None:
    fragment = swiglu(SIM)[0]
    inputs = inputs_of(fragment)
    (result,) = executable_of(fragment, fragment.ways[0], SIM, ON).run(inputs)
    wrong = np.asarray(result).copy()
    wrong[0, 0] = 2 * wrong[0, 0] + 1
    with pytest.raises(HeronError, match="TUNE010"):
        check(fragment, [wrong], evaluate(fragment.module, *inputs))


def test_the_quickest_is_chosen() -> None:
    """The last candidate is quickest here; the first cannot be built; what comes after the budget is left."""
    now, told = [0.0], []
    found = swiglu()
    ways = found[0].ways

    def measure(fragment: Fragment, way: str) -> float:
        now[0] += 1.0
        n = ways.index(way)
        if n == 0:
            raise HeronError("GEN016", "Triton refuses it")
        return (20.0 - n) * 1e-6

    result = tune(found, "sm_90", measure, budget=len(ways) - 0.5, progress=told.append, clock=lambda: now[0])
    (choice,) = result.choices
    assert choice.choice == ways[-1] and choice.runner_up == ways[-2]
    assert choice.microseconds == pytest.approx(20 - len(ways) + 1)
    assert [r[1] for r in result.refused] == [ways[0]]
    assert result.skipped == [found[1].name]
    assert len(told) == len(ways)


def locked(tmp_path: Path, pick: Callable[[Fragment], str]) -> Path:
    """A lock file for the program's products, then for what those lead to, until there is nothing new."""
    lock, path = lockfile.Lock(), tmp_path / "heron.lock"
    lock.write(path)
    while new := [f for f in swiglu(options=ON.replace(lock=str(path))) if lock.find("sm_90", f.key) is None]:
        for f in new:
            lock.add(lockfile.Choice("sm_90", f.key, f.name, pick(f), 5.0, f.ways[0], 6.0))
        lock.write(path)
    return path


def fused(options: Options) -> tuple[list[str], Trace, str]:
    """The tiles of a program's block kernels, the compile's trace, and the text."""
    trace = Trace()
    module = Compilation(parse(program("rmsnorm_swiglu").read_text()), SM, options, trace).passes("fused")
    return [str(c) for i in module.instructions() if (c := config_of(i)) is not None], trace, str(module)


def test_the_lock_file_decides(tmp_path: Path) -> None:
    path = locked(tmp_path, lambda f: tiles(f)[-1])
    options = Options(triton="on", lock=str(path), frozen=True)
    assert fused(options)[0] == [tiles(f)[-1] for f in swiglu()]
    assert lockfile.parse(path.read_text()).text() == path.read_text()


def test_it_may_choose_the_library_and_its_algorithm(tmp_path: Path) -> None:
    path = locked(tmp_path, lambda f: "cublaslt" if f.kind == "product" else "cublaslt 3")
    found, trace, text = fused(Options(triton="on", lock=str(path), frozen=True))
    assert not found and text.count('"selected_algorithm":"3"') == 2
    assert any(d.object == "cublaslt 3" and "measured: 5.0 us" in d.reason for d in trace.decisions)


def test_it_may_choose_kernels_of_our_own(tmp_path: Path) -> None:
    path = locked(tmp_path, lambda f: "own" if f.kind == "product" else "cublaslt 0")
    found, trace, text = fused(Options(triton="on", lock=str(path), frozen=True))
    assert not found and text.count(" dot(") == 2 and "__cublas" not in text
    assert any(d.reason == "it is to be computed by a kernel of our own" for d in trace.decisions)


def test_one_decision_of_three() -> None:
    """Without measurements it is the model's, and the trace has the times of all."""
    trace = fused(Options(triton="on"))[1]
    told = [d.reason for d in trace.decisions if d.rule == "product"]
    assert told and all(all(who in t for who in ("triton", "cublaslt", "own")) for t in told)


def test_what_is_not_in_the_lock_file(tmp_path: Path) -> None:
    """The model chooses; frozen, it is an error that names the devices the file is for."""
    lock = lockfile.Lock()
    lock.add(lockfile.Choice("sm_80", "0" * 16, "other", "16x16 step 32 warps 4 stages 2", 1.0))
    path = tmp_path / "heron.lock"
    lock.write(path)
    options = Options(triton="on", lock=str(path))
    assert fused(options)[0] == [f.ways[0] for f in swiglu()]
    with pytest.raises(HeronError, match="TUNE002(.|\n)*it is for sm_80"):
        fused(options.replace(frozen=True))
    with pytest.raises(HeronError, match="TUNE002"):
        fused(Options(triton="on", frozen=True))


@pytest.mark.parametrize("libraries", ["auto", "none"])
def test_frozen_calls_of_libraries(tmp_path: Path, libraries: str) -> None:
    """What no library computes asks for nothing."""
    path = tmp_path / "heron.lock"
    lockfile.Lock().write(path)
    options = Options(triton="off", libraries=libraries, lock=str(path), frozen=True)
    if libraries == "none":
        assert not fused(options)[0]
    else:
        with pytest.raises(HeronError, match="TUNE002(.|\n)*it is for no device"):
            fused(options)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("version = ", "TUNE001"),
        ("version = 7", "its version is 7"),
        ("version = 1\nchoice = 3", "no list"),
        ('version = 1\n[[choice]]\ndevice = "sm_90"', "lacks a field"),
        ("version = 1\n[[choice]]\ndevice = 90", "another type"),
    ],
)
def test_damaged_lock_files(text: str, why: str) -> None:
    with pytest.raises(HeronError, match=why):
        lockfile.parse(text)


@pytest.mark.parametrize("wrong", [str(BlockConfig((64,))), str(BlockConfig((48, 64))), "cudnn 1", "cublas 1"])
def test_a_choice_that_does_not_fit(tmp_path: Path, wrong: str) -> None:
    lock, path = lockfile.Lock(), tmp_path / "heron.lock"
    for f in fragments(parse(CALLS), SM, ON):
        lock.add(lockfile.Choice("sm_90", f.key, f.name, wrong, 5.0))
    lock.write(path)
    with pytest.raises(HeronError, match="TUNE003"):
        Compilation(parse(CALLS), SM, Options(triton="on", lock=str(path)), Trace()).passes("fused")


def few() -> Fragment:
    """A fragment with three candidates."""
    found = swiglu()[0]
    return dataclasses.replace(found, ways=tuple(tiles(found)[:3]))


def test_times_are_the_devices() -> None:
    """Read after warm-up, by events; the quickest is kept at once, and no memory."""
    fragment, kept = few(), []
    with rehearsed() as recorder:
        measure = OnRecorder(recorder)
        times = iter([5e-5, 2e-5, 9e-5])

        def timed(fragment: Fragment, way: str) -> float:
            recorder.durations["gemm"] = next(times)
            return measure(fragment, way)

        result = tune([fragment], "sm_90", timed, keep=kept.append)
        assert not result.refused and result.choices == kept
        (choice,) = kept
        assert choice.choice == fragment.ways[1] and choice.runner_up == fragment.ways[0]
        assert choice.microseconds == pytest.approx(20, rel=1e-3)
        assert choice.runner_up_microseconds == pytest.approx(50, rel=1e-3)
        launched = sum("gemm" in name for name in recorder.launched)
        full = 1 + 1 + WARM_UP + RUNS  # checked, warmed up, a first look, timed
        assert launched == 2 * full + full - RUNS  # the last is more than three times the best
        assert device().memory.statistics.in_use == 0 or device().memory.trim() is None
        assert device().memory.statistics.in_use == 0


def test_a_librarys_algorithms_are_asked_for_and_measured() -> None:
    """The third proposal is the quickest here."""
    fragment = next(f for f in fragments(parse(CALLS), SM, ON) if f.kind == "algorithm")
    with rehearsed() as recorder:
        measure = OnRecorder(recorder)
        recorder.proposals = [Proposal(0, 0), Proposal(1, 64), Proposal(4, 1 << 20)]
        recorder.durations |= {"candidate=4": 2e-6, "candidate=1": 7e-6, "matmul": 3e-6}
        result = tune([fragment], "sm_90", measure, ways=lambda f: measure.ways(f, 8))
        (choice,) = result.choices
        assert (choice.choice, choice.runner_up) == ("cublaslt 4", "cublaslt 0")
        assert choice.microseconds == pytest.approx(2, rel=1e-3)
        assert measure.ways(fragment, 2) == ("cublaslt 0", "cublaslt 1")


@pytest.mark.parametrize("lasting", [False, True])
def test_a_candidate_that_faults(lasting: bool) -> None:
    """Others go on, unless the device is lost to the process: then what was found is kept."""
    fragment = few()
    with rehearsed(lasting=lasting) as recorder:
        measure = OnRecorder(recorder)

        def faulty(fragment: Fragment, way: str) -> float:
            recorder.faults.clear()
            if way == fragment.ways[1]:
                recorder.faults.add("gemm_fusion_multiply")
            return measure(fragment, way)

        result = tune([fragment, fragment], "sm_90", faulty)
        assert [r[1] for r in result.refused] == [fragment.ways[1]] * (1 if lasting else 2)
        assert "faulted" in result.refused[0][2]
        assert ("is lost" in result.stopped) == lasting and len(result.skipped) == int(lasting)
        assert result.choices[0].choice == fragment.ways[0]


def test_an_interrupt_keeps_what_was_found() -> None:
    found = swiglu()

    def measure(fragment: Fragment, way: str) -> float:
        if way == fragment.ways[1]:
            raise KeyboardInterrupt
        return 1e-6

    result = tune(found, "sm_90", measure)
    assert result.stopped == "interrupted" and result.skipped == [found[1].name]
    assert [c.choice for c in result.choices] == [found[0].ways[0]]


def test_a_sum_in_parts_is_a_candidate() -> None:
    """Two kernels of one fragment; the lock file may choose them where the model does not."""
    text = """
HloModule long

ENTRY main {
  x = s8[16,1024] parameter(0)
  w = bf16[1024,16] parameter(1)
  xb = bf16[16,1024] convert(x)
  d = bf16[16,16] dot(xb, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT n = bf16[16,16] negate(d)
}
"""
    (fragment,) = fragments(parse(text), SIM, ON, most=99)
    ways = [w for w in fragment.ways if "split" in w]
    inputs = inputs_of(fragment)
    made = executable_of(fragment, ways[-1], SIM, ON)
    check(fragment, made.run(inputs), evaluate(fragment.module, *inputs))
    assert len(made.kernels) == 2
