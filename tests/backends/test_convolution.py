"""Convolutions with every kind of window and grouping, as matrix products and as kernels; select-and-scatter."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron.backends.convolution import lowering
from heron.backends.convolution.axes import axes_of
from heron.backends.convolution.tiles import tiling
from heron.codegen.llvm.jit import host
from heron.codegen.native import tile_code
from heron.compiling import compile
from heron.hlo.ir.module import Module
from heron.hlo.ir.window import WindowDim
from heron.hlo.text import parse
from heron.options import Options
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import get
from tests.backends.agree import TARGETS, assert_agrees, program, random_inputs

VARIANTS = {
    "strided": ("f32[2,8,7,3]", "f32[3,2,3,4]", "f32[2,4,4,4]", "window={size=3x2 stride=2x2 pad=0_1x1_1}, dim_labels=b01f_01io->b01f"),
    "dilated": ("f32[2,9,9,3]", "f32[3,3,3,4]", "f32[2,5,5,4]", "window={size=3x3 rhs_dilate=2x2}, dim_labels=b01f_01io->b01f"),
    "transposed": ("f32[1,4,4,3]", "f32[3,3,3,4]", "f32[1,8,8,4]", "window={size=3x3 pad=1_2x2_1 lhs_dilate=2x2}, dim_labels=b01f_01io->b01f"),
    "reversed": ("f32[1,6,6,3]", "f32[3,3,3,4]", "f32[1,6,6,4]", "window={size=3x3 pad=1_1x1_1 rhs_reversal=1x1}, dim_labels=b01f_01io->b01f"),
    "depthwise": ("f32[2,6,6,4]", "f32[3,3,1,4]", "f32[2,4,4,4]", "window={size=3x3}, dim_labels=b01f_01io->b01f, feature_group_count=4"),
    "grouped": ("f32[2,5,6]", "f32[3,3,4]", "f32[2,5,4]", "window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f, feature_group_count=2"),
    "batch groups": ("f32[4,5,6]", "f32[3,6,4]", "f32[2,5,4]", "window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f, batch_group_count=2"),
    "weight gradient": ("f32[5,6,6,3]", "f32[5,6,6,4]", "f32[3,3,3,4]", "window={size=6x6 pad=1_1x1_1}, dim_labels=f01b_i01o->01bf"),
    "features first": ("f32[2,3,6,6]", "f32[4,3,3,3]", "f32[2,4,6,6]", "window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01"),
    "features first in groups": ("f32[2,4,6,6]", "f32[8,2,3,3]", "f32[2,8,4,4]", "window={size=3x3}, dim_labels=bf01_oi01->bf01, feature_group_count=2"),
    "features first, weight gradient": ("f32[2,3,6,6]", "f32[2,5,4,4]", "f32[5,3,3,3]", "window={size=4x4}, dim_labels=fb01_io01->fb01"),
    "features first in the result": ("f32[2,6,6,3]", "f32[3,3,3,4]", "f32[2,4,4,4]", "window={size=3x3}, dim_labels=b01f_01io->bf01"),
    "cropped": ("f32[1,8,2]", "f32[3,2,4]", "f32[1,3,4]", "window={size=3 pad=-2_-1}, dim_labels=b0f_0io->b0f"),
    "only padding": ("f32[1,2,2]", "f32[1,2,4]", "f32[1,3,4]", "window={size=1 stride=4 pad=4_4}, dim_labels=b0f_0io->b0f"),
    "no window": ("f32[3,2]", "f32[2,4]", "f32[3,4]", "dim_labels=bf_io->bf"),
    "volume": ("f32[1,4,3,5,2]", "f32[2,2,2,2,3]", "f32[1,3,2,4,3]", "window={size=2x2x2}, dim_labels=b012f_012io->b012f"),
}  # fmt: skip


#: windows longer than the features are many, without padding
LONG = {
    "one channel": ("f32[1,157,1]", "f32[64,1,40]", "f32[1,94,40]", "window={size=64}, dim_labels=b0f_0io->b0f"),
    "two channels": ("f32[3,157,2]", "f32[64,2,40]", "f32[3,94,40]", "window={size=64}, dim_labels=b0f_0io->b0f"),
    "strided": ("f32[2,157,1]", "f32[64,1,40]", "f32[2,32,40]", "window={size=64 stride=3}, dim_labels=b0f_0io->b0f"),
    "reversed": ("f32[1,157,1]", "f32[64,1,40]", "f32[1,94,40]", "window={size=64 rhs_reversal=1}, dim_labels=b0f_0io->b0f"),
    "dilated": ("f32[1,157,1]", "f32[50,1,40]", "f32[1,59,40]", "window={size=50 rhs_dilate=2}, dim_labels=b0f_0io->b0f"),
    "cropped": ("f32[1,157,1]", "f32[64,1,40]", "f32[1,89,40]", "window={size=64 pad=-3_-2}, dim_labels=b0f_0io->b0f"),
    "both dilated": ("f32[1,79,1]", "f32[50,1,40]", "f32[1,30,40]", "window={size=50 stride=2 lhs_dilate=2 rhs_dilate=2}, dim_labels=b0f_0io->b0f"),
    "grouped": ("f32[1,157,2]", "f32[64,1,48]", "f32[1,94,48]", "window={size=64}, dim_labels=b0f_0io->b0f, feature_group_count=2"),
    "flat": ("f32[2,9,157,1]", "f32[3,64,1,40]", "f32[2,7,94,40]", "window={size=3x64}, dim_labels=b01f_01io->b01f"),
}  # fmt: skip


@pytest.fixture
def prefer_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """Matrix products however small they are."""
    monkeypatch.setattr(lowering, "_LOOP_RATE", 1e-9)


def convolution(lhs: str, rhs: str, out: str, attributes: str) -> Module:
    return program([lhs, rhs], out, f"convolution(p0, p1), {attributes}")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_kernels(variant: tuple[str, str, str, str], target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lowering, "_LOOP_RATE", 1e12)
    exe = assert_agrees(convolution(*variant), target)
    assert exe.kernels


@pytest.mark.parametrize("name", VARIANTS)
def test_matrix_products(name: str, prefer_products: None) -> None:
    exe = assert_agrees(convolution(*VARIANTS[name]), "cpu")
    if name == "no window":  # a dot from the start
        return
    assert "convolution" in exe.stage("thunks")
    # products go along features or the batch: where space is innermost, transposes make it so
    assert {k.emitter for k in exe.kernels} <= ({"transpose", "loop"} if "features first" in name else set())


@pytest.mark.parametrize("name", LONG)
def test_a_long_window_without_padding_is_the_innermost_sum(name: str) -> None:
    module = convolution(*LONG[name])
    assert "convolution" in assert_agrees(module, "cpu").stage("thunks")
    i = module.entry.root
    how, _ = tiling(i, axes_of(i))
    channels = i.operands[1].shape.dims[i.dim_labels.kernel_input]
    assert how is not None and how.loops[-1].longest == i.window[-1].size * channels
    assert len(how.rows[0].steps) == 1
    if name != "grouped" or host().width >= 512:  # 16 registers hold the outputs of one group
        assert len(how.rows[0].outs) > 1


PADDED = {
    "same": ("f32[1,157,1]", "f32[64,1,40]", "f32[1,157,40]", "window={size=64 pad=31_32}, dim_labels=b0f_0io->b0f"),
    "causal, two channels": ("f32[2,157,2]", "f32[64,2,40]", "f32[2,157,40]", "window={size=64 pad=63_0}, dim_labels=b0f_0io->b0f"),
    "cropped at one end": ("f32[1,157,1]", "f32[64,1,40]", "f32[1,100,40]", "window={size=64 pad=-4_10}, dim_labels=b0f_0io->b0f"),
    "strided, dilated, reversed": ("f32[1,157,1]", "f32[20,1,40]", "f32[1,50,40]", "window={size=20 stride=3 pad=24_5 rhs_dilate=2 rhs_reversal=1}, dim_labels=b0f_0io->b0f"),
    "one of two dimensions": ("f32[1,9,99,1]", "f32[3,31,1,40]", "f32[1,9,99,40]", "window={size=3x31 pad=1_1x15_15}, dim_labels=b01f_01io->b01f"),
}  # fmt: skip


@pytest.mark.parametrize("t", ["f32", "f64"])
@pytest.mark.parametrize("name", PADDED)
def test_inputs_of_long_windows_are_padded_first(name: str, t: str) -> None:
    exe = assert_agrees(convolution(*(a.replace("f32", t) for a in PADDED[name])), "cpu")
    scheduled = parse(str(exe.stage("scheduled")))
    i = next(i for i in scheduled.instructions() if i.opcode == "convolution")
    assert all(w.pad_low <= 0 and w.pad_high <= 0 for w in i.window if w.size > 16)
    assert any(i.opcode == "pad" for i in scheduled.instructions())


LONG_GRADIENT = ("f32[2,99,5]", "f32[2,99,7]", "f32[3,5,7]", "window={size=99 pad=1_1}, dim_labels=f0b_i0o->0bf")


@pytest.mark.parametrize("name", ["volume", "grouped", "transposed", "depthwise", "weight gradient", "long gradient"])
def test_inputs_of_other_windows_are_not(name: str) -> None:
    module = convolution(*{**VARIANTS, "long gradient": LONG_GRADIENT}[name])
    assert not PassContext().run_pass(get("convolution-padding-expander"), module)


@pytest.mark.parametrize(
    "batch, places, features", [(1, 20, 64), (2, 14, 128), (2, 28, 48), (2, 9, 256)], ids=lambda n: str(n)
)
def test_few_images_are_no_rows_of_tiles_that_read_a_large_kernel(batch: int, places: int, features: int) -> None:
    """Rows are places of one image: a kernel that the first cache does not hold is read once for many of them."""
    shape = f"f32[{batch},{places},{places},{features}]"
    text = "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"
    module = convolution(shape, f"f32[3,3,{features},{features}]", shape, text)
    how, _ = tiling(module.entry.root, axes_of(module.entry.root))
    assert how is not None and len(how.rows[0].outs) == places


@pytest.mark.parametrize("t", ["f64", "c64", "bf16", "f16", "s32"])
@pytest.mark.parametrize("target", TARGETS)
def test_types(t: str, target: str, prefer_products: None) -> None:
    window = "window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f"
    exe = assert_agrees(convolution(f"{t}[2,8,8]", f"{t}[3,8,16]", f"{t}[2,8,16]", window), target)
    is_product = any(k.startswith("Convolution") or k == "convolution" for k in exe.trace.thunks)
    assert is_product == (target == "cpu" and t != "s32")


SIZES = st.integers(1, 4)


@settings(max_examples=40)
@given(st.data())
def test_random_convolutions(data: st.DataObject) -> None:
    """Any window, any order of dimensions, any grouping."""
    rank = data.draw(st.integers(1, 2))
    groups, batch_groups = data.draw(st.sampled_from([(1, 1), (2, 1), (3, 1), (1, 2)]))
    batch, inputs, features = (data.draw(SIZES) for _ in range(3))
    window, places = [], []
    for _ in range(rank):
        size, stride, base, dilation = data.draw(SIZES), *(data.draw(st.integers(1, 3)) for _ in range(3))
        low, high = data.draw(st.integers(-1, 3)), data.draw(st.integers(-1, 3))
        w = WindowDim(size, stride, low, high, base, dilation, data.draw(st.booleans()))
        window.append(w)
        places.append(data.draw(st.integers(1, 6)))
    outputs = [w.output_size(n) for w, n in zip(window, places, strict=True)]
    if 0 in outputs:
        return
    spatial = "01"[:rank]

    def arranged(sizes: dict[str, int]) -> tuple[str, str]:
        order = data.draw(st.permutations(list(sizes)))
        return "".join(order), f"f32[{','.join(str(sizes[d]) for d in order)}]"

    lhs = arranged({"b": batch * batch_groups, "f": inputs * groups, **dict(zip(spatial, places, strict=True))})
    parts = groups * batch_groups
    sizes = {d: w.size for d, w in zip(spatial, window, strict=True)}
    rhs = arranged({"i": inputs, "o": features * parts, **sizes})
    out = arranged({"b": batch, "f": features * parts, **dict(zip(spatial, outputs, strict=True))})

    def each(name: str, values: list[str]) -> str:
        return f"{name}={'x'.join(values)}"

    fields = [
        each("size", [str(w.size) for w in window]),
        each("stride", [str(w.stride) for w in window]),
        each("pad", [f"{w.pad_low}_{w.pad_high}" for w in window]),
        each("lhs_dilate", [str(w.base_dilation) for w in window]),
        each("rhs_dilate", [str(w.window_dilation) for w in window]),
        each("rhs_reversal", [str(int(w.reversal)) for w in window]),
    ]
    attributes = f"window={{{' '.join(fields)}}}, dim_labels={lhs[0]}_{rhs[0]}->{out[0]}"
    attributes += f", feature_group_count={groups}, batch_group_count={batch_groups}"
    module = convolution(lhs[1], rhs[1], out[1], attributes)
    before = lowering._LOOP_RATE
    try:
        for rate in (1e-9, 1e9):  # always products where possible, never
            lowering._LOOP_RATE = rate
            assert_agrees(module, "cpu")
    finally:
        lowering._LOOP_RATE = before


def test_what_is_weighed_is_in_the_trace() -> None:
    text = "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"
    exe = assert_agrees(convolution("f32[2,16,16,32]", "f32[3,3,32,32]", "f32[2,16,16,32]", text), "cpu")
    (decision,) = [d for d in exe.trace.decisions if d.rule == "convolution"]
    assert decision.ok and decision.cost_before > decision.cost_after > 0
    assert "32 sums of 16x32x288" in decision.reason


@pytest.mark.parametrize("width", [128, 256])
@pytest.mark.parametrize("name", ["strided", "transposed", "depthwise", "grouped", "weight gradient"])
@pytest.mark.parametrize("t", ["f32", "f64"])
def test_narrower_vectors(
    name: str, t: str, width: int, prefer_products: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow = dataclasses.replace(tile_code.host(), width=width)
    monkeypatch.setattr(tile_code, "host", lambda: narrow)
    lhs, rhs, out, attributes = VARIANTS[name]
    exe = assert_agrees(convolution(*(a.replace("f32", t) for a in (lhs, rhs, out)), attributes), "cpu")
    assert "sums of" in exe.stage("thunks")


WIDE = {
    "many features": ("f32[2,5,5,37]", "f32[3,3,37,83]", "f32[2,5,5,83]", "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"),
    "many images": ("f32[19,4,4,5]", "f32[2,2,5,17]", "f32[19,3,3,17]", "window={size=2x2}, dim_labels=b01f_01io->b01f"),
    "depthwise": ("f32[2,6,9,40]", "f32[3,3,1,40]", "f32[2,6,9,40]", "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=40"),
    "depthwise, weight gradient": ("f32[2,6,6,40]", "f32[2,6,6,40]", "f32[3,3,1,40]", "window={size=6x6 pad=1_1x1_1}, dim_labels=f01b_i01o->01bf, batch_group_count=40"),
    "gradient of strides": ("f32[2,7,7,12]", "f32[3,3,12,20]", "f32[2,14,14,20]", "window={size=3x3 pad=2_1x1_2 lhs_dilate=2x2 rhs_reversal=1x1}, dim_labels=b01f_01io->b01f"),
    "weight gradient of strides": ("f32[6,9,9,20]", "f32[6,4,4,24]", "f32[3,3,20,24]", "window={size=4x4 rhs_dilate=2x2}, dim_labels=f01b_i01o->01bf"),
    "many inputs": ("f32[1,3,3,9000]", "f32[3,3,9000,9]", "f32[1,3,3,9]", "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"),
}  # fmt: skip


@pytest.mark.parametrize("name", WIDE)
def test_tiles(name: str) -> None:
    """Several tiles in both directions, the last ones narrower; parts that stay in the cache; any number of threads."""
    module = convolution(*WIDE[name])
    exe = assert_agrees(module, "cpu")
    assert "sums of" in exe.stage("thunks")
    inputs = random_inputs(module)
    alone = compile(module, "cpu", Options(threads=1)).run(inputs)
    shared = compile(module, "cpu", Options(threads=3)).run(inputs)
    np.testing.assert_array_equal(alone[0], shared[0])
