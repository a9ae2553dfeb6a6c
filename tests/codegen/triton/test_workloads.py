"""The block kernels of real programs go through Triton, and run on a rehearsed device as the evaluator says."""

from __future__ import annotations

import numpy as np
import pytest

from heron import targets
from heron.backends.compiler import Compilation
from heron.backends.gpu import blocks
from heron.evaluator import evaluate
from heron.hlo.text import parse
from heron.options import Options
from heron.targets.triton import missing
from heron.trace import Trace
from tests.rehearsal.compiling import compile, rehearsed
from tests.support import program

needs_triton = pytest.mark.skipif(bool(missing()), reason=missing() or "Triton is here")
#: launches of the programs at full scale: XLA:GPU's, with Triton and with cuBLAS
WITH_BLOCKS = {"rmsnorm_swiglu": 5, "seed_int8xbf16": 2, "matmul_bf16_gelu": 1, "int8_quant_matmul": 4}


@pytest.mark.parametrize("name", WITH_BLOCKS)
def test_fewer_launches_than_xla(name: str) -> None:
    compiled = Compilation(parse(program(name, False).read_text()), targets.get("sm_90"), Options(triton="on"), Trace())
    thunks, uses = compiled.lowered
    assert len(thunks) <= WITH_BLOCKS[name]
    assert blocks.of(uses)


@needs_triton
@pytest.mark.parametrize("name", ["rmsnorm_swiglu", "int8_quant_matmul"])
def test_machine_code(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    target = targets.get("sm_90")
    _, uses = Compilation(parse(program(name, False).read_text()), target, Options(triton="on"), Trace()).lowered
    for code in blocks.codes(uses, target).values():
        assert code.cubin.startswith(b"\x7fELF")
        assert code.shared <= target.shared_bytes_per_block


@needs_triton
def test_a_program_with_a_block_kernel_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    """Through the runtime for CUDA: machine code of its own, shared memory, the null pointers behind the arguments."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    module = parse(program("seed_int8xbf16").read_text())
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-4, 5, p.shape.dims).astype(p.shape.element_type.dtype) for p in module.entry.parameters]
    with rehearsed() as recorder:
        executable = compile(module, recorder, options=Options(triton="on"))
        (entry,) = executable.program.kernels.values()
        assert entry.zeros == 2 and executable.program.images[entry.image].code.startswith(b"\x7fELF")
        got = executable(*arrays)
    (wanted,) = evaluate(module, *arrays)
    np.testing.assert_array_equal(np.asarray(got, np.float32), np.asarray(wanted, np.float32))


@needs_triton
def test_the_copy_engines_descriptors_have_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    """128 bytes for each of two, in each program of the grid, for every launch of the kernel its own."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    text = """
HloModule m
ENTRY e {
  x = s8[64,256] parameter(0)
  y = s8[64,256] parameter(1)
  w = bf16[256,64] parameter(2)
  v = bf16[256,64] parameter(3)
  c = bf16[64,256] convert(x)
  d = bf16[64,64] dot(c, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  m = bf16[64,64] negate(d)
  f = bf16[64,256] convert(y)
  e = bf16[64,64] dot(f, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  n = bf16[64,64] negate(e)
  ROOT t = (bf16[64,64], bf16[64,64]) tuple(m, n)
}
"""
    module = parse(text)
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-4, 5, p.shape.dims).astype(p.shape.element_type.dtype) for p in module.entry.parameters]
    with rehearsed() as recorder:
        executable = compile(module, recorder, options=Options(triton="on", tma="on"))
        (entry,) = executable.program.kernels.values()
        assert entry.scratch == 256 * entry.grid[0] and b"cp.async.bulk.tensor" in executable.program.images[-1].ptx
        got = executable(*arrays)
    for g, w in zip(got, evaluate(module, *arrays), strict=True):
        np.testing.assert_array_equal(np.asarray(g, np.float32), np.asarray(w, np.float32))


@needs_triton
@pytest.mark.parametrize("name", ["flax_transformer", "matmul_bf16_gelu"])
def test_whole_programs_have_machine_code(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    """A sample of what `python -m benchmarks.cubins` does with every program."""
    pytest.importorskip("click")
    from benchmarks import cubins

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    row = cubins.build(name, targets.get("sm_90"))
    assert not row.error and row.blocks and row.size and row.launches >= row.kernels
