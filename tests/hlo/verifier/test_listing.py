"""docs/reference/verifier.md and the command `heron verify`."""

from __future__ import annotations

import json
from pathlib import Path

from heron.hlo.verifier import RULES
from heron.hlo.verifier.listing import markdown
from tests.support import heron

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "verifier.md"
BROKEN = """HloModule m

ENTRY e {
  x = f32[4]{0} parameter(0)
  a = f32[5]{0} negate(x)
  ROOT y = f32[6]{0} negate(a)
}
"""


def test_page_is_up_to_date() -> None:
    assert PAGE.read_text() == markdown(), "heron verify --rules --markdown > docs/reference/verifier.md"


def test_rules_are_listed() -> None:
    assert {r["code"] for r in json.loads(heron("verify", "--rules", "--json").out)} == {r.code for r in RULES}
    assert "HLO203" in heron("verify", "--rules").out


def test_all_problems_are_shown(tmp_path: Path) -> None:
    file = tmp_path / "broken.hlo"
    file.write_text(BROKEN)
    result = heron("verify", str(file))
    assert result.code == 2
    assert "'a' is stated as f32[5]" in result.out and "'y' is stated as f32[6]" in result.out
    problems = json.loads(heron("verify", str(file), "--json").out)["problems"]
    assert [p["code"] for p in problems] == ["HLO108", "HLO108"]


def test_modes(tmp_path: Path) -> None:
    file = tmp_path / "turned.hlo"
    file.write_text(
        BROKEN.replace("f32[5]{0}", "f32[4]{0}").replace("f32[6]{0}", "f32[4]{0}").replace("4]{0}", "4,2]{1,0}")
    )
    file.write_text(file.read_text().replace("a = f32[4,2]{1,0}", "a = f32[4,2]{0,1}"))
    assert heron("verify", str(file)).code == 0
    result = heron("verify", str(file), "--mode", "layout-sensitive")
    assert result.code == 2 and "HLO203" in result.out


def test_bad_usage() -> None:
    assert "there is no mode 'fast'" in heron("verify", "--mode", "fast", "x").err
    assert "missing argument 'FILE'" in heron("verify").err
