"""Generated programs are valid, survive a round trip, and XLA reads their text."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from heron.hlo.compare import difference
from heron.hlo.fingerprint import fingerprint
from heron.hlo.text import parse, print_module
from heron.hlo.types import BF16, F32, PRED, S32
from tests.hlo.generate import Program, programs


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(programs(types=(F32, S32, BF16, PRED)))
def test_round_trip(program: Program) -> None:
    module, inputs = program
    assert [p.shape.dims for p in module.entry.parameters] == [a.shape for a in inputs]
    text = print_module(module)
    again = parse(text, verify=True)
    assert difference(module, again, names=True) is None
    assert fingerprint(module.entry) == fingerprint(again.entry)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(programs())
def test_xla_prints_the_same(program: Program) -> None:
    xla = pytest.importorskip("jaxlib._hlo")
    text = print_module(program[0])
    options = xla.HloPrintOptions()
    options.print_large_constants = True
    assert xla.hlo_module_from_text(text).to_string(options) == text
