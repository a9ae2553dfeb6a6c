"""docs/use/dynamic.md: its program, commands and what they print."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support import heron

PAGE = (Path(__file__).parents[3] / "docs" / "use" / "dynamic.md").read_text()


def blocks(kind: str) -> list[str]:
    return [text for name, text in re.findall(r"^```(.*?)\n(.*?)^```$", PAGE, re.M | re.S) if name == kind]


def test_the_page_is_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every line shown is printed, in that order; lines between may be left out."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mean.hlo").write_text(blocks("hlo mean.hlo")[0])
    exec(blocks("python")[0], {})
    commands = [part for block in blocks("") for part in re.split(r"^(?=\$ )", block, flags=re.M) if part.strip()]
    assert len(commands) == 6
    for text in commands:
        command, *lines = text.strip("\n").splitlines()
        result = heron(*command.removeprefix("$ heron ").split())
        printed = iter((result.out + result.err).splitlines())
        for line in filter(str.strip, lines):
            assert line in printed, f"{command} does not print, after the lines before it:\n{line}\n{result}"
