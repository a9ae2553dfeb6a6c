"""The part of the suite that runs by default: every op in a loop, some ops of every kind of type with every hero.

`python -m tests.codegen.suite` runs the rest.
"""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects import arith

from heron.analysis.fusion.fusion import Output
from heron.codegen.elemental import registry
from heron.codegen.elemental.emitter import FunctionEmitter
from heron.hlo.ir import types
from heron.hlo.ir.types import ElementType
from tests.codegen.emitters import test_sort as sorting
from tests.codegen.suite.heroes import HEROES, PLACES, Hero
from tests.codegen.suite.movers import MOVERS, run_movers
from tests.codegen.suite.ops import Op, table
from tests.codegen.suite.run import Outcome, legal_ops, run
from tests.codegen.suite.values import FEW, tame

#: types of the default part, and how many ops of each stand with each hero
_WITH_HEROES = tuple(types.by_name(n) for n in ("s4", "s64", "f8e4m3fnuz", "bf16", "c64"))
_OPS = 6


def check(outcomes: list[Outcome]) -> None:
    """Nothing differs, nothing is refused."""
    assert outcomes
    wrong = [o for o in outcomes if o.found != "ok"]
    assert not wrong, "\n".join(f"{o.target} {o.op} {o.type}: {o.found} {o.detail}" for o in wrong)


@pytest.mark.parametrize("t", FEW, ids=str)
def test_every_op(t: ElementType) -> None:
    check(run(HEROES[0], t, after=False))


@pytest.mark.parametrize("t", [t for t in FEW if not t.is_complex], ids=str)
def test_sort(t: ElementType) -> None:
    values = tame(t, 70, 3)[None]
    source = sorting.program((1, 70), 1, t.name)
    for target in ("cpu", "sim:sm_90"):
        got = sorting.run(source, [values, sorting.positions((1, 70), 1)], target)[0]
        want = values[0][np.argsort(values[0].astype(np.float64), kind="stable")]
        np.testing.assert_array_equal(got[0].astype(np.float64), want.astype(np.float64))


@pytest.mark.parametrize("t", _WITH_HEROES, ids=str)
@pytest.mark.parametrize(("hero", "after"), PLACES[1:], ids=lambda p: getattr(p, "name", "after" if p else "before"))
def test_some_ops_with_every_hero(hero: Hero, after: bool, t: ElementType) -> None:
    """Which ops is different for each, so that all have their turn."""
    ops = [op for op in legal_ops(t) if op.name != "map"]  # a pass takes maps apart before there are fusions
    step = max(1, len(ops) // min(_OPS, hero.pack))
    start = (7 * PLACES.index((hero, after)) + 3 * _WITH_HEROES.index(t)) % step
    outcomes = run(hero, t, after, ops[start::step][: hero.pack])
    check(outcomes)
    assert {o.emitter for o in outcomes} & hero.emitters


@pytest.mark.parametrize("hero", HEROES, ids=lambda h: h.name)
def test_movers(hero: Hero) -> None:
    number = HEROES.index(hero)
    for n, t in enumerate((types.F32, types.S4, types.PRED)):
        check(run_movers(hero, t, MOVERS[(number + n) % 7 :: 7]))


# -- bugs that the suite has to find -----------------------------------------------------------------------------------


def _found(hero: str, t: ElementType, *names: str, after: bool = False) -> set[str]:
    """What the suite says of these ops."""
    ops: list[Op] = [op for op in table() if op.name in names]
    return {o.found for h in HEROES if h.name == hero for o in run(h, t, after, ops)}


def test_a_wrong_op_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(e: FunctionEmitter, i: object, index: object) -> object:
        a, b = e.operands(i, index)  # type: ignore[arg-type]
        return e.b.op(arith.SubiOp, b, a)

    assert _found("loop", types.S32, "subtract") == {"ok"}
    monkeypatch.setitem(registry.load(), "subtract", wrong)
    assert _found("loop", types.S32, "subtract") == {"differs"}


def test_a_division_that_traps_on_nothing_but_zero_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(e: FunctionEmitter, i: object, index: object) -> object:
        a, b = e.operands(i, index)  # type: ignore[arg-type]
        is_zero = e.b.cmpi("eq", b, e.b.integer(0, b.type))
        return e.b.op(arith.DivUIOp, a, e.b.select(is_zero, e.b.integer(1, b.type), b))  # x / 0 is not x

    monkeypatch.setitem(registry.load(), "divide", careless)
    assert _found("loop", types.U8, "divide") == {"differs"}


def test_a_shift_of_the_update_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from heron.codegen.emitters import in_place_update

    right = in_place_update.update_starts
    monkeypatch.setattr(in_place_update, "update_starts", lambda e, i: [right(e, i)[0] - 1, *right(e, i)[1:]])
    assert _found("update in place", types.F32, "negate") == {"differs"}


def test_an_epilogue_left_out_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Output.of
    monkeypatch.setattr(Output, "of", lambda self, value: right(self, value))
    assert _found("row reduction", types.S32, "negate", after=True) == {"ok"}
    monkeypatch.setitem(registry.load(), "negate", lambda e, i, index: e.operand(i, 0, index))
    assert _found("row reduction", types.S32, "negate", after=True) == {"differs"}
