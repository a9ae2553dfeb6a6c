"""`heron reduce`: planted faults become a few instructions; nothing is lost; faults that are not there are told of."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from heron.cli import values
from heron.hlo.text import parse
from tests.support import heron, interruptible, program

PLANTS = Path(__file__).parent / "plants"
CHAIN = """HloModule chain
ENTRY e {
  x = f32[8,16] parameter(0)
  y = f32[8,16] parameter(1)
  a = f32[8,16] add(x, y)
  b = f32[8,16] abs(a)
  c = f32[8,16] rsqrt(b)
  d = f32[8,16] multiply(x, c)
  e = f32[8,16] tanh(d)
  f = f32[8,16] add(e, y)
  g = f32[8,16] sine(f)
  ROOT t = (f32[8,16], f32[8,16]) tuple(g, c)
}
"""


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    path = tmp_path / "chain.hlo"
    path.write_text(CHAIN)
    return path


def reduced(*arguments: object) -> dict[str, object]:
    result = heron("reduce", *arguments, "--json")
    assert result.code == 0, result.err
    return json.loads(result.out)


def test_a_wrong_rewrite_in_a_real_program(tmp_path: Path) -> None:
    """The program, the inputs and the script stand alone; the report names the rule."""
    out, plant = tmp_path / "out", PLANTS / "wrong_rewrite.py"
    found = reduced(program("layernorm"), "--differs", "--load", plant, "-o", out)
    assert found["instructions"]["after"] <= 12 and found["finished"]
    assert "product_with_rsqrt (wrong_rewrite.py:" in found["culprit"]
    module = parse((out / "program.hlo").read_text(), verify=True)
    assert {"rsqrt", "multiply"} <= {i.opcode for i in module.instructions()}
    values.fit(values.read(str(out / "inputs.npz")).inputs, module, "inputs.npz")
    again = [out / "program.hlo", "--inputs", out / "inputs.npz", "--differs", "--once"]
    assert heron("reduce", *again, "--load", plant).code == 1
    assert heron("reduce", *again).code == 0
    assert str(plant) in (out / "run.sh").read_text()
    heron_here = tmp_path / "heron"
    heron_here.write_text(f'#!/bin/sh\nexec {sys.executable} -m heron "$@"\n')
    heron_here.chmod(0o755)
    path = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    assert subprocess.run([out / "run.sh"], env={**os.environ, **path}, check=False).returncode == 1


@pytest.mark.parametrize(
    "machines", [["--against", "xla"], ["--target", "sim"], ["--target", "sim", "--against", "cpu"]]
)
def test_other_machines_than_the_evaluator(tmp_path: Path, machines: list[str]) -> None:
    """A rule that is wrong everywhere makes no difference between two targets."""
    if "xla" in machines:
        pytest.importorskip("jax")
    path = tmp_path / "tanh.hlo"
    path.write_text(
        "HloModule m\nENTRY e {\n  x = f32[6] parameter(0)\n  y = f32[6] tanh(x)\n  ROOT z = f32[6] abs(y)\n}\n"
    )
    words = [path, "--differs", *machines, "--load", PLANTS / "wrong_tanh.py", "-o", tmp_path / "out", "--jobs", "1"]
    if "cpu" in machines:
        assert "error[CLI071]" in heron("reduce", *words).err
    else:
        assert reduced(*words)["instructions"]["after"] == 2


def test_a_kernel_that_ends_the_process(tmp_path: Path) -> None:
    found = reduced(program("layernorm"), "--crashes", "--load", PLANTS / "kernel_crash.py", "-o", tmp_path / "out")
    assert found["instructions"]["after"] == 4 and "SIGSEGV" in found["fault"]


def test_a_slow_compile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "sum.hlo"
    path.write_text(
        "HloModule m\nENTRY e {\n x = f32[2] parameter(0)\n t = f32[2] tanh(x)\n s = f32[2] add(t, x)\n ROOT r = f32[2] sine(s)\n}\n"
    )
    monkeypatch.setenv("PONDER", "0.5")
    plant = PLANTS / "slow_compile.py"
    found = reduced(path, "--slow-compile", "0.4", "--load", plant, "-o", tmp_path / "out", "--jobs", "1")
    assert {"tanh", "add"} == {i.opcode for i in parse(found["program"]).instructions()} - {"parameter"}
    assert "algebraic-simplifier" in found["culprit"]


def test_a_compile_that_is_slow_enough_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each compile would take ten minutes; and the place that it is seen at is where the search begins."""
    lines = [f" a{n + 1} = f32[2] {('sine', 'abs')[n % 2]}(a{n})" for n in range(60)]
    lines[40:40] = [" t = f32[2] tanh(a40)", " s = f32[2] add(t, a39)", " u = f32[2] add(s, a40)"]
    path = tmp_path / "long.hlo"
    path.write_text(
        "HloModule m\nENTRY e {\n a0 = f32[2] parameter(0)\n" + "\n".join(lines) + "\n ROOT r = f32[2] add(u, a60)\n}\n"
    )
    monkeypatch.setenv("PONDER", "600")
    words = [path, "--slow-compile", "0.3", "--load", PLANTS / "slow_compile.py", "-o", tmp_path / "out"]
    found = reduced(*words)
    assert {"tanh", "add"} == {i.opcode for i in parse(found["program"]).instructions()} - {"parameter"}
    assert found["tried"] < 30


def test_a_command(chain: Path, tmp_path: Path) -> None:
    """The command's exit code is the sign; another one is another fault."""
    script = tmp_path / "check.py"
    script.write_text(
        "import sys; t = open(sys.argv[1]).read(); print('seen'); sys.exit(7 if 'sine(' in t else 3 if 'rsqrt' not in t else 0)"
    )
    command = f"{sys.executable} {script} {{}} {{inputs}}"
    found = reduced(chain, "--check", command, "--says", "se.n", "-o", tmp_path / "out")
    assert found["instructions"]["after"] == 2 and "sine(" in found["program"]
    assert heron("reduce", chain, "--check", command, "--says", "never", "-o", tmp_path / "other").code == 2


def test_an_interrupted_reduction_goes_on(chain: Path, tmp_path: Path) -> None:
    """Ctrl-C in the middle; the same command takes up what is on the disk, and tries nothing twice."""
    out, script = tmp_path / "out", tmp_path / "check.sh"
    script.write_text("sleep 0.1; ! grep -q rsqrt $1")
    words = ["reduce", str(chain), "--check", f"sh {script} {{}}", "-o", str(out)]
    with interruptible():
        process = subprocess.Popen([sys.executable, "-m", "heron", *words], stderr=subprocess.PIPE)
    state, tried = out / "state.json", out / "tried.jsonl"
    end = time.monotonic() + 300
    while time.monotonic() < end and not (tried.exists() and json.loads(state.read_text())["instructions"] < 10):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130 and b"the same command goes on" in process.stderr.read()  # type: ignore[union-attr]
    before = tried.read_text().splitlines()
    found = reduced(*words[1:])
    after = tried.read_text().splitlines()
    assert found["instructions"]["after"] == 2
    assert after[: len(before)] == before and len({json.loads(line)[0] for line in after}) == len(after)


def test_time_is_up(chain: Path, tmp_path: Path) -> None:
    found = reduced(chain, "--differs", "--load", PLANTS / "wrong_rewrite.py", "-o", tmp_path / "out", "--time", "0")
    assert not found["finished"] and found["instructions"]["after"] == found["instructions"]["before"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--differs"], "CLI071", "finds no fault"),
        (["--crashes"], "CLI071", "finds no fault"),
        (["--slow-compile", "600"], "CLI071", "finds no fault"),
        (["--check", "true {}"], "CLI071", "finds no fault"),
        (["--check", "false"], "CLI037", "does not take the program"),
        (["--check", "/no/such/command {}"], "CLI073", "cannot run"),
        ([], "CLI075", "no fault is named"),
        (["--differs", "--crashes"], "CLI075", "--differs and --crashes"),
        (["--differs", "--against", "cpuu"], "TGT001", "cpuu"),
        (["--crashes", "--inputs", "no.npz"], "CLI010", "no.npz"),
        (["--crashes", "--load", "no.py"], "CLI073", "CLI010"),
    ],
)
def test_what_cannot_be_reduced(chain: Path, tmp_path: Path, arguments: list[str], code: str, words: str) -> None:
    result = heron("reduce", chain, *arguments, "-o", tmp_path / "out")
    assert result.code == 2 and f"error[{code}]" in result.err and words in result.err


def test_a_fault_that_comes_and_goes(chain: Path, tmp_path: Path) -> None:
    counter = tmp_path / "count"
    script = tmp_path / "check.sh"
    script.write_text(f"echo x >> {counter}; exit $(( $(wc -l < {counter}) % 2 ))")
    result = heron("reduce", chain, "--check", f"sh {script} {{}}", "-o", tmp_path / "out", "--jobs", "1")
    assert result.code == 2 and "error[CLI074]" in result.err and "run 2: no fault" in result.err


def test_a_folder_of_something_else(chain: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    assert "error[CLI072]" in heron("reduce", chain, "--crashes", "-o", out).err
    (out / "notes.txt").unlink()
    for text in ("{", "[]", json.dumps({"start": "other", "check": "--crashes"})):
        (out / "state.json").write_text(text)
        assert "error[CLI072]" in heron("reduce", chain, "--crashes", "-o", out).err
    assert os.listdir(out) == ["state.json"]


def test_stablehlo_is_reduced_too(tmp_path: Path) -> None:
    path = tmp_path / "m.mlir"
    path.write_text(
        "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n  %0 = stablehlo.add %x, %x : tensor<4xf32>\n"
        "  %1 = stablehlo.rsqrt %0 : tensor<4xf32>\n  %2 = stablehlo.sine %1 : tensor<4xf32>\n  return %2 : tensor<4xf32>\n}\n"
    )
    found = reduced(path, "--crashes", "--load", PLANTS / "kernel_crash.py", "-o", tmp_path / "out")
    assert "sine" not in found["program"] and found["program"].startswith("HloModule")
