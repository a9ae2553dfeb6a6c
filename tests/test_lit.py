"""Every lit test under ``tests/lit``: its RUN lines, run in this process so that hundreds take seconds.

``lit tests/lit`` runs the same files as separate commands.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import run_line

LIT = Path(__file__).parent / "lit"
FILES = sorted(p for p in LIT.rglob("*") if p.suffix in (".hlo", ".mlir", ".test"))


@pytest.mark.parametrize("file", FILES, ids=lambda p: str(p.relative_to(LIT)))
def test_lit(file: Path) -> None:
    lines = _run_lines(file.read_text())
    assert lines, "no RUN line"
    for line in lines:
        result = run_line(line, file)
        if result.code:
            pytest.fail(f"RUN: {line}\n{result.err}{result.out}", pytrace=False)


def _run_lines(text: str) -> list[str]:
    """The commands of a file, with lines that end in a backslash joined."""
    found: list[str] = []
    for line in text.splitlines():
        _, mark, command = line.partition("RUN:")
        if mark and found and found[-1].endswith("\\"):
            found[-1] = found[-1][:-1] + command.strip()
        elif mark:
            found.append(command.strip())
    return found
