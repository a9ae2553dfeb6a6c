"""The part of the suite that runs by default: every op in a loop, some ops of every type with every hero."""

from __future__ import annotations

import pytest

from heron.hlo.types import ElementType
from tests.codegen.suite.heroes import HEROES, PLACES, Hero
from tests.codegen.suite.movers import MOVERS, run_movers
from tests.codegen.suite.run import Outcome, legal_ops, run
from tests.codegen.suite.values import FEW, TYPES


def check(outcomes: list[Outcome], hero: Hero) -> None:
    """Nothing differs or is refused, and the hero was the one that was meant."""
    assert outcomes
    wrong = [o for o in outcomes if o.found != "ok"]
    assert not wrong, "\n".join(f"{o.target} {o.op} {o.type}: {o.found} {o.detail}" for o in wrong)
    assert {o.emitter for o in outcomes} <= hero.emitters


@pytest.mark.parametrize("t", FEW, ids=str)
def test_every_op(t: ElementType) -> None:
    check(run(HEROES[0], t, after=False), HEROES[0])
