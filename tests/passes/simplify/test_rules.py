"""Every rule of the algebraic simplifier, on its docstring's example and on the same example in other types."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

import heron.passes.simplify.algebraic  # noqa: F401  (fills RULES)
from heron.errors import HeronError
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.hlo.verifier import verify
from heron.passes.framework.docs import doc_of
from heron.passes.rewriting.driver import rewrite
from heron.passes.rewriting.rules import RULES, Rule, table
from tests.passes.values import check_on_special_values, root_type

#: what an example's types are exchanged for: a rule either leaves such a program alone or keeps its values
OTHER_TYPES = {
    "f32": ("f64", "f16", "bf16", "f8e4m3fn", "s32", "u8", "pred"),
    "s32": ("s8", "u32", "f32", "s4"),
    "u32": ("u8", "s32", "f32"),
    "pred": ("u8", "s32"),
    "c64": ("c128",),
}


#: types with so few bits that what holds but for rounding and overflow hardly holds at all
NARROW = ("f16", "bf16", "f8e4m3fn")


def in_other_types(text: str, math: str) -> list[Module]:
    """The programs that are well formed with one element type exchanged for another."""
    found = []
    for old, others in OTHER_TYPES.items():
        if not re.search(rf"\b{old}\[", text):
            continue
        for new in others:
            if math != "exact" and new in NARROW:
                continue
            try:
                module = parse(re.sub(rf"\b{old}\[", f"{new}[", text))
                verify(module)
            except HeronError:
                continue
            found.append(module)
    return found


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.name)
def test_other_types(rule: Rule) -> None:
    example = doc_of(rule.apply).example
    assert example is not None
    for module in in_other_types(example.before, rule.floats):
        original, math = module.clone(), rule.math_of(root_type(module))
        if rewrite(module.entry, table([rule], rule.layouts == "only"), rule.layouts == "only"):
            verify(module)
            check_on_special_values(original, module, math, few=True)


@pytest.mark.parametrize(
    "first",
    [
        "from heron.passes.framework.registry import get; get('algebraic-simplifier').rules()",
        "from heron.passes.framework import loading",
    ],
)
def test_whoever_asks_first_finds_every_rule(first: str) -> None:
    """In a process of its own: here other modules have loaded the rules."""
    count = f"{first}; from heron.passes.rewriting.rules import RULES; print(len(RULES))"
    done = subprocess.run([sys.executable, "-c", count], capture_output=True, text=True, check=True)
    assert int(done.stdout) == len(RULES)
