"""Products of floats, of complex numbers, and of bytes by a matrix unit: every form, stride and size, sums whose bits do not depend on tiles, threads or what is added."""

from __future__ import annotations

import ctypes
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import heron
from heron.codegen.llvm.jit import host
from heron.codegen.llvm.optimize import parse as parse_llvm
from heron.codegen.native import float_gemm
from heron.codegen.native.complex_gemm import ComplexProductWriter
from heron.codegen.native.float_gemm import Form, Sizes
from heron.codegen.native.float_gemm_code import ProductWriter
from heron.codegen.native.matrix_unit_gemm import MatrixUnitWriter
from heron.hlo.ir.types import BF16, F32, F64, S8, U8, by_name
from heron.hlo.text import parse
from heron.options import Options
from heron.runtime.cpu.matrix_unit import is_permitted
from heron.runtime.executable import Executable
from heron.runtime.thunks import GemmThunk, walk

pytestmark = pytest.mark.skipif(float_gemm.form(F32) is None, reason="needs x86-64 with AVX2 and FMA")

FORMS = [Form(F32, 16, 6, 4), Form(F64, 8, 6, 4), Form(BF16, 16, 6, 4), Form(F32, 8, 6, 2), Form(F64, 4, 6, 2)]
FORMS += [Form(t, 16, 32, 4, is_unit=True) for t in (BF16, S8, U8)]
FORMS += [replace(f, is_complex=True) for f in FORMS if f.element in (F32, F64)]
NEEDS = {BF16: {"+avx512bf16", "+avx512vl", "+avx512bw"}}
UNIT_NEEDS = {BF16: {"+amx-bf16"}, S8: {"+amx-int8"}, U8: {"+amx-int8"}}


def _runs_here(form: Form) -> bool:
    if form.is_unit and not (UNIT_NEEDS[form.element] <= set(host().features.split(",")) and is_permitted()):
        return False
    needed = {"+avx512f", "+avx512bw", "+avx512dq", "+avx512vl"} if form.lanes * form.word_bytes == 64 else {"+avx2"}
    return needed | NEEDS.get(form.element, set()) <= set(host().features.split(","))


def _parts(form: Form) -> int:
    return 2 if form.is_complex else 1


def _product(form: Form, x: np.ndarray, y: np.ndarray, block: int, out: np.ndarray | None = None) -> np.ndarray:
    """The function itself, called as compiled programs do; `x` and `y` may be transposed views."""
    (batch, m, k), n = x.shape, y.shape[2]
    add = out is not None
    if out is None:
        kind = np.int32 if form.sum == "i32" else np.float64 if form.element is F64 else np.float32
        out = np.full((batch, m, n), 77, x.dtype if form.is_complex else kind)
    (row, left_k, left), (right_k, column, right) = (
        [s // a.itemsize for s in (*a.strides[1:], a.strides[0])] for a in (x, y)
    )
    p = _parts(form)
    places = (p * row, left_k, p * left, right_k, column, p * right, p * n, p * m * n)
    values = (m, p * n, p * k, *places, block, int(add))
    sizes = np.array(values, np.int64)
    table = (ctypes.c_void_p * 4)(x.ctypes.data, y.ctypes.data, out.ctypes.data, sizes.ctypes.data)
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(float_gemm.address(form, None))
    function(ctypes.addressof(table), 0, Sizes(form, batch, values).items)
    return out


def _arrays(form: Form, sizes: tuple[int, int, int, int], left: bool, right: bool, seed: int) -> list[np.ndarray]:
    batch, m, n, k = sizes
    rng = np.random.default_rng(seed)
    dtype = form.element.dtype

    def drawn(*dims: int) -> np.ndarray:
        if form.sum == "i32":
            return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, dims, dtype, endpoint=True)
        if form.is_complex:
            parts = rng.standard_normal((2, *dims)).astype(dtype)
            return parts[0] + 1j * parts[1]
        return rng.standard_normal(dims).astype(dtype)

    x = drawn(batch, k, m) if left else drawn(batch, m, k)
    y = drawn(batch, n, k) if right else drawn(batch, k, n)
    return [x.swapaxes(1, 2) if left else x, y.swapaxes(1, 2) if right else y]


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_the_text_of_a_form_is_llvm_on_every_machine(form: Form) -> None:
    """Few machines have all the instructions that the other tests need to run."""
    if form.is_unit:
        parse_llvm(MatrixUnitWriter(form).product_text(), "", "")
        return
    writer = (ComplexProductWriter if form.is_complex else ProductWriter)(form)
    for text in (writer.tiles_text(), writer.product_text()):
        parse_llvm(text, "", "")


@pytest.mark.parametrize("form", FORMS, ids=lambda f: f"{f.name}-{f.lanes}")
@settings(max_examples=30)
@given(
    st.tuples(st.integers(1, 2), st.integers(1, 60), st.integers(1, 140), st.integers(0, 40)),
    st.sampled_from((0, 0, 256, 511, 1023)),
    st.booleans(),
    st.booleans(),
    st.sampled_from((6, 48, 60)),
    st.integers(0, 2**32),
)
def test_every_size_and_order(
    form: Form, sizes: tuple[int, int, int, int], more: int, left: bool, right: bool, block: int, seed: int
) -> None:
    if not _runs_here(form):
        pytest.skip("not on this machine")
    batch, m, n, k = sizes
    x, y = _arrays(form, (batch, m, n, k + more), left, right, seed)
    got = _product(form, x, y, block)
    wide = [a.astype(np.complex128 if form.is_complex else np.float64) for a in (x, y)]
    ulp = {"i32": 0, "double": 1e-15, "float": 6e-7}[form.sum] * _parts(form)
    bound = np.abs(wide[0]) @ np.abs(wide[1]) * ulp
    assert (np.abs(got - wide[0] @ wide[1]) <= bound).all()
    # another way to cut it into work items has the same bits
    np.testing.assert_array_equal(_product(form, x, y, min(m, 12)), got)
    if float_gemm.is_one_stretch(form, k + more, in_rows=x.strides[2] == x.itemsize):
        there = np.full_like(got, 7 if form.sum == "i32" else 0.3)
        np.testing.assert_array_equal(_product(form, x, y, block, there.copy()), there + got)


@pytest.mark.parametrize(
    ("m", "n", "k", "rows"), [(50, 50, 5000, 30), (100, 32, 4096, 54), (32, 32, 8192, 18), (32, 32, 64, 32)]
)
def test_two_threads_have_as_many_rows(m: int, n: int, k: int, rows: int) -> None:
    """Blocks of 48 rows of 50 would leave a thread waiting for the other one. Those of a small product are one."""
    assert float_gemm.block_of(Form(F32, 16, 6, 4), 1, m, n, k) == rows


@pytest.mark.parametrize("form", [f for f in FORMS if f.element is BF16], ids=lambda f: f.name)
def test_nothing_is_read_behind_the_operands(form: Form) -> None:
    """A bf16 row of odd length ends in half a group; what follows it is no number."""
    if not _runs_here(form):
        pytest.skip("no instruction for bf16 here")
    x = np.full((1, 7, 8), np.nan, ml_dtypes.bfloat16)[:, :, :5]
    y = np.full((1, 8, 70), np.nan, ml_dtypes.bfloat16)[:, :5]
    x[...], y[...] = 1, 2
    np.testing.assert_array_equal(_product(form, x, y, 6), np.full((1, 7, 70), 10, np.float32))


@pytest.mark.parametrize("form", [f for f in FORMS if f.element is BF16], ids=lambda f: f.name)
def test_what_is_left_over_of_a_group_is_no_reason_to_copy_rows(form: Form) -> None:
    """Elements of a row lie in pairs; those of an odd row are multiplied where they lie, too, but for the last one."""
    assert not float_gemm.is_one_stretch(form, 401, in_rows=True) or form.is_unit
    assert float_gemm.is_one_stretch(form, 401, in_rows=False) and float_gemm.is_one_stretch(form, 1, in_rows=True)


@pytest.mark.parametrize(("operand", "threads"), [("f32", 1), ("f32", 2), ("f64", 2), ("c64", 2)])
def test_a_program_calls_it(operand: str, threads: int) -> None:
    text = f"""HloModule m
ENTRY e {{
  x = {operand}[3,40,70] parameter(0)
  y = {operand}[3,70,200] parameter(1)
  ROOT d = {operand}[3,40,200] dot(x, y), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{2}}, rhs_contracting_dims={{1}}
}}"""
    exe = heron.compile(parse(text), target="cpu", options=Options(threads=threads))
    assert not exe.kernels and "@heron_gemm_" in exe.stage("llvm")
    rng = np.random.default_rng(3)
    x, y = (rng.random(s).astype(by_name(operand).dtype) for s in ((3, 40, 70), (3, 70, 200)))
    np.testing.assert_allclose(exe(x, y), x @ y, rtol=1e-5)


@pytest.mark.parametrize("result", ["bf16", "f32"])
@pytest.mark.parametrize("sizes", [(3, 40, 200, 71), (1, 1, 7, 3), (2, 5, 1, 600)])
def test_a_program_multiplies_bf16(result: str, sizes: tuple[int, int, int, int]) -> None:
    """By the instruction for it where there is one, else in f32: sums are in f32 either way."""
    b, m, n, k = sizes
    text = f"""HloModule m
ENTRY e {{
  x = bf16[{b},{m},{k}] parameter(0)
  y = bf16[{b},{k},{n}] parameter(1)
  ROOT d = {result}[{b},{m},{n}] dot(x, y), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{2}}, rhs_contracting_dims={{1}}
}}"""
    exe = heron.compile(parse(text), target="cpu", options=Options())
    rng = np.random.default_rng(3)
    x, y = (rng.standard_normal(s).astype(ml_dtypes.bfloat16) for s in ((b, m, k), (b, k, n)))
    wanted = x.astype(np.float64) @ y.astype(np.float64)
    scale = np.abs(x.astype(np.float64)) @ np.abs(y.astype(np.float64))
    error = np.abs(exe(x, y).astype(np.float64) - wanted)
    assert (error <= 1e-6 * scale + (np.abs(wanted) / 200 if result == "bf16" else 0)).all()


SUM = """HloModule m
body {
  p = (s32[], f32[64,96], f32[8,64], f32[8,96]) parameter(0)
  n = s32[] get-tuple-element(p), index=0
  c = f32[64,96] get-tuple-element(p), index=1
  x = f32[8,64] get-tuple-element(p), index=2
  y = f32[8,96] get-tuple-element(p), index=3
  d = f32[64,96] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  s = f32[64,96] add(c, d)
  one = s32[] constant(1)
  m = s32[] add(n, one)
  ROOT r = (s32[], f32[64,96], f32[8,64], f32[8,96]) tuple(m, s, x, y)
}
condition {
  p = (s32[], f32[64,96], f32[8,64], f32[8,96]) parameter(0)
  n = s32[] get-tuple-element(p), index=0
  k = s32[] constant(5)
  ROOT l = pred[] compare(n, k), direction=LT
}
ENTRY e {
  z = s32[] constant(0)
  c = f32[64,96] parameter(0)
  x = f32[8,64] parameter(1)
  y = f32[8,96] parameter(2)
  t = (s32[], f32[64,96], f32[8,64], f32[8,96]) tuple(z, c, x, y)
  w = (s32[], f32[64,96], f32[8,64], f32[8,96]) while(t), condition=condition, body=body
  ROOT s = f32[64,96] get-tuple-element(w), index=1
}"""


def _products(text: str) -> tuple[list[GemmThunk], Executable]:
    from heron import targets
    from heron.backends.compiler import Compilation
    from heron.trace import Trace

    compilation = Compilation(parse(text), targets.get("cpu"), Options(), Trace())
    return [t for t in walk(compilation.lowered[0]) if isinstance(t, GemmThunk)], compilation.executable()


@pytest.mark.parametrize("t", ["f32", "c64"])
def test_a_product_is_added_where_the_sum_is(t: str) -> None:
    from heron.evaluator import evaluate

    text = SUM.replace("f32", t)
    (product,), exe = _products(text)
    assert product.adds
    rng = np.random.default_rng(4)
    arrays = [(rng.random(s) + 1j * rng.random(s)) for s in ((64, 96), (8, 64), (8, 96))]
    arrays = [(a if t == "c64" else np.real(a)).astype(by_name(t).dtype) for a in arrays]
    (wanted,) = evaluate(parse(text), *arrays)
    np.testing.assert_allclose(exe(*arrays), wanted, rtol=1e-5)
    assert any(d.rule == "product-sum" for d in exe.trace.decisions)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("s = f32[64,96] add(c, d)", "s = f32[64,96] subtract(c, d)"),
        ("s = f32[64,96] add(c, d)", "e = f32[64,96] add(c, d) s = f32[64,96] tanh(e)"),
        ("s = f32[64,96] add(c, d)", "s = f32[64,96] add(d, d)"),
    ],
)
def test_what_is_more_than_a_sum_is_not(old: str, new: str) -> None:
    products, _ = _products(SUM.replace(old, new))
    assert [p.adds for p in products] == [False]


def test_a_long_product_has_a_sum_of_its_own() -> None:
    """Stretches are summed first: added one by one to something else they would have other bits."""
    products, _ = _products(SUM.replace("f32[8,", f"f32[{float_gemm.GROUPS + 1},"))
    assert [p.adds for p in products] == [False]
