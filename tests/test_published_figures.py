"""docs/reference/published.md: complete, with a source for every figure, and made from what the model says now."""

from __future__ import annotations

import pytest

pytest.importorskip("jax")

from benchmarks.gpu.published.__main__ import PAGE
from benchmarks.gpu.published.table import MOST, Row, data, page, rows


@pytest.fixture(scope="module")
def found() -> list[Row]:
    return rows()


def test_every_figure_has_its_source() -> None:
    cases, sources = data()["cases"], data()["sources"]
    assert {case["source"] for case in cases} == set(sources)
    assert all(title and url.startswith("https://") for title, url in sources.values())
    assert all(case["where"] and case["figure"] > 0 for case in cases)


def test_the_model_is_near_or_there_is_a_reason(found: list[Row]) -> None:
    assert len({row.program for row in found}) >= 15
    for row in found:
        assert row.is_near != bool(row.reason), (row.program, row.sizes, row.ratio, MOST)


def test_page_is_what_the_command_writes(found: list[Row]) -> None:
    assert page(found) == PAGE.read_text(), "python -m benchmarks.gpu.published --write"
