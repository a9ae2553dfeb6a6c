"""Commands in README and docs print what the pages say: every ``console`` block is run. Times may differ."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import heron

ROOT = Path(__file__).parent.parent
#: not pages that are mostly measured times; add-a-pass.md has a test of its own
PAGES = [
    p
    for p in [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
    if "```console\n$ heron" in p.read_text() and p.stem not in ("add-a-pass", "cpu", "profile")
]
#: a measured time, which is another one at each run, or a line of the source
_TIME = re.compile(r"(compiled in|ran in) [\d.,]+ \w+|^compile .*$|\w+\.py:\d+", re.M)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_console_blocks(page: Path, golden: Callable[[Path, str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)

    def run(block: re.Match[str]) -> str:
        command = block[1]
        program, *arguments = shlex.split(command)
        assert program == "heron", command
        result = heron(*arguments)
        now = f"```console\n$ {command}\n{result.out}{result.err}```"
        return block[0] if _TIME.sub("", now) == _TIME.sub("", block[0]) else now

    golden(page, re.sub(r"```console\n\$ ([^\n]*)\n.*?```", run, page.read_text(), flags=re.S))
