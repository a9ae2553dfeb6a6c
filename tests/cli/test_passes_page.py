"""docs/reference/passes.md and `heron passes` against the registry."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from heron.cli import pass_page
from heron.passes.framework import registry
from heron.passes.framework.base import Constraint
from tests.support import heron

ROOT = Path(__file__).parent.parent.parent


def test_page(golden: Callable[[Path, str], None]) -> None:
    golden(ROOT / "docs" / "reference" / "passes.md", heron("passes", "--markdown").out)


def test_a_pass_tells_where_it_stands() -> None:
    text = heron("passes", "transpose-folding").out
    assert "pipelines: " in text and "gpu-optimise" in text
    assert "  after dot-decomposer: it folds only into dots with one free dimension a side" in text
    document = json.loads(heron("passes", "constant-folding", "--json").out)
    assert document["options"]["max_elements"] == "1024"
    assert "simplify" in document["pipelines"] and "cpu" not in document["pipelines"]


@pytest.mark.parametrize("target", ["cpu", "gpu"])
def test_pipelines_print_the_same_every_time(target: str) -> None:
    text = heron("passes", "--pipeline", target).out
    assert text == heron("passes", target).out
    assert text.startswith(f"{target}:\n  hlo:\n    partition:\n")
    assert " at 0x" not in text
    for stage in ("partition", "optimise", "layout", "fusion", "schedule"):
        assert registry.about_pipeline(f"{target}-{stage}")


def test_an_order_reads_from_both_sides() -> None:
    c = Constraint("dce", "cse", "it is tidier", all_runs=True)
    assert pass_page.order_text(c, "dce") == "before `cse`, always: it is tidier"
    assert pass_page.order_text(c, "cse") == "after `dce`, always: it is tidier"


def test_users_passes_are_told_of() -> None:
    mine = ROOT / "examples" / "my_passes.py"
    assert "Replaces clamps" in heron("passes", "clamp-expander", "--load", mine).out
    assert "clamp-expander" in heron("passes", "--load", mine).out
    assert "clamp-expander" not in heron("passes").out


def test_an_unknown_pipeline() -> None:
    result = heron("passes", "--pipeline", "gpo")
    assert result.code == 2 and "error[PASS006]" in result.err
