"""Too little of something: SciPy's modules, memory, CPUs."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import heron
from heron import HeronError, Options
from heron.cli import values
from heron.codegen.native import blas_threads, float_gemm
from heron.compiling import compile
from heron.evaluator import evaluate
from heron.runtime import array_pool, memory
from heron.runtime.cpu import blas
from heron.runtime.host import lapack
from tests.support import program

PRODUCT = """HloModule m

ENTRY e {
  x = f32[200,300] parameter(0)
  y = f32[300,100] parameter(1)
  ROOT p = f32[200,100] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


@pytest.fixture
def without_scipy(monkeypatch: pytest.MonkeyPatch) -> Any:
    """SciPy cannot be imported, and nothing remembers that it could."""
    real = importlib.import_module

    def fail(name: str, *rest: Any) -> Any:
        if name.startswith("scipy"):
            raise ImportError(f"no module {name}")
        return real(name, *rest)

    monkeypatch.setattr(importlib, "import_module", fail)
    remembered = (
        blas._routines,
        blas.why_not,
        blas.address,
        blas.lapack_address,
        blas_threads._functions,
        lapack._routine,
    )
    for cached in remembered:
        cached.cache_clear()
    yield
    for cached in remembered:
        cached.cache_clear()


def test_products_without_blas_are_kernels_and_the_trace_says_so(
    without_scipy: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a processor that code of our own is not for."""
    monkeypatch.setattr(float_gemm, "form", lambda _: None)
    module = heron.parse(PRODUCT.replace("f32", "c64"))
    made = compile(module, "cpu")
    assert any("no BLAS" in note and "scipy" in note for note in made.trace.notes)
    inputs = values.random(module, 0)
    assert np.allclose(made(*inputs), evaluate(module, *inputs)[0], rtol=1e-5, atol=1e-4)


def test_small_factorisations_need_no_scipy(without_scipy: None) -> None:
    module = heron.parse(program("cholesky_solve").read_text())
    inputs = [np.eye(*x.shape, dtype=x.dtype) * 4 + x / 8 if x.ndim == 2 else x for x in values.random(module, 0)]
    found = compile(module, "cpu").run(inputs)
    assert all(np.isfinite(x).all() for x in found)


def test_what_only_scipy_computes_says_what_is_missing(without_scipy: None) -> None:
    module = heron.parse(program("linalg_lapack").read_text())
    with pytest.raises(HeronError, match="scipy") as caught:
        compile(module, "cpu").run(values.random(module, 0))
    assert caught.value.code == "RUN022" and "pip install" in caught.value.hint


@pytest.mark.parametrize("rows", ["200", "1"])
def test_products_need_no_scipy(without_scipy: None, rows: str) -> None:
    module = heron.parse(PRODUCT.replace("200", rows))
    made = compile(module, "cpu")
    inputs = values.random(module, 0)
    assert np.allclose(made(*inputs), evaluate(module, *inputs)[0], rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("name", ["conv_variants", "fft"])
def test_code_of_our_own_needs_no_scipy(without_scipy: None, name: str) -> None:
    module = heron.parse(program(name).read_text())
    compile(module, "cpu").run(values.random(module, 0))


def test_memory_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    big = compile(
        heron.parse("HloModule m\n\nENTRY e {\n  x = f32[] parameter(0)\n  ROOT z = f32[1099511627776] broadcast(x), dimensions={}\n}\n"),
        "cpu",
    )  # fmt: skip
    for _ in range(3):  # the quick way in, too
        with pytest.raises(HeronError, match=r"no memory for output 0: 4,398,046,511,104 bytes") as caught:
            big(np.array(1, np.float32))
        assert caught.value.code == "RUN010"
    with pytest.raises(HeronError, match="no memory for scratch"):
        memory.aligned(1 << 60, "scratch")
    with pytest.raises(HeronError, match="no memory for an array"):
        array_pool.empty((1 << 60,), np.dtype(np.float64))


def test_threads_stay_on_the_process_cpus() -> None:
    text = """
import os, numpy as np, heron
from heron import Options
tasks = set(os.listdir("/proc/self/task"))  # NumPy's library has threads of its own
cpu = min(os.sched_getaffinity(0))
os.sched_setaffinity(0, {cpu})
module = heron.parse("HloModule m\\n\\nENTRY e {\\n  x = f32[1000,1000] parameter(0)\\n  ROOT y = f32[1000,1000] tanh(x)\\n}\\n")
x = np.ones((1000, 1000), np.float32)
alone = heron.compile(module, target="cpu", options=Options(threads=1))(x)
many = heron.compile(module, target="cpu", options=Options(threads=3))(x)
assert alone.tobytes() == many.tobytes()
new = set(os.listdir("/proc/self/task")) - tasks
seen = 0
for task in new:
    try:
        assert os.sched_getaffinity(int(task)) == {cpu}
        seen += 1
    except ProcessLookupError:  # one that compiled, and is over
        pass
assert seen >= 2
"""
    if not hasattr(os, "sched_setaffinity"):
        pytest.skip("this system has no CPU affinity")
    subprocess.run([sys.executable, "-c", text], check=True)


@pytest.mark.parametrize("bad", [-1, 1.5, "2", True, None])
def test_threads_are_a_whole_number(bad: Any) -> None:
    with pytest.raises(HeronError) as caught:
        Options(threads=bad)
    assert caught.value.code == "CLI021"


def test_denormals_and_not_a_numbers_are_values_like_others() -> None:
    x = np.array([1e-40, -1e-45, np.nan, np.inf, -np.inf, -0.0, 3.4e38], np.float32)
    for expression in ("add(x, x)", "multiply(x, x)", "maximum(x, x)", "sqrt(x)", "negate(x)"):
        module = heron.parse(
            f"HloModule m\n\nENTRY e {{\n  x = f32[7] parameter(0)\n  ROOT r = f32[7] {expression}\n}}\n"
        )
        wanted = evaluate(module, x)[0]
        found = compile(module, "cpu")(x)
        assert np.array_equal(found, wanted, equal_nan=True)
        assert np.array_equal(np.signbit(found[~np.isnan(found)]), np.signbit(wanted[~np.isnan(found)]))
