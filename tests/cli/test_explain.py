"""`heron explain`: each code has a cause, a cure and an example that is a message the code really has."""

from __future__ import annotations

import ast
import json
import re
from collections import defaultdict
from pathlib import Path

from heron.cli.explaining import explanations, find
from heron.hlo.verifier import RULES
from tests.support import heron

ROOT = Path(__file__).parents[2]


def _pattern(node: ast.expr) -> str:
    """What a message of this expression looks like."""
    match node:
        case ast.Constant(value=str()):
            return re.escape(node.value)
        case ast.JoinedStr():
            return "".join(_pattern(v) if isinstance(v, ast.Constant) else ".*" for v in node.values)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _pattern(left) + _pattern(right)
    return ".*"


def _messages() -> dict[str, list[str]]:
    """Of each code, patterns of the messages that the source gives it; any message where a helper is given the code."""
    found = defaultdict(list)
    for path in (ROOT / "heron").rglob("*.py"):
        tree, direct = ast.parse(path.read_text()), set()
        for node in ast.walk(tree):
            match node:
                case ast.Call(func=function, args=[ast.Constant(value=str()) as code, what, *_]):
                    if getattr(function, "id", "").endswith("Error"):
                        direct.add(code)
                        found[code.value].append(_pattern(what))
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in direct:
                if re.fullmatch(r"[A-Z]+\d{3}", node.value):
                    found[node.value].append(".*")
    return found


def test_every_code_has_cause_cure_and_example() -> None:
    known, messages, wrong = explanations(), _messages(), []
    assert {r.code for r in RULES} <= known.keys()
    for e in known.values():
        first, _, _ = e.example.partition("\n")
        assert e.cause and e.cure and e.area, e.code
        if not first.startswith(f"error[{e.code}]: "):
            wrong.append(f"{e.code}: no example")
        elif e.code in messages and not any(re.match(p, first.partition(": ")[2]) for p in messages[e.code]):
            wrong.append(f"{e.code}: nothing says '{first}'")
    assert not wrong, "\n".join(wrong)


def test_examples_fit_the_page() -> None:
    for e in explanations().values():
        lines = e.example.splitlines()
        assert len(lines) <= 12 and max(map(len, lines)) <= 120, e.code
        assert not re.search(r"/tmp|/home|/root|site-packages", e.example), e.code


def test_one_code() -> None:
    result = heron("explain", "hlo010")
    assert result.code == 0
    assert "cause  The operands or attributes of an op break its shape rule." in result.out
    assert "    error[HLO010]: " in result.out
    assert json.loads(heron("explain", "HLO010", "--json").out) == find("HLO010").to_json()


def test_links_of_the_page_are_plain_text() -> None:
    assert "](" not in find("RUN075").cure and "simulator.md" in find("RUN075").cure


def test_an_area_and_all() -> None:
    area = heron("explain", "TUNE").out
    assert "TUNE001" in area and "CLI001" not in area
    assert len(json.loads(heron("explain", "--json").out)) == len(explanations())


def test_an_unknown_code() -> None:
    result = heron("explain", "HLO999")
    assert result.code == 2 and "error[CLI070]" in result.err and "near it are HLO" in result.err


def test_errors_point_to_it() -> None:
    result = heron("run", "no.hlo")
    assert result.code == 2 and result.err.rstrip().endswith("more: heron explain CLI010")


def test_an_error_without_a_hint_has_the_cure_of_its_code(tmp_path: Path) -> None:
    """Those about shardings have the numbers of the case, and a cure that is that of all of their kind."""
    file = tmp_path / "m.hlo"
    file.write_text("HloModule m\nENTRY e { ROOT x = f32[8] parameter(0) }")
    for asked in ("0=z", "0=x,x", "3=x"):
        result = heron("shard", str(file), "--mesh", "x=2", "--in", asked, "--json")
        cure = find("CLI061").cure
        hint = cure[0].lower() + cure[1:].rstrip(".")
        assert f"\n  try: {hint}\n" in result.err and json.loads(result.out)["error"]["try"] == hint


def test_a_hint_of_the_case_comes_before_the_cure_of_the_code(tmp_path: Path) -> None:
    file = tmp_path / "m.hlo"
    file.write_text("HloModule m\nENTRY e { ROOT x = f32[8] parameter(0) }")
    assert heron("shard", str(file), "--mesh", "x=3", "--in", "0=x").err.count("\n  try: fewer or smaller axes\n") == 1
