"""Real programs through the CUDA runtime on a rehearsed device; ``pytest tests/gpu --rehearse`` has all of them."""

from __future__ import annotations

import pytest

import heron
from heron.cli import compare, values
from tests.rehearsal.compiling import compile, rehearsed
from tests.support import golden_values, program

RUN = "transformer_block lstm_scan linalg_lapack seed_int8xbf16".split()


@pytest.mark.parametrize("name", RUN)
def test_goldens(name: str) -> None:
    module = heron.parse(program(name, platform="cuda").read_text())
    held = values.read(str(golden_values(name)))
    arrays = values.fit(held.inputs, module, held.name)
    with rehearsed() as recorder:
        executable = compile(module, recorder)
        assert all(r.ok for r in compare.compare_all(executable.run(arrays), held.outputs))
