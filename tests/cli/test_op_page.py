"""docs/reference/ops.md and `heron ops` against the declarations: every op says what it means, and its example is a program."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from heron.cli import op_page
from heron.hlo.ir.op import Op, all_ops
from heron.hlo.ir.types import ALL, by_name
from heron.hlo.text import parse
from heron.hlo.tools.op_examples import _LINES, element_types, line, usual_program
from tests.support import heron

PAGE = Path(__file__).parent.parent.parent / "docs" / "reference" / "ops.md"


def test_page(golden: Callable[[Path, str], None]) -> None:
    golden(PAGE, heron("ops", "--markdown").out)


@pytest.mark.parametrize("op", all_ops(), ids=lambda o: o.name)
def test_every_op_says_what_it_means(op: Op) -> None:
    assert op_page.meaning(op).endswith(".") and type(op).__doc__ is not type(op).__base__.__doc__
    assert op_page.shape_rule(op).endswith(".")
    module = parse(usual_program(op.name), verify=True)
    assert op.name in [i.opcode for i in module.entry.instructions]
    assert "T[" not in line(op.name) or element_types(op.name), "no type fits the example"


def test_examples_are_of_ops() -> None:
    assert _LINES.keys() <= {op.name for op in all_ops()}


def test_types_in_words() -> None:
    some = [by_name(n) for n in ("pred", "s8", "f16", "bf16", "f32", "f64")]
    assert op_page.types_text(some) == "pred; s8; f16, bf16, f32, f64"
    assert op_page.types_text([t for t in ALL if t.byte_size]) == "all"
    assert op_page.types_text([t for t in ALL if t.is_signed and t.name != "s1"]) == "signed integers but s1"
    assert op_page.types_text([]) == "those of the example"


def test_where_ops_run() -> None:
    found = json.loads(heron("ops", "dot", "--json").out)
    assert found["runs_on"] == {"evaluator": "", "cpu": "", "sim:sm_90": "cublaslt", "sm_90": "cublaslt"}
    assert found["attributes"]["lhs_batch_dims"]["default"] == "none"
    text = heron("ops", "infeed").out
    assert "runs on: evaluator\n" in text and "infeed(token[] t)" in text
