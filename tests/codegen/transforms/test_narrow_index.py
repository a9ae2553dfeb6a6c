"""32-bit indices: only where every index fits, and with the same values."""

from __future__ import annotations

import numpy as np
import pytest

from tests.codegen.run_gpu_kernel import check_sim, ptx
from tests.codegen.transforms.kernels import apply

KERNEL = """func.func @k(%p: !llvm.ptr, %n: i32, %m: i64, %v: index) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %t = "gpu.thread_id"() <{{dimension = #gpu<dim x>}}> : () -> index
  {ops}
  func.return
}}
func.func private @f(index) -> index
func.func private @g(index)"""


@pytest.mark.parametrize(
    ("ops", "narrow"),
    [
        ('%i = xla_gpu.apply_indexing "(d0) -> (d0 * 64), domain: d0 in [0, 16777215]"(%t)', True),
        ('%i = xla_gpu.apply_indexing "(d0) -> (d0 * 64), domain: d0 in [0, 16777217]"(%t)', False),
        # a part that is large, a sum that is not
        ('%i = xla_gpu.apply_indexing "(d0) -> (d0 * 64 mod 512), domain: d0 in [0, 16777217]"(%t)', True),
        ('%i = xla_gpu.apply_indexing "(d0) -> (d0 * 65 mod 513), domain: d0 in [0, 16777217]"(%t)', False),
        ("%i = arith.muli %t, %c8 : index", False),
        ("%i = arith.index_cast %n : i32 to index\n%j = arith.minsi %i, %c8 : index", True),
        ("%i = arith.index_cast %n : i32 to index\n%j = arith.addi %i, %c8 : index", False),
        ("%i = arith.index_cast %n {heron.unsigned} : i32 to index", False),
        ("%i = arith.index_cast %m : i64 to index", False),
        ("%k = arith.constant 9 : i64\n%z = arith.constant 0 : i64\n%a = arith.minsi %m, %k : i64\n"
         "%b = arith.maxsi %a, %z : i64\n%i = arith.index_cast %b : i64 to index", True),
        ("%i = func.call @f(%t) : (index) -> index", False),
        ("func.call @g(%t) : (index) -> ()", False),
        ("%i = scf.for %s = %c0 to %c8 step %c1 iter_args(%x = %c0) -> (index) { scf.yield %x : index }", False),
        ("scf.for %s = %c0 to %t step %c1 { }", False),
        ("scf.for %s = %c0 to %c8 step %c1 { }", True),
    ],
)  # fmt: skip
def test_what_counts(ops: str, narrow: bool) -> None:
    text = KERNEL.format(ops=ops).replace(", %v: index", "")
    assert ("heron.index_bits = 32" in apply(text, "narrow-index", "gpu")) == narrow


def test_an_index_passed_in_may_be_anything() -> None:
    assert "index_bits" not in apply(KERNEL.format(ops=""), "narrow-index", "gpu")


def source(rows: int, type_: str) -> str:
    return f"""HloModule m
f {{
  p = f32[{rows},64] parameter(0)
  i = {type_}[5,1] parameter(1)
  ROOT g = f32[5,64] gather(p, i), offset_dims={{1}}, collapsed_slice_dims={{0}}, start_index_map={{0}},
    index_vector_dim=1, slice_sizes={{1,64}}
}}
ENTRY e {{
  p = f32[{rows},64] parameter(0)
  i = {type_}[5,1] parameter(1)
  ROOT r = f32[5,64] fusion(p, i), kind=kLoop, calls=f
}}"""


@pytest.mark.parametrize("type_", ["s32", "u32", "s64", "u64", "s8"])
def test_data_that_becomes_an_index_is_clamped_whole(type_: str) -> None:
    """2^32 is not 0, 2^31 of u32 is not negative."""
    values = np.arange(40 * 64, dtype=np.float32).reshape(40, 64)
    dtype = np.dtype({"s": "i", "u": "u"}[type_[0]] + str(int(type_[1:]) // 8))
    info = np.iinfo(dtype)
    wanted = [3, info.max, info.min, min(2**32, info.max), min(2**31, info.max)]
    check_sim(source(40, type_), [values, np.array(wanted, dtype)[:, None]])


def test_large_arrays_keep_wide_indices() -> None:
    assert "mad.wide" in ptx(source(40, "s32")) or "mul.wide" in ptx(source(40, "s32"))
    small, large = ptx(source(40, "s32")), ptx(source(2**25, "s32"))
    assert "mul.lo.s64" not in small and "b64 \t%rd" in large
    assert large.count("b64") > small.count("b64")
