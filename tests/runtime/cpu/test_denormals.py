"""Whether denormals count is an option of CPU programs: in kernels, on all threads, in products, and not in Python."""

from __future__ import annotations

import ctypes
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import heron
from heron import archive
from heron.codegen.native import float_mode
from heron.hlo import text
from heron.options import Options
from heron.runtime import compiled
from tests.pjrt.under_jax import run

TINY = np.float32(1e-40)
PROGRAM = """HloModule m
ENTRY main {
  x = f32[SIZE] parameter(0)
  half = f32[] constant(0.5)
  h = f32[SIZE] broadcast(half), dimensions={}
  ROOT r = f32[SIZE] multiply(x, h)
}
"""
PRODUCT = """HloModule m
ENTRY main {
  x = f32[256,256] parameter(0)
  y = f32[256,256] parameter(1)
  ROOT r = f32[256,256] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


def _run(source: str, denormals: str, *inputs: np.ndarray, **options: object) -> list[np.ndarray]:
    module = text.parse(source)
    return heron.compile(module, target="cpu", options=Options(denormals=denormals, **options)).run(list(inputs))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("size", [3, 1_000_000])
def test_denormals_are_kept_or_taken_for_zero_on_every_thread(size: int, threads: int) -> None:
    x = np.full(size, TINY)
    source = PROGRAM.replace("SIZE", str(size))
    (kept,) = _run(source, "keep", x, threads=threads)
    (usual,) = _run(source, "auto", x, threads=threads)
    (flushed,) = _run(source, "flush", x, threads=threads)
    assert (kept == TINY * np.float32(0.5)).all() and (usual == kept).all() and (kept > 0).all()
    assert (flushed == 0).all()
    (kept_again,) = _run(source, "keep", x, threads=threads)
    assert (kept_again == kept).all()
    assert TINY * np.float32(0.5) > 0, "the caller's own mode is as it was"


def test_programs_share_the_functions_of_the_mode(tmp_path: Path) -> None:
    """LLVM took half a millisecond for them in each program. A saved one finds them again."""
    program = heron.compile(text.parse(PROGRAM.replace("SIZE", "3")), options=Options(denormals="flush"))
    written = program.stage("llvm")
    assert "declare i64 @heron_float_mode()" in written and "@heron_set_float_mode(i64 %mode)" not in written
    archive.save(program, tmp_path / "flush.heron")
    (flushed,) = archive.load(tmp_path / "flush.heron").run([np.full(3, TINY)])
    assert (flushed == 0).all()


def test_the_functions_of_the_mode_without_code_that_calls_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where arrays do not lie as that code expects."""
    monkeypatch.setattr(compiled, "functions", lambda _: None)
    found = float_mode.addresses.__wrapped__()
    read = ctypes.CFUNCTYPE(ctypes.c_int64)(found["heron_float_mode"])
    write = ctypes.CFUNCTYPE(None, ctypes.c_int64)(found["heron_set_float_mode"])
    usual, flush = read(), float_mode.flush_bits()
    write(usual | flush)
    now = read()
    write(usual)
    assert now == usual | flush and read() == usual


def test_denormals_in_products_of_a_library() -> None:
    x, y = np.full((256, 256), TINY), np.full((256, 256), np.float32(1.0))
    (kept,) = _run(PRODUCT, "keep", x, y)
    (flushed,) = _run(PRODUCT, "flush", x, y)
    assert (kept > 0).all() and (flushed == 0).all()


@pytest.mark.parametrize("name", ["float8_e5m2", "float8_e4m3fn", "float8_e4m3b11fnuz", "float8_e3m4", "float16"])
def test_denormals_of_small_types_are_numbers_of_f32(name: str) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name, None) or np.float16)
    every = np.arange(1 << 8 * dtype.itemsize, dtype=f"u{dtype.itemsize}").view(dtype)
    every = every[np.isfinite(every.astype(np.float32))]
    code = {"float16": "f16"}.get(name, "f8" + name.removeprefix("float8_"))
    source = f"""HloModule m
ENTRY main {{
  x = {code}[{len(every)}] parameter(0)
  w = f32[{len(every)}] convert(x)
  two = f32[] constant(2)
  t = f32[{len(every)}] broadcast(two), dimensions={{}}
  m = f32[{len(every)}] multiply(w, t)
  n = {code}[{len(every)}] convert(m)
  ROOT r = (f32[{len(every)}], {code}[{len(every)}]) tuple(m, n)
}}
"""
    for denormals in ("keep", "flush"):
        wide, narrow = _run(source, denormals, every)
        np.testing.assert_array_equal(wide, every.astype(np.float32) * 2)
        with np.errstate(over="ignore"):
            expected = (every.astype(np.float32) * 2).astype(dtype)
        np.testing.assert_array_equal(narrow.astype(np.float32), expected.astype(np.float32))


UNDER_JAX = """
import jax, numpy as np
x = jax.device_put(np.full(100_000, 1e-40, np.float32), jax.devices("heron")[0])
half = lambda a: np.asarray(a) * np.float32(0.5)
print(float(jax.jit(lambda x: x * np.float32(0.5))(x).max()) > 0)
shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
print(float(np.asarray(jax.jit(lambda x: jax.pure_callback(half, shape, x))(x)).max()) > 0, half(np.float32(1e-40)) > 0)
"""


@pytest.mark.parametrize(("setting", "kept"), [("", "False"), ("keep", "True"), ("flush", "False")])
def test_under_jax_denormals_are_zero_unless_they_are_wanted(setting: str, kept: str) -> None:
    """As on JAX's own CPU; callbacks of Python see them all the same."""
    lines = run(UNDER_JAX, **({"HERON_DENORMALS": setting} if setting else {})).stdout.splitlines()
    assert lines[-2:] == [kept, "True True"]
