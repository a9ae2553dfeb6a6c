"""Products of narrow integers: exact for every form, stride and size."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import heron
from heron.codegen.llvm.jit import host
from heron.codegen.native import int_gemm
from heron.hlo.ir.types import S8, S16, U8, ElementType
from heron.hlo.text import parse
from heron.options import Options

pytestmark = pytest.mark.skipif(int_gemm.form(S8) is None, reason="needs x86-64 with AVX2")

FORMS = [
    int_gemm.Form(element, *size, vnni)
    for element in (S8, U8, S16)
    for size in ((16, 4), (8, 2))
    for vnni in (False, True)
    if not (vnni and element is not S8)
]


def _runs_here(form: int_gemm.Form) -> bool:
    needed = {"+avx512bw"} if form.lanes == 16 else set()
    needed |= {"+avx512vnni", "+avx512vl"} if form.vnni else set()
    return needed <= set(host().features.split(","))


def _random(rng: np.random.Generator, t: ElementType, shape: tuple[int, ...]) -> np.ndarray:
    limits = np.iinfo(t.dtype)
    corners = np.array([limits.min, limits.max, 0, 1])
    drawn = rng.integers(limits.min, limits.max + 1, shape)
    return np.where(rng.random(shape) < 0.2, rng.choice(corners, shape), drawn).astype(t.dtype)


def _product(form: int_gemm.Form, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The function itself, called as compiled programs do; `x` and `y` may be transposed views."""
    (batch, m, k), n = x.shape, y.shape[2]
    out = np.full((batch, m, n), 77, np.int32)
    strides = [*(s // x.itemsize for s in x.strides[1:]), *(s // y.itemsize for s in y.strides[1:])]
    sizes = np.array([m, n, k, *strides], np.int64)
    table = (ctypes.c_void_p * 4)(x.ctypes.data, y.ctypes.data, out.ctypes.data, sizes.ctypes.data)
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(int_gemm.address(form, None))
    function(ctypes.addressof(table), 0, batch * -(-n // form.columns))
    return out


@pytest.mark.parametrize("form", FORMS, ids=lambda f: f"{f.element.name}-{f.lanes}{'-vnni' if f.vnni else ''}")
@settings(max_examples=25)
@given(
    st.tuples(st.integers(1, 2), st.integers(1, 14), st.integers(1, 140), st.integers(1, 40)),
    st.sampled_from((0, 0, 512, 1023)),
    st.booleans(),
    st.booleans(),
    st.integers(0, 2**32),
)
def test_every_size_and_order(
    form: int_gemm.Form, sizes: tuple[int, int, int, int], more: int, left: bool, right: bool, seed: int
) -> None:
    if not _runs_here(form):
        pytest.skip("not on this machine")
    batch, m, n, k = sizes
    k += more
    rng = np.random.default_rng(seed)
    x = _random(rng, form.element, (batch, k, m) if left else (batch, m, k))
    y = _random(rng, form.element, (batch, n, k) if right else (batch, k, n))
    x, y = x.swapaxes(1, 2) if left else x, y.swapaxes(1, 2) if right else y
    wanted = (x.astype(np.int64) @ y.astype(np.int64)).astype(np.int32)
    np.testing.assert_array_equal(_product(form, x, y), wanted)


@pytest.mark.parametrize(("operand", "result"), [("s8", "s32"), ("u8", "u32"), ("s16", "s32"), ("u8", "s32")])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_program_calls_it(operand: str, result: str, threads: int) -> None:
    text = f"""HloModule m
ENTRY e {{
  x = {operand}[3,40,70] parameter(0)
  y = {operand}[3,70,200] parameter(1)
  ROOT d = {result}[3,40,200] dot(x, y), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{2}}, rhs_contracting_dims={{1}}
}}"""
    exe = heron.compile(parse(text), target="cpu", options=Options(threads=threads))
    assert not exe.kernels, "a library's product, no kernel"
    rng = np.random.default_rng(3)
    t = {"s8": S8, "u8": U8, "s16": S16}[operand]
    x, y = _random(rng, t, (3, 40, 70)), _random(rng, t, (3, 70, 200))
    wanted = (x.astype(np.int64) @ y.astype(np.int64)).astype(result.replace("s", "int").replace("u", "uint"))
    np.testing.assert_array_equal(exe(x, y), wanted)


@pytest.mark.parametrize(("operand", "result"), [("s8", "s32"), ("u8", "u32"), ("s16", "s32")])
def test_nothing_is_touched_behind_the_matrices(operand: str, result: str) -> None:
    """Rows of an odd length are read where they lie, a group at a time, but for those at the end of the matrix."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(operand=operand, result=result)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


#: in a process of its own: it would end if a byte behind a matrix were read
PROGRAM = """
import numpy as np
import heron
from heron.hlo.ir.types import by_name
from tests import guarded

text = "HloModule m" + chr(10) + ("ENTRY e {{ x = {operand}[64,41] parameter(0) y = {operand}[41,70] parameter(1) "
    "ROOT d = {result}[64,70] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}} }}")
x, y = (np.arange(n * m).reshape(n, m).astype(by_name("{operand}").dtype) for n, m in ((64, 41), (41, 70)))
(got,) = guarded.run(heron.parse(text), [x, y])
np.testing.assert_array_equal(got, (x.astype(np.int64) @ y.astype(np.int64)).astype(got.dtype))
"""
