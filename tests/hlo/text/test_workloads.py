"""Real programs: parsed, verified, printed, parsed again; and printed exactly as XLA prints them."""

from __future__ import annotations

import pytest

from heron.hlo.text import PrintOptions, parse, print_module
from heron.hlo.tools.compare import difference
from heron.hlo.verifier import problems
from tests.support import NAMES, program

FILES = [program(name, small, platform) for name in NAMES for platform in ("cpu", "cuda") for small in (True, False)]
IDS = [f"{f.parent.name}/{f.stem}" for f in FILES]


@pytest.mark.parametrize("file", FILES, ids=IDS)
def test_round_trip(file) -> None:
    text = file.read_text()
    module = parse(text, str(file))
    assert [str(p.error()) for p in problems(module)] == []
    printed = print_module(module)
    again = parse(printed)
    assert difference(module, again, names=True, metadata=True) is None
    assert print_module(again) == printed


@pytest.mark.parametrize("file", FILES, ids=IDS)
def test_printed_as_xla_does(file) -> None:
    xla = pytest.importorskip("jaxlib._hlo")
    text = file.read_text()
    options = PrintOptions(elide_large_constants=True)
    assert print_module(parse(text), options) == xla.hlo_module_from_text(text).to_string()
