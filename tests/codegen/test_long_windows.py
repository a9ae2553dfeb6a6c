"""Windows of more than 64 elements are combined in steps. Those that cannot be, a sum of 67 for one, are written out
if their rows are short, so that vectors go over the results."""

from __future__ import annotations

import numpy as np
import pytest

import heron
from heron.evaluator import evaluate
from heron.hlo.ir.module import Module
from tests.backends.agree import random_inputs

TEXT = """HloModule m

join {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] {op}(a, b)
}}

ENTRY e {{
  x = f32[{dims}] parameter(0)
  start = f32[] constant({start})
  ROOT w = f32[{out}] reduce-window(x, start), window={{size={size}{pad}}}, to_apply=join
}}
"""


def windows(op: str, dims: str, out: str, size: str, pad: str = "") -> Module:
    start = "0" if op == "add" else "-inf"
    return heron.parse(TEXT.format(op=op, dims=dims, out=out, size=size, pad=pad and f" pad={pad}", start=start))


@pytest.mark.parametrize(
    ("module", "written_out"),
    [
        (windows("add", "20,30,30", "20,22,22", "1x9x9"), 18),
        (windows("add", "90,40", "26,40", "65x1"), 18),
        (windows("add", "90,40", "24,40", "67x1"), 67),
        (windows("add", "160,40", "34,40", "127x1"), 127),
        (windows("add", "160,40", "30,40", "131x1"), 1),
        (windows("add", "3,200", "3,134", "1x67"), 1),
        (windows("add", "60,60", "44,57", "17x4"), 21),
    ],
    ids=lambda x: str(x.entry.root.shape) if isinstance(x, Module) else str(x),
)
def test_short_rows_are_written_out(module: Module, written_out: int) -> None:
    assert heron.compile(module).stage("mlir").count("arith.addf") == written_out
    _same(module)


@pytest.mark.parametrize("op", ["add", "maximum"])
@pytest.mark.parametrize("pad", ["4_4x4_4", "0_8x3_5"])
def test_with_padding(op: str, pad: str) -> None:
    _same(windows(op, "40,41", "40,41", "9x9", pad))


def _same(module: Module) -> None:
    inputs = random_inputs(module)
    (found,), (wanted,) = heron.compile(module).run(inputs), evaluate(module, *inputs)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())
