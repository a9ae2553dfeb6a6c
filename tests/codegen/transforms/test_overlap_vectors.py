"""Loops whose last vector overlaps the one before, as on machines without masks."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from heron.codegen.llvm.jit import host
from tests.codegen.transforms.kernels import lower, run_cpu

KERNEL = """
func.func @k(%in: tensor<{rows}x{n}x{t}>, %out: tensor<{rows}x{n}x{t}>{alias}, %sums: tensor<{rows}x{t}>, %lo: index, %hi: index) -> (tensor<{rows}x{n}x{t}>, tensor<{rows}x{t}>) attributes {{xla_gpu.entry}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant {n} : index
  %first = arith.constant {first} : {t}
  %r:2 = scf.for %i = %lo to %hi step %c1 iter_args(%a = %out, %b = %sums) -> (tensor<{rows}x{n}x{t}>, tensor<{rows}x{t}>) {{
    %s:2 = scf.for %j = %c0 to %n step %c1 iter_args(%c = %a, %carried = %first) -> (tensor<{rows}x{n}x{t}>, {t}) {{
      %u = tensor.extract %in[%i, %j] : tensor<{rows}x{n}x{t}>
      %w = {function} %u : {t}
      %total = {combine} : {t}
      %d = tensor.insert %w into %c[%i, %j] : tensor<{rows}x{n}x{t}>
      scf.yield %d, %total : tensor<{rows}x{n}x{t}>, {t}
    }}
    %e = tensor.insert %s#1 into %b[%i] : tensor<{rows}x{t}>
    scf.yield %s#0, %e : tensor<{rows}x{n}x{t}>, tensor<{rows}x{t}>
  }}
  func.return %r#0, %r#1 : tensor<{rows}x{n}x{t}>, tensor<{rows}x{t}>
}}
"""
ROWS = 5
COMBINE = {
    "sum": ("arith.addf %carried, %w fastmath<reassoc>", "0.0", np.sum),
    "product": ("arith.mulf %w, %carried fastmath<reassoc>", "1.0", np.prod),
    "largest": ("arith.maximumf %carried, %w", "0xFF800000", np.max),
}


def kernel(n: int, t: str = "f32", combine: str = "sum", function: str = "math.exp", alias: str = "") -> str:
    text, first, _ = COMBINE[combine]
    first = first.replace("0xFF800000", "0xFFF0000000000000") if t == "f64" else first
    return KERNEL.format(rows=ROWS, n=n, t=t, combine=text, first=first, function=function, alias=alias)


def loops(text: str, vector_bits: int = 256) -> int:
    """The loops of a lowered kernel, but for that over its rows."""
    return str(lower(text, vector_bits=vector_bits)).count("scf.for") - 1


@pytest.mark.parametrize("combine", COMBINE)
@pytest.mark.parametrize("t", ["f32", "f64"])
def test_values(t: str, combine: str) -> None:
    dtype = {"f32": np.float32, "f64": np.float64}[t]
    for n in (1, 7, 8, 9, 10, 12, 13, 15, 16, 17, 23, 31, 33, 47, 100, 131):
        x = np.random.default_rng(n).normal(size=(ROWS, n)).astype(dtype) * dtype(0.3)
        out, sums = np.empty_like(x), np.empty(ROWS, dtype)
        run_cpu(kernel(n, t, combine), [x, out, sums], 0, ROWS, vector_bits=256)
        np.testing.assert_allclose(out, np.exp(x), rtol=1e-6)
        np.testing.assert_allclose(sums, COMBINE[combine][2](np.exp(x), axis=1), rtol=2e-5)


@pytest.mark.parametrize(
    ("n", "t", "wanted"),
    [(8, "f32", 1), (16, "f32", 1), (13, "f32", 2), (12, "f64", 2), (16, "f64", 1), (100, "f32", 2), (2000, "f32", 1)],
)
def test_whole_vectors_and_one_more(n: int, t: str, wanted: int) -> None:
    assert loops(kernel(n, t)) == wanted
    assert loops(kernel(n, t), vector_bits=0) == 1


def test_a_sum_leaves_out_what_it_has() -> None:
    assert "arith.select" in str(lower(kernel(13), vector_bits=256))
    assert "arith.select" not in str(lower(kernel(13, combine="largest"), vector_bits=256))
    assert "arith.select" not in str(lower(kernel(12), vector_bits=256))  # half a vector


@pytest.mark.parametrize(("n", "wanted"), [(13, 3), (15, 4), (16, 1), (9, 2)])
def test_a_row_that_is_written_in_place_ends_with_smaller_vectors(n: int, wanted: int) -> None:
    """A second vector that overlaps would read what the first one wrote."""
    text = kernel(n, alias=" {xla_gpu.alias = 0 : i64}")
    assert loops(text) == wanted
    x = np.random.default_rng(n).normal(size=(ROWS, n)).astype(np.float32)
    wanted_x, sums = np.exp(x), np.empty(ROWS, np.float32)
    run_cpu(text, [x, x, sums], 0, ROWS, vector_bits=256)
    np.testing.assert_allclose(x, wanted_x, rtol=1e-6)
    np.testing.assert_allclose(sums, wanted_x.sum(1), rtol=1e-5)


def test_a_sum_in_order_stays() -> None:
    assert loops(kernel(13).replace(" fastmath<reassoc>", "")) == 1


@pytest.mark.parametrize(
    ("width", "absent"), [(256, ("avx512", "avx10")), (128, ("avx", "fma", "f16c", "vaes", "vpcl"))]
)
def test_programs_on_a_machine_without_masks(width: int, absent: tuple[str, ...]) -> None:
    """Rows of many lengths and types, transposes, products and functions, by vectors of 256 and of 128 bits."""
    if not {"+avx2", "+fma"} <= set(host().features.split(",")):
        pytest.skip("needs AVX2")
    features = ",".join(f for f in host().features.split(",") if not f[1:].startswith(absent))
    features += "".join(f",-{name}" for name in absent if name in ("avx", "fma", "f16c"))
    env = os.environ | {"HERON_HOST_CPU": host().cpu, "HERON_HOST_FEATURES": features}
    found = subprocess.run(
        [sys.executable, "-c", PROGRAMS, str(width)], env=env, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0 and "right" in found.stdout, found.stderr


PROGRAMS = textwrap.dedent("""
    import sys
    import numpy as np
    import heron
    from heron.codegen.llvm.jit import host
    from heron.evaluator import evaluate

    assert host().width == int(sys.argv[1])
    for t, dtype, tolerance in ("f32", np.float32, 3e-6), ("f64", np.float64, 1e-13):
        for n, m in (3, 9), (40, 13), (17, 31), (33, 64), (5, 100):
            text = f'''HloModule softmax
            add {{ a = {t}[] parameter(0)  b = {t}[] parameter(1)  ROOT s = {t}[] add(a, b) }}
            largest {{ a = {t}[] parameter(0)  b = {t}[] parameter(1)  ROOT s = {t}[] maximum(a, b) }}
            ENTRY e {{
              x = {t}[{n},{m}] parameter(0)
              least = {t}[] constant(-inf)
              zero = {t}[] constant(0)
              top = {t}[{n}] reduce(x, least), dimensions={{1}}, to_apply=largest
              tops = {t}[{n},{m}] broadcast(top), dimensions={{0}}
              d = {t}[{n},{m}] subtract(x, tops)
              y = {t}[{n},{m}] exponential(d)
              sum = {t}[{n}] reduce(y, zero), dimensions={{1}}, to_apply=add
              sums = {t}[{n},{m}] broadcast(sum), dimensions={{0}}
              p = {t}[{n},{m}] divide(y, sums)
              turned = {t}[{m},{n}] transpose(p), dimensions={{1,0}}
              h = {t}[{m},{n}] tanh(turned)
              g = {t}[{m},{m}] dot(h, h), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}
              ROOT r = ({t}[{n},{m}], {t}[{m},{n}], {t}[{m},{m}]) tuple(p, h, g)
            }}'''
            x = np.random.default_rng(n).normal(size=(n, m)).astype(dtype)
            for a, b in zip(heron.compile(heron.parse(text)).run([x]), evaluate(heron.parse(text), x)):
                np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * max(1, np.abs(b).max()))
    print("right")
""")


TURNED = """
func.func @k(%in: tensor<{rows}x{n}xf32>, %out: tensor<{rows}x{n}xf32>, %lo: index, %hi: index) -> tensor<{rows}x{n}xf32> attributes {{xla_gpu.entry}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %last = arith.constant {last} : index
  %n = arith.constant {n} : index
  %r = scf.for %i = %lo to %hi step %c1 iter_args(%a = %out) -> (tensor<{rows}x{n}xf32>) {{
    %s = scf.for %j = %c0 to %n step %c1 iter_args(%c = %a) -> (tensor<{rows}x{n}xf32>) {{
      %back = arith.subi %last, %j : index
      %u = tensor.extract %in[%i, {place}] : tensor<{rows}x{n}xf32>
      %d = tensor.insert %u into %c[%i, %j] : tensor<{rows}x{n}xf32>
      scf.yield %d : tensor<{rows}x{n}xf32>
    }} {attributes}
    scf.yield %s : tensor<{rows}x{n}xf32>
  }}
  func.return %r : tensor<{rows}x{n}xf32>
}}
"""


@pytest.mark.parametrize("n", [5, 6, 7, 9, 11, 13, 15, 31])
@pytest.mark.parametrize("attributes", ["", "{{heron.mask_rest}}"])
def test_rows_that_are_turned_or_ask_for_masks(n: int, attributes: str) -> None:
    """A copy of few numbers is two vectors, too, whichever way it is read."""
    for place, step in (("%j", 1), ("%back", -1)):
        facts = {"rows": ROWS, "n": n, "last": n - 1, "place": place, "attributes": attributes.format()}
        text = TURNED.format(**facts)
        assert loops(text) == 2
        x = np.random.default_rng(n).normal(size=(ROWS, n)).astype(np.float32)
        out = np.empty_like(x)
        run_cpu(text, [x, out], 0, ROWS, vector_bits=256)
        assert (out == x[:, ::step]).all()
