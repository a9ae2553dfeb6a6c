"""Passes and rules from users' files: what comes in, what is refused and where, and that it all goes out again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from heron.errors import HeronError, Span
from heron.hlo.text import parse
from heron.hlo.verifier import verify
from heron.options import Options
from heron.passes.framework import registry
from heron.passes.framework.context import PassContext
from heron.passes.framework.docs import doc_of
from heron.passes.framework.loading import load, loaded
from heron.passes.rewriting.rules import RULES
from tests.passes.test_docstrings import assert_same

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "my_passes.py"

RULE = """
import heron

@heron.rewrite("cosine", operand="negate")
def cosine_of_negate(i, b):
    \"\"\"cos(-x) == cos(x)\"\"\"
    return b.add("cosine", i.operands[0].operands)
"""

PROGRAM = """HloModule m
ENTRY main {
  x = f32[4] parameter(0)
  n = f32[4] negate(x)
  ROOT c = f32[4] cosine(n)
}
"""


def test_a_rule_joins_the_simplifier_and_leaves_it(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(RULE.replace("cosine_of_negate", "even_cosine"))
    before = len(RULES)
    for _ in range(2):
        module, ctx = parse(PROGRAM), PassContext(Options(check="values"))
        with loaded([path]) as (added,):
            assert [r.where for r in added.rules] == ["mine.py:4"]
            ctx.run_pass(registry.get("algebraic-simplifier"), module)
        assert ctx.rules["algebraic-simplifier", "even_cosine", "mine.py:4"] == 1
        assert [i.opcode for i in module.entry.instructions] == ["parameter", "cosine"]
        assert len(RULES) == before
    untouched = parse(PROGRAM)
    ctx = PassContext()
    ctx.run_pass(registry.get("algebraic-simplifier"), untouched)
    assert not any(rule == "even_cosine" for _, rule, _ in ctx.rules)


def test_the_example_does_what_its_docstrings_say() -> None:
    with loaded([EXAMPLE]) as (added,):
        assert added.passes == ("clamp-expander", "odd-functions")
        examples = [(name, doc_of(registry.find(name)).example) for name in ("clamp-expander",)]
        (rule,) = registry.find("odd-functions").rules()  # type: ignore[attr-defined]
        examples.append(("odd-functions", doc_of(rule.apply).example))
        for name, example in examples:
            assert example is not None and example.after is not None
            module = parse(example.before)
            assert PassContext(Options(check="values")).run_pass(registry.get(name), module)
            verify(module)
            assert_same(module, parse(example.after))
            assert not PassContext().run_pass(registry.get(name), module)
    with pytest.raises(HeronError, match="PASS001"):
        registry.get("odd-functions")


NEEDS_PASS = "from heron.passes.framework.base import Pass\nfrom heron.passes.framework.registry import register\n"


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("x = (1\n", "PASS015", 1),
        ("\nx = 1\n  y = 2\n", "PASS015", 3),
        ("x = 1\0", "CLI011", None),
        ("import heron\n\nheron.nothing\n", "PASS016", 3),
        ("import sys\nsys.exit(1)\n", "PASS016", 2),
        ("x = 1\n", "PASS017", None),
        ('import heron\n@heron.rewrite("ad")\ndef f(i, b): pass\n', "HLO003", 2),
        ('import heron\n@heron.rewrite("add", math="wild")\ndef f(i, b): pass\n', "PASS009", 2),
        ('import heron\n@heron.rewrite("add", layouts="wild")\ndef f(i, b): pass\n', "PASS009", 2),
        ("import heron\n@heron.rewrite()\ndef f(i, b): pass\n", "PASS009", 2),
        ('import heron\n@heron.rewrite("add")\ndef multiply_one(i, b): pass\n', "PASS004", 2),
        ('import heron\n@heron.rewrite("add", into="cse")\ndef f(i, b): pass\n', "PASS004", 2),
        (NEEDS_PASS + '@register\nclass Mine(Pass):\n    name = "cse"\n', "PASS004", 3),
        (NEEDS_PASS + "@register\nclass Mine(Pass):\n    pass\n", "PASS004", 3),
    ],
)
def test_bad_files(tmp_path: Path, text: str, code: str, line: int | None) -> None:
    path = tmp_path / "bad.py"
    path.write_text(text)
    known, rules = registry.names(), len(RULES)
    with pytest.raises(HeronError) as raised:
        load(path)
    assert raised.value.code == code
    where = raised.value.where
    assert (where.line if isinstance(where, Span) else None) == line
    assert registry.names() == known and len(RULES) == rules


def test_what_was_added_before_a_failure_goes(tmp_path: Path) -> None:
    path = tmp_path / "half.py"
    path.write_text(RULE + "\nraise ValueError('later')\n")
    rules = len(RULES)
    with pytest.raises(HeronError, match=r"PASS016(.|\n)*ValueError: later"):
        load(path)
    assert len(RULES) == rules


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(HeronError, match="CLI010"):
        load("nowhere.py")


def test_a_rule_that_fails_is_located(tmp_path: Path) -> None:
    path = tmp_path / "fails.py"
    path.write_text(RULE.replace("i.operands[0].operands", "i.operands[7].operands"))
    with pytest.raises(HeronError, match=r"PASS014(.|\n)*IndexError(.|\n)*fails.py:7"), loaded([path]):
        PassContext().run_pass(registry.get("algebraic-simplifier"), parse(PROGRAM))


def test_other_failures_are_not_blamed_on_loaded_files() -> None:
    with pytest.raises(ZeroDivisionError), loaded([EXAMPLE]):
        1 / 0  # noqa: B018


def test_a_name_is_taken_though_its_pass_was_never_used() -> None:
    code = """
from heron.passes.framework.base import Pass
from heron.passes.framework.registry import register
try:
    @register
    class Mine(Pass):
        name = "rng-expander"
except Exception as error:
    print(error.code, error.why)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("PASS004 heron.passes.expand.rng_expander")
