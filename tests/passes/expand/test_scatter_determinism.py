"""Scatters whose updates are sorted by place give what they gave, updates of one place in their order."""

from __future__ import annotations

import numpy as np
import pytest

import heron
from heron.errors import HeronError
from heron.evaluator import evaluate
from heron.hlo.ir.module import Module
from heron.hlo.ir.types import S64, U32
from heron.hlo.text import parse
from heron.options import Options
from heron.passes.framework import registry
from heron.passes.framework.context import PassContext

#: operand, indices, updates, what the scatter says: rows, elements of a matrix, windows that overlap in part
CASES = {
    "rows": ("f32[6,3]", "s32[200,1]", "f32[200,3]", "{1}", "{0}", "{0}"),
    "elements": ("f32[5,4]", "s32[150,2]", "f32[150]", "{}", "{0,1}", "{0,1}"),
    "windows": ("f32[9]", "s32[140,1]", "f32[140,3]", "{1}", "{}", "{0}"),
    "bytes": ("f32[7]", "s8[130,1]", "f32[130]", "{}", "{0}", "{0}"),
    "many places": ("f32[70000,400]", "s32[200,2]", "f32[200]", "{}", "{0,1}", "{0,1}"),
}
#: shows the order: (old, new) -> old / 2 + new
ODD = "h = f32[] constant(0.5) m = f32[] multiply(a, h) ROOT r = f32[] add(m, b)"


def _program(name: str) -> Module:
    x, n, u, window, inserted, index_map = CASES[name]
    return parse(f"""HloModule m
f {{ a = f32[] parameter(0) b = f32[] parameter(1) {ODD} }}
ENTRY e {{ x = {x} parameter(0) n = {n} parameter(1) u = {u} parameter(2)
  ROOT r = {x} scatter(x, n, u), update_window_dims={window}, inserted_window_dims={inserted},
    scatter_dims_to_operand_dims={index_map}, index_vector_dim=1, to_apply=f }}""")


@pytest.mark.parametrize("name", CASES)
def test_same_values(name: str) -> None:
    module, random = _program(name), np.random.default_rng(3)
    x, n, u = (p.shape for p in module.entry.parameters)
    inputs = [
        random.integers(-8, 8, x.dims).astype(np.float32),
        random.integers(-1, min(x.dims) + 1, n.dims).astype(n.element_type.dtype),  # some outside
        random.integers(-8, 8, u.dims).astype(np.float32),
    ]
    want = evaluate(module, *inputs)
    context = PassContext(Options())
    context.run_pass(registry.get("scatter-simplifier"), module)
    assert context.run_pass(registry.get("scatter-determinism-expander"), module)
    (sort,) = (i for i in module.entry.instructions if i.opcode == "sort")
    assert sort.shape.element_type is (S64 if name == "many places" else U32)
    for g, w in zip(evaluate(module, *inputs), want, strict=True):
        np.testing.assert_array_equal(g, w)


def test_refuses_more_places_and_updates_than_a_number_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    huge = ("f32[6000000000,2]", "s64[2000000000,1]", "f32[2000000000,2]", "{1}", "{0}", "{0}")
    monkeypatch.setitem(CASES, "huge", huge)
    module, context = _program("huge"), PassContext(Options())
    context.run_pass(registry.get("scatter-simplifier"), module)
    with pytest.raises(HeronError, match="PASS025.*too many to sort"):
        context.run_pass(registry.get("scatter-determinism-expander"), module)


def test_one_value_needs_no_order() -> None:
    """A mask of places: whichever update comes last, the element has the same value."""
    module = parse("""HloModule m
f { a = pred[] parameter(0) ROOT b = pred[] parameter(1) }
ENTRY e { x = pred[64] parameter(0) n = s32[900,1] parameter(1) t = pred[] parameter(2)
  u = pred[900] broadcast(t), dimensions={}
  ROOT r = pred[64] scatter(x, n, u), update_window_dims={}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f }""")
    x, n = np.zeros(64, bool), 2 * np.random.default_rng(1).integers(-5, 35, (900, 1)).astype(np.int32)
    (want,) = evaluate(module, x, n, np.True_)
    executable = heron.compile(module, "sim:sm_90")
    assert not any(k.emitter == "sort" for k in executable.kernels)
    np.testing.assert_array_equal(executable(x, n, np.True_), want)
    assert want[::2].all() and not want[1::2].any()


@pytest.mark.parametrize("depth", [1, 2])
def test_a_fusion_that_came_with_one_becomes_its_parts(depth: int) -> None:
    """No kernel scatters and sorts; so it is, too, when the fusion is called by another one."""
    x, n, u, window, inserted, index_map = CASES["rows"]
    outer = f"""f1 {{ x = {x} parameter(0) n = {n} parameter(1) u = {u} parameter(2)
  ROOT r = {x} fusion(x, n, u), kind=kLoop, calls=f0 }}"""
    module = parse(f"""HloModule m
add {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }}
f0 {{ x = {x} parameter(0) n = {n} parameter(1) u = {u} parameter(2)
  ROOT r = {x} scatter(x, n, u), update_window_dims={window}, inserted_window_dims={inserted},
    scatter_dims_to_operand_dims={index_map}, index_vector_dim=1, to_apply=add }}
{outer if depth == 2 else ""}
ENTRY e {{ x = {x} parameter(0) n = {n} parameter(1) u = {u} parameter(2)
  ROOT r = {x} fusion(x, n, u), kind=kLoop, calls=f{depth - 1} }}""")
    random = np.random.default_rng(4)
    shapes = [p.shape for p in module.entry.parameters]
    inputs = [random.integers(-1, 6, s.dims).astype(s.element_type.dtype) for s in shapes]
    (want,) = evaluate(module, *inputs)
    np.testing.assert_array_equal(np.asarray(heron.compile(module, target="sim:sm_90")(*inputs)), want)
