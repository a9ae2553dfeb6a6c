"""Docstrings begin with the thing they describe, by the noun of the field, not with "What …", "Which …" or "How …"."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

HERON = Path(__file__).parent.parent / "heron"
_FREE_RELATIVE = re.compile(r"(What|Which|Who|Whose|Where|How|Those|Whoever)\b")

#: docstrings of heron that may begin so: it only falls
BUDGET = 0


def _first_lines() -> Iterator[tuple[Path, str]]:
    for path in sorted(HERON.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and (text := ast.get_docstring(node)):
                yield path.relative_to(HERON), text.partition("\n")[0]


def test_docstrings_name_the_thing() -> None:
    found = [f"heron/{path}: {line}" for path, line in _first_lines() if _FREE_RELATIVE.match(line)]
    listed = "\n".join(found)
    assert len(found) <= BUDGET, f"name the thing, such as 'The bytes of …' for 'How many bytes …':\n{listed}"
