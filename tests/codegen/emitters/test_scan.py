"""The scan emitter against the evaluator: both directions, scanned dimensions everywhere, odd delays and types."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from heron import targets
from heron.analysis.fusion.prefix_scan import Scan, scan_of
from heron.codegen.emit import emit_fusion
from heron.codegen.emitters.scan import gpu
from heron.compiling import compile
from heron.hlo.text import parse
from tests.codegen.run_kernel import check, root_fusion, run_sim

RNG = np.random.default_rng(5)
DTYPES = {"f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16, "s32": np.int32, "u8": np.uint8}


def text(type_: str, dims: tuple[int, ...], result: tuple[int, ...], window: str, init: str = "0") -> str:
    shape, out = (f"{type_}[{','.join(map(str, d))}]" for d in (dims, result))
    return f"""HloModule m
r {{ a = {type_}[] parameter(0) b = {type_}[] parameter(1) ROOT c = {type_}[] add(a, b) }}
f {{ x = {shape} parameter(0) z = {type_}[] constant({init})
  ROOT o = {out} reduce-window(x, z), window={{{window}}}, to_apply=r }}
ENTRY e {{ x = {shape} parameter(0) ROOT o = {out} fusion(x), kind=kLoop, calls=f }}"""


def along(d: int, rank: int, n: int, low: int, high: int, size: int = 0) -> str:
    """A window over dimension d only."""
    sizes = "x".join(str(size or n) if k == d else "1" for k in range(rank))
    pads = "x".join(f"{low}_{high}" if k == d else "0_0" for k in range(rank))
    return f"size={sizes} pad={pads}"


def emitter(source: str, target: str = "cpu") -> str:
    return emit_fusion(root_fusion(source), "k", targets.get(target)).emitter


def check_everywhere(source: str, inputs: list[np.ndarray], **options: Any) -> None:
    """CPU and simulated GPU, the latter with all checks."""
    check(source, inputs, parts=2, **options)
    check(source, inputs, gpu=True, **options)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("dims", "d"), [((7, 40), 1), ((40, 7), 0), ((3, 9, 21), 1), ((1, 50), 1), ((2, 9, 3, 2), 1)])
@pytest.mark.parametrize("type_", DTYPES)
def test_inclusive(type_: str, dims: tuple[int, ...], d: int, reverse: bool) -> None:
    n = dims[d]
    source = text(type_, dims, dims, along(d, len(dims), n, *((0, n - 1) if reverse else (n - 1, 0))))
    x = RNG.integers(0, 5, dims).astype(DTYPES[type_])
    assert emitter(source) == emitter(source, "sm_90") == "scan"
    check_everywhere(source, [x], rtol=2e-2 if type_ == "bf16" else 1e-6)


#: (source elements, size, pad low, pad high) -> (reverse, delay) of a scan
WINDOWS = {
    (9, 9, 8, 0): (False, 0),
    (9, 9, 9, -1): (False, 1),
    (9, 9, 11, 0): (False, 3),
    (9, 9, 20, -2): (False, 12),
    (9, 4, 8, -5): (False, 5),
    (9, 20, 19, 5): (False, 0),
    (9, 9, 0, 8): (True, 0),
    (9, 9, -1, 9): (True, 1),
    (9, 12, -3, 14): (True, 3),
    (9, 9, 0, 12): (True, 0),
}


@pytest.mark.parametrize(("n", "size", "low", "high"), WINDOWS)
def test_exclusive_delayed_and_cut(n: int, size: int, low: int, high: int) -> None:
    m = n + low + high - size + 1
    source = text("s32", (3, n), (3, m), along(1, 2, n, low, high, size), init="7")
    scan = scan_of(root_fusion(source).fused_root)
    assert scan is not None and (scan.reverse, scan.delay) == WINDOWS[n, size, low, high]
    assert sum(scan.phases) == m
    assert emitter(source, "sm_90") == ("scan" if not scan.phases[2] else "loop")
    check_everywhere(source, [RNG.integers(-9, 9, (3, n)).astype(np.int32)])


@pytest.mark.parametrize(
    ("window", "m"),
    [
        ("size=1x3 pad=0_0x1_1", 9),  # slides
        ("size=1x9 pad=0_0x7_0", 8),  # one short
        ("size=1x9 stride=1x2 pad=0_0x8_0", 5),
        ("size=3x9 pad=2_0x8_0", 9),  # two dimensions
        ("size=1x9 pad=0_0x8_0 lhs_dilate=1x2", 17),
        ("size=1x9 pad=0_0x16_0 rhs_dilate=1x2", 9),
        ("size=1x9 pad=0_0x0_3", 4),  # the last result has several elements
        ("size=1x1", 9),
    ],
)
def test_other_windows_are_no_scans(window: str, m: int) -> None:
    assert scan_of(root_fusion(text("s32", (3, 9), (3, m), window)).fused_root) is None


def test_several_arrays_and_a_long_combiner_over_a_prologue() -> None:
    """The maximum so far with its place, of computed elements, rows done in vectors."""
    source = """HloModule m
r { v = f32[] parameter(0) i = s32[] parameter(1) w = f32[] parameter(2) j = s32[] parameter(3)
  g = pred[] compare(v, w), direction=GE  m = f32[] select(g, v, w)  e = f32[] exponential(m)
  f = f32[] log(e)  k = s32[] select(g, i, j)  ROOT t = (f32[], s32[]) tuple(f, k) }
f { x = f32[21,30] parameter(0) y = f32[21,30] multiply(x, x) n = s32[21,30] iota(), iota_dimension=1
  low = f32[] constant(-1) none = s32[] constant(-1)
  ROOT o = (f32[21,30], s32[21,30]) reduce-window(y, n, low, none), window={size=1x30 pad=0_0x29_0}, to_apply=r }
ENTRY e { x = f32[21,30] parameter(0) ROOT o = (f32[21,30], s32[21,30]) fusion(x), kind=kLoop, calls=f }"""
    assert emitter(source) == "scan"
    check_everywhere(source, [RNG.permutation(630).reshape(21, 30).astype(np.float32) / 100], rtol=1e-5)


def test_order_of_elements_is_kept() -> None:
    """Composition of x -> a x + b does not commute."""
    source = """HloModule m
r { a = s32[] parameter(0) b = s32[] parameter(1) c = s32[] parameter(2) d = s32[] parameter(3)
  e = s32[] multiply(a, c) f = s32[] multiply(b, c) g = s32[] add(f, d) ROOT t = (s32[], s32[]) tuple(e, g) }
ENTRY e { x = s32[3,12] parameter(0) y = s32[3,12] parameter(1) one = s32[] constant(1) zero = s32[] constant(0)
  ROOT o = (s32[3,12], s32[3,12]) reduce-window(x, y, one, zero), window={size=1x12 pad=0_0xPAD}, to_apply=r }"""
    for pad in ("11_0", "0_11"):
        xs = [RNG.integers(-4, 5, (3, 12)).astype(np.int32) for _ in range(2)]
        check_everywhere(source.replace("PAD", pad), [*xs, np.array(1, np.int32), np.array(0, np.int32)])


#: a GPU thread has 1 or 4 elements, a scan part of a warp, warps, or several tiles of a block; ends not at full ones
LENGTHS = (1, 5, 32, 33, 128, 130, 515, 2500)


@pytest.mark.parametrize("delay", [0, 1])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("n", LENGTHS)
def test_gpu_blocks(n: int, reverse: bool, delay: int) -> None:
    """Composition of x -> a x + b, in wrapping integers: shows each element, each order, each one twice."""
    rows = 3 if n > 500 else 9
    pads = (n - 1 + delay, -delay)
    low, high = pads[::-1] if reverse else pads
    shape = f"s32[{rows},{n}]"
    source = f"""HloModule m
r {{ a = s32[] parameter(0) b = s32[] parameter(1) c = s32[] parameter(2) d = s32[] parameter(3)
  e = s32[] multiply(a, c) f = s32[] multiply(b, c) g = s32[] add(f, d) ROOT t = (s32[], s32[]) tuple(e, g) }}
ENTRY e {{ x = {shape} parameter(0) y = {shape} parameter(1) one = s32[] constant(1) zero = s32[] constant(0)
  ROOT o = ({shape}, {shape}) reduce-window(x, y, one, zero), window={{size=1x{n} pad=0_0x{low}_{high}}}, to_apply=r }}"""
    xs = [RNG.integers(-4, 5, (rows, n)).astype(np.int32) * 2 + 1 for _ in range(2)]
    inputs = [*xs, np.array(1, np.int32), np.array(0, np.int32)]
    root = root_fusion(source)
    kernel = emit_fusion(root, "k", targets.get("sim:sm_90"))
    if scan_of(root) is not None:
        assert kernel.emitter == "scan"
    for got, want in zip(run_sim(kernel, inputs), composed(*xs, reverse, delay), strict=True):
        np.testing.assert_array_equal(got, want)


def composed(x: np.ndarray, y: np.ndarray, reverse: bool, delay: int) -> tuple[np.ndarray, np.ndarray]:
    """What `test_gpu_blocks` computes, step by step: the evaluator would take n² of them."""
    rows, n = x.shape
    a, b = np.ones((rows, n), np.int32), np.zeros((rows, n), np.int32)
    so_far = np.ones(rows, np.int32), np.zeros(rows, np.int32)
    for k in reversed(range(n)) if reverse else range(n):
        at = k + delay if reverse else k - delay
        if 0 <= at < n:
            new = x[:, at], y[:, at]
            (p, q), (r, s) = (new, so_far) if reverse else (so_far, new)
            so_far = p * r, q * r + s
        a[:, k], b[:, k] = so_far
    return a, b


@pytest.mark.parametrize("threads_per_core", [0, 2048])
@pytest.mark.parametrize(("dims", "d"), [((3, 40, 70), 1), ((70, 130), 0), ((600, 33), 0)])
def test_gpu_columns(dims: tuple[int, ...], d: int, threads_per_core: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scans that lie side by side, in one stretch or several."""
    monkeypatch.setattr(gpu, "THREADS_PER_CORE", threads_per_core)
    n = dims[d]
    for low, high in ((n - 1, 0), (0, n - 1), (n, -1), (-1, n)):
        source = text("f32", dims, dims, along(d, len(dims), n, low, high), init="2")
        kernel = emit_fusion(root_fusion(source), "k", targets.get("sim:sm_90"))
        assert "stretches" in kernel.notes["form"]
        assert kernel.notes["form"].startswith("1 ") == (not threads_per_core)
        check(source, [RNG.integers(0, 5, dims).astype(np.float32)], gpu=True)


@pytest.mark.parametrize("reverse", [False, True])
def test_long_scans_of_complex_numbers_take_three_launches(reverse: bool) -> None:
    """Cut in blocks: scans of blocks, of their totals, and the sum of both. Others are one pass (`scan_single_gpu`)."""
    n = 9000
    pads = (0, n - 1) if reverse else (n - 1, 0)
    source = f"""HloModule m
r {{ a = c64[] parameter(0) b = c64[] parameter(1) ROOT c = c64[] add(a, b) }}
ENTRY e {{ x = c64[2,{n}] parameter(0) z = c64[] constant((3, 0))
  ROOT o = c64[2,{n}] reduce-window(x, z), window={{{along(1, 2, n, *pads)}}}, to_apply=r }}"""
    x = RNG.integers(-9, 9, (2, n)).astype(np.complex64)
    executable = compile(parse(source), "sim:sm_90")
    assert len(executable.kernels) == 3
    want = np.cumsum(x[:, ::-1], axis=1)[:, ::-1] if reverse else np.cumsum(x, axis=1)
    np.testing.assert_array_equal(np.asarray(executable(x)), want + 3)


def test_phases() -> None:
    assert Scan(0, True, 2, 9, 9).phases == (2, 7, 0)
    assert Scan(0, False, 2, 9, 15).phases == (2, 9, 4)
