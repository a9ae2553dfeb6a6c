"""The benchmark of the language runs, and sections of the page of figures are written one by one."""

from __future__ import annotations

from pathlib import Path

from benchmarks import language, sections


def test_every_step_runs() -> None:
    rows = language.measure("softmax", repeats=1)
    assert [r.step for r in rows] == ["parse", "print", "verify", "clone", "hash", "compare", "proto out", "proto in"]
    assert all(r.heron > 0 for r in rows)
    assert "proto in" in language.section("softmax", rows, 1)


def test_sections_are_kept_apart(tmp_path: Path) -> None:
    page = tmp_path / "figures.md"
    sections.put("One", "first\n", page)
    sections.put("Two", "second", page)
    assert page.read_text() == "# Figures\n\n## One\n\nfirst\n\n## Two\n\nsecond\n"
    sections.put("One", "other", page)
    assert page.read_text() == "# Figures\n\n## One\n\nother\n\n## Two\n\nsecond\n"
