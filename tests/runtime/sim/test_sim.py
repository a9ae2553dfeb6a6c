"""The simulated GPU: kernels compute what a GPU computes, and planted bugs are found."""

from __future__ import annotations

import numpy as np
import pytest

from heron.codegen.sim.kernel import compile_kernel
from heron.errors import HeronError
from tests.runtime.sim import kernels

BARRIER = "  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n"
checked = pytest.mark.parametrize("check", [False, True])


def buffers(*arrays: np.ndarray) -> list[tuple[int, int]]:
    return [(a.ctypes.data, a.nbytes) for a in arrays]


def matrix() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((256, 256), dtype=np.float32)


@checked
def test_transpose_through_shared_memory(check: bool) -> None:
    a, b = matrix(), np.zeros((256, 256), np.float32)
    kernel = compile_kernel(kernels.TRANSPOSE, "transpose", (8, 8, 1), (32, 8, 1), checks="all" if check else "")
    for _ in range(2):  # a kernel can be launched again
        b[:] = 0
        kernel(buffers(a, b))
        assert (b == a.T).all()


@checked
def test_row_reduction_with_shuffles(check: bool) -> None:
    a, b = matrix(), np.zeros(256, np.float32)
    compile_kernel(kernels.REDUCE_ROWS, "reduce", (256, 1, 1), (256, 1, 1), checks="all" if check else "")(
        buffers(a, b)
    )
    assert np.allclose(b, a.sum(1, dtype=np.float64), atol=1e-4)


@checked
def test_atomics(check: bool) -> None:
    values = np.random.default_rng(1).integers(0, 8, 512).astype(np.int32)
    counts, total = np.zeros(8, np.int32), np.zeros(1, np.float32)
    compile_kernel(kernels.ATOMICS, "atomics", (4, 1, 1), (128, 1, 1), checks="all" if check else "")(
        buffers(values, counts, total)
    )
    assert (counts == np.bincount(values, minlength=8)).all() and total[0] == values.sum()


@checked
def test_ids_in_three_dimensions_and_device_functions(check: bool) -> None:
    out = np.zeros(4 * 3 * 2 * 3 * 2 * 2, np.float32)
    compile_kernel(kernels.IDS_3D, "ids", (3, 2, 2), (4, 3, 2), checks="all" if check else "")(buffers(out))
    expected = np.tanh(np.arange(out.size, dtype=np.float32) / 100) ** 2
    assert np.allclose(out, expected, rtol=1e-5)


def shuffle(kind: str, distance: str, clamp: int = 31, mask: int = -1) -> np.ndarray:
    arguments = f"i32 {mask}, i32 %v, i32 {distance}, i32 {clamp}"
    body = f"  %v = mul i32 %t, 10\n  %r = call i32 @llvm.nvvm.shfl.sync.{kind}.i32({arguments})"
    out = np.zeros(32, np.int32)
    compile_kernel(kernels.warp_kernel(body), "warp", (1, 1, 1), (32, 1, 1), checks="")(buffers(out))
    return out // 10


def test_shuffle_kinds() -> None:
    lane = np.arange(32)
    assert (shuffle("bfly", "5") == lane ^ 5).all()
    assert (shuffle("idx", "7") == 7).all()
    assert (shuffle("up", "3", clamp=0) == np.where(lane >= 3, lane - 3, lane)).all()
    # segments of 8 lanes: segment mask 0b11000 in bits 8-12
    segmented = shuffle("bfly", "9", clamp=(0b11000 << 8) | 31)
    assert (segmented == np.where((lane ^ 9) <= (lane & 24 | 7), lane ^ 9, lane)).all()


def test_partial_masks() -> None:
    """Lanes 0-15 exchange among themselves; the others never take part."""
    text = kernels.warp_kernel("  %r = add i32 %v, 0").replace(
        "  %r = add i32 %v, 0",
        """  %c = icmp ult i32 %t, 16
  br i1 %c, label %low, label %join
low:
  %s = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 65535, i32 %t, i32 1, i32 31)
  br label %join
join:
  %r = phi i32 [ -1, %entry ], [ %s, %low ]""",
    )
    out = np.zeros(32, np.int32)
    compile_kernel(text, "warp", (1, 1, 1), (32, 1, 1), checks="all")(buffers(out))
    assert (out[:16] == np.arange(16) ^ 1).all() and (out[16:] == -1).all()


# planted bugs


def found(text: str, name: str, grid: tuple, block: tuple, *arrays: np.ndarray, checks: str = "all") -> HeronError:
    with pytest.raises(HeronError) as caught:
        compile_kernel(text, name, grid, block, checks=checks)(buffers(*arrays))
    return caught.value


def test_missing_barrier_is_a_race() -> None:
    text = kernels.TRANSPOSE.replace(BARRIER, "")
    error = found(text, "transpose", (8, 8, 1), (32, 8, 1), matrix(), matrix(), checks="races")
    assert error.code == "RUN076" and "'tile'" in error.what


def test_missing_barrier_in_the_reduction_is_a_race() -> None:
    text = kernels.REDUCE_ROWS.replace(BARRIER, "")
    error = found(text, "reduce", (2, 1, 1), (256, 1, 1), matrix(), np.zeros(256, np.float32), checks="races")
    assert error.code == "RUN076" and "'partial'" in error.what


def test_out_of_bounds_global_access() -> None:
    a, b = matrix(), matrix()
    text = kernels.TRANSPOSE.replace("%row = mul i32 %gy, 256", "%row = mul i32 %gy, 260")
    error = found(text, "transpose", (8, 8, 1), (32, 8, 1), a, b)
    assert error.code == "RUN075"
    assert "access of 4 bytes outside of memory: argument 0 at byte 262144 of 262144" in error.what
    assert error.where == "read by block (0, 7, 0) thread (16, 4, 0): %v = load float, ptr %p, align 4"


def test_writing_past_the_end_does_not_kill_the_process() -> None:
    out = np.zeros(10, np.float32)
    error = found(kernels.IDS_3D, "ids", (3, 2, 2), (4, 3, 2), out)
    assert error.code == "RUN075" and "argument 0 at byte 40 of 40" in error.what


def test_out_of_bounds_shared_access() -> None:
    text = kernels.TRANSPOSE.replace("[1056 x float]", "[1000 x float]")
    error = found(text, "transpose", (8, 8, 1), (32, 8, 1), matrix(), matrix())
    assert error.code == "RUN075" and "shared 'tile' at byte 4000 of 4000" in error.what


@checked
def test_divergent_barriers_are_reported_not_hung(check: bool) -> None:
    for text, name in ((kernels.EARLY_EXIT, "early"), (kernels.TWO_BARRIERS, "two")):
        with pytest.raises(HeronError) as caught:
            compile_kernel(text, name, (1, 1, 1), (32, 1, 1), checks="all" if check else "")(
                buffers(np.zeros(1, np.int32))
            )
        assert caught.value.code == "RUN077"


def test_warp_that_cannot_meet() -> None:
    text = kernels.EARLY_EXIT.replace(BARRIER, "  call void @llvm.nvvm.bar.warp.sync(i32 -1)\n")
    error = found(text, "early", (1, 1, 1), (32, 1, 1), np.zeros(1, np.int32))
    assert error.code == "RUN077" and "warp" in error.what


def test_warp_barrier_orders_its_warp() -> None:
    text = kernels.warp_kernel(
        """  %q = getelementptr inbounds i32, ptr addrspace(3) @slots, i32 %t
  store i32 %t, ptr addrspace(3) %q
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  %n = xor i32 %t, 1
  %u = getelementptr inbounds i32, ptr addrspace(3) @slots, i32 %n
  %r = load i32, ptr addrspace(3) %u"""
    )
    text = "@slots = internal addrspace(3) global [32 x i32] undef, align 16\n" + text
    out = np.zeros(32, np.int32)
    compile_kernel(text, "warp", (1, 1, 1), (32, 1, 1), checks="all")(buffers(out))
    assert (out == np.arange(32) ^ 1).all()
    unordered = text.replace("  call void @llvm.nvvm.bar.warp.sync(i32 -1)\n", "")
    assert found(unordered, "warp", (1, 1, 1), (32, 1, 1), out, checks="races").code == "RUN076"


def test_errors() -> None:
    with pytest.raises(HeronError) as caught:
        compile_kernel(kernels.IDS_3D, "other", (1, 1, 1), (1, 1, 1), checks="")
    assert caught.value.code == "RUN070"
    with pytest.raises(HeronError) as caught:
        compile_kernel(kernels.IDS_3D, "ids", (1, 1, 1), (2048, 1, 1), checks="")
    assert caught.value.code == "RUN073"
    text = kernels.IDS_3D.replace("__nv_tanhf", "__nv_nosuchf")
    with pytest.raises(HeronError) as caught:
        compile_kernel(text, "ids", (1, 1, 1), (1, 1, 1), checks="")
    assert caught.value.code == "RUN072"
    kernel = compile_kernel(kernels.IDS_3D, "ids", (1, 1, 1), (1, 1, 1), checks="")
    with pytest.raises(HeronError) as caught:
        kernel([])
    assert caught.value.code == "RUN074"
