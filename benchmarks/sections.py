"""docs/reference/benchmarks.md: every benchmark writes a section of its own and leaves the others as they are."""

from __future__ import annotations

import re
from pathlib import Path

from heron import files

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "benchmarks.md"


def put(heading: str, body: str, page: Path = PAGE) -> None:
    """Replace what stands under ``## heading`` by `body`; a section that is not there comes last."""
    text = page.read_text() if page.exists() else "# Figures\n"
    section = f"## {heading}\n\n{body.strip()}\n"
    found = re.search(rf"^## {re.escape(heading)}\n.*?(?=^## |\Z)", text, re.M | re.S)
    if found is None:
        text = f"{text.rstrip()}\n\n{section}"
    else:
        after = text[found.end() :]
        text = text[: found.start()] + section + ("\n" + after if after else "")
    files.write_text(page, text)
