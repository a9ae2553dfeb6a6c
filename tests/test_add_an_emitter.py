"""docs/change/add-an-emitter.md: its code is the compiler's, and the files it names exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "change" / "add-an-emitter.md").read_text()
CODE = "\n".join(p.read_text() for p in sorted((ROOT / "heron" / "codegen" / "emitters").rglob("*.py")))


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", PAGE, re.S))
def test_code_is_the_compilers(block: str) -> None:
    assert block in CODE


def test_files_exist() -> None:
    named = re.findall(r"`((?:heron|tests|docs)/[^`]*?\.(?:py|md))`", PAGE)
    missing = [name for name in named if "KIND" not in name and not (ROOT / name).exists()]
    assert named and not missing
