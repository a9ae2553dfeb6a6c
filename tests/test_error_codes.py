"""An error code means one thing: it belongs to one part of heron, and one page of the documentation explains it."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parent.parent
CODE = re.compile(r"[A-Z]{2,6}\d{3}")

#: codes that several folders raise, and the one thing they mean
SHARED = {
    "BUF003": "a schedule is missing or out of date",
    "GEN002": "there is no code generation for this here",
    "GEN010": "a product is not in the form a matrix library takes",
    "GEN110": "a kernel's text cannot be read",
    "RUN010": "no memory for what a program needs",
    "RUN001": "another number of arguments than the program takes",
    "RUN002": "an argument of another element type",
    "RUN003": "an argument of another shape",
}


def _raised() -> dict[str, set[str]]:
    """The parts of heron, `runtime/host` or `errors.py`, in which an error of a code is made."""
    found = defaultdict(set)
    for path in sorted((ROOT / "heron").rglob("*.py")):
        parts = path.relative_to(ROOT / "heron").parts
        part = "/".join(parts[:2] if parts[0] == "runtime" else parts[:1])
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or not node.args or not isinstance(node.args[0], ast.Constant):
                continue
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            code = node.args[0].value
            if isinstance(code, str) and CODE.fullmatch(code) and "Error" in name:
                found[code].add(part.removesuffix(".py"))
    return found


def test_a_code_belongs_to_one_part() -> None:
    several = {code: sorted(parts) for code, parts in _raised().items() if len(parts) > 1}
    assert {c: p for c, p in several.items() if c not in SHARED} == {}
    assert set(SHARED) <= set(several), "no longer shared"


def test_a_code_is_explained_once() -> None:
    rows = defaultdict(list)
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for row in re.findall(r"^\|([^|]*)\|", page.read_text(), re.M):
            words = [w.strip(" `") for w in row.split(",")]
            if words and all(CODE.fullmatch(w) for w in words):
                for word in words:
                    rows[word].append(page.name)
    assert len(rows) > 100
    assert {code: pages for code, pages in rows.items() if len(pages) > 1} == {}
