"""Conditionals: what stays of them, what becomes a select, what moves in and out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from heron.evaluator import Evaluator
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.hlo.verifier import verify
from heron.options import Options
from heron.passes.framework import registry
from heron.passes.framework.context import PassContext

LESS = "less { a = f32[] parameter(0) b = f32[] parameter(1) ROOT l = pred[] compare(a, b), direction=LT }"


def run(text: str, name: str, **options: Any) -> Module:
    module = parse(text)
    verify(module)
    PassContext(Options(check="values")).run_pass(registry.get(name, **options), module)
    verify(module)
    assert not registry.get(name, **options).run(module, PassContext())
    return module


def conditionals(module: Module) -> list[Instruction]:
    return [i for i in module.instructions() if i.opcode == "conditional"]


def opcodes(module: Module) -> list[str]:
    return [i.opcode for i in module.entry.instructions]


# -- selects ---------------------------------------------------------------------------------------------------------
SMALL = """HloModule m
yes {{ p = f32[{n}] parameter(0) ROOT e = f32[{n}] exponential(p) }}
no {{ p = f32[{n}] parameter(0) ROOT a = f32[{n}] abs(p) }}
ENTRY e {{ t = pred[] parameter(0) x = f32[{n}] parameter(1)
  ROOT r = f32[{n}] conditional(t, x, x), branch_computations={{yes, no}} }}"""


def test_small_branches_become_selects() -> None:
    module = run(SMALL.format(n=8), "conditional-simplifier")
    assert not conditionals(module) and "select" in opcodes(module)


def test_large_branches_stay() -> None:
    assert conditionals(run(SMALL.format(n=16384), "conditional-simplifier"))
    assert conditionals(run(SMALL.format(n=8), "conditional-simplifier", select_elements=15))
    assert not conditionals(run(SMALL.format(n=8), "conditional-simplifier", select_elements=16))


def test_the_branch_not_taken_does_no_harm() -> None:
    """1 / 0 in the other branch must not show."""
    module = parse("""HloModule m
yes { p = f32[] parameter(0) one = f32[] constant(1) ROOT d = f32[] divide(one, p) }
no { p = f32[] parameter(0) ROOT n = f32[] constant(7) }
ENTRY e { t = pred[] parameter(0) x = f32[] parameter(1)
  ROOT r = f32[] conditional(t, x, x), branch_computations={yes, no} }""")
    registry.get("conditional-simplifier").run(module, PassContext())
    assert "select" in opcodes(module)
    for t, x in ((False, 0.0), (True, 0.0), (True, np.nan), (False, np.nan)):
        result = Evaluator(module).run(np.asarray(t), np.asarray(x, np.float32))
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(result, np.float32(1) / np.float32(x) if t else np.float32(7))


@pytest.mark.parametrize("index", ["pred[]", "s32[]"])
def test_conditionals_in_maps(index: str) -> None:
    """Nested ones, with tuple results, for elements that take different branches."""
    choose = "compare(x, one), direction=GT" if index == "pred[]" else "convert(x)"
    branches = "inner, low" if index == "pred[]" else "low, inner, high, low"
    count = branches.count(",") + 1
    module = run(
        f"""HloModule m
low {{ p = f32[] parameter(0) n = f32[] negate(p) ROOT t = (f32[], f32[]) tuple(n, p) }}
high {{ p = f32[] parameter(0) e = f32[] exponential(p) ROOT t = (f32[], f32[]) tuple(p, e) }}
inner {{ p = f32[] parameter(0) zero = f32[] constant(1.5) g = pred[] compare(p, zero), direction=GT
  ROOT c = (f32[], f32[]) conditional(g, p, p), branch_computations={{high, low}} }}
each {{ x = f32[] parameter(0) one = f32[] constant(1) i = {index} {choose}
  c = (f32[], f32[]) conditional(i{", x" * count}), branch_computations={{{branches}}}
  a = f32[] get-tuple-element(c), index=0 b = f32[] get-tuple-element(c), index=1 ROOT s = f32[] subtract(a, b) }}
ENTRY e {{ x = f32[40] parameter(0) ROOT r = f32[40] map(x), dimensions={{0}}, to_apply=each }}""",
        "conditional-to-select",
    )
    assert not conditionals(module)


def test_conditionals_of_the_program_stay() -> None:
    assert conditionals(run(SMALL.format(n=8), "conditional-to-select"))


# -- results and operands --------------------------------------------------------------------------------------------
RESULTS = f"""HloModule m
{LESS}
yes {{ p = (f32[4], f32[4], f32[4]) parameter(0) x = f32[4] get-tuple-element(p), index=0
  y = f32[4] get-tuple-element(p), index=1 one = f32[] constant(1)
  s = f32[4] sort(x), dimensions={{0}}, to_apply=less
  ROOT r = (f32[4], f32[4], f32[4], f32[], f32[4]) tuple(s, s, y, one, x) }}
no {{ p = (f32[4], f32[4]) parameter(0) x = f32[4] get-tuple-element(p), index=0
  y = f32[4] get-tuple-element(p), index=1 one = f32[] constant(1)
  ROOT r = (f32[4], f32[4], f32[4], f32[], f32[4]) tuple(y, y, x, one, x) }}
ENTRY e {{ t = pred[] parameter(0) x = f32[4] parameter(1) y = f32[4] parameter(2)
  a = (f32[4], f32[4], f32[4]) tuple(x, y, y) b = (f32[4], f32[4]) tuple(y, x)
  c = (f32[4], f32[4], f32[4], f32[], f32[4]) conditional(t, a, b), branch_computations={{yes, no}}
  c0 = f32[4] get-tuple-element(c), index=0 c1 = f32[4] get-tuple-element(c), index=1
  c2 = f32[4] get-tuple-element(c), index=2 c3 = f32[] get-tuple-element(c), index=3
  ROOT r = (f32[4], f32[4], f32[4], f32[]) tuple(c0, c1, c2, c3) }}"""


def test_results_and_operands_that_are_not_needed_go() -> None:
    """The second result equals the first, the third is y from before, the fourth a constant, the fifth unused."""
    module = run(RESULTS, "conditional-simplifier")
    (c,) = conditionals(module)
    assert [str(s.bare) for s in c.shape.tuple_shapes or ()] == ["f32[4]"]
    assert [len(o.shape.tuple_shapes or ()) for o in c.operands[1:]] == [1, 1]
    root = module.entry.root
    assert root.operands[0] is root.operands[1] and root.operands[2].opcode == "parameter"


NEARLY = """HloModule m
yes { p = (f32[4], (f32[4], f32[4])) parameter(0) q = (f32[4], f32[4]) get-tuple-element(p), index=1
  a = f32[4] get-tuple-element(q), index=0 b = f32[4] get-tuple-element(q), index=1
  ROOT r = (f32[4], f32[4], f32[4]) tuple(YES) }
no { p = (f32[4], (f32[4], f32[4])) parameter(0) q = (f32[4], f32[4]) get-tuple-element(p), index=1
  a = f32[4] get-tuple-element(q), index=0 b = f32[4] get-tuple-element(q), index=1
  n = f32[4] negate(a) ROOT r = (f32[4], f32[4], f32[4]) tuple(NO) }
ENTRY e { t = pred[] parameter(0) x = f32[4] parameter(1) q = (f32[4], f32[4]) parameter(2)
  p = (f32[4], (f32[4], f32[4])) tuple(x, q)
  c = (f32[4], f32[4], f32[4]) conditional(t, p, p), branch_computations={yes, no}
  c0 = f32[4] get-tuple-element(c), index=0 c1 = f32[4] get-tuple-element(c), index=1
  c2 = f32[4] get-tuple-element(c), index=2 ROOT r = (f32[4], f32[4], f32[4]) tuple(c0, c1, c2) }"""


@pytest.mark.parametrize(
    ("yes", "no", "left"),
    [
        ("a, b, b", "a, b, n", 1),  # handed through alike, by both, by one
        ("a, b, a", "b, a, n", 3),  # another part of the same tuple
        ("b, b, a", "n, b, n", 2),
        ("b, a, b", "n, n, a", 3),  # equal in one branch only
    ],
)
def test_what_only_looks_alike_stays(yes: str, no: str, left: int) -> None:
    module = run(NEARLY.replace("YES", yes).replace("NO", no), "conditional-simplifier", select_elements=0)
    (c,) = conditionals(module)
    assert len(c.shape.tuple_shapes or ()) == left


def test_a_branch_with_effects_stays_though_nobody_reads_it() -> None:
    module = parse("""HloModule m
yes { p = f32[4] parameter(0) k = token[] after-all() o = token[] outfeed(p, k), outfeed_shape=f32[4]
  ROOT t = (f32[4]) tuple(p) }
no { p = f32[4] parameter(0) ROOT t = (f32[4]) tuple(p) }
ENTRY e { t = pred[] parameter(0) x = f32[4] parameter(1)
  c = (f32[4]) conditional(t, x, x), branch_computations={yes, no}
  ROOT r = f32[4] get-tuple-element(c), index=0 }""")
    registry.get("conditional-simplifier").run(module, PassContext())
    verify(module)
    assert len(conditionals(module)) == 1 and module.entry.root.opcode == "parameter"


def test_shardings_follow() -> None:
    text = RESULTS.replace(
        "branch_computations={yes, no}",
        "branch_computations={yes, no}, "
        "sharding={{maximal device=0}, {replicated}, {replicated}, {replicated}, {replicated}}",
    )
    module = run(text, "conditional-simplifier")
    assert conditionals(module)[0].extras["sharding"] == "{{maximal device=0}}"


def test_shared_branches_are_not_changed_under_others() -> None:
    text = RESULTS.replace("ROOT r = (f32[4], f32[4], f32[4], f32[]) tuple(c0, c1, c2, c3)", (
        "d = (f32[4], f32[4], f32[4], f32[], f32[4]) conditional(t, a, b), branch_computations={yes, no} "
        "d4 = f32[4] get-tuple-element(d), index=4 d0 = f32[4] get-tuple-element(d), index=0 "
        "ROOT r = (f32[4], f32[4], f32[4]) tuple(c0, d4, d0)"
    ))  # fmt: skip
    module = run(text, "conditional-simplifier")
    assert sorted(len(c.shape.tuple_shapes or ()) for c in conditionals(module)) == [1, 2]


# -- motion ----------------------------------------------------------------------------------------------------------
ENDS = """HloModule m
yes { p = f32[4] parameter(0) e = f32[4] exponential(p) c = YES ROOT t = (f32[4]) tuple(c) }
no { p = f32[4] parameter(0) s = f32[4] sine(p) k = f32[4] cosine(p) c = NO ROOT t = (f32[4]) tuple(c) }
ENTRY e { t = pred[] parameter(0) x = f32[4] parameter(1)
  c = (f32[4]) conditional(t, x, x), branch_computations={yes, no} ROOT r = f32[4] get-tuple-element(c), index=0 }"""


@pytest.mark.parametrize(
    ("yes", "no", "comes_out"),
    [
        ("f32[4] negate(e)", "f32[4] negate(s)", True),
        ("f32[4] multiply(e, e)", "f32[4] multiply(s, s)", True),
        ("f32[4] multiply(e, p)", "f32[4] multiply(s, p)", True),  # p is known before
        ("f32[4] multiply(e, e)", "f32[4] multiply(s, k)", False),  # two values to hand over instead of one
        ("f32[4] negate(e)", "f32[4] abs(s)", False),
    ],
)
def test_what_ends_all_branches(yes: str, no: str, comes_out: bool) -> None:
    module = run(ENDS.replace("YES", yes).replace("NO", no), "conditional-code-motion")
    assert (module.entry.root.opcode in ("negate", "multiply")) == comes_out
    assert len(conditionals(module)[0].shape.tuple_shapes or ()) == 1


def test_no_move_when_told() -> None:
    text = ENDS.replace("YES", "f32[4] negate(e)").replace("NO", "f32[4] negate(s)")
    module = run(text, "conditional-code-motion", move_out=False)
    assert module.entry.root.opcode == "get-tuple-element"


def test_what_one_branch_needs_goes_in() -> None:
    """The product and its operand's exponential go; the sum, which the other branch needs too, stays."""
    module = run(
        """HloModule m
yes { p = (f32[4,4], f32[4,4], f32[]) parameter(0) d = f32[4,4] get-tuple-element(p), index=0
  s = f32[4,4] get-tuple-element(p), index=1 k = f32[] get-tuple-element(p), index=2
  ks = f32[4,4] broadcast(k), dimensions={} m = f32[4,4] multiply(d, ks) a = f32[4,4] add(m, s)
  ROOT t = (f32[4,4]) tuple(a) }
no { p = (f32[4,4]) parameter(0) s = f32[4,4] get-tuple-element(p), index=0 n = f32[4,4] negate(s)
  ROOT t = (f32[4,4]) tuple(n) }
ENTRY e { t = pred[] parameter(0) x = f32[4,4] parameter(1) two = f32[] constant(2)
  s = f32[4,4] add(x, x) h = f32[4,4] exponential(x)
  d = f32[4,4] dot(h, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  a = (f32[4,4], f32[4,4], f32[]) tuple(d, s, two) b = (f32[4,4]) tuple(s)
  c = (f32[4,4]) conditional(t, a, b), branch_computations={yes, no}
  ROOT r = f32[4,4] get-tuple-element(c), index=0 }""",
        "conditional-code-motion",
    )
    inside = [i.opcode for i in conditionals(module)[0].branch_computations[0].instructions]
    assert {"dot", "exponential", "constant"} <= set(inside)
    assert "add" in opcodes(module) and not {"dot", "exponential"} & set(opcodes(module))


def test_what_two_branches_share_stays() -> None:
    """One tuple is the operand of both: what is in it would be computed in each."""
    module = parse("""HloModule m
yes { p = (f32[4]) parameter(0) s = f32[4] get-tuple-element(p), index=0 ROOT t = (f32[4]) tuple(s) }
no { p = (f32[4]) parameter(0) s = f32[4] get-tuple-element(p), index=0 n = f32[4] negate(s) ROOT t = (f32[4]) tuple(n) }
ENTRY e { t = pred[] parameter(0) x = f32[4] parameter(1) r = f32[4] exponential(x) a = (f32[4]) tuple(r)
  ROOT c = (f32[4]) conditional(t, a, a), branch_computations={yes, no} }""")
    assert not registry.get("conditional-code-motion").run(module, PassContext())


def test_collectives_do_not_go_in() -> None:
    module = parse("""HloModule m
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
yes { p = (f32[4]) parameter(0) s = f32[4] get-tuple-element(p), index=0 ROOT t = (f32[4]) tuple(s) }
no { p = (f32[4]) parameter(0) s = f32[4] get-tuple-element(p), index=0 n = f32[4] negate(s) ROOT t = (f32[4]) tuple(n) }
ENTRY e { t = pred[] parameter(0) x = f32[4] parameter(1)
  r = f32[4] all-reduce(x), replica_groups={}, to_apply=add
  a = (f32[4]) tuple(r) b = (f32[4]) tuple(x)
  ROOT c = (f32[4]) conditional(t, a, b), branch_computations={yes, no} }""")
    assert not registry.get("conditional-code-motion").run(module, PassContext())
