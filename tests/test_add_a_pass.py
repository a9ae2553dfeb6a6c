"""docs/change/add-a-pass.md: its code is the example's, and its commands give what it shows (``--bless`` writes that)."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import heron

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "change" / "add-a-pass.md"
EXAMPLE = ROOT / "examples" / "my_passes.py"


def test_code_is_the_examples() -> None:
    source = EXAMPLE.read_text()
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    assert blocks
    for block in blocks:
        assert block in source


def test_commands_give_what_is_shown(
    golden: Callable[[Path, str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = PAGE.read_text()
    source = re.search(r"\$ cat clamp.hlo\n(.*?)\$ ", text, re.S)
    assert source is not None
    (tmp_path / "clamp.hlo").write_text(source[1])
    wrong = EXAMPLE.read_text().replace(
        'b.add("negate", [b.add("tanh", negated.operands)])', 'b.add("tanh", negated.operands)'
    )
    assert wrong != EXAMPLE.read_text()
    (tmp_path / "forgotten.py").write_text(wrong)
    (tmp_path / "examples").mkdir()
    shutil.copy(EXAMPLE, tmp_path / "examples")
    monkeypatch.chdir(tmp_path)

    def ran(block: re.Match[str]) -> str:
        parts = re.split(r"^(\$ .*\n)", block[1], flags=re.M)[1:]
        shown = ""
        for command, output in zip(parts[::2], parts[1::2], strict=True):
            program, *arguments = shlex.split(command.removeprefix("$ "))
            shown += command + (heron(*arguments).out if program == "heron" else output)
        return f"```console\n{shown.rstrip()}\n```"

    now = re.sub(r"```console\n(.*?)```", ran, text, flags=re.S)
    monkeypatch.chdir(os.fspath(ROOT))
    golden(PAGE, now)
