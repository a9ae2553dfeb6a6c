"""Tuning with recorded times: what is measured, what is chosen, what the lock file does to a compile."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from heron import lockfile, targets
from heron.analysis.blocks.config import BlockConfig, config_of
from heron.autotune.device import RUNS, WARM_UP, OnDevice, check, inputs_of
from heron.autotune.fragments import AsFused, Fragment, executable_of, fragments
from heron.autotune.tune import tune
from heron.backends.compiler import Compilation
from heron.errors import HeronError
from heron.hlo.text import parse
from heron.options import Options
from heron.runtime.cuda.device import device
from heron.runtime.cuda.executable import CudaExecutable
from heron.runtime.executable import Executable
from heron.trace import Trace
from tests.rehearsal.compiling import learn, rehearsed
from tests.rehearsal.driver import Recorder
from tests.support import heron, program

SM = targets.get("sm_90")
SIM = targets.get("sim:sm_90")


def swiglu(target: targets.Target = SM) -> list[Fragment]:
    return fragments(parse(program("rmsnorm_swiglu").read_text()), target, Options(triton="on"))


def test_fragments() -> None:
    """Every block kernel once, the model's choice first; the same in every compile."""
    found = swiglu()
    assert len(found) == 2 and all(len(f.candidates) > 1 for f in found)
    assert [f.key for f in found] == [f.key for f in swiglu()]
    assert all(config_of(f.fusion) == f.candidates[0] for f in found)


def test_every_candidate_is_right() -> None:
    """On the simulated GPU, which runs the very kernels that would be measured."""
    for fragment in swiglu(SIM):
        inputs = inputs_of(fragment)
        for config in (fragment.candidates[0], fragment.candidates[-1]):
            check(fragment, executable_of(fragment, config, SIM, Options())(*inputs), inputs)


def test_a_wrong_candidate_is_found() -> None:
    fragment = swiglu(SIM)[0]
    inputs = inputs_of(fragment)
    result = np.asarray(executable_of(fragment, fragment.candidates[0], SIM, Options())(*inputs)).copy()
    result[0, 0] = 2 * result[0, 0] + 1
    with pytest.raises(HeronError, match="TUNE010"):
        check(fragment, result, inputs)


def test_the_quickest_is_chosen() -> None:
    """The last candidate is quickest here; the first cannot be built; what comes after the budget is left."""
    now, told = [0.0], []
    found = swiglu()

    def measure(fragment: Fragment, config: BlockConfig) -> float:
        now[0] += 1.0
        n = fragment.candidates.index(config)
        if n == 0:
            raise HeronError("GEN016", "Triton refuses it")
        return (10.0 - n) * 1e-6

    budget = len(found[0].candidates) - 0.5
    result = tune(found, "sm_90", measure, budget=budget, progress=told.append, clock=lambda: now[0])
    (choice,) = result.choices
    assert choice.choice == str(found[0].candidates[-1]) and choice.runner_up == str(found[0].candidates[-2])
    assert choice.microseconds == pytest.approx(10 - len(found[0].candidates) + 1)
    assert [r[1] for r in result.refused] == [str(found[0].candidates[0])]
    assert result.skipped == [found[1].fusion.name]
    assert len(told) == len(found[0].candidates)


def locked(tmp_path: Path, pick: Callable[[Fragment], BlockConfig]) -> Path:
    lock = lockfile.Lock()
    for f in swiglu():
        lock.add(lockfile.Choice("sm_90", f.key, f.fusion.name, str(pick(f)), 5.0, str(f.candidates[0]), 6.0))
    lock.write(tmp_path / "heron.lock")
    return tmp_path / "heron.lock"


def compiled(options: Options) -> list[BlockConfig]:
    trace = Trace()
    module = Compilation(parse(program("rmsnorm_swiglu").read_text()), SM, options, trace).passes("fused")
    return [c for i in module.instructions() if (c := config_of(i)) is not None]


def test_the_lock_file_decides(tmp_path: Path) -> None:
    path = locked(tmp_path, lambda f: f.candidates[-1])
    options = Options(triton="on", lock=str(path), frozen=True)
    assert compiled(options) == [f.candidates[-1] for f in swiglu()]
    assert lockfile.parse(path.read_text()).text() == path.read_text()


def test_what_is_not_in_the_lock_file(tmp_path: Path) -> None:
    """The model chooses; frozen, it is an error that names the devices the file is for."""
    lock = lockfile.Lock()
    lock.add(lockfile.Choice("sm_80", "0" * 16, "other", "16x16 step 32 warps 4 stages 2", 1.0))
    path = tmp_path / "heron.lock"
    lock.write(path)
    options = Options(triton="on", lock=str(path))
    assert compiled(options) == [f.candidates[0] for f in swiglu()]
    with pytest.raises(HeronError, match="TUNE002(.|\n)*it is for sm_80"):
        compiled(options.replace(frozen=True))
    with pytest.raises(HeronError, match="TUNE002"):
        compiled(Options(triton="on", frozen=True))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("version = ", "TUNE001"),
        ("version = 7", "its version is 7"),
        ("version = 1\nchoice = 3", "no list"),
        ('version = 1\n[[choice]]\ndevice = "sm_90"', "lacks a field"),
        ('version = 1\n[[choice]]\ndevice = 90', "another type"),
    ],
)
def test_damaged_lock_files(text: str, why: str) -> None:
    with pytest.raises(HeronError, match=why):
        lockfile.parse(text)


def test_a_choice_that_does_not_fit(tmp_path: Path) -> None:
    for wrong in (BlockConfig((64,)), BlockConfig((48, 64))):
        with pytest.raises(HeronError, match="TUNE003"):
            compiled(Options(triton="on", lock=str(locked(tmp_path, lambda _, w=wrong: w))))


class OnRecorder(OnDevice):
    """Measures on a rehearsed device."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(SM, Options(), self._build, sweep=1 << 20)
        self.recorder = recorder

    def _build(self, fragment: Fragment, config: BlockConfig, target: targets.Target, options: Options) -> Executable:
        made = executable_of(fragment, config, target, options)
        assert isinstance(made, CudaExecutable)
        module = fragment.module
        module.entry.root.extras["backend_config"] = config.text()
        learn(made, module, self.recorder, options, AsFused)
        return made


def few() -> Fragment:
    """A fragment with three candidates."""
    found = swiglu()[0]
    return dataclasses.replace(found, candidates=found.candidates[:3])


def test_times_are_the_devices() -> None:
    """Read after warm-up, by events; the quickest is kept at once, and no memory."""
    fragment, kept = few(), []
    with rehearsed() as recorder:
        measure = OnRecorder(recorder)
        times = iter([5e-5, 2e-5, 9e-5])

        def timed(fragment: Fragment, config: BlockConfig) -> float:
            recorder.durations["gemm"] = next(times)
            return measure(fragment, config)

        result = tune([fragment], "sm_90", timed, keep=kept.append)
        assert not result.refused and result.choices == kept
        (choice,) = kept
        assert choice.choice == str(fragment.candidates[1]) and choice.runner_up == str(fragment.candidates[0])
        assert choice.microseconds == pytest.approx(20, rel=1e-3)
        assert choice.runner_up_microseconds == pytest.approx(50, rel=1e-3)
        launched = sum("gemm" in name for name in recorder.launched)
        full = 1 + 1 + WARM_UP + RUNS  # checked, warmed up, a first look, timed
        assert launched == 2 * full + full - RUNS  # the last is more than three times the best
        assert device().memory.statistics.in_use == 0 or device().memory.trim() is None
        assert device().memory.statistics.in_use == 0


@pytest.mark.parametrize("lasting", [False, True])
def test_a_candidate_that_faults(lasting: bool) -> None:
    """Others go on, unless the device is lost to the process: then what was found is kept."""
    fragment = few()
    with rehearsed(lasting=lasting) as recorder:
        measure = OnRecorder(recorder)

        def faulty(fragment: Fragment, config: BlockConfig) -> float:
            recorder.faults.clear()
            if config == fragment.candidates[1]:
                recorder.faults.add("gemm_fusion_multiply")
            return measure(fragment, config)

        result = tune([fragment, fragment], "sm_90", faulty)
        assert [r[1] for r in result.refused] == [str(fragment.candidates[1])] * (1 if lasting else 2)
        assert "faulted" in result.refused[0][2]
        assert ("is lost" in result.stopped) == lasting and len(result.skipped) == int(lasting)
        assert result.choices[0].choice == str(fragment.candidates[0])


def test_an_interrupt_keeps_what_was_found() -> None:
    found = swiglu()

    def measure(fragment: Fragment, config: BlockConfig) -> float:
        if config == fragment.candidates[1]:
            raise KeyboardInterrupt
        return 1e-6

    result = tune(found, "sm_90", measure)
    assert result.stopped == "interrupted" and result.skipped == [found[1].fusion.name]
    assert [c.choice for c in result.choices] == [str(found[0].candidates[0])]


def test_the_verb() -> None:
    path = program("rmsnorm_swiglu")
    listed = heron("tune", path, "--target", "sm_90", "--list")
    assert listed.code == 0 and "gemm_fusion_multiply: 16x" in listed.out
    for target in ("cpu", "sim:sm_90"):
        refused = heron("tune", path, "--target", target)
        assert refused.code == 2 and "TUNE011" in refused.err
