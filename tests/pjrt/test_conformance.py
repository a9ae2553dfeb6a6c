"""`heron jax-tests`: two platforms compared, crashes survived, errors grouped."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from heron import HeronError
from heron.cli.main import INTERRUPTED
from heron.pjrt.conformance import record, runner, together
from heron.pjrt.conformance.record import Outcome, Record, Task
from heron.pjrt.conformance.runner import FileReport, Settings
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


def compared(folder: Path, settings: Settings, results: Path | None = None) -> FileReport:
    [report] = runner.compare(runner.files_of(folder), settings, 1, lambda _: None, results)
    return report


def test_a_file_on_both_platforms(tmp_path: Path) -> None:
    file = tmp_path / "sample_test.py"
    file.write_text(SAMPLE)
    results = tmp_path / "results"
    report = compared(tmp_path, Settings(), results)
    assert {o: report.count(o) for o in ("passed", "failed", "skipped", "crashed")} == {
        "passed": 1,
        "failed": 3,
        "skipped": 1,
        "crashed": 1,
    }
    assert len(report.wanted) == 4 and len(report.missed) == 3
    assert report.heron.seconds > report.heron.outcomes["test_passes"].seconds > 0
    (error, tests), (crash, _) = runner.clusters([report])
    assert len(tests) == 2 and "value # at #" in error and "process ended" in crash
    # what is known is not run again, unless it is asked for
    file.write_text(SAMPLE.replace("assert not HERON", "assert HERON or True"))
    assert len(compared(tmp_path, Settings(), results).missed) == 3
    assert list(compared(tmp_path, Settings(retry=True), results).missed) == ["test_crashes"]


def test_the_cpu_of_jax_runs_what_heron_misses(tmp_path: Path) -> None:
    """In a brief run, which finds the same."""
    (tmp_path / "sample_test.py").write_text(SAMPLE)
    report = compared(tmp_path, Settings(brief=True))
    assert "test_passes" not in report.cpu.selected and len(report.cpu.selected) == 5
    assert len(report.wanted) == 4 and len(report.missed) == 3


HANGS = """
import os, threading
import jax

def test_before():
    jax.numpy.ones(3).sum()

def test_hangs():
    if "heron" in os.environ["JAX_PLATFORMS"]:
        lock = threading.Lock()
        lock.acquire()
        lock.acquire(timeout=300)

def test_after():
    print("so far")

def test_prints(capsys):
    from jax._src import test_util
    with test_util.capture_stdout() as output:
        print("seen")
    assert output() == "seen\\n"
"""


def test_no_test_hangs(tmp_path: Path) -> None:
    (tmp_path / "sample_test.py").write_text(HANGS)
    report = compared(tmp_path, Settings(seconds=12))
    assert list(report.missed) == ["test_hangs"], report
    assert "took too long" in report.missed["test_hangs"].error and "in test_hangs" in report.missed["test_hangs"].error


def test_the_processes_of_tests_end_with_the_command(tmp_path: Path) -> None:
    """`timeout` ends a command by SIGTERM."""
    file = tmp_path / "sample_test.py"
    file.write_text("import time\n\ndef test_waits():\n    time.sleep(300)\n")
    results = tmp_path / "results"
    command = [sys.executable, "-m", "heron", "jax-tests", str(file), "--results", str(results)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not any(Record.read(log).under_way for log in results.glob("*.jsonl")):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    assert process.wait() == INTERRUPTED
    assert not [p for p in Path("/proc").glob("[0-9]*/cmdline") if bytes(file) in _read(p)]


def _read(path: Path) -> bytes:
    """The content of a file that may be gone."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_several_paths_are_one_run(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}_test.py").write_text("def test_passes():\n    pass\n")
    done = heron("jax-tests", tmp_path / "b", tmp_path / "a" / "a_test.py", tmp_path / "b" / "b_test.py")
    assert done.code == 0 and "all: 100.0 % of 2 tests" in done.out


def test_samples_are_the_same_each_time() -> None:
    names = {f"Test::test_{n}" for n in range(500)}
    fifth = {n for n in names if Task("", every=5).takes(n)}
    assert 60 < len(fifth) < 140
    assert {n for n in names if Task("", every=10).takes(n)} < fifth


def test_what_is_missed_is_what_the_cpu_passes() -> None:
    report = FileReport(Path("x"))
    report.cpu = Record({"a": Outcome("passed"), "b": Outcome("failed"), "c": Outcome("passed")}, ["a", "b", "c"])
    report.heron = Record({"a": Outcome("skipped"), "b": Outcome("failed")}, ["a", "b"])
    assert {t: o.outcome for t, o in report.missed.items()} == {"a": "skipped", "c": "absent"}


def test_a_file_that_does_not_load_has_no_absent_tests() -> None:
    report = FileReport(Path("x_test.py"), cpu=Record({"a": Outcome("passed")}, ["a"]))
    report.heron = Record({"/tests/x_test.py": Outcome("crashed", "took too long")})
    assert report.missed == {"a": Outcome("not run", "not run, the file did not load: took too long")}


def test_a_folder_without_tests(tmp_path: Path) -> None:
    with pytest.raises(HeronError, match="PJRT023"):
        runner.files_of(tmp_path)
    no_python = tmp_path / "notes.txt"
    no_python.write_text("")
    assert "error[PJRT023]" in heron("jax-tests", no_python).err


def test_no_test_of_that_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "run_file", lambda *_: Record())
    result = heron("jax-tests", tmp_path / "some_test.py", "-k", "other")
    assert result.code == 2  # there is no such file
    (tmp_path / "some_test.py").write_text("")
    result = heron("jax-tests", tmp_path / "some_test.py", "-k", "other")
    assert result.code == 2 and "none whose name fits 'other'" in result.err
    result = heron("jax-tests", tmp_path / "some_test.py", "--every", "9")
    assert result.code == 2 and "pytest finds none in a sample of one in 9" in result.err


@pytest.mark.parametrize(("on_heron", "code"), [("passed", 0), ("failed", 1)])
def test_what_is_missed_is_told_by_the_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_heron: str, code: int
) -> None:
    (tmp_path / "some_test.py").write_text("")
    outcomes = {True: {"a": Outcome(on_heron)}, False: {"a": Outcome("passed")}}
    monkeypatch.setattr(runner, "run_file", lambda file, settings, heron, *_: Record(outcomes[heron], ["a"]))
    assert heron("jax-tests", tmp_path).code == code


OF_JAX = """
import os

import jax
from jax._src import test_util as jtu

jtu.request_cpu_devices(8)
HERON = "heron" in os.environ["JAX_PLATFORMS"] or bool(os.environ.get("HERON_AS"))


class SampleTest(jtu.JaxTestCase):
    @jtu.run_on_devices("cpu")
    def test_for_the_cpu(self):
        device, _ = jax.devices(jtu.device_under_test())
        assert ("heron" in device.client.platform_version) == HERON
        assert device.platform == os.environ["JAX_PLATFORMS"].split(",")[0]

    @jtu.skip_on_devices("cpu")
    def test_not_for_the_cpu(self):
        raise AssertionError
"""


@pytest.mark.parametrize("as_cpu", [False, True])
def test_what_is_meant_for_the_cpu_is_asked_of_heron(tmp_path: Path, as_cpu: bool) -> None:
    pytest.importorskip("absl.testing")
    file = tmp_path / "of_jax_test.py"
    file.write_text(OF_JAX)
    report = compared(tmp_path, Settings(as_cpu=as_cpu, devices=2))
    outcomes = [sorted(o.outcome for o in r.outcomes.values()) for r in (report.heron, report.cpu)]
    assert outcomes == [["passed", "skipped"]] * 2, report


def test_a_test_of_several_processes_has_passed_when_it_has_in_all(tmp_path: Path) -> None:
    logs, log = [tmp_path / f"x.{n}" for n in range(2)], tmp_path / "x"
    for n, outcomes in enumerate((["passed", "passed", "skipped", "passed"], ["passed", "failed", "skipped"])):
        record.write(logs[n], selected=["a", "b", "c", "d"], process=1.0)
        for test, outcome in zip("abcd", outcomes, strict=False):
            record.write(logs[n], test=test, outcome="started")
            record.write(logs[n], test=test, outcome=outcome, error="why" * (outcome == "failed"), seconds=2.0)
    record.write(logs[1], test="d", outcome="started")
    together.merge(logs, log)
    merged = Record.read(log)
    assert {t: o.outcome for t, o in merged.outcomes.items()} == {"a": "passed", "b": "failed", "c": "skipped"}
    assert merged.outcomes["b"].error == "process 1: why" and merged.outcomes["b"].seconds == 4
    assert merged.under_way == "d" and not logs[0].exists()


def test_processes_need_mpiexec(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together, "mpiexec", lambda: None)
    with pytest.raises(HeronError, match="PJRT031"):
        together.started(["pytest"], 2)
    assert together.started(["pytest"], 1) == ["pytest"]
