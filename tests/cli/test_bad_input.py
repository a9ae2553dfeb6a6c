"""Whatever a user gets wrong: one located message with a code on stderr, exit code 2, never a traceback."""

from __future__ import annotations

import array
import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
import time
import zipfile
from pathlib import Path
from typing import IO

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.support import golden_values, heron, interruptible, program

GOOD = program("softmax").read_text()
SOFTMAX = program("softmax")


def _refused(*argv: object, code: str = "", stdin: str | bytes = "") -> str:
    """Run a command line that must be refused; gives its message."""
    result = heron(*argv, stdin=stdin)
    assert result.code == 2, (result.out, result.err)
    assert result.err.startswith("error["), result.err
    assert "Traceback" not in result.err
    assert f"error[{code}" in result.err, result.err
    return result.err


# -- usage -----------------------------------------------------------------------------------------------------------
def test_unknown_verb_suggests_the_right_one() -> None:
    assert "heron compile" in _refused("compil", "x", code="CLI001")


@pytest.mark.parametrize(
    "argv",
    [
        ("run",),
        ("run", SOFTMAX, "--no-such"),
        ("run", SOFTMAX, "--random", "x"),
        ("run", SOFTMAX, "--rtol", "-1"),
        ("run", SOFTMAX, "--rtol", "x"),
        ("eval", SOFTMAX, "--atol", "nan"),
        ("compile", SOFTMAX, "--to", "nowhere"),
        ("run", SOFTMAX, "more"),
        ("run", SOFTMAX, "--inputs"),
    ],
)
def test_usage(argv: tuple[object, ...]) -> None:
    assert "--help" in _refused(*argv, code="CLI002")


def test_inputs_missing_or_given_twice() -> None:
    message = _refused("run", SOFTMAX, code="CLI033")
    assert "f32[32,100]" in message and "--random 0" in message
    _refused("run", SOFTMAX, "--random", 0, "--inputs", golden_values("softmax"), code="CLI033")


def test_unknown_target() -> None:
    assert "did you mean 'sm_90'" in _refused("run", SOFTMAX, "--target", "sm90", "--random", 0, code="TGT001")


def test_unknown_passes_and_pipelines() -> None:
    assert "'dce'" in _refused("opt", SOFTMAX, "-p", "dcee", code="PASS")
    _refused("opt", SOFTMAX, "--pipeline", "nope", code="PASS")
    for options in ("nonsense=1", "name=x", "constraints=1", "max_elements=9"):
        _refused("opt", SOFTMAX, "-p", f"dce({options})", code="PASS005")
    _refused("opt", SOFTMAX, "-p", "constant-folding(max_elements=many)", code="PASS005")
    _refused("opt", SOFTMAX, "-p", "cse(layout_sensitive=3)", code="PASS005")
    _refused("opt", SOFTMAX, "-p", "dce,,cse", code="CLI036")
    _refused("opt", SOFTMAX, "-p", "dce(nonsense)", code="CLI036")
    _refused("opt", SOFTMAX, code="CLI035")
    _refused("passes", "nope", code="PASS")


def test_unknown_op_and_options() -> None:
    _refused("ops", "dott", code="HLO")
    _refused("run", SOFTMAX, "--random", 0, "-O", "mth=fast", code="CLI020")
    _refused("run", SOFTMAX, "--random", 0, "-O", "math=fats", code="CLI021")


def test_output_that_is_neither_stage_nor_trace() -> None:
    _refused("compile", SOFTMAX, "-o", "x.txt", code="CLI034")


# -- files -----------------------------------------------------------------------------------------------------------
def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    assert "no such file" in _refused("fmt", tmp_path / "missing.hlo", code="CLI010")
    assert "a folder" in _refused("fmt", tmp_path, code="CLI010")
    _refused("run", SOFTMAX, "--inputs", tmp_path / "missing.npz", code="CLI010")
    (tmp_path / "b.hlo").write_bytes(b"\x7fELF\0\xff")
    _refused("fmt", tmp_path / "b.hlo", code="CLI011")
    _refused("fmt", "-", code="CLI011", stdin=b"\xff\xfe")
    _refused("fmt", "-", code="CLI011", stdin=" \n")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_file_without_permission(tmp_path: Path) -> None:
    (tmp_path / "x.hlo").write_text(GOOD)
    (tmp_path / "x.hlo").chmod(0)
    assert "permission denied" in _refused("fmt", tmp_path / "x.hlo", code="CLI010")


def test_files_that_cannot_be_written(tmp_path: Path) -> None:
    _refused("fmt", SOFTMAX, "-o", tmp_path / "no" / "x.hlo", code="CLI012")
    _refused("eval", SOFTMAX, "--random", 0, "--save", tmp_path, code="CLI012")
    if Path("/dev/full").exists():
        assert "disk is full" in _refused("fmt", SOFTMAX, "-o", "/dev/full", code="CLI012")


def test_values_that_do_not_fit(tmp_path: Path) -> None:
    for number, arrays in enumerate(([], [np.zeros((32, 100))], [np.zeros((3, 3), np.float32)])):
        path = tmp_path / f"{number}.npz"
        np.savez(path, *arrays)
        _refused("run", SOFTMAX, "--inputs", path, code="RUN00")
        _refused("eval", SOFTMAX, "--inputs", path, code="RUN00")
    data = golden_values("softmax").read_bytes()
    (tmp_path / "cut.npz").write_bytes(data[: len(data) // 2])
    _refused("eval", SOFTMAX, "--inputs", tmp_path / "cut.npz", code="CLI030")
    _refused("eval", SOFTMAX, "--expect", golden_values("layernorm"), code="RUN00")
    _refused("eval", SOFTMAX, "--random", 0, "--expect", golden_values("layernorm"), code="CLI032")


def test_values_files_with_odd_members(tmp_path: Path) -> None:
    x = np.zeros((32, 100), np.float32)
    with zipfile.ZipFile(tmp_path / "text.npz", "w") as archive:
        archive.writestr("note.txt", "no array")
    np.savez(tmp_path / "object.npz", np.array([1, "a"], object))
    np.savez(tmp_path / "deep.npz", in0=x, meta=np.array("[" * 100_000))
    for name, code in (("text", "CLI030"), ("object", "CLI030"), ("deep", "CLI031")):
        _refused("eval", SOFTMAX, "--inputs", tmp_path / f"{name}.npz", code=code)
        _refused("eval", SOFTMAX, "--random", 0, "--expect", tmp_path / f"{name}.npz", code=code)
    for option in ("--inputs", "--expect"):
        _refused("eval", SOFTMAX, option, "", code="CLI010")
    _refused("eval", SOFTMAX, "--random", 0, "--save", "", code="CLI012")


def test_a_file_of_plain_arrays_holds_outputs_only(tmp_path: Path) -> None:
    np.savez(tmp_path / "out.npz", np.zeros((32, 100), np.float32))
    _refused("eval", SOFTMAX, "--expect", tmp_path / "out.npz", code="CLI033")
    no_parameters = "HloModule m\n\nENTRY e {\n  ROOT x = f32[] constant(2)\n}\n"
    np.savez(tmp_path / "two.npz", np.float32(2))
    assert heron("eval", "-", "--expect", tmp_path / "two.npz", stdin=no_parameters).code == 0


def test_errors_as_json() -> None:
    result = heron("run", SOFTMAX, "--target", "sm90", "--json")
    assert result.code == 2
    assert json.loads(result.out)["error"]["code"] == "TGT001"


# -- program text ----------------------------------------------------------------------------------------------------
BODY = "HloModule m\n\nENTRY e {{\n  x = f32[4]{{0}} parameter(0)\n  {}\n}}\n"


@pytest.mark.parametrize(
    "line",
    [
        "ROOT y = f32[4]{0} add(x)",
        "ROOT y = f32[4]{0} add(x, z)",
        "ROOT y = f32[5]{0} add(x, x)",
        "ROOT y = s32[4]{0} add(x, x)",
        "ROOT y = f32[4]{0} ad(x, x)",
        "ROOT y = f32[4]{0} broadcast(x)",
        "ROOT y = f32[4]{0} reduce(x, x), dimensions={0}, to_apply=nowhere",
        "ROOT y = f32[4{0} add(x, x)",
        "ROOT y = f33[4]{0} add(x, x)",
        "ROOT y = f32[4]{0} add(x, x), no_such_attribute=3",
        "ROOT y = f32[2,3]{1,0} reshape(x)",
        "ROOT y = f32[4]{0} constant({1, 2})",
        "ROOT x = f32[4]{0} add(x, x)",
        "ROOT y = f32[99999999999999999999]{0} add(x, x)",
        "ROOT y = f32[4]{0} slice(x), slice={[0:9]}",
        'ROOT y = f32[4]{0} add(x, x), metadata={op_name="never closed}',
    ],
)
def test_malformed_programs_are_located(line: str) -> None:
    message = _refused("fmt", "-", stdin=BODY.format(line))
    assert "<stdin>:5" in message or "y" in message


_CUTS = st.tuples(st.just("cut"), st.integers(0, len(GOOD)), st.just(""), st.just(1))
_SPLICES = st.tuples(
    st.sampled_from(["insert", "replace", "delete"]),
    st.integers(0, len(GOOD)),
    st.sampled_from([*'{}[]()=,%"-0919:{}\n\0é', "f32", "ROOT ", "9999999999", "parameter(0)", "inf", "/*", "tuple("])
    | st.text(max_size=3),
    st.sampled_from([1, 1, 2, 3000]),
)


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(change=_CUTS | _SPLICES)
@example(change=("insert", 0, "(", 5000))
@example(change=("replace", 200, "{", 5000))
@example(change=("insert", GOOD.index("f32[]"), "(", 5000))
def test_mutated_text_succeeds_or_is_refused(change: tuple[str, int, str, int]) -> None:
    kind, place, piece, times = change
    piece *= times
    end = {"cut": len(GOOD), "insert": place, "replace": place + len(piece), "delete": place + 1 + len(piece)}[kind]
    text = GOOD[:place] + ("" if kind == "delete" else piece) + GOOD[end:]
    result = heron("fmt", "-", stdin=text.encode("utf-8", "surrogatepass"))
    assert result.code in (0, 2), result.err
    assert result.code == 0 or result.err.startswith("error[")


# -- the process -----------------------------------------------------------------------------------------------------
def test_closed_pipe_is_quiet() -> None:
    script = f"'{sys.executable}' -m heron fmt '{program('adam_200', small=False)}' | head -1"
    done = subprocess.run(script, shell=True, capture_output=True, text=True)
    assert done.stdout.startswith("HloModule")
    assert done.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_full_disk_behind_standard_output() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "heron", "targets"], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 2
    assert "cannot write to standard output" in done.stderr and "disk is full" in done.stderr


def test_reader_gone_before_anything_was_written() -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "heron", "targets"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_full_disk_after_a_part_of_the_text(tmp_path: Path, unbuffered: str) -> None:
    script = f"ulimit -f 1; '{sys.executable}' -m heron compile '{SOFTMAX}' --to mlir > '{tmp_path}/out'"
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(["bash", "-c", script], env=environment, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2 and "cannot write to standard output" in done.stderr


def test_closed_standard_error() -> None:
    command = f"'{sys.executable}' -m heron run '{SOFTMAX}' --random 0 2>&-"
    done = subprocess.run(command, shell=True, stdout=subprocess.PIPE, text=True)
    assert done.returncode == 0 and "32x100" in done.stdout


def test_closed_standard_output() -> None:
    done = subprocess.run(f"'{sys.executable}' -m heron targets >&-", shell=True, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_interrupt_stops_cleanly() -> None:
    command = [sys.executable, "-m", "heron", "fmt", "-"]
    with interruptible():
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(b"HloModule")
    process.stdin.flush()
    while _unread(process.stdin) and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)  # it waits for more text now
    _, message = process.communicate()
    assert process.returncode == 130
    assert b"interrupted" in message and b"Traceback" not in message


FREED = """
import heron.cli.main, signal, sys, time

class Freed:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

def work(*_, **__):
    Freed()
    for _ in range(200):
        time.sleep(0.1)

cli = sys.modules["heron.cli.main"]
cli.cli.main = work
cli.main(["targets"])
"""


def test_interrupt_while_an_object_is_freed() -> None:
    """Python prints an exception there, and goes on."""
    with interruptible():
        done = subprocess.run([sys.executable, "-c", FREED], stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "\ninterrupted\n")


def _unread(pipe: IO[bytes]) -> int:
    """Bytes in a pipe that its reader has not taken."""
    count = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, count)
    return count[0]


def test_bugs_are_told_as_bugs(monkeypatch: pytest.MonkeyPatch) -> None:
    from heron import targets

    def broken(name: str) -> None:
        raise KeyError(name)

    monkeypatch.setattr(targets, "get", broken)
    result = heron("targets", "sm_90")
    assert result.code == 3
    assert "error[CLI099]" in result.err and "Traceback" not in result.err


def test_out_of_memory_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from heron import targets

    def greedy(name: str) -> None:
        raise MemoryError

    monkeypatch.setattr(targets, "get", greedy)
    result = heron("targets", "sm_90")
    assert result.code == 2 and "out of memory" in result.err


HUGE = """HloModule huge

ENTRY e {
  x = f32[{N},{N}] parameter(0)
  ROOT y = f32[{N},{N}] add(x, x)
}
"""
GROWS = """HloModule grows

ENTRY e {
  x = f32[] parameter(0)
  ROOT y = f32[{N},{N}] broadcast(x), dimensions={}
}
"""


@pytest.mark.parametrize("text", [HUGE, GROWS])
def test_programs_too_large_for_memory(text: str) -> None:
    text = text.replace("{N}", "1000000")
    for verb in ("run", "eval"):
        message = _refused(verb, "-", "--random", 0, stdin=text, code="CLI003")
        assert "TiB" in message
    assert heron("compile", "-", stdin=text).code == 0
