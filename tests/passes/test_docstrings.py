"""Every pass and every rewrite rule does on its docstring's example what the docstring says."""

from __future__ import annotations

import difflib

import numpy as np
import pytest

import heron.passes.simplify.algebraic  # noqa: F401  (fills RULES)
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.hlo.verifier import verify
from heron.options import Options
from heron.passes.framework import registry
from heron.passes.framework.base import Pass
from heron.passes.framework.canonical import nameless_text, same_program
from heron.passes.framework.checks import ValueCheck
from heron.passes.framework.context import PassContext
from heron.passes.framework.docs import doc_of
from heron.passes.rewriting.driver import rewrite
from heron.passes.rewriting.rules import RULES, Rule, table
from tests.passes.values import check_on_special_values, root_type

PASSES = registry.all_passes()


def assert_same(found: Module, wanted: Module) -> None:
    if same_program(found, wanted):
        return
    diff = difflib.unified_diff(
        nameless_text(wanted).splitlines(), nameless_text(found).splitlines(), "docstring", "result", lineterm=""
    )
    pytest.fail("\n".join(["not what the docstring says:", *diff, "", str(found)]))


@pytest.mark.parametrize("cls", PASSES, ids=lambda c: c.name)
def test_pass_example(cls: type[Pass]) -> None:
    doc = doc_of(cls)
    assert doc.summary and doc.example is not None, f"{cls.name} needs a docstring with an example"
    module = parse(doc.example.before)
    verify(module)
    before = ValueCheck(module)
    assert PassContext(Options()).run_pass(cls(), module) == (doc.example.after != doc.example.before)
    verify(module)
    if doc.example.after is not None:
        wanted = parse(doc.example.after)
        assert_same(module, wanted)
        if wanted.header or wanted.is_scheduled:
            assert (module.header, module.is_scheduled) == (wanted.header, wanted.is_scheduled)
    before.after(cls.name, module)
    assert not cls().run(module, PassContext()), "a second run changed something again"


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.name)
def test_rule_example(rule: Rule) -> None:
    doc = doc_of(rule.apply)
    assert rule.law and doc.example is not None and doc.example.after is not None, (
        f"rule {rule.name} needs a law and an example"
    )
    module, wanted = parse(doc.example.before), parse(doc.example.after)
    verify(module)
    original = module.clone()
    layouts = rule.layouts == "only"
    assert rewrite(module.entry, table([rule], layouts), layouts), "the rule did not fire on its own example"
    verify(module)
    assert_same(module, wanted)
    check_on_special_values(original, module, rule.math_of(root_type(module)))


def test_rule_names_are_unique() -> None:
    names = [r.name for r in RULES]
    assert len(names) == len(set(names))
    assert np.all([{r.math, r.floats} <= {"exact", "reassociating", "finite-only"} for r in RULES])
