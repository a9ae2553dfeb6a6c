"""Every rule, broken in one small text and kept in the one beside it."""

from __future__ import annotations

import pytest

from heron.errors import HeronError, Span
from heron.hlo.text import parse
from heron.hlo.verifier import RULES, problems
from tests.hlo import test_verifier as structure
from tests.hlo.verifier import test_by_hand
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
    by_hand = {code for _, code, _ in structure.BROKEN} | {code for _, _, code, _ in test_by_hand.BROKEN}
    assert {r.code for r in RULES} - {c.code for c in ALL} - by_hand == set()


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
