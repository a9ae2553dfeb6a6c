"""Steps of pipelines that are loaded when a program needs them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from heron.errors import HeronError
from heron.hlo.text import parse
from heron.passes.framework import registry
from heron.passes.framework.context import PassContext
from heron.passes.framework.late import Late
from heron.passes.framework.pipeline import Pipeline, check_order

TEXT = "HloModule m\nENTRY e { a = f32[8] parameter(0)  ROOT b = f32[8] tanh(a) }"


@pytest.mark.parametrize("name", registry.pipelines())
def test_they_are_what_the_pipeline_says_and_in_order(name: str) -> None:
    pipeline = registry.pipeline(name)
    for step in pipeline.flatten():
        if isinstance(step, Late):
            assert (step.loaded.name, step.looks_for) == (step.name, step.loaded.looks_for)
            assert type(step.loaded).__module__ == f"heron.passes.{step.place}"
    check_order(pipeline)


def test_constraints_count_from_when_it_is_loaded() -> None:
    wrong = Pipeline("wrong", [Late("expand.topk_decomposer"), Late("expand.topk_rewriter")])
    for step in wrong.steps:
        assert isinstance(step, Late) and step.loaded
    with pytest.raises(HeronError, match="PASS002"):
        check_order(wrong)


def test_a_program_loads_only_what_it_has_ops_for() -> None:
    files = "while_loop_simplifier", "qr_expander", "all_gather_combiner"
    code = f"import sys, heron; heron.compile({TEXT!r}); print([m for m in sys.modules if m.endswith({files})])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_it_does_what_the_pass_does_with_its_options() -> None:
    late = Late("simplify.cse", layout_sensitive=True)
    assert str(late) == str(late.loaded) != str(Late("simplify.cse"))
    module = parse(TEXT.replace("tanh(a)", "add(c, d)").replace("ROOT", "c = f32[8] tanh(a)  d = f32[8] tanh(a)  ROOT"))
    assert late.run(module, PassContext()) and module.instruction_count() == 3
    assert not late.run(module, PassContext())


def test_an_option_the_pass_lacks_is_an_error() -> None:
    with pytest.raises(HeronError, match="PASS005"):
        _ = Late("simplify.dce", wrong=1).loaded
