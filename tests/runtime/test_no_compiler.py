"""Runtime runs programs and imports no compiler, deferred imports and those for type checkers included."""

from __future__ import annotations

import ast
from pathlib import Path

HERON = Path(__file__).parents[2] / "heron"
#: what a program that is compiled already has no need of
COMPILER = ("codegen", "passes", "backends", "autotune", "frontends", "archive", "pjrt", "cli")


def imports(path: Path) -> set[str]:
    """Full names of the modules, and of what is imported from them, anywhere in a file."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{a.name}" for a in node.names}
    return found


def test_runtime_imports_no_compiler() -> None:
    above = tuple(f"heron.{folder}." for folder in COMPILER)
    wrong = [
        f"{path.relative_to(HERON)}: {name}"
        for path in sorted((HERON / "runtime").rglob("*.py"))
        for name in sorted(imports(path))
        if f"{name}.".startswith(above)
    ]
    assert not wrong


def test_shared_thunks_know_no_cuda() -> None:
    shared = [p for p in (HERON / "runtime").glob("*.py")]
    assert not [p.name for p in shared if any(n.startswith("heron.runtime.cuda") for n in imports(p))]
