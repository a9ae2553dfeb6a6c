"""Kernels whose loops load a round ahead give the same bits."""

from __future__ import annotations

import numpy as np
import pytest

import heron
from heron.codegen.transforms import pipeline, pipeline_loads
from heron.hlo.text import parse

PROGRAM = """HloModule m
add {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }}
ENTRY e {{ x = f32[{rows},{columns}] parameter(0) zero = f32[] constant(0)
  ROOT r = f32[{kept}] reduce(x, zero), dimensions={{{d}}}, to_apply=add }}"""


@pytest.mark.parametrize(("rows", "columns", "d"), [(700, 40, 0), (2000, 8, 0), (1000, 33, 0)])
def test_values(rows: int, columns: int, d: int, monkeypatch: pytest.MonkeyPatch) -> None:
    source = PROGRAM.format(rows=rows, columns=columns, kept=(columns, rows)[d], d=d)
    x = np.random.default_rng(d).normal(size=(rows, columns)).astype(np.float32)
    wanted = heron.compile(parse(source), "sim:sm_90")(x)
    seen = []

    def run(module, options):  # type: ignore[no-untyped-def]
        before = str(module)
        pipeline_loads.run(module, options)
        seen.append(str(module) != before)

    steps = pipeline.PIPELINES["sim"]
    at = [name for name, _ in steps].index("optimize-loops") + 1
    monkeypatch.setitem(pipeline.PIPELINES, "sim", (*steps[:at], ("pipeline-loads", run), *steps[at:]))
    found = heron.compile(parse(source), "sim:sm_90")(x)
    assert any(seen)
    assert found.tobytes() == wanted.tobytes()
