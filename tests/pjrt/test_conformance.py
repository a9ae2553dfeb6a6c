"""`heron jax-tests`: two platforms compared, crashes survived, errors grouped."""

from __future__ import annotations

from pathlib import Path

import pytest

from heron import HeronError
from heron.pjrt.conformance import runner
from heron.pjrt.conformance.runner import FileReport, Outcome
from tests.support import heron

SAMPLE = """
import os

import jax
import pytest

HERON = "heron" in os.environ["JAX_PLATFORMS"]


def test_passes():
    assert (jax.numpy.ones(3) + 1).sum() == 6


def test_crashes():
    if HERON:
        os._exit(7)


@pytest.mark.parametrize("n", [1, 2])
def test_misses(n):
    assert not HERON, f"value {n}.5 at 0x{n}f"


def test_fails_everywhere():
    assert False


def test_is_skipped():
    pytest.skip("no reason")
"""


def test_a_file_on_both_platforms(tmp_path: Path) -> None:
    file = tmp_path / "sample_test.py"
    file.write_text(SAMPLE)
    [report] = runner.compare(runner.files_of(tmp_path), "", 1, 3600, lambda _: None)
    assert {o: report.count(o) for o in ("passed", "failed", "skipped", "crashed")} == {
        "passed": 1,
        "failed": 3,
        "skipped": 1,
        "crashed": 1,
    }
    assert len(report.wanted) == 4 and len(report.missed) == 3
    (error, tests), (crash, _) = runner.clusters([report])
    assert len(tests) == 2 and "value # at #" in error and "process ended" in crash


def test_what_is_missed_is_what_the_cpu_passes() -> None:
    report = FileReport(Path("x"))
    report.cpu = {"a": Outcome("passed"), "b": Outcome("failed"), "c": Outcome("passed")}
    report.heron = {"a": Outcome("skipped"), "b": Outcome("failed")}
    assert report.missed == ["c"]


def test_a_folder_without_tests(tmp_path: Path) -> None:
    with pytest.raises(HeronError, match="PJRT023"):
        runner.files_of(tmp_path)
    no_python = tmp_path / "notes.txt"
    no_python.write_text("")
    assert "error[PJRT023]" in heron("jax-tests", no_python).err


def test_no_test_of_that_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "run_file", lambda *_: {})
    result = heron("jax-tests", tmp_path / "some_test.py", "-k", "other")
    assert result.code == 2  # there is no such file
    (tmp_path / "some_test.py").write_text("")
    result = heron("jax-tests", tmp_path / "some_test.py", "-k", "other")
    assert result.code == 2 and "none whose name fits 'other'" in result.err


@pytest.mark.parametrize(("on_heron", "code"), [("passed", 0), ("failed", 1)])
def test_what_is_missed_is_told_by_the_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_heron: str, code: int
) -> None:
    (tmp_path / "some_test.py").write_text("")
    outcomes = {"heron,cpu": {"a": Outcome(on_heron)}, "cpu": {"a": Outcome("passed")}}
    monkeypatch.setattr(runner, "run_file", lambda file, platforms, *_: outcomes[platforms])
    assert heron("jax-tests", tmp_path).code == code


OF_JAX = """
import os

import jax
from jax._src import test_util as jtu


class SampleTest(jtu.JaxTestCase):
    @jtu.run_on_devices("cpu")
    def test_for_the_cpu(self):
        [device] = jax.devices(jtu.device_under_test())
        assert device.platform == os.environ["JAX_PLATFORMS"].split(",")[0]

    @jtu.skip_on_devices("cpu")
    def test_not_for_the_cpu(self):
        raise AssertionError
"""


def test_what_is_meant_for_the_cpu_is_asked_of_heron(tmp_path: Path) -> None:
    pytest.importorskip("absl.testing")
    file = tmp_path / "of_jax_test.py"
    file.write_text(OF_JAX)
    [report] = runner.compare(runner.files_of(tmp_path), "", 1, 600, lambda _: None)
    outcomes = [sorted(o.outcome for o in found.values()) for found in (report.heron, report.cpu)]
    assert outcomes == [["passed", "skipped"]] * 2, report
