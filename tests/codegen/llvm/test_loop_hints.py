"""Hints about loops: whether the last vector is a part of one, how wide vectors are and how many at a time; values."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import heron
from heron.codegen.llvm.jit import host
from heron.evaluator import evaluate

RNG = np.random.default_rng(3)
DTYPES = {"f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16, "s8": np.int8, "s32": np.int32}
BIAS = """HloModule m
ENTRY e {{
  x = {t}[40,{n}] parameter(0)
  b = {t}[{n}] parameter(1)
  w = {t}[40,{n}] broadcast(b), dimensions={{1}}
  {turned}
  y = {t}[40,{n}] multiply({left}, w)
  ROOT r = {t}[40,{n}] add(y, x)
}}"""


def bias(t: str, n: int, is_turned: bool) -> str:
    turned = f"v = {t}[40,{n}] reverse(x), dimensions={{1}}" if is_turned else ""
    return BIAS.format(t=t, n=n, turned=turned, left="v" if is_turned else "x")


@pytest.mark.parametrize(
    ("t", "n", "is_turned", "masked"),
    [
        ("f32", 31, False, True), ("s32", 28, False, True), ("f64", 31, False, True), ("bf16", 45, False, True),
        ("s8", 60, False, True), ("f32", 25, False, False), ("f64", 28, False, False), ("f32", 45, False, False),
        ("bf16", 48, False, False), ("f32", 31, True, False),
    ],
)  # fmt: skip
@pytest.mark.skipif(host().width < 512, reason="the machine has no masks")
def test_a_loop_ends_with_a_part_of_a_vector_where_much_is_left_over(
    t: str, n: int, is_turned: bool, masked: bool
) -> None:
    """More of narrow numbers, which LLVM does one by one; not where a vector would be turned round under its mask."""
    program = heron.compile(heron.parse(bias(t, n, is_turned)), "cpu")
    assert ("vectorize.predicate" in str(program.stage("llvm"))) == masked
    x, b = (RNG.integers(-9, 9, s).astype(DTYPES[t]) for s in ((40, n), (n,)))
    np.testing.assert_array_equal(program.run([x, b])[0], (x[:, ::-1] if is_turned else x) * b + x)


STATE = """HloModule m
body {{
  s = (s32[], {t}[40,{n}], {t}[40]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = {t}[40,{n}] get-tuple-element(s), index=1
  d = {t}[40] get-tuple-element(s), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  w = {t}[40,{n}] broadcast(d), dimensions={{0}}
  m = {t}[40,{n}] multiply(x, w)
  y = {t}[40,{n}] add(m, x)
  ROOT r = (s32[], {t}[40,{n}], {t}[40]) tuple(next, y, d)
}}
condition {{
  s = (s32[], {t}[40,{n}], {t}[40]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  k = s32[] constant(200)
  ROOT l = pred[] compare(i, k), direction=LT
}}
ENTRY e {{
  x = {t}[40,{n}] parameter(0)
  d = {t}[40] parameter(1)
  zero = s32[] constant(0)
  s = (s32[], {t}[40,{n}], {t}[40]) tuple(zero, x, d)
  w = (s32[], {t}[40,{n}], {t}[40]) while(s), condition=condition, body=body
  ROOT r = {t}[40,{n}] get-tuple-element(w), index=1
}}"""


@pytest.mark.parametrize(
    ("t", "n", "lanes"), [("f32", 13, 4), ("f32", 12, 4), ("f32", 11, 8), ("f64", 13, 4), ("f64", 7, 4), ("f32", 31, 0)]
)
@pytest.mark.skipif(host().width < 512, reason="the machine has no masks")
def test_rows_written_in_place_have_no_masks(t: str, n: int, lanes: int) -> None:
    """Of few elements they have whole vectors that fit best, where LLVM would have one with a mask."""
    program = heron.compile(heron.parse(STATE.format(t=t, n=n)), "cpu")
    text = str(program.stage("llvm"))
    assert "vectorize.predicate" not in text and (f'vectorize.width", i32 {lanes}}}' in text) == (lanes > 0)
    x, d = (RNG.integers(-2, 1, s).astype(DTYPES[t]) for s in ((40, n), (40,)))
    np.testing.assert_array_equal(program.run([x, d])[0], x * (d[:, None] + 1) ** 200)


def _mixed(rounds: int, t: str) -> str:
    """Numbers of type t made of 32-bit ones that go through some rounds of sums and exclusive ors."""
    lines = ["x0 = u32[1000] parameter(0)", "y0 = u32[1000] parameter(1)"]
    for n in range(rounds):
        lines += [f"x{n + 1} = u32[1000] add(x{n}, y{n})", f"y{n + 1} = u32[1000] xor(y{n}, x{n + 1})"]
    lines += [f"a = {t}[1000] convert(x{rounds})", f"b = {t}[1000] convert(y{rounds})"]
    return "\n ".join(["HloModule m\nENTRY e {", *lines, f"ROOT r = {t}[1000] multiply(a, b)\n}}"])


@pytest.mark.parametrize(("rounds", "t", "is_wide"), [(12, "u64", True), (12, "u32", False), (0, "u64", False)])
def test_vectors_are_full_of_the_numbers_of_most_operations(rounds: int, t: str, is_wide: bool) -> None:
    program = heron.compile(heron.parse(_mixed(rounds, t)), "cpu")
    assert (f'vectorize.width", i32 {host().width // 32}}}' in str(program.stage("llvm"))) == is_wide
    x, y = RNG.integers(0, 2**32, (2, 1000), dtype=np.uint32)
    found = program.run([x, y])[0]
    for _ in range(rounds):
        x = x + y
        y = y ^ x
    wide = np.dtype({"u32": np.uint32, "u64": np.uint64}[t])
    np.testing.assert_array_equal(found, x.astype(wide) * y.astype(wide))


def _fractions(levels: int, size: int) -> str:
    """Fractions in the denominators of fractions."""
    lines = [f"x = f32[{size}] parameter(0)", f"y0 = f32[{size}] parameter(1)"]
    for n in range(levels):
        lines += [f"a{n} = f32[{size}] add(x, y{n})", f"q{n} = f32[{size}] divide(x, a{n})"]
        lines.append(f"y{n + 1} = f32[{size}] add(q{n}, x)")
    return "\n ".join(["HloModule m\nENTRY e {", *lines, f"ROOT r = f32[{size}] negate(y{levels})\n}}"])


@pytest.mark.parametrize(
    ("levels", "size", "together"), [(10, 1000, True), (3, 1000, False), (150, 1000, False), (10, 40, False)]
)
def test_long_chains_take_two_vectors_at_a_time(levels: int, size: int, together: bool) -> None:
    text = _fractions(levels, size)
    program = heron.compile(heron.parse(text), "cpu")
    assert ('interleave.count", i32 2}' in str(program.stage("llvm"))) == together
    x, y = RNG.uniform(1, 2, (2, size)).astype(np.float32)
    np.testing.assert_array_equal(program.run([x, y])[0], evaluate(heron.parse(text), x, y)[0])


FIELD = """HloModule m
ENTRY e {{
  h = {t}[{b},{n}] parameter(0)
  w = {t}[{n},{m}] parameter(1)
  c = {t}[{p}] parameter(2)
  d = {t}[{b},{k}] parameter(3)
  y = {t}[{b},{m}] dot(h, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  c1 = {t}[{r},{p}] broadcast(c), dimensions={{1}}
  c2 = {t}[{m}] reshape(c1)
  c3 = {t}[{b},{m}] broadcast(c2), dimensions={{1}}
  z = {t}[{b},{m}] add(y, c3)
  f = {t}[{b},{m}] tanh(z)
  g = {t}[{b},{n},{k}] reshape(f)
  ROOT v = {t}[{b},{n}] dot(g, d), lhs_batch_dims={{0}}, lhs_contracting_dims={{2}}, rhs_batch_dims={{0}},
    rhs_contracting_dims={{1}}
}}"""


@pytest.mark.parametrize(
    ("t", "b", "n", "k", "repeats", "wide"),
    [
        ("f32", 16, 8, 4, 1, True), ("f32", 5, 8, 3, 1, True), ("f32", 3, 20, 5, 1, True), ("f64", 7, 9, 3, 1, True),
        ("f32", 16, 8, 4, 4, False), ("f32", 6, 8, 8, 1, False), ("f32", 4, 7, 3, 1, False),
    ],
)  # fmt: skip
def test_functions_of_numbers_with_gaps_are_vectors_without_masks(
    t: str, b: int, n: int, k: int, repeats: int, wide: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    """The matrix of a controlled differential equation, times the control; not where the bias is a remainder's, where a
    row is a whole vector of functions, or shorter than a vector. LLVM has nothing to tell the user."""
    m = n * k
    text = FIELD.format(t=t, b=b, n=n, k=k, m=m, r=repeats, p=m // repeats)
    module = heron.parse(text)
    program = heron.compile(module, "cpu")
    shapes = (b, n), (n, m), (m // repeats,), (b, k)
    arrays = [RNG.standard_normal(s).astype(DTYPES[t]) for s in shapes]
    np.testing.assert_allclose(program.run(arrays)[0], evaluate(heron.parse(text), *arrays)[0], rtol=1e-5, atol=1e-5)
    assert ("vectorize.width" in str(program.stage("llvm"))) == (wide and host().width < 512)
    assert "remark" not in capfd.readouterr().err


@pytest.mark.parametrize(
    ("n", "k", "wide"), [(8, 3, True), (10, 3, True), (15, 12, True), (7, 3, False), (40, 3, False)]
)
@pytest.mark.skipif(host().width != 256, reason="the width of vectors")
def test_one_function_of_numbers_with_gaps(n: int, k: int, wide: bool) -> None:
    """A dense layer of few features, whose weights are read across their rows."""
    text = f"""HloModule m
ENTRY e {{
  x = f32[60,{k}] parameter(0)
  w = f32[{n},{k}] parameter(1)
  d = f32[60,{n}] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}
  ROOT r = f32[60,{n}] tanh(d)
}}"""
    program = heron.compile(heron.parse(text), "cpu")
    assert ('vectorize.width", i32 8' in str(program.stage("llvm"))) == wide
    x, w = (RNG.standard_normal(s).astype(np.float32) for s in ((60, k), (n, k)))
    np.testing.assert_allclose(program.run([x, w])[0], np.tanh(x.astype(float) @ w.T), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("rows", "columns", "written_out"), [(3, 3, True), (4, 2, True), (3, 4, False), (5, 3, False)])
@pytest.mark.skipif(host().width >= 512, reason="the machine has masks")
def test_small_matrices_are_written_out(rows: int, columns: int, written_out: bool) -> None:
    """A row of three elements would be a part of a vector, stored under a mask."""
    text = f"""HloModule m
ENTRY e {{
  x = f32[400,{rows}] parameter(0)
  y = f32[400,{columns}] parameter(1)
  a = f32[400,{rows},{columns}] broadcast(x), dimensions={{0,1}}
  b = f32[400,{rows},{columns}] broadcast(y), dimensions={{0,2}}
  ROOT r = f32[400,{rows},{columns}] multiply(a, b)
}}"""
    program = heron.compile(heron.parse(text), "cpu")
    assert (str(program.stage("llvm")).count("fmul") >= rows * columns) == written_out
    x, y = (RNG.normal(size=(400, n)).astype(np.float32) for n in (rows, columns))
    np.testing.assert_array_equal(program.run([x, y])[0], x[:, :, None] * y[:, None, :])


@pytest.mark.parametrize("n", [2, 3, 5, 6, 7, 9, 10, 11, 12, 13, 15])
@pytest.mark.parametrize("t", ["f32", "f64"])
@pytest.mark.skipif(host().width >= 512, reason="the machine has masks")
def test_short_states_are_written_without_masks(t: str, n: int, capfd: pytest.CaptureFixture[str]) -> None:
    """A state of 13 floats took 25 ns a step: what is written under a mask can not be read until it is in the cache."""
    state = (
        STATE.replace("[40,{n}]", "[{n}]").replace("{t}[40]", "{t}[]").replace("dimensions={{0}}", "dimensions={{}}")
    )
    program = heron.compile(heron.parse(state.format(t=t, n=n)), "cpu")
    assert "maskmov" not in str(program.stage("asm"))
    x, d = RNG.integers(-2, 1, n).astype(DTYPES[t]), np.array(-1, DTYPES[t])
    np.testing.assert_array_equal(program.run([x, d])[0], x * (d + 1) ** 200)
    assert "not vectorized" not in capfd.readouterr().err
