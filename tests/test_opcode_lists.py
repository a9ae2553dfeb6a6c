"""Facts about ops stand on their declarations: outside `heron/hlo` no new list of opcodes is written."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from heron.hlo.ir.op import all_ops

HERON = Path(__file__).parent.parent / "heron"
#: lists of two or more opcodes outside the language. The number may only fall: ask `heron.hlo.facts`, declare a trait,
#: or make a table of functions by opcode, and lower it
LIMIT = 50
_SHORTEST = 2
#: the language, and the generator of programs, which knows more of its ops than a compiler needs
_MAY_LIST = (("hlo",), ("fuzz", "programs"))


def _words(node: ast.AST) -> list[str]:
    """The words of a tuple, list or set of strings, or of ``"…".split()``."""
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        words = [e.value for e in node.elts if isinstance(e, ast.Constant) and isinstance(e.value, str)]
        return words if 5 * len(words) >= 4 * len(node.elts) else []
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "split":
        text = node.func.value
        return text.value.split() if isinstance(text, ast.Constant) and isinstance(text.value, str) else []
    return []


def opcode_lists(source: str) -> Iterator[tuple[int, list[str]]]:
    """Lines with literal lists that are opcodes for the most part, and their words."""
    opcodes = {op.name for op in all_ops()}
    for node in ast.walk(ast.parse(source)):
        words = _words(node)
        known = sum(word in opcodes for word in words)
        if known >= _SHORTEST and 5 * known >= 4 * len(words):
            yield getattr(node, "lineno", 0), words


def test_opcode_lists_only_become_fewer() -> None:
    found = [
        f"{path.relative_to(HERON.parent)}:{line}: {' '.join(words)[:80]}"
        for path in sorted(HERON.rglob("*.py"))
        if all(path.relative_to(HERON).parts[: len(folder)] != folder for folder in _MAY_LIST)
        for line, words in opcode_lists(path.read_text())
    ]
    assert len(found) <= LIMIT, "\n".join(["ask heron.hlo.facts instead of listing opcodes:", *found])


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ('x in ("add", "multiply", "tanh")', 1),
        ('x = frozenset("add multiply tanh".split())', 1),
        ('x in ("add", "multiply")', 1),
        ('x = {"add": f, "multiply": g}', 0),
        ('x in ("add", y)', 0),
        ('x = ("red", "green", "blue", "add")', 0),
    ],
)
def test_lists_are_found(source: str, count: int) -> None:
    assert len(list(opcode_lists(source))) == count
