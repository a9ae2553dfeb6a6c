"""Docstrings begin with the thing they describe, by the noun of the field, not with "What …", "Which …" or "How …"."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

HERON = Path(__file__).parent.parent / "heron"
_FREE_RELATIVE = re.compile(r"(What|Which|Who|Whose|Where|How|Those|Whoever)\b")

#: docstrings of each folder that may begin so; a number here only falls
BUDGET = {"analysis": 103, "backends": 30, "codegen": 110, "hlo": 83, "runtime": 52}


def _first_lines() -> Iterator[tuple[Path, str]]:
    for path in sorted(HERON.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and (text := ast.get_docstring(node)):
                yield path.relative_to(HERON), text.partition("\n")[0]


def test_docstrings_name_the_thing() -> None:
    found = [(path, line) for path, line in _first_lines() if _FREE_RELATIVE.match(line)]
    count = Counter(path.parts[0] for path, _ in found)
    over = {folder: n for folder, n in count.items() if n > BUDGET.get(folder, 0)}
    lines = "\n".join(f"heron/{path}: {line}" for path, line in found if path.parts[0] in over)
    assert not over, f"name the thing, such as 'The bytes of …' for 'How many bytes …':\n{lines}"
