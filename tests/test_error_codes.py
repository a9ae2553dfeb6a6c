"""An error code means one thing: it belongs to one part of heron, and one page explains it, with cause and cure."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

from heron.errors import HeronError

ROOT = Path(__file__).parent.parent
CODE = re.compile(r"[A-Z]{2,6}\d{3}")

#: codes that several folders raise, and the one thing they mean
SHARED = {
    "BUF003": "a schedule is missing or out of date",
    "CLI037": "a command with a place holder is malformed, or cannot run",
    "EVAL001": "the evaluator has no definition of this op",
    "EVAL004": "a collective does not fit the devices or the sizes",
    "EVAL008": "a slice lies outside its operand",
    "GEN002": "there is no code generation for this here",
    "GEN010": "a product is not in the form a matrix library takes",
    "GEN110": "a kernel's text cannot be read",
    "RUN010": "no memory for what a program needs",
    "RUN001": "another number of arguments than the program takes",
    "RUN002": "an argument of another element type",
    "RUN003": "an argument of another shape",
    "RUN083": "the devices of this process are not those that the program needs",
    "RUN089": "several devices cannot run here",
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


def _explained() -> dict[str, list[str]]:
    """The pages that explain each code: those with a row of a table for it."""
    rows = defaultdict(list)
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for row in re.findall(r"^\|([^|]*)\|", page.read_text(), re.M):
            words = [w.strip(" `") for w in row.split(",")]
            if words and all(CODE.fullmatch(w) for w in words):
                for word in words:
                    rows[word].append(page.name)
    return rows


def _written() -> set[str]:
    """Every code that stands in the source as a string of its own."""
    return {
        node.value
        for path in (ROOT / "heron").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and CODE.fullmatch(node.value)
    }


def test_every_code_is_explained_once() -> None:
    """Rules of the verifier on the page of the rules, all others in docs/reference/errors.md, with cause and cure."""
    pages = _explained()
    assert {code: on for code, on in pages.items() if on not in (["errors.md"], ["verifier.md"])} == {}
    assert sorted(_written() - pages.keys()) == [], "codes without an entry in docs/reference/errors.md"
    assert sorted(pages.keys() - _written()) == [], "entries for codes that nothing raises"


def test_every_area_is_listed() -> None:
    page = (ROOT / "docs" / "reference" / "errors.md").read_text()
    letters = {code.rstrip("0123456789") for code in _written()}
    assert set(re.findall(r"^\| ([A-Z]+) \|", page, re.M)) == letters
    assert set(re.findall(r"^## ([A-Z]+):", page, re.M)) == letters
    for area in letters:
        assert re.search(rf"\b{area}\b", HeronError.__doc__ or ""), area
