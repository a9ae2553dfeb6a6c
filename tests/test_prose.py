"""Docstrings, and their sentences, name their subject by the noun of the field, not by "What …", "Which …" or "How …"."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

HERON = Path(__file__).parent.parent / "heron"
_FREE_RELATIVE = re.compile(r"(What|Which|Who|Whose|Where|How|Those|Whoever)\b")

#: docstrings of heron that may begin so: it only falls
BUDGET = 0
#: a later sentence whose subject is such a clause; the number of these only falls
_LATER = re.compile(r"[.:;]\s+(?:What|Whoever|Which) [a-z][^.;]*")
LATER_BUDGET = 5


def _docstrings() -> Iterator[tuple[Path, str]]:
    for path in sorted(HERON.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and (text := ast.get_docstring(node)):
                yield path.relative_to(HERON), text


def test_docstrings_name_the_thing() -> None:
    first = ((path, text.partition("\n")[0]) for path, text in _docstrings())
    found = [f"heron/{path}: {line}" for path, line in first if _FREE_RELATIVE.match(line)]
    listed = "\n".join(found)
    assert len(found) <= BUDGET, f"name the thing, such as 'The bytes of …' for 'How many bytes …':\n{listed}"


def test_sentences_name_their_subject() -> None:
    found = [f"heron/{path}{sentence}" for path, text in _docstrings() for sentence in _LATER.findall(text)]
    assert len(found) <= LATER_BUDGET, "name the thing that the sentence is about:\n" + "\n".join(found)
