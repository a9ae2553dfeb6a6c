"""Softmaxes, norms and reductions as block kernels: values on the simulated GPU, and when they are chosen."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron import targets
from heron.analysis.blocks.config import config_of
from heron.analysis.blocks.row_plans import row_plans, row_tiling
from heron.analysis.blocks.tiling import Tiling
from heron.compiling import compile
from heron.evaluator import evaluate
from heron.hlo.text import parse
from heron.options import Options
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import get
from heron.passes.fusion import fusion_block_level_rewriter
from heron.trace import Trace
from tests.codegen.triton.kernels import expected, program, run
from tests.support import program as workload


def norm(dims: tuple[int, ...], row: int, t: str, both: bool) -> str:
    """Rows along dimension `row`, less their mean, by the root of their variance; with means as a second result."""
    kept = [d for d in range(len(dims)) if d != row]
    full, part = f"f32[{','.join(map(str, dims))}]", f"f32[{','.join(str(dims[d]) for d in kept)}]"
    spread = f"dimensions={{{','.join(map(str, kept))}}}"
    end = f"o = {full.replace('f32', t)} convert(y)"
    return f"""
      p = {full.replace("f32", t)} parameter(0)
      g = f32[{dims[row]}] parameter(1)
      x = {full} convert(p)
      zero = f32[] constant(0)
      n = f32[] constant({1 / dims[row]})
      nb = {part} broadcast(n), dimensions={{}}
      s = {part} reduce(x, zero), dimensions={{{row}}}, to_apply=add
      m = {part} multiply(s, nb)
      mb = {full} broadcast(m), {spread}
      c = {full} subtract(x, mb)
      q = {full} multiply(c, c)
      v = {part} reduce(q, zero), dimensions={{{row}}}, to_apply=add
      w = {part} multiply(v, nb)
      one = f32[] constant(1)
      ob = {part} broadcast(one), dimensions={{}}
      w1 = {part} add(w, ob)
      r = {part} rsqrt(w1)
      rb = {full} broadcast(r), {spread}
      z = {full} multiply(c, rb)
      gb = {full} broadcast(g), dimensions={{{row}}}
      y = {full} multiply(z, gb)
      {end if both else "ROOT " + end}
      {f"ROOT t = ({full.replace('f32', t)}, {part}) tuple(o, m)" if both else ""}
    """


@settings(max_examples=20, deadline=None)
@given(
    sizes=st.tuples(st.integers(2, 9), st.integers(2, 40)), length=st.integers(2, 300), row=st.integers(0, 2),
    t=st.sampled_from(["f32", "bf16"]), both=st.booleans(), choice=st.integers(0, 30), seed=st.integers(0, 9),
)  # fmt: skip
def test_any_norm(sizes: tuple[int, int], length: int, row: int, t: str, both: bool, choice: int, seed: int) -> None:
    """Rows along any dimension, cut in any way that is offered; a second result once a row."""
    dims = (*sizes[:row], length, *sizes[row:])
    text = program(norm(dims, row, t, both))
    module = parse(text)
    root = module.entry.root.operands[0] if both else module.entry.root
    tiling = row_tiling(root, frozenset(module.entry.instructions))
    plans = row_plans(tiling, targets.get("sm_90"))  # type: ignore[arg-type]
    assert isinstance(plans, list)
    rng = np.random.default_rng(seed)
    inputs = [rng.standard_normal(p.shape.dims).astype(p.shape.element_type.dtype) for p in module.entry.parameters]
    got = run(text, plans[choice % len(plans)].config, inputs)
    atol = {"f32": 2.0**-24, "bf16": 2.0**-8}[t] * 4 * length**0.5 + length * 2.0**-22
    for a, b in zip(got, expected(text, inputs), strict=True):
        np.testing.assert_allclose(a.astype(np.float32), b.astype(np.float32), rtol=2.0**-7, atol=atol)


@pytest.mark.parametrize("name", ["softmax", "layernorm"])
def test_workloads_as_block_kernels(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every fusion that tiles can do, given to block kernels."""
    slow = SimpleNamespace(seconds=1.0)
    monkeypatch.setattr(fusion_block_level_rewriter, "estimate", lambda *_: slow)
    monkeypatch.setattr(fusion_block_level_rewriter, "keeps_rows", lambda _: False)
    module = parse(workload(name).read_text())
    rng = np.random.default_rng(1)
    inputs = [rng.standard_normal(p.shape.dims).astype(p.shape.element_type.dtype) for p in module.entry.parameters]
    trace = Trace()
    executable = compile(module, targets.get("sim:sm_90"), Options(sim_check="all"), trace)
    assert any(d.ok and d.rule == "fusion-block-level-rewriter" for d in trace.decisions)
    got = executable(*inputs)
    for a, b in zip(got if isinstance(got, tuple) else (got,), evaluate(module, *inputs), strict=True):
        largest = float(np.abs(b.astype(np.float64)).max())
        np.testing.assert_allclose(a.astype(np.float64), b.astype(np.float64), rtol=2.0**-7, atol=2.0**-12 * largest)


def _decided(body: str, name: str) -> tuple[list[object], list[str]]:
    module = parse(program(body))
    ctx = PassContext(Options(triton="on"), targets.get("sm_90"))
    ctx.run_pass(get(name), module)
    return [i for i in module.entry.instructions if config_of(i)], [d.reason for d in ctx.trace.decisions if not d.ok]


def test_rows_across_memory_are_chosen() -> None:
    """Along memory the emitter of rows is as good."""
    assert len(_decided(norm((1024, 4096), 0, "f32", False), "softmax-rewriter-triton")[0]) == 1
    made, (reason,) = _decided(norm((4096, 1024), 1, "f32", False), "softmax-rewriter-triton")
    assert not made and "keep rows in registers, too" in reason


def test_rows_too_long() -> None:
    _, (reason,) = _decided(norm((16, 1 << 20), 1, "f32", False), "softmax-rewriter-triton")
    assert "a row does not fit into registers" in reason


def test_rows_of_equal_sizes_are_apart() -> None:
    """What is summed over two dimensions of one size is the square, not its diagonal."""
    body = """
      x = f32[8,28,28,64] parameter(0)
      zero = f32[] constant(0)
      s = f32[64] reduce(x, zero), dimensions={0,1,2}, to_apply=add
      sb = f32[8,28,28,64] broadcast(s), dimensions={3}
      ROOT d = f32[8,28,28,64] subtract(x, sb)
    """
    module = parse(program(body))
    tiling = row_tiling(module.entry.root, frozenset(module.entry.instructions))
    assert isinstance(tiling, Tiling) and len({len(set(w)) for w in tiling.values[module.entry.parameters[0]]}) == 1
    made, (reason,) = _decided(body, "softmax-rewriter-triton")
    assert not made and "as slow" in reason
