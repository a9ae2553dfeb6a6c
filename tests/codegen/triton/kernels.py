"""Block kernels of HLO programs, run by the simulated GPU's interpreter."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from heron.analysis.blocks.config import BlockConfig
from heron.analysis.fusion.fusion import fusion_of
from heron.codegen.triton.rows import emitter_of
from heron.codegen.triton.text import to_ttir
from heron.evaluator import evaluate
from heron.hlo.ir.computation import Computation
from heron.hlo.text import parse
from heron.runtime.sim.blocks import BlockKernel
from heron.runtime.sim.findings import Facts

COMBINERS = """
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

max {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] maximum(a, b)
}
"""


def program(body: str) -> str:
    """A module with that entry computation."""
    return f"HloModule m\n{COMBINERS}\nENTRY e {{\n{body}\n}}\n"


def attention(queries: int, keys: int, t: str = "bf16", mask: str = "", batch: int = 2, width: int = 16) -> str:
    """A program's lines: a softmax of scaled products, masked in a way, times values."""
    s, dims = f"f32[{batch},{queries},{keys}]", "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}"
    masks = {
        "": f"x = {s} add(y, y)",
        "causal": f"""
          i = s32[{queries},{keys}] iota(), iota_dimension=0
          j = s32[{queries},{keys}] iota(), iota_dimension=1
          ge = pred[{queries},{keys}] compare(i, j), direction=GE
          gb = pred[{batch},{queries},{keys}] broadcast(ge), dimensions={{1,2}}
          nb = {s} broadcast(least), dimensions={{}}
          x = {s} select(gb, y, nb)""",
        "added": f"""
          bias = f32[{queries},{keys}] parameter(3)
          bb = {s} broadcast(bias), dimensions={{1,2}}
          x = {s} add(y, bb)""",
        "by key": f"""
          bias = f32[{keys}] parameter(3)
          bb = {s} broadcast(bias), dimensions={{2}}
          x = {s} add(y, bb)""",
    }
    return f"""
      q = {t}[{batch},{queries},{width}] parameter(0)
      k = {t}[{batch},{keys},{width}] parameter(1)
      v = {t}[{batch},{keys},{width}] parameter(2)
      d = f32[{batch},{queries},{keys}] dot(q, k), {dims}, rhs_contracting_dims={{2}}
      c = f32[] constant(0.25)
      cb = {s} broadcast(c), dimensions={{}}
      y = {s} multiply(d, cb)
      least = f32[] constant(-inf)
      zero = f32[] constant(0)
      {masks[mask]}
      m = f32[{batch},{queries}] reduce(x, least), dimensions={{2}}, to_apply=max
      mb = {s} broadcast(m), dimensions={{0,1}}
      below = {s} subtract(x, mb)
      e = {s} exponential(below)
      t = f32[{batch},{queries}] reduce(e, zero), dimensions={{2}}, to_apply=add
      tb = {s} broadcast(t), dimensions={{0,1}}
      p = {s} divide(e, tb)
      pb = {t}[{batch},{queries},{keys}] convert(p)
      ROOT o = f32[{batch},{queries},{width}] dot(pb, v), {dims}, rhs_contracting_dims={{1}}
    """


def inputs_of(text: str, seed: int = 0) -> list[np.ndarray]:
    """Small whole numbers: their products and sums are exact in every type."""
    rng = np.random.default_rng(seed)
    entry = parse(text).entry
    return [rng.integers(-3, 4, p.shape.dims).astype(p.shape.element_type.dtype) for p in entry.parameters]


def run(text: str, config: BlockConfig, inputs: list[np.ndarray], checks: str = "all") -> list[np.ndarray]:
    """The outputs of the program as one block kernel."""
    return run_computation(parse(text).entry, config, inputs, checks)


def run_computation(
    body: Computation, config: BlockConfig, inputs: list[np.ndarray], checks: str = "all"
) -> list[np.ndarray]:
    """The outputs of a fusion's computation as one block kernel."""
    fusion = fusion_of(body)
    module, programs = emitter_of(fusion, config, "k").emit()
    outputs = [np.zeros(o.shape.dims, o.shape.element_type.dtype) for o in fusion.outputs]
    arrays = [*map(np.ascontiguousarray, inputs), *outputs]
    facts = Facts(outputs=frozenset(range(len(inputs), len(arrays))))
    written = [np.zeros(max(1, a.nbytes), np.uint8) for a in arrays]
    kernel = BlockKernel(to_ttir(module), programs, checks, facts)
    kernel([(a.ctypes.data, a.nbytes) for a in arrays], None, [w.ctypes.data for w in written])
    assert all(w.all() for w in written[len(inputs) :]), "an output is not written whole"
    return outputs


def expected(text: str, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """What the evaluator says."""
    found = evaluate(parse(text), *inputs)
    return list(found) if isinstance(found, (list, tuple)) else [found]


def check_equal(text: str, config: BlockConfig, seed: int = 0) -> None:
    """The kernel gives what the evaluator gives, bit by bit."""
    inputs = inputs_of(text, seed)
    for got, wanted in zip(run(text, config, inputs), expected(text, inputs), strict=True):
        wide = np.float64 if got.dtype in (ml_dtypes.bfloat16, np.float16) else got.dtype
        np.testing.assert_array_equal(got.astype(wide), np.asarray(wanted).astype(wide))
