"""Commands in the docs print what the docs say: every ``console`` block is run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import heron

ROOT = Path(__file__).parent.parent
#: pages without times in their output; add-a-pass.md has a test of its own
PAGES = [
    p
    for p in sorted(ROOT.glob("docs/**/*.md"))
    if "```console\n$ heron" in p.read_text() and p.stem not in ("add-a-pass", "cpu", "profile")
]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_console_blocks(page: Path, golden: Callable[[Path, str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)

    def run(block: re.Match[str]) -> str:
        command = block[1]
        program, *arguments = shlex.split(command)
        assert program == "heron", command
        result = heron(*arguments)
        return f"```console\n$ {command}\n{result.out}{result.err}```"

    golden(page, re.sub(r"```console\n\$ ([^\n]*)\n.*?```", run, page.read_text(), flags=re.S))
