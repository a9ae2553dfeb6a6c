"""The transpose emitter: tiles on the CPU and, through shared memory, on the simulated GPU, against the evaluator."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import prod
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron import targets
from heron.analysis.fusion.fusion import as_fusion
from heron.analysis.fusion.output_boxes import groups_of
from heron.analysis.fusion.partition import partition
from heron.analysis.fusion.transpose import Tiling, group_tiling
from heron.codegen.emit import emit_fusion
from heron.codegen.kernel import Kernel
from tests.codegen.run_gpu_kernel import ptx
from tests.codegen.run_kernel import check, lower, root_fusion
from tests.codegen.test_elemental_indexing import array, source

GOLDEN = Path(__file__).parent / "golden"
PLAIN = (["f32[64,96]"], "ROOT r = f32[96,64] transpose(p0), dimensions={1,0}")

CASES = [
    PLAIN,
    # edges: neither side a multiple of a block
    (["f32[67,85]"], "ROOT r = f32[85,67] transpose(p0), dimensions={1,0}"),
    (["f32[67,85]"], "t = f32[85,67] transpose(p0), dimensions={1,0}\n ROOT r = f32[85,67] negate(t)"),
    # general permutations
    (["f32[5,33,40]"], "ROOT r = f32[40,33,5] transpose(p0), dimensions={2,1,0}"),
    (["f32[20,17,40]"], "ROOT r = f32[40,17,20] transpose(p0), dimensions={2,1,0}"),
    (["f32[6,20,40]"], "ROOT r = f32[6,40,20] transpose(p0), dimensions={0,2,1}"),
    (["f32[18,20,9]"], "ROOT r = f32[20,18,9] transpose(p0), dimensions={1,0,2}"),
    (["f32[3,4,20,24]"], "ROOT r = f32[24,3,4,20] transpose(p0), dimensions={3,0,1,2}"),
    (["f32[3,20,4,24]"], "ROOT r = f32[4,24,3,20] transpose(p0), dimensions={2,3,0,1}"),
    # prologue and epilogue; the transposed value and the straight one
    (
        ["f32[40,64]", "f32[64,40]", "f32[40]"],
        "a = f32[40,64] abs(p0)\n t = f32[64,40] transpose(a), dimensions={1,0}\n m = f32[64,40] subtract(t, p1)\n"
        " b = f32[64,40] broadcast(p2), dimensions={1}\n ROOT r = f32[64,40] multiply(m, b)",
    ),
    (
        ["f32[64,64]"],
        "t = f32[64,64] transpose(p0), dimensions={1,0}\n ROOT r = f32[64,64] subtract(t, p0)",
    ),
    # two operands turned
    (
        ["f32[40,64]", "f32[40,64]"],
        "a = f32[40,64] add(p0, p1)\n ROOT r = f32[64,40] transpose(a), dimensions={1,0}",
    ),
    # through reshapes: attention's heads
    (
        ["f32[4,24,64]"],
        "t = f32[24,64,4] transpose(p0), dimensions={1,2,0}\n ROOT r = f32[24,256] reshape(t)",
    ),
    (
        ["f32[24,256]"],
        "a = f32[24,4,64] reshape(p0)\n t = f32[4,64,24] transpose(a), dimensions={1,2,0}\n"
        " ROOT r = f32[4,64,24] negate(t)",
    ),
    # layouts
    (["f32[64,48]{0,1}"], "ROOT r = f32[64,48] copy(p0)"),
    (["f32[48,64]"], "ROOT r = f32[48,64]{0,1} negate(p0)"),
    # several outputs: of one shape, and of the operand's
    (
        ["f32[40,64]", "f32[64,40]"],
        "t = f32[64,40] transpose(p0), dimensions={1,0}\n a = f32[64,40] add(t, p1)\n"
        " ROOT r = (f32[64,40], f32[64,40]) tuple(t, a)",
    ),
    (
        ["f32[40,64]"],
        "a = f32[40,64] multiply(p0, p0)\n t = f32[64,40] transpose(a), dimensions={1,0}\n"
        " ROOT r = (f32[64,40], f32[40,64]) tuple(t, a)",
    ),
    (
        ["f32[40,64]", "f32[7]"],
        "t = f32[64,40] transpose(p0), dimensions={1,0}\n n = f32[7] negate(p1)\n"
        " ROOT r = (f32[64,40], f32[7]) tuple(t, n)",
    ),
]

#: outputs of several shapes: tiles for some, blocks of their own for the others
SEVERAL = [
    (
        ["f32[4,40,36]"],
        "t = f32[4,36,40] transpose(p0), dimensions={0,2,1}\n s = f32[4,36,40] negate(t)\n"
        " b = f32[4,1440] reshape(s)\n ROOT r = (f32[4,1440], f32[4,36,40]) tuple(b, t)",
    ),
    (
        ["f32[64,40]", "f32[64,40]"],
        "t = f32[40,64] transpose(p0), dimensions={1,0}\n u = f32[40,64] transpose(p1), dimensions={1,0}\n"
        " a = f32[40,64] add(t, u)\n f = f32[2560] reshape(t)\n g = f32[64,40] negate(p0)\n"
        " ROOT r = (f32[40,64], f32[2560], f32[64,40]) tuple(a, f, g)",
    ),
]
CASES += SEVERAL


def window_over_turned(kind: str, padded: bool) -> tuple[list[str], str]:
    """Sums of seven neighbours in a turned array, with padding beyond its ends or without, times a natural one."""
    length, source = (40, "w") if padded else (34, "r")
    flat, shape = f"{kind}[74,{length}]", f"{kind}[2,37,{length}]"
    lines = [
        f"t = {kind}[2,37,40] transpose(p0), dimensions={{0,2,1}}",
        f"r = {kind}[74,40] reshape(t)",
        f"zero = {kind}[] constant(0)",
        f"w = {kind}[74,46] pad(r, zero), padding=0_0x3_3",
        *(f"s{n} = {flat} slice({source}), slice={{[0:74], [{n}:{n + length}]}}" for n in range(7)),
        f"a1 = {flat} add(s0, s1)",
        *(f"a{n} = {flat} add(a{n - 1}, s{n})" for n in range(2, 7)),
        f"a = {shape} reshape(a6)",
        f"m = {shape} multiply(a, p1)",
        f"ROOT both = ({shape}, {shape}) tuple(m, a)",
    ]
    return [f"{kind}[2,40,37]", shape], "\n ".join(lines)


#: more reads lie across memory than along it
WINDOWS = [window_over_turned(kind, padded) for kind in ("f32", "s64", "u8") for padded in (False, True)]
CASES += WINDOWS
#: a turned array with padding around it, alone and with its natural order
CASES += [
    (
        ["f32[40,64]"],
        "t = f32[64,40] transpose(p0), dimensions={1,0}\n zero = f32[] constant(3)\n"
        " w = f32[70,47] pad(t, zero), padding=2_4x3_4\n ROOT r = f32[70,47] negate(w)",
    ),
    (
        ["f32[40,64]", "f32[70,47]"],
        "t = f32[64,40] transpose(p0), dimensions={1,0}\n zero = f32[] constant(3)\n"
        " w = f32[70,47] pad(t, zero), padding=2_4x3_4\n a = f32[70,47] subtract(w, p1)\n"
        " ROOT r = (f32[70,47], f32[70,47]) tuple(a, w)",
    ),
]


@pytest.mark.parametrize("shapes, body", SEVERAL)
def test_outputs_of_several_shapes_keep_their_tiles(shapes: list[str], body: str) -> None:
    assert emitted("sm_90", shapes, body).notes["tile"] == "32x32 + 32x32"


def test_three_dimensions_reversed() -> None:
    """Both sides in whole rows, a tile of 32 x 33 between them."""
    body = (
        "e = f32[20,160,170] exponential(p0)\n t = f32[170,160,20] transpose(e), dimensions={2,1,0}\n"
        " ROOT r = f32[170,160,20] abs(t)"
    )
    kernel = emitted("sm_90", ["f32[20,160,170]"], body)
    assert kernel.notes["tile"] == "32x32" and kernel.launch.grid == (160 * 6, 1, 1)
    assert kernel.launch.shared_bytes == 4 * (31 * 33 + 32)
    assert "math.exp" in str(kernel.module).partition("xla_gpu.sync_threads")[0]


@pytest.mark.parametrize("shapes, body", CASES)
@pytest.mark.parametrize("gpu", [False, True])
def test_against_the_evaluator(shapes: list[str], body: str, gpu: bool) -> None:
    check(source(shapes, body), [array(s) for s in shapes], parts=3, gpu=gpu)


@pytest.mark.parametrize("t", "pred s4 u8 s16 bf16 f16 f8e4m3fn s32 f64 s64 c64 c128".split())
@pytest.mark.parametrize("gpu", [False, True])
@pytest.mark.parametrize("sizes", [(64, 80), (70, 50)])
def test_every_width(t: str, gpu: bool, sizes: tuple[int, int]) -> None:
    a, b = sizes
    text = source([f"{t}[{a},{b}]"], f"ROOT r = {t}[{b},{a}] transpose(p0), dimensions={{1,0}}")
    values = np.random.default_rng(3).integers(0, 2 if t == "pred" else 7, (a, b))
    check(text, [values.astype(root_fusion(text).operands[0].shape.element_type.dtype)], gpu=gpu)


def test_what_is_computed_twice_is_staged_once() -> None:
    """log is a function of the partition: read at two places; the turned one is staged with its value."""
    body = "l = f32[48,48] log(p0)\n t = f32[48,48] transpose(l), dimensions={1,0}\n ROOT r = f32[48,48] add(l, t)"
    values = np.abs(array("f32[48,48]")) + np.float32(0.5)
    for gpu in (False, True):
        check(source(["f32[48,48]"], body), [values], rtol=1e-5, atol=1e-6, gpu=gpu)


def emitted(target: str, shapes: list[str], body: str) -> Kernel:
    kernel = emit_fusion(root_fusion(source(shapes, body)), "k", targets.get(target))
    kernel.module.verify()
    return kernel


@pytest.mark.parametrize("target", ["cpu", "sm_90"])
def test_golden(target: str, golden: Callable[[Path, str], None]) -> None:
    body = "t = f32[96,64] transpose(p0), dimensions={1,0}\n ROOT r = f32[96,64] add(t, p1)"
    kernel = emitted(target, ["f32[64,96]", "f32[96,64]"], body)
    assert kernel.emitter == "transpose"
    golden(
        GOLDEN / f"transpose_{target}.mlir",
        f"// {kernel.launch.grid} x {kernel.launch.block}: {kernel.notes['tile']}\n{kernel.module}\n",
    )


def tiling_of(shapes: list[str], body: str) -> Tiling | str:
    fusion = as_fusion(root_fusion(source(shapes, body)))
    ((shape, members),) = groups_of(fusion).items()
    outputs = [fusion.outputs[n] for n in members]
    return group_tiling(outputs, shape, partition(fusion.roots), early=False)


def test_forms() -> None:
    heads = "a = f32[24,4,64] reshape(p0)\n ROOT r = f32[4,64,24] transpose(a), dimensions={1,2,0}"
    found = tiling_of(["f32[24,256]"], heads)
    assert isinstance(found, Tiling) and (found.rows, found.columns) == (256, 24)
    assert tiling_of(["f32[64,32]"], "ROOT r = f32[64,32] negate(p0)") == (
        "every operand is read in the order it lies in memory"
    )
    straight = tiling_of(["f32[8,32,64]"], "ROOT r = f32[32,8,64] transpose(p0), dimensions={1,0,2}")
    assert straight == "no operand is read across the order it lies in memory"
    assert "too small" in str(tiling_of(["f32[1024,4]"], "ROOT r = f32[4,1024] transpose(p0), dimensions={1,0}"))
    assert "too few" in str(tiling_of(["f32[16,16]"], "ROOT r = f32[16,16] transpose(p0), dimensions={1,0}"))


@pytest.mark.parametrize("shapes, body", WINDOWS)
def test_what_lies_along_memory_is_turned_where_it_is_less(shapes: list[str], body: str) -> None:
    found = tiling_of(shapes, body)
    assert isinstance(found, Tiling) and found.is_turned
    assert (found.rows, len(found.staged)) == (found.space.lengths[-1], 1)
    text = lower(emitted("cpu", shapes, body))
    assert not re.search(r"u(div|rem) \w+ %\w+, 37\b", text)  # a place in a tile is a place in each dimension


def test_a_lone_transpose_goes_straight_from_registers_to_the_output() -> None:
    text = lower(emitted("cpu", *PLAIN))
    assert "alloca" not in text and "shufflevector" in text and "load float" not in text


def test_the_turned_operand_is_read_only_through_its_tile() -> None:
    body = "t = f32[96,64] transpose(p0), dimensions={1,0}\n ROOT r = f32[96,64] add(t, p1)"
    text = lower(emitted("cpu", ["f32[64,96]", "f32[96,64]"], body))
    assert text.count("load <16 x i32>") == 16
    assert text.count("load float") == 2  # the tile and the second operand


def test_the_gpu_moves_words_of_small_types() -> None:
    body = "ROOT r = bf16[2048,2048] transpose(p0), dimensions={1,0}"
    kernel = emitted("sm_90", ["bf16[2048,2048]"], body)
    assert kernel.notes["vector"] == "2" and kernel.launch.shared_bytes == 2 * (63 * 66 + 2 + 64)
    text = ptx(source(["bf16[2048,2048]"], body))
    assert "ld.global.nc.b32" in text or "ld.global.nc.v2" in text
    assert "st.global.b32" in text or "st.global.v2" in text


@st.composite
def transposes(draw: st.DrawFn) -> tuple[list[str], str]:
    """Any permutation of any array, with ops before and after, a layout, and maybe the straight array too."""
    rank = draw(st.integers(2, 4))
    long = draw(st.lists(st.integers(0, rank - 1), min_size=2, max_size=2, unique=True))
    sizes = [draw(st.integers(30, 70)) if d in long else draw(st.integers(1, 3)) for d in range(rank)]
    order, layout = (draw(st.permutations(range(rank))) for _ in range(2))
    kind = draw(st.sampled_from(["f32", "bf16", "s8", "f64", "pred", "c64"]))
    straight = f"{kind}[{','.join(map(str, sizes))}]"
    turned = f"{kind}[{','.join(str(sizes[d]) for d in order)}]"
    flat = f"{kind}[{prod(sizes)}]"
    op = draw(st.sampled_from(["copy", "not" if kind == "pred" else "negate"]))
    roots = draw(st.sampled_from([["b"], ["b", "a"], ["b", "f"], ["f", "t", "a"]]))
    shapes = {"a": straight, "b": turned, "t": turned, "f": flat}
    result = ", ".join(shapes[r] for r in roots)
    tail = f"ROOT r = ({result}) tuple({', '.join(roots)})"
    body = (
        f"a = {straight} {op}(p0)\n t = {turned} transpose(a), dimensions={{{','.join(map(str, order))}}}\n"
        f" b = {turned} {op}(t)\n f = {flat} reshape(t)\n {tail}"
    )
    return [f"{straight}{{{','.join(map(str, layout))}}}"], body


@settings(max_examples=14, derandomize=True)
@given(transposes())
def test_any_transpose(case: tuple[list[str], str]) -> None:
    text = source(*case)
    shape = root_fusion(text).operands[0].shape
    values = (np.arange(prod(shape.dims)) % 5).reshape(shape.dims).astype(shape.element_type.dtype)
    for gpu in (False, True):
        check(text, [values], parts=2, gpu=gpu)
