"""Programs that passes once left broken: each verifies after its pass, and means what it meant."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import heron
from heron.analysis.values.splat import is_splat
from heron.evaluator import evaluate
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.literal import Literal, scalar
from heron.hlo.ir.module import Module
from heron.hlo.ir.types import C64, F32
from heron.hlo.verifier import VerifierOptions, verify
from heron.passes.framework.checks import random_array
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import get
from heron.passes.rewriting.building import constant
from tests.backends.agree import TARGETS, assert_agrees

SCALARS = "a = f32[] parameter(0)\nb = f32[] parameter(1)\n"
ADD = f"add {{\n{SCALARS}ROOT r = f32[] add(a, b)\n}}\n"

PROGRAMS = {
    # an output of a fusion that nobody reads
    "multi-output-fusion": f"""HloModule m
{ADD}
select {{
  p = f32[16,16] parameter(0)
  ROOT r = f32[16,16] negate(p)
}}
sums {{
  p = f32[16,16] parameter(0)
  zero = f32[] constant(0)
  r = f32[16] reduce(p, zero), dimensions={{1}}, to_apply=add
  q = f32[16,16] multiply(p, p)
  s = f32[16] reduce(q, zero), dimensions={{1}}, to_apply=add
  ROOT t = (f32[16], f32[16]) tuple(r, s)
}}
ENTRY main {{
  x = f32[16,16] parameter(0)
  n = f32[16,16] fusion(x), kind=kLoop, calls=select
  f = (f32[16], f32[16]) fusion(n), kind=kInput, calls=sums
  s = f32[16] get-tuple-element(f), index=1
  ROOT t = (f32[16], f32[16,16]) tuple(s, n)
}}""",
    # windows of no elements in a dimension that the result has not
    "gather-simplifier": """HloModule m
ENTRY main {
  x = f32[0,2] parameter(0)
  n = s32[3] constant({0, 0, 0})
  ROOT g = f32[3,2] gather(x, n), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1,
    slice_sizes={0,2}
}""",
    # what is started is one op
    "call-inliner": """HloModule m
inner {
  p = f32[4] parameter(0)
  n = f32[4] negate(p)
  ROOT r = f32[4] exponential(n)
}
ENTRY main {
  x = f32[4] parameter(0)
  s = ((f32[4]), f32[4], s32[]) call-start(x), to_apply=inner
  d = f32[4] call-done(s)
  ROOT c = f32[4] call(d), to_apply=inner
}""",
    # an order of instructions that the pass changes
    "algebraic-simplifier": """HloModule m, is_scheduled=true
ENTRY main {
  x = f32[4] parameter(0)
  zero = f32[] constant(-0)
  zeros = f32[4] broadcast(zero), dimensions={}
  s = f32[4] add(x, zeros)
  n = f32[4] negate(s)
  ROOT r = f32[4] negate(n)
}""",
    "fusion-wrapper": """HloModule m, is_scheduled=true
ENTRY main {
  x = f32[4] parameter(0)
  ROOT r = f32[4] exponential(x)
}""",
    # positions that are no indices
    "permutation-sort-expander": """HloModule m
less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] parameter(2)
  d = f32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=LT
}
ENTRY main {
  x = f32[8] parameter(0)
  i = f32[8] iota(), iota_dimension=0
  s = (f32[8], f32[8]) sort(x, i), dimensions={0}, to_apply=less
  p = f32[8] get-tuple-element(s), index=1
  ROOT r = (f32[8], f32[8]) sort(p, i), dimensions={0}, to_apply=less
}""",
}


def _inputs(module: Module) -> list[np.ndarray]:
    random = np.random.default_rng(0)
    return [random_array(p.shape.element_type, p.shape.dims, random) for p in module.entry.parameters]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_pass_leaves_a_program_that_verifies(name: str) -> None:
    module = heron.parse(PROGRAMS[name])
    verify(module)
    inputs = _inputs(module)
    wanted = evaluate(module, *inputs)
    PassContext().run_pass(get(name), module)
    verify(module, VerifierOptions(scheduled=module.is_scheduled))
    for found, value in zip(evaluate(module, *inputs), wanted, strict=True):
        np.testing.assert_array_equal(found, value)


def test_positions_that_wrap_are_no_permutation() -> None:
    """300 positions as s8 come twice."""
    text = PROGRAMS["permutation-sort-expander"].replace("f32[8]", "s8[300]").replace("f32[]", "s8[]")
    module = heron.parse(text)
    assert not PassContext().run_pass(get("permutation-sort-expander"), module)


def test_an_instruction_that_does_not_verify_is_left_alone() -> None:
    module = heron.parse("""HloModule m
ENTRY main {
  x = f16[4] parameter(0)
  low = f32[] constant(-inf)
  lows = f32[4] broadcast(low), dimensions={}
  m = f32[4] maximum(x, lows)
  ROOT r = f32[4] negate(m)
}""")
    assert not PassContext().run_pass(get("algebraic-simplifier"), module)


# -- functions that kernels apply, and sizes, which are known ----------------------------------------------------------
FUSED = {
    "map": "r = f32[4,6] map(x, x), dimensions={0,1}, to_apply=f",
    "reduce": "r = f32[4] reduce(x, zero), dimensions={1}, to_apply=f",
    "reduce-window": "r = f32[4,3] reduce-window(x, zero), window={size=1x2 stride=1x2}, to_apply=f",
    "sort": "r = f32[4,6] sort(x), dimensions={1}, to_apply=g",
    "scatter": "r = f32[4,6] scatter(x, n, u), update_window_dims={1}, inserted_window_dims={0}, "
    "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f",
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", FUSED)
def test_functions_with_fusions(name: str, target: str) -> None:
    text = f"""HloModule m
{ADD}less {{\n{SCALARS}ROOT r = pred[] compare(a, b), direction=LT\n}}
f {{\n{SCALARS}ROOT r = f32[] fusion(a, b), kind=kLoop, calls=add\n}}
g {{\n{SCALARS}ROOT r = pred[] fusion(a, b), kind=kLoop, calls=less\n}}
ENTRY main {{
  x = f32[4,6] parameter(0)
  u = f32[2,6] parameter(1)
  n = s32[2,1] constant({{{{3}},{{1}}}})
  zero = f32[] constant(0)
  ROOT {FUSED[name]}
}}"""
    assert_agrees(heron.parse(text), target)


@pytest.mark.parametrize("target", TARGETS)
def test_sizes_that_are_known(target: str) -> None:
    text = """HloModule m
ENTRY main {
  x = f32[3,4] parameter(0)
  four = s32[] constant(4)
  s = f32[3,4] set-dimension-size(x, four), dimensions={1}
  rows = s32[] get-dimension-size(s), dimensions={0}
  n = f32[] convert(rows)
  ns = f32[3,4] broadcast(n), dimensions={}
  a = f32[3,4] add(s, ns)
  columns = s32[] get-dimension-size(a), dimensions={1}
  ROOT r = (f32[3,4], s32[]) tuple(a, columns)
}"""
    assert_agrees(heron.parse(text), target)


# -- complex numbers ---------------------------------------------------------------------------------------------------
def test_signs_of_complex_zeros() -> None:
    """-0.0 stands for a zero with that sign in both parts, 0 for any."""
    c = Computation("c")

    def splat(value: complex | float) -> list[bool]:
        t = C64 if isinstance(value, complex) else F32
        of = scalar(t, 0).shape
        i = constant(c, Literal(of, np.array(value, t.dtype)))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return [is_splat(i, -0.0), is_splat(i, 0.0), is_splat(i, 0), is_splat(i, 1)]

    assert splat(complex(-0.0, -0.0)) == [True, False, True, False]
    assert splat(complex(-0.0, 0.0)) == [False, False, True, False]
    assert splat(complex(0.0, 0.0)) == [False, True, True, False]
    assert splat(complex(1.0, 0.0)) == [False, False, False, True]
    assert splat(complex(0.0, 1.0)) == [False, False, False, False]
    assert splat(-0.0) == [True, False, True, False]


@pytest.mark.parametrize("zero", ["(-0, 0)", "(0, -0)", "(-0, -0)", "(0, 0)"])
def test_a_complex_zero_is_added_with_its_signs(zero: str) -> None:
    module = heron.parse(f"""HloModule m
ENTRY main {{
  x = c64[4] parameter(0)
  z = c64[] constant({zero})
  zs = c64[4] broadcast(z), dimensions={{}}
  ROOT r = c64[4] add(x, zs)
}}""")
    x = np.array([complex(a, b) for a in (0.0, -0.0) for b in (0.0, -0.0)], np.complex64)
    wanted = evaluate(module, x)[0]
    PassContext().run_pass(get("algebraic-simplifier"), module)
    assert evaluate(module, x)[0].tobytes() == wanted.tobytes()
