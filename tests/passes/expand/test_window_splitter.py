"""Long windows keep their values when they are combined in steps; others stay."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from heron.compiling import compile
from heron.evaluator import Evaluator
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.hlo.verifier import verify
from heron.passes.framework import registry
from heron.passes.framework.context import PassContext


def module_of(x: str, window: str, op: str = "maximum", init: str = "-9") -> Module:
    type_ = x.partition("[")[0]
    return parse(f"""HloModule m
r {{ a = {type_}[] parameter(0) b = {type_}[] parameter(1) ROOT c = {type_}[] {op}(a, b) }}
ENTRY e {{ x = {x} parameter(0) z = {type_}[] constant({init})
  ROOT o = reduce-window(x, z), window={{{window}}}, to_apply=r }}""")


def split(module: Module) -> bool:
    changed = PassContext().run_pass(registry.get("window-splitter"), module)
    verify(module)
    return changed


def steps(module: Module) -> int:
    """Elements that are combined for one of the result."""
    windows = [i.attrs["window"] for i in module.instructions() if i.opcode == "reduce-window"]
    return sum(prod(w.size for w in window) for window in windows)


SHAPES = [
    ("s32[500]", "size=80", 18),
    ("s32[500]", "size=64 pad=31_32", 16),
    ("s32[500]", "size=25", 10),
    ("s32[500]", "size=400 pad=200_199", 20),
    ("s32[40,50]", "size=5x5 pad=2_2x2_2", 10),
    ("s32[500]", "size=83 pad=41_41", 20),
    ("s32[500]", "size=499 pad=3_400", 50),
    ("s32[9000]", "size=7000 rhs_dilate=1", 80),
    ("s32[900]", "size=90 rhs_dilate=3 pad=9_9", 20),
    ("s32[3,300]", "size=1x200 stride=2x1 pad=0_0x100_-5", 30),
    ("s32[40,50]", "size=9x9 stride=2x3 pad=4_4x4_4", 18),
    ("s32[20,200,3]", "size=3x70x1 pad=1_1x0_0x0_0", 22),
]


@pytest.mark.parametrize(("x", "window", "most"), SHAPES)
@pytest.mark.parametrize(("op", "init"), [("maximum", "5"), ("minimum", "-2"), ("and", "-1"), ("add", "0")])
def test_values_and_steps(x: str, window: str, most: int, op: str, init: str) -> None:
    module = module_of(x, window, op, init)
    array = np.random.default_rng(1).integers(-9, 9, module.entry.parameters[0].shape.dims).astype(np.int32)
    wanted = Evaluator(module).run(array)
    if split(module):
        assert steps(module) <= most
    else:
        assert op == "add"  # a sum of 83 has no factors
    np.testing.assert_array_equal(Evaluator(module).run(array), wanted)
    np.testing.assert_array_equal(compile(module_of(x, window, op, init))(array), wanted)


@pytest.mark.parametrize(
    ("x", "window", "op", "init"),
    [
        ("f32[500]", "size=16", "maximum", "0"),
        ("f32[100]", "size=100 pad=99_0", "maximum", "0"),  # a scan
        ("bf16[500]", "size=80", "add", "0"),  # sums between the steps would be rounded
        ("f32[500]", "size=80", "add", "1"),  # an initial value that counts
        ("f32[500]", "size=80", "subtract", "0"),
        ("f32[500]", "size=80 stride=40", "maximum", "0"),
        ("f32[500]", "size=83", "add", "0"),
        ("f32[90,90]", "size=9x9 stride=9x9", "maximum", "0"),
    ],
)
def test_others_stay(x: str, window: str, op: str, init: str) -> None:
    assert not split(module_of(x, window, op, init))


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_any_window(data: st.DataObject) -> None:
    rank, parts, dims = data.draw(st.integers(1, 2)), [], []
    for _ in range(rank):
        n, size = data.draw(st.integers(1, 200)), data.draw(st.integers(1, 200))
        low, high = data.draw(st.integers(-2, 120)), data.draw(st.integers(-2, 120))
        stride, dilation = data.draw(st.sampled_from([1, 1, 1, 2, 3])), data.draw(st.sampled_from([1, 1, 1, 2]))
        assume(n + low + high >= (size - 1) * dilation + 1 and n > 4)
        dims.append(n)
        parts.append((size, stride, f"{low}_{high}", dilation))
    window = " ".join(
        f"{key}={'x'.join(str(p[k]) for p in parts)}" for k, key in enumerate(("size", "stride", "pad", "rhs_dilate"))
    )
    op, init = data.draw(st.sampled_from([("maximum", "-3"), ("minimum", "4"), ("add", "0"), ("multiply", "1")]))
    module = module_of(f"s32[{','.join(map(str, dims))}]", window, op, init)
    array = np.random.default_rng(2).integers(-9, 9, dims).astype(np.int32)
    wanted = Evaluator(module).run(array)
    split(module)
    np.testing.assert_array_equal(Evaluator(module).run(array), wanted)
