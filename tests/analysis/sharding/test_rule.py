"""Sharding rules of ops: their text, and that every op has one or says why not."""

from __future__ import annotations

import pytest

import heron
from heron.analysis.sharding.rule import parse, symbol
from heron.analysis.sharding.rules import RULES, WITHOUT, rule_of
from heron.errors import HeronError
from heron.hlo.ir.op import all_ops

TEXTS = (
    "([], [])->([])",
    "([i, k], [k, j])->([i, j]) {i=8, j=16, k=32} reduction={k}",
    "([ij, k, l])->([i, jk, l]) {i=2, j=4, k=4, l=5}",
    "([i, j])->([i, k]) {i=2, j=3, k=4} need_replication={j, k} blocked_propagation={k}",
    "([i, j, k, l])->([i, k, l]) {i=2, j=3, k=5, l=7} reduction={j} need_replication={i, l} permutation={k}, custom",
)


@pytest.mark.parametrize("text", TEXTS)
def test_text_is_read_and_written(text: str):
    assert str(parse(text)) == text
    assert str(parse(f"#sdy.op_sharding_rule<{text}>")) == text


def test_the_nineteenth_factor_has_a_number():
    names = [symbol(n) for n in range(20)]
    assert names[17:] == ["z", "z_1", "z_2"]
    text = f"([{', '.join(names[:18])}z_1])->([z_2]) {{{', '.join(f'{n}=2' for n in names)}}}"
    rule = parse(text)
    assert rule.operands[0][17] == (17, 18)
    assert str(rule) == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[i]->[i]", "no sharding rule"),
        ("([i])->([i])", "no size"),
        ("([i])->([i]) {j=2}", "no size of a factor"),
        ("([i, i])->([i]) {i=2}", "twice"),
        ("([i])->([i]) {i=2, j=3}", "in no array"),
        ("([a])->([i]) {i=2}", "no dimension"),
        ("([i])->([i]) {i=2} sharded={i}", "no kind"),
        ("([i])->([i]) {i=2} reduction={i} permutation={i}", "two kinds"),
    ],
)
def test_a_text_that_is_no_rule_is_refused(text: str, said: str):
    with pytest.raises(HeronError, match="HLO027") as caught:
        parse(text)
    assert said in str(caught.value)


def test_every_op_has_a_rule_or_says_why_not():
    missing = [op.name for op in all_ops() if op.name not in RULES and op.name not in WITHOUT]
    assert not missing, f"no sharding rule for: {', '.join(missing)}"
    assert not set(RULES) & set(WITHOUT)
    assert all(WITHOUT.values())


def test_arrays_of_a_copied_tuple_have_factors_of_their_own():
    text = """HloModule m

ENTRY e {
  a = f32[4] parameter(0)
  b = f32[2,3] parameter(1)
  t = (f32[4], f32[2,3]) tuple(a, b)
  ROOT c = (f32[4], f32[2,3]) copy(t)
}
"""
    assert str(rule_of(heron.parse(text).entry.root)) == "([i], [j, k])->([i], [j, k]) {i=4, j=2, k=3}"
