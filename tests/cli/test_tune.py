"""``heron tune`` end to end on a rehearsed device: progress, tables, interrupts, disks, lock files of other devices."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from heron import files, lockfile
from heron.autotune import device
from heron.cli.main import INTERRUPTED
from heron.errors import HeronError
from heron.passes.framework.measured import Fragment
from heron.runtime.cuda.libraries.base import Proposal
from tests.autotune.on_recorder import OnRecorder
from tests.rehearsal.compiling import rehearsed
from tests.rehearsal.driver import Recorder
from tests.support import heron

#: one product for block kernels, one for the library
PROGRAM = """
HloModule two

ENTRY main {
  x = f32[16,32] parameter(0)
  y = f32[32,16] parameter(1)
  a = bf16[16,32] parameter(2)
  b = bf16[32,16] parameter(3)
  d = f32[16,16] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  e = bf16[16,16] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  n = bf16[16,16] negate(e)
  ROOT t = (f32[16,16], bf16[16,16]) tuple(d, n)
}
"""
SETTINGS = ("-O", "triton=on")


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    with rehearsed() as found:
        found.proposals = [Proposal(0, 0), Proposal(2, 64)]
        found.durations |= {"candidate=2": 2e-6, "matmul": 4e-6, "gemm": 3e-6}
        monkeypatch.setattr(device, "OnDevice", lambda target, options: OnRecorder(found, options))
        yield found


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "model.hlo").write_text(PROGRAM)
    return tmp_path / "model.hlo"


def tune(model: Path, *more: object) -> list[object]:
    return ["tune", model, "--target", "cuda", "--lock", model.parent / "heron.lock", *SETTINGS, *more]


def test_all_of_it(model: Path, recorder: Recorder) -> None:
    """One table of one decision: block kernels, the library and own kernels, by the model and as measured."""
    done = heron(*tune(model, "--json", "--most", 3))
    assert done.code == 0, done.err
    found = {f["name"]: f for f in json.loads(done.out)["fragments"]}
    product = found["e"]
    assert {w["by"] for w in product["ways"]} == {"triton", "cublaslt", "own"}
    assert all(w["us"] > 0 and w["model_us"] > 0 for w in product["ways"])
    assert product["choice"] == product["ways"][0]["way"] and product["ways"][0]["by"] == "triton"
    assert found["d"]["choice"] == "cublaslt 2"
    told = done.err.splitlines()
    assert "d: cublaslt 2 (2 of 2)" in told and any(line.startswith("e: own (") for line in told)
    lock = lockfile.read(model.parent / "heron.lock")
    assert {(c.device, c.what) for c in lock.choices.values()} == {("sm_90", "d"), ("sm_90", "e")}
    by_lock = heron("compile", model, "--target", "sm_90", "--to", "thunks", *SETTINGS, "-O", "frozen=on", "-O",
                    f"lock={model.parent / 'heron.lock'}")  # fmt: skip
    assert by_lock.code == 0 and "candidate=2" in by_lock.out
    again = heron(*tune(model))
    assert again.code == 0 and "nothing to measure" in again.out and "0 choices" in again.out


def test_what_leads_to_new_questions(model: Path, recorder: Recorder) -> None:
    """A product that the library computes quicker becomes its call, of which algorithms are measured in turn."""
    recorder.durations["gemm"] = 9e-5
    done = heron(*tune(model, "--most", 3))
    assert done.code == 0, done.err
    lock = lockfile.read(model.parent / "heron.lock")
    assert sorted(c.choice for c in lock.choices.values()) == ["cublaslt", "cublaslt 2", "cublaslt 2"]
    assert "3 choices in" in done.out


def test_interrupted(model: Path, recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was measured is in the file; the next run measures what is missing alone."""

    class Impatient(OnRecorder):
        def __call__(self, fragment: Fragment, way: str) -> float:
            if way == "own":
                raise KeyboardInterrupt
            return super().__call__(fragment, way)

    with monkeypatch.context() as m:
        m.setattr(device, "OnDevice", lambda target, options: Impatient(recorder, options))
        stopped = heron(*tune(model, "--most", 3))
    assert stopped.code == INTERRUPTED and "stopped: interrupted; run it again for what is missing" in stopped.out
    lock = lockfile.read(model.parent / "heron.lock")
    assert "e" in {c.what for c in lock.choices.values()}
    on = heron(*tune(model))
    names = {c.what for c in lockfile.read(model.parent / "heron.lock").choices.values()}
    assert on.code == 0 and names == {"d", "e"} and not any(line.startswith("e:") for line in on.err.splitlines())


def test_a_full_disk(model: Path, recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is measured where it is full already; later, the choice that could not be kept is told."""
    written, real, left = [], files.write_text, [0]

    def write(path: str | Path, text: str) -> None:
        if not left[0]:
            raise HeronError("CLI012", f"cannot write '{path}'", why="the disk is full")
        left[0] -= 1
        written.append(text)
        real(path, text)

    monkeypatch.setattr(lockfile.files, "write_text", write)
    refused = heron(*tune(model))
    assert refused.code == 2 and "the disk is full" in refused.err and not recorder.launched
    left[0] = 1
    refused = heron(*tune(model, "--most", 3))
    assert refused.code == 2 and "the disk is full" in refused.err and "not kept: " in refused.err
    assert (model.parent / "heron.lock").read_text() == written[-1]


def test_no_time(model: Path, recorder: Recorder) -> None:
    done = heron(*tune(model, "--budget", 0))
    assert done.code == 0 and "no time was left" in done.out and "0 choices" in done.out


def test_a_lock_file_of_another_device(model: Path) -> None:
    lock, path = lockfile.Lock(), model.parent / "heron.lock"
    lock.add(lockfile.Choice("sm_80", "0" * 16, "other", "cublaslt 1", 1.0))
    lock.write(path)
    settings = ("--target", "sm_90", *SETTINGS, "-O", f"lock={path}")
    refused = heron("compile", model, "--to", "fused", *settings, "-O", "frozen=on")
    assert refused.code == 2 and "TUNE002" in refused.err and "it is for sm_80" in refused.err
    assert f"heron tune FILE --target sm_90 --lock {path}" in refused.err
    assert heron("compile", model, "--to", "fused", *settings).code == 0
    why = heron("why", model, "--about", "d", *settings)
    assert why.code == 0 and "it is for sm_80" in why.out


def test_what_would_be_measured(model: Path) -> None:
    listed = heron("tune", model, "--target", "sm_90", "--list", *SETTINGS)
    assert listed.code == 0 and "others by the library, on the device" in listed.out
    assert all(by in listed.out for by in ("triton", "cublaslt", "own"))
    for target in ("cpu", "sim:sm_90"):
        refused = heron("tune", model, "--target", target)
        assert refused.code == 2 and "TUNE011" in refused.err


def test_no_device(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU by name can be compiled for, and nothing be measured on it."""
    with rehearsed(devices=0):
        refused = heron("tune", model, "--target", "sm_90", "--lock", model.parent / "heron.lock", *SETTINGS)
    assert refused.code == 2 and "TUNE012" in refused.err and "could be measured" in refused.err
