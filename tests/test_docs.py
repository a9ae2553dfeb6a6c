"""What the docs say is so: commands, links, dependency ranges, options, the Python example."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from heron import Options
from tests.support import WORKLOADS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
PAGES = sorted(p for p in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")])


def _blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.S)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#]+)", page.read_text()):
        assert link.startswith("http") or (page.parent / link).exists(), link


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_named_files_are_there(page: Path) -> None:
    """Files of this repository, whole or from a folder on (`stablehlo/lexer.py`); FILE and the like stand for any."""
    text = page.read_text()
    named = re.findall(r"`((?:heron|benchmarks|docs)/[a-z0-9_/.-]+|[a-z0-9_]+/[a-z0-9_/]+\.py)`", text)
    gone = [n for n in named if not (ROOT / n).exists() and not n.endswith(".py")]
    assert gone + [n for n in named if n.endswith(".py") and not any(f"/{f}".endswith(f"/{n}") for f in _files())] == []


@functools.cache
def _files() -> list[str]:
    found = (p for folder in ("heron", "tests", "benchmarks", "examples") for p in (ROOT / folder).rglob("*.py"))
    return [str(p.relative_to(ROOT)) for p in found]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_named_modules_are_there(page: Path) -> None:
    for module in re.findall(r"python -m ((?:heron|tests|benchmarks)[\w.]*)", page.read_text()):
        place = ROOT.joinpath(*module.split("."))
        assert place.with_suffix(".py").exists() or (place / "__main__.py").exists(), module


def test_ci_runs_the_readmes_test_command() -> None:
    command = _blocks("sh")[1].strip()
    assert command.endswith("pytest -n 2 -q")
    assert (ROOT / ".ci" / "run").read_text().rstrip().endswith(command)


def test_readmes_python_example(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    exec(compile(_blocks("python")[0], "README.md", "exec"), {})
    assert "kernel launches" in capsys.readouterr().out


def test_examples_are_the_workloads() -> None:
    for path in (ROOT / "examples").iterdir():
        if path.suffix == ".hlo":
            same = WORKLOADS / "hlo" / path.name
        elif path.suffix == ".npz":
            same = WORKLOADS / "goldens" / path.name.replace(".small", "")
        else:
            continue
        assert path.read_bytes() == same.read_bytes(), path.name


def test_dependencies_page_says_what_pyproject_says() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    page = (ROOT / "docs" / "change" / "dependencies.md").read_text()
    rows = {}
    for line in page.splitlines():
        cells = [c.strip() for c in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) in (5, 6):
            rows[cells[0]] = cells
    for requirement in project["dependencies"]:
        name, version = re.fullmatch(r"([\w-]+)(.*)", requirement).groups()  # type: ignore[union-attr]
        assert rows[name][1] == version, name
    for extra, requirements in project["optional-dependencies"].items():
        for requirement in requirements:
            if requirement.startswith("heron["):
                continue
            name, version = re.fullmatch(r"([\w-]+)([^;]*).*", requirement).groups()  # type: ignore[union-attr]
            assert rows[name][1:3] == [extra, version], name
            rows.pop(name)


def test_options_page(golden: Callable[[Path, str], None]) -> None:
    rows = "\n".join(f"| `{n}` | `{e}` | {d} | {doc} |" for n, e, d, doc in Options.table())
    text = f"""# Options

Fields of `heron.Options`; on the command line `-O NAME=VALUE`. A `HERON_*` variable gives the default for the process.
A value outside the listed ones is an error. So is a variable whose name looks like a misspelt option.

| option | environment | default | meaning |
|---|---|---|---|
{rows}
"""
    golden(ROOT / "docs" / "reference" / "options.md", text)


def test_architecture_page_names_every_folder() -> None:
    page = (ROOT / "docs" / "understand" / "architecture.md").read_text()
    named = re.findall(r"^\| `(\w+)` \|", page, re.M)
    there = sorted(p.name for p in (ROOT / "heron").iterdir() if p.is_dir() and p.name != "__pycache__")
    assert sorted(named) == there


def test_every_page_is_in_the_reading_order() -> None:
    """docs/README.md links every page of the four folders."""
    index = (ROOT / "docs" / "README.md").read_text()
    linked = {(ROOT / "docs" / link).resolve() for link in re.findall(r"\]\(([^)#]+)", index)}
    pages = {page for page in ROOT.glob("docs/*/*.md")}
    assert sorted(str(p.relative_to(ROOT)) for p in pages - linked) == []
