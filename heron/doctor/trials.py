"""A self-test of some seconds: a small program with a product, a reduction and a loop, on each target."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from heron import peer
from heron.compiling import compile
from heron.doctor.finding import Finding, find
from heron.evaluator import evaluate
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.options import Options
from heron.trace.summary import seconds

PROGRAM = """HloModule trial

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

step {
  state = (s32[], f32[24,24]) parameter(0)
  n = s32[] get-tuple-element(state), index=0
  x = f32[24,24] get-tuple-element(state), index=1
  one = s32[] constant(1)
  next = s32[] add(n, one)
  product = f32[24,24] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  bounded = f32[24,24] tanh(product)
  ROOT both = (s32[], f32[24,24]) tuple(next, bounded)
}

more {
  state = (s32[], f32[24,24]) parameter(0)
  n = s32[] get-tuple-element(state), index=0
  last = s32[] constant(3)
  ROOT less = pred[] compare(n, last), direction=LT
}

ENTRY main {
  x = f32[24,24] parameter(0)
  zero = s32[] constant(0)
  start = (s32[], f32[24,24]) tuple(zero, x)
  done = (s32[], f32[24,24]) while(start), condition=more, body=step
  y = f32[24,24] get-tuple-element(done), index=1
  nothing = f32[] constant(0)
  sums = f32[24] reduce(y, nothing), dimensions={1}, to_apply=add
  wide = f32[24,24] broadcast(sums), dimensions={0}
  ROOT quotient = f32[24,24] divide(y, wide)
}
"""


def trials() -> Iterator[Finding]:
    """Compile and run on the CPU and the checked simulator, make PTX, and compare with XLA where jaxlib is there."""
    module = parse(PROGRAM)
    x = np.random.default_rng(0).uniform(0.1, 1.0, (24, 24)).astype(np.float32)
    (expected,) = evaluate(module, x)
    yield find("compile and run, cpu", lambda: _run(module, "cpu", x, expected), "", _REPORT, True)
    yield find("compile and run, sim:sm_90", lambda: _run(module, "sim:sm_90", x, expected), "", _REPORT, True)
    yield find("PTX, sm_90", lambda: _ptx(module), "code for GPUs", "pip install 'heron[ptx]'")
    if peer.is_available():
        yield find("values of XLA:CPU", lambda: _peer(module, x, expected), "", _REPORT)


_REPORT = "please report it: `heron report FILE`"


def _run(module: Module, target: str, x: np.ndarray, expected: np.ndarray) -> str:
    start = time.perf_counter()
    options = Options(sim_check="all" if target.startswith("sim") else "")
    result = compile(module, target, options)(x)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-6)
    return f"right, in {seconds(time.perf_counter() - start)}"


def _ptx(module: Module) -> str:
    text = compile(module, "sm_90", Options()).stage("ptx")
    return f"{len(text.splitlines()):,} lines"


def _peer(module: Module, x: np.ndarray, expected: np.ndarray) -> str:
    program = peer.XlaProgram.compile(module)
    (result,) = program.run(program.place([x]))
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-6)
    return "the same"
