"""Tuning with recorded times: what is measured, what is chosen, what the lock file does to a compile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from heron import lockfile, targets
from heron.analysis.blocks.config import BlockConfig, config_of
from heron.autotune.device import check, inputs_of
from heron.autotune.fragments import Fragment, executable_of, fragments
from heron.autotune.tune import tune
from heron.backends.compiler import Compilation
from heron.errors import HeronError
from heron.hlo.text import parse
from heron.options import Options
from heron.trace import Trace
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


def test_the_verb() -> None:
    path = program("rmsnorm_swiglu")
    listed = heron("tune", path, "--target", "sm_90", "--list")
    assert listed.code == 0 and "gemm_fusion_multiply: 16x" in listed.out
    for target in ("cpu", "sim:sm_90"):
        refused = heron("tune", path, "--target", target)
        assert refused.code == 2 and "TUNE011" in refused.err
