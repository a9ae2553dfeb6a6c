"""Every rule, broken in one small text and kept in the one beside it."""

from __future__ import annotations

import pytest

from heron.errors import HeronError, Span
from heron.hlo.text import parse
from heron.hlo.verifier import RULES, Stage, problems
from tests.hlo.verifier.cases import ALL, Case


@pytest.mark.parametrize("case", ALL, ids=lambda c: c.name)
def test_rule(case: Case) -> None:
    found = list(problems(parse(case.broken), case.options))
    assert {p.code for p in found} == {case.code}, [str(p.error()) for p in found] or "no problem was found"
    texts = [str(p.error()) for p in found]
    assert any(case.says in text for text in texts), texts
    kept = [str(p.error()) for p in problems(parse(case.kept), case.options)]
    assert kept == []


def test_every_rule_has_a_case() -> None:
    by_hand = {r.code for r in RULES if r.stage is not Stage.USES} | BY_HAND
    assert {r.code for r in RULES} - {c.code for c in ALL} - by_hand == set()


#: what the parser or `Module` would not let through, see tests/hlo/test_verifier.py
BY_HAND = {
    "HLO160",
    "HLO109",
    "HLO110",
    "HLO112",
    "HLO116",
    "HLO118",
    "HLO119",
    "HLO126",
    "HLO132",
    "HLO190",
    "HLO191",
    "HLO200",
}


def test_rules_are_declared_well() -> None:
    codes = [r.code for r in RULES]
    assert codes == sorted(codes) and len(set(codes)) == len(codes)
    for r in RULES:
        assert r.summary.endswith("."), r.code
        assert not (r.opcodes and r.carrying), r.code


def test_findings_are_underlined() -> None:
    case = next(c for c in ALL if c.code == "HLO141")
    with pytest.raises(HeronError) as caught:
        parse(case.broken, "m.hlo", verify=True)
    assert isinstance(caught.value.where, Span)
    assert "all-reduce" in caught.value.where.text
