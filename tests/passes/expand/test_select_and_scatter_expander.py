"""select-and-scatter made elementwise: the same values, ties and NaNs included; what it leaves alone."""

from __future__ import annotations

from math import prod

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from heron.evaluator import Evaluator
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.hlo.verifier import verify
from heron.options import Options
from heron.passes.framework import registry
from heron.passes.framework.context import PassContext


def module_of(dims: list[int], source: list[int], window: str, direction: str = "GE", init: str = "0") -> Module:
    shape, counts = (f"f32[{','.join(map(str, sizes))}]" for sizes in (dims, source))
    return parse(f"""HloModule m
pick {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = pred[] compare(a, b), direction={direction} }}
join {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] subtract(a, b) }}
ENTRY e {{ x = {shape} parameter(0) s = {counts} parameter(1) z = f32[] constant({init})
  ROOT o = {shape} select-and-scatter(x, s, z), window={{{window}}}, select=pick, scatter=join }}""")


def rewritten(module: Module, **options: int) -> bool:
    found = registry.get("select-and-scatter-expander", **options)
    changed = PassContext(Options(check="values")).run_pass(found, module)
    verify(module)
    assert any(i.opcode == "select-and-scatter" for i in module.instructions()) != changed
    return changed


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3)), min_size=1, max_size=4), st.data())
def test_values(parts: list[tuple[int, int]], data: st.DataObject) -> None:
    """Few different values, so that many are equal; some are NaN."""
    source, sizes = [n for n, _ in parts], [size for _, size in parts]
    dims = [n * size for n, size in parts]
    joined = "x".join(map(str, sizes))
    direction = data.draw(st.sampled_from(["GE", "GT", "LE", "LT", "EQ"]))
    module = module_of(dims, source, f"size={joined} stride={joined}", direction, init="1.5")
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    x = rng.choice(np.array([0, -0.0, 1, 2, np.nan], np.float32), dims)
    s = rng.standard_normal(source).astype(np.float32)
    wanted = Evaluator(module).run(x, s)
    assert rewritten(module) == (1 < prod(sizes) <= 64)
    np.testing.assert_array_equal(Evaluator(module).run(x, s), wanted)


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 4), st.integers(0, 3)), min_size=1, max_size=3
    ),
    st.data(),
)
def test_windows_that_overlap(parts: list[tuple[int, int, int, int]], data: st.DataObject) -> None:
    """Windows that overlap or leave gaps, and places behind the last one."""
    source = [n for n, *_ in parts]
    dims = [(n - 1) * step + size + rest % step for n, size, step, rest in parts]
    sizes, steps = ("x".join(str(p[k]) for p in parts) for k in (1, 2))
    module = module_of(dims, source, f"size={sizes} stride={steps}", data.draw(st.sampled_from(["GE", "LT"])), "1.5")
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    x = rng.choice(np.array([0, -0.0, 1, 2, np.nan], np.float32), dims)
    s = rng.standard_normal(source).astype(np.float32)
    wanted = Evaluator(module).run(x, s)
    assert rewritten(module, shared=64) == (1 < prod(p[1] for p in parts) <= 64)
    np.testing.assert_array_equal(Evaluator(module).run(x, s), wanted)


def test_padded_windows_stay() -> None:
    assert not rewritten(module_of([4], [3], "size=2 stride=2 pad=1_1"))


def test_windows_with_much_in_common_stay() -> None:
    assert not rewritten(module_of([6], [5], "size=2"), shared=1)


def test_large_windows_stay() -> None:
    assert not rewritten(module_of([8], [2], "size=4 stride=4"), most=3)
    assert rewritten(module_of([8], [2], "size=4 stride=4"), most=4)
