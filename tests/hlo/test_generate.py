"""Generated programs are valid, survive a round trip, and XLA reads their text."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from heron.hlo.ir.fingerprint import fingerprint
from heron.hlo.text import parse, print_module
from heron.hlo.tools.compare import difference
from tests.hlo.generate import Program, programs


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(programs())
def test_round_trip(program: Program) -> None:
    module, inputs, _ = program
    assert [p.shape.dims for p in module.entry.parameters] == [a.shape for a in inputs]
    parsed = parse(print_module(module), verify=True)  # instructions are in the order of the text now
    again = parse(print_module(parsed))
    assert difference(parsed, again, names=True) is None
    assert fingerprint(module.entry) == fingerprint(again.entry)


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(programs())
def test_xla_prints_the_same(program: Program) -> None:
    xla = pytest.importorskip("jaxlib._hlo")
    text = print_module(parse(print_module(program.module)))
    options = xla.HloPrintOptions()
    options.print_large_constants = True
    assert xla.hlo_module_from_text(text).to_string(options) == text
