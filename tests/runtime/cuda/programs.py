"""Small programs for tests of the CUDA runtime."""

from __future__ import annotations

import numpy as np

import heron
from heron.hlo.ir.module import Module

#: products in two branches that join, and a kernel
DIAMOND = """HloModule diamond

ENTRY main {
  x = f32[16,16] parameter(0)
  y = f32[16,16] parameter(1)
  a = f32[16,16] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[16,16] dot(y, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  c = f32[16,16] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  s = f32[16,16] sine(c)
  d = f32[16,16] add(s, x)
  ROOT e = f32[16,16] dot(d, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""

SUM = """HloModule sum, input_output_alias={ {}: (0, {}, may-alias) }

ENTRY main {
  x = f32[1000] parameter(0)
  y = f32[1000] parameter(1)
  ROOT z = f32[1000] add(x, y)
}
"""

#: an inner loop of known length in one that asks its condition, with a branching inside
LOOPS = """HloModule loops

inner_body {
  p = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[8] get-tuple-element(p), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  half = f32[] constant(0.5)
  halves = f32[8] broadcast(half), dimensions={}
  y = f32[8] multiply(x, halves)
  ROOT t = (s32[], f32[8]) tuple(next, y)
}

inner_condition {
  p = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(700)
  ROOT c = pred[] compare(i, n), direction=LT
}

double {
  x = f32[8] parameter(0)
  ROOT y = f32[8] add(x, x)
}

sine {
  x = f32[8] parameter(0)
  ROOT y = f32[8] sine(x)
}

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

body {
  p = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[8] get-tuple-element(p), index=1
  zero = s32[] constant(0)
  start = (s32[], f32[8]) tuple(zero, x)
  inner = (s32[], f32[8]) while(start), condition=inner_condition, body=inner_body
  y = f32[8] get-tuple-element(inner), index=1
  one = f32[] constant(1)
  ones = f32[8] broadcast(one), dimensions={}
  z = f32[8] add(y, ones)
  r = f32[8] conditional(i, z, z, z), branch_computations={double, sine, double}
  step = s32[] constant(1)
  next = s32[] add(i, step)
  ROOT t = (s32[], f32[8]) tuple(next, r)
}

condition {
  p = (s32[], f32[8]) parameter(0)
  x = f32[8] get-tuple-element(p), index=1
  zero = f32[] constant(0)
  s = f32[] reduce(x, zero), dimensions={0}, to_apply=add
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(4)
  few = pred[] compare(i, n), direction=LT
  big = f32[] constant(100)
  low = pred[] compare(s, big), direction=LT
  ROOT c = pred[] and(few, low)
}

ENTRY main {
  x = f32[8] parameter(0)
  zero = s32[] constant(0)
  init = (s32[], f32[8]) tuple(zero, x)
  ROOT loop = (s32[], f32[8]) while(init), condition=condition, body=body
}
"""

#: products in both branches of a conditional inside a graph, of other shapes than those outside
BRANCHES = """HloModule branches

narrow {
  x = f32[128,128] parameter(0)
  ROOT y = f32[128,128] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

turned {
  x = f32[128,128] parameter(0)
  ROOT y = f32[128,128] dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={1}
}

ENTRY main {
  n = s32[] parameter(0)
  x = f32[128,128] parameter(1)
  y = f32[128,128] add(x, x)
  z = f32[128,128] conditional(n, y, y), branch_computations={narrow, turned}
  ROOT w = f32[128,128] sine(z)
}
"""

#: a Cholesky factor between kernels, inside a loop of unknown length
FACTORS = """HloModule factors

body {
  p = (s32[], f32[8,8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[8,8] get-tuple-element(p), index=1
  c = f32[8,8] cholesky(x), lower=true
  t = f32[8,8] transpose(c), dimensions={1,0}
  s = f32[8,8] add(c, t)
  one = s32[] constant(1)
  next = s32[] add(i, one)
  ROOT r = (s32[], f32[8,8]) tuple(next, s)
}

condition {
  p = (s32[], f32[8,8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[8,8] get-tuple-element(p), index=1
  n = s32[] constant(3)
  ROOT c = pred[] compare(i, n), direction=LT
}

ENTRY main {
  x = f32[8,8] parameter(0)
  n = s32[] parameter(1)
  start = (s32[], f32[8,8]) tuple(n, x)
  loop = (s32[], f32[8,8]) while(start), condition=condition, body=body
  ROOT y = f32[8,8] get-tuple-element(loop), index=1
}
"""

RANDOM = """HloModule random

ENTRY main {
  a = f32[] constant(0)
  b = f32[] constant(1)
  ROOT r = f32[64] rng(a, b), distribution=rng_uniform
}
"""


def parse(text: str) -> Module:
    return heron.parse(text)


def matrices(seed: int = 0, count: int = 2, shape: tuple[int, ...] = (16, 16)) -> list[np.ndarray]:
    generator = np.random.default_rng(seed)
    return [generator.standard_normal(shape).astype(np.float32) for _ in range(count)]


def close(got: np.ndarray, module: Module, *arrays: np.ndarray) -> None:
    """Compare with the evaluator's only output, within what sums of f32 in another order differ."""
    np.testing.assert_allclose(got, heron.evaluate(module, *arrays)[0], rtol=1e-4, atol=1e-3)


def chain(length: int, size: int = 64) -> str:
    """Products in a row, each of the one before with the program's argument."""
    lines = [f"  p0 = f32[{size},{size}] parameter(0)"]
    for n in range(1, length):
        lines.append(
            f"  p{n} = f32[{size},{size}] dot(p{n - 1}, p0), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"
        )
    lines.append(f"  ROOT r = f32[{size},{size}] negate(p{length - 1})")
    return "HloModule chain\n\nENTRY main {\n" + "\n".join(lines) + "\n}\n"
