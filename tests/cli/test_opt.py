"""``heron opt``: changes shown, statistics, users' files, bisection."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.support import heron

TEXT = """HloModule m

ENTRY main {
  x = f32[4] parameter(0)
  n = f32[4] negate(x)
  t = f32[4] tanh(n)
  dead = f32[4] cosine(x)
  zero = f32[] constant(0)
  one = f32[] constant(1)
  ROOT r = f32[4] clamp(zero, t, one)
}
"""
MINE = Path(__file__).parent.parent.parent / "examples" / "my_passes.py"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "m.hlo"
    path.write_text(TEXT)
    return path


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    path = tmp_path / "wrong.py"
    path.write_text('import heron\n@heron.rewrite("tanh")\ndef planted(i, b):\n    return b.add("sine", i.operands)\n')
    return path


def test_changes_are_shown(file: Path) -> None:
    result = heron("opt", "--print-changed", file, "-p", "dce,cse")
    assert result.code == 0
    assert result.out.startswith("// after dce: 6 instructions\nHloModule m")
    assert result.out.count("HloModule") == 2  # and the result
    result = heron("opt", file, "-p", "dce,cse", "--print-changed=diff")
    assert "--- before\n+++ after dce\n" in result.out and "\n-  %dead = f32[4]{0} cosine(%x)" in result.out
    assert "after cse" not in result.out


def test_statistics(file: Path) -> None:
    result = heron("opt", file, "--load", MINE, "-p", "odd-functions,dce", "--stats")
    assert result.out.startswith("HloModule")
    assert "tanh_of_negate" in result.err and "my_passes.py:14" in result.err
    assert "odd-functions" in result.err and "-1" in result.err


def test_a_users_file(file: Path) -> None:
    result = heron("opt", file, "--load", MINE, "-p", "clamp-expander", "-O", "check=values")
    assert "minimum" in result.out
    assert heron("opt", file, "-p", "clamp-expander").code == 2  # it is gone again


def test_bisect(file: Path, wrong: Path) -> None:
    result = heron("opt", file, "--pipeline", "simplify", "--bisect")
    assert (result.code, result.out) == (0, "the check holds after every pass\n")
    result = heron("opt", "--bisect", file, "--pipeline", "simplify", "--load", wrong)
    assert result.code == 1
    assert "broken by algebraic-simplifier" in result.out
    assert "by planted (wrong.py:2), rewrite 1 of 1 in that run\n      on %t = f32[4]{0} tanh(%n)" in result.out
    assert "    -  %t = f32[4]{0} tanh(%n)\n" in result.out
    assert heron("opt", file, "--pipeline", "simplify", "--load", wrong, "--bisect=verify").code == 0
    document = json.loads(heron("opt", file, "-p", "algebraic-simplifier", "--load", wrong, "--bisect", "--json").out)
    assert not document["holds"] and document["culprit"]["rule"] == "planted"


def test_bisect_by_a_command(file: Path, tmp_path: Path) -> None:
    script = tmp_path / "has_dead.py"
    script.write_text("import sys\nsys.exit('no dead code' if 'cosine' not in open(sys.argv[1]).read() else 0)\n")
    result = heron("opt", file, "-p", "cse,dce,cse", "--check-with", f"{sys.executable} {script} {{}}")
    assert result.code == 1
    assert result.out.startswith("broken by dce, run 2 of 3\n     why exit code 1: no dead code\n")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--check-with", "true"], "CLI037"),
        (["--check-with", "there-is-no-such-program {}"], "CLI037"),
        (["--check-with", "false {}"], "PASS018"),
        (["--check-with", "true {}", "--bisect"], "CLI035"),
        (["--bisect=luck"], "CLI002"),
        (["--print-changed=loudly"], "CLI002"),
        (["--load", "nowhere.py"], "CLI010"),
    ],
)
def test_bad_use(file: Path, arguments: list[str], code: str) -> None:
    result = heron("opt", file, "-p", "dce", *arguments)
    assert result.code == 2
    assert f"error[{code}]" in result.err
