"""docs/change/add-an-op.md shows the code that is there, and the commands' output."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support import heron

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "change" / "add-an-op.md").read_text()


def test_code_is_the_compilers() -> None:
    files = re.findall(r"`(heron/[\w/]+\.py)` \|", PAGE)
    source = "\n".join((ROOT / name).read_text() for name in files)
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    assert len(files) <= 4 and blocks
    for block in blocks:
        assert block in source


def test_command_gives_what_is_shown() -> None:
    (shown,) = re.findall(r"```console\n\$ heron ops atan\n(.*?)```", PAGE, re.S)
    assert heron("ops", "atan").out.rstrip() == shown.rstrip()
