"""Outputs done piece by piece (loop, concatenate, slices), on the CPU and on the simulated GPU, against the evaluator."""

from __future__ import annotations

import re
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron import targets
from heron.codegen.emit import emit_fusion
from heron.codegen.kernel import Kernel
from heron.codegen.transforms import pipeline
from heron.codegen.transforms.options import TransformOptions
from heron.compiling import compile
from heron.hlo import text
from tests.codegen.run_gpu_kernel import ptx
from tests.codegen.run_kernel import check, root_fusion
from tests.codegen.test_elemental_indexing import array, source


def emitted(target: str, shapes: list[str], body: str) -> Kernel:
    kernel = emit_fusion(root_fusion(source(shapes, body)), "k", targets.get(target))
    kernel.module.verify()
    return kernel


ROWS = (["f32[5,40]", "f32[9,40]", "f32[2,40]"], "ROOT r = f32[16,40] concatenate(p0, p1, p2), dimensions={0}")
CASES = [
    ROWS,
    # along the innermost and a middle dimension
    (["f32[6,30]", "f32[6,50]"], "ROOT r = f32[6,80] concatenate(p0, p1), dimensions={1}"),
    (["f32[3,4,20]", "f32[3,6,20]"], "ROOT r = f32[3,10,20] concatenate(p0, p1), dimensions={1}"),
    # empty and equal operands
    (["f32[6,30]", "f32[0,30]"], "ROOT r = f32[12,30] concatenate(p0, p1, p0), dimensions={0}"),
    # prologues and an epilogue that reads the result's own places
    (
        ["f32[6,30]", "f32[6,50]", "f32[6,80]", "f32[80]"],
        "a = f32[6,30] negate(p0)\n b = f32[6,50] multiply(p1, p1)\n"
        " c = f32[6,80] concatenate(a, b), dimensions={1}\n w = f32[6,80] broadcast(p3), dimensions={1}\n"
        " m = f32[6,80] multiply(c, w)\n ROOT r = f32[6,80] add(m, p2)",
    ),
    # rotary positions: halves of one array, one negated, beside the straight one
    (
        ["f32[7,64]", "f32[7,64]", "f32[7,64]"],
        "a = f32[7,32] slice(p0), slice={[0:7],[32:64]}\n n = f32[7,32] negate(a)\n"
        " b = f32[7,32] slice(p0), slice={[0:7],[0:32]}\n c = f32[7,64] concatenate(n, b), dimensions={1}\n"
        " s = f32[7,64] multiply(c, p1)\n o = f32[7,64] multiply(p0, p2)\n ROOT r = f32[7,64] add(s, o)",
    ),
    # two concatenations cut at different places, two outputs
    (
        ["f32[6,30]", "f32[6,50]", "f32[6,40]"],
        "c = f32[6,80] concatenate(p0, p1), dimensions={1}\n d = f32[6,80] concatenate(p2, p2), dimensions={1}\n"
        " a = f32[6,80] add(c, d)\n m = f32[6,80] multiply(c, d)\n ROOT r = (f32[6,80], f32[6,80]) tuple(a, m)",
    ),
    # below reshapes: its dimension in another place, cut in two (at a multiple of the inner part), joined with inner ones
    (
        ["f32[6,30]", "f32[6,50]", "f32[1,6,80,1]"],
        "c = f32[6,80] concatenate(p0, p1), dimensions={1}\n d = f32[1,6,80,1] reshape(c)\n"
        " ROOT r = f32[1,6,80,1] add(d, p2)",
    ),
    (
        ["f32[6,32]", "f32[6,48]", "f32[6,10,8]"],
        "c = f32[6,80] concatenate(p0, p1), dimensions={1}\n n = f32[6,80] negate(c)\n d = f32[6,10,8] bitcast(n)\n"
        " ROOT r = f32[6,10,8] add(d, p2)",
    ),
    (
        ["f32[6,5,8]", "f32[6,2,8]", "f32[6,56]"],
        "c = f32[6,7,8] concatenate(p0, p1), dimensions={1}\n d = f32[6,56] reshape(c)\n"
        " m = f32[6,56] map(d, p2), dimensions={0,1}, to_apply=add\n ROOT r = f32[6,56] add(m, p2)",
    ),
    # layouts
    (
        ["f32[6,30]{0,1}", "f32[6,50]{0,1}"],
        "ROOT r = f32[6,80]{0,1} concatenate(p0, p1), dimensions={1}",
    ),
    (["bf16[128,96]", "bf16[128,160]"], "ROOT r = bf16[128,256] concatenate(p0, p1), dimensions={1}"),
    (["pred[7,3]", "pred[7,2]"], "ROOT r = pred[7,5] concatenate(p0, p1), dimensions={1}"),
]

_EVEN_AND_ODD = (
    "z = f32[] constant(0)\n e = f32[{0}] multiply(p0, p0)\n o = f32[{1}] negate(p1)\n"
    " a = f32[{2}] pad(e, z), padding={3}\n b = f32[{2}] pad(o, z), padding={4}\n"
)
#: pads with room between elements, each rest of the index in a loop of its own on the CPU
SPREAD = [
    (["f32[9]", "f32[8]"], _EVEN_AND_ODD.format("9", "8", "17", "0_0_1", "1_1_1") + "ROOT r = f32[17] add(a, b)"),
    (
        ["f32[5,20]", "f32[5,20]"],
        _EVEN_AND_ODD.format("5,20", "5,20", "10,20", "0_1_1x0_0", "1_0_1x0_0") + "ROOT r = f32[10,20] add(a, b)",
    ),
    (
        ["f32[3,7]", "f32[3,6]", "f32[3,13]"],
        _EVEN_AND_ODD.format("3,7", "3,6", "3,13", "0_0x0_0_1", "0_0x1_1_1")
        + "m = f32[3,13] multiply(a, p2)\n s = f32[3,13] add(m, b)\n ROOT r = (f32[3,13], f32[3,13]) tuple(s, m)",
    ),
    # a concatenation below a pad, three rests, edges of padding alone
    (
        ["f32[1,6]", "f32[4,6]"],
        "z = f32[] constant(-2)\n n = f32[4,6] multiply(p1, p1)\n c = f32[5,6] concatenate(p0, n), dimensions={0}\n"
        " a = f32[20,6] pad(c, z), padding=4_3_2x0_0\n b = f32[20,6] pad(p1, z), padding=2_8_2x0_0\n"
        " ROOT r = f32[20,6] maximum(a, b)",
    ),
    # two ways of leaving room: the first shapes the loops
    (
        ["f32[4,4]", "f32[8,2]"],
        "z = f32[] constant(1)\n a = f32[8,4] pad(p0, z), padding=1_0_1x0_0\n"
        " b = f32[8,4] pad(p1, z), padding=0_0x0_1_1\n ROOT r = f32[8,4] subtract(a, b)",
    ),
]

#: pads and windows whose edges are loops of their own on the CPU, and the loops
EDGES = [
    (
        ["f32[99,3]", "f32[100,3]"],
        "z = f32[] constant(0)\n n = f32[99,3] negate(p0)\n a = f32[100,3] pad(n, z), padding=0_1x0_0\n"
        " b = f32[100,3] pad(p0, z), padding=1_0x0_0\n s = f32[100,3] add(a, b)\n ROOT r = f32[100,3] multiply(s, p1)",
        "2 + 2 + 2",
    ),
    (["f32[9,40]"], "z = f32[] constant(2)\n ROOT r = f32[13,43] pad(p0, z), padding=2_2x3_0", "1x1"),
    # negative edges, two outputs
    (
        ["f32[9,40]", "f32[9,38]"],
        "z = f32[] constant(-1)\n a = f32[9,38] pad(p0, z), padding=0_0x2_-4\n m = f32[9,38] multiply(a, p1)\n"
        " ROOT r = (f32[9,38], f32[9,38]) tuple(a, m)",
        "1x1 + 1x1",
    ),
    # an array and its first column, moved by slices
    (
        ["f32[20,40]"],
        "e = f32[20,1] slice(p0), slice={[0:20], [0:1]}\n c = f32[20,41] concatenate(e, p0), dimensions={1}\n"
        " a = f32[18,39] slice(c), slice={[0:18], [1:40]}\n b = f32[18,39] slice(c), slice={[2:20], [0:39]}\n"
        " m = f32[18,39] slice(p0), slice={[1:19], [0:39]}\n s = f32[18,39] add(a, b)\n"
        " ROOT r = f32[18,39] subtract(s, m)",
        "2 + 1x1",
    ),
    # nothing but padding
    (["f32[2]"], "z = f32[] constant(3)\n ROOT r = f32[300] pad(p0, z), padding=-1_299", "1 + 1"),
    # steps, dilation, an uneven end, padding in both dimensions
    (
        ["f32[40,30]"],
        "z = f32[] constant(0)\n ROOT r = f32[20,15] reduce-window(p0, z), window={size=5x3 stride=2x2 pad=2_1x1_0}, "
        "to_apply=add",
        "2 + 1x1",
    ),
    (
        ["f32[20,60]"],
        "z = f32[] constant(0)\n ROOT r = f32[20,60] reduce-window(p0, z), "
        "window={size=1x3 pad=0_0x4_4 rhs_dilate=1x4}, to_apply=add",
        "1x1 + 1x1 + 1x1",
    ),
    # a window wider than what it slides over, and one over rows of few elements
    (
        ["f32[60,4]"],
        "z = f32[] constant(0)\n ROOT r = f32[60,6] reduce-window(p0, z), window={size=1x7 pad=0_0x4_4}, to_apply=add",
        "",
    ),
    (
        ["f32[100,3]"],
        "z = f32[] constant(0)\n ROOT r = f32[100,3] reduce-window(p0, z), window={size=3x1 pad=1_1x0_0}, to_apply=add",
        "2 + 1x1 + 2",
    ),
]


def whole_numbers(shape: str) -> np.ndarray:
    """Their sums are the same in any order."""
    return np.round(array(shape) * 8)


@pytest.mark.parametrize("shapes, body, loops", EDGES)
def test_edges_of_padding(shapes: list[str], body: str, loops: str) -> None:
    kernel = emitted("cpu", shapes, body)
    if loops:
        assert (kernel.emitter, kernel.notes["loops"]) == ("concatenate", loops)
    else:
        assert kernel.emitter == "loop"
    check(source(shapes, body), [whole_numbers(s) for s in shapes], parts=3)


@given(st.data())
@settings(max_examples=15)
def test_windows_of_any_padding(data: st.DataObject) -> None:
    size, window, stride, dilation = (data.draw(st.integers(1, most)) for most in (40, 6, 3, 3))
    low, high = (data.draw(st.integers(-3, 8)) for _ in range(2))
    reach = (window - 1) * dilation + 1
    if size + low + high < reach:
        return
    n = (size + low + high - reach) // stride + 1
    body = (
        f"z = f32[] constant(0)\n ROOT r = f32[12,{n}] reduce-window(p0, z), "
        f"window={{size=1x{window} stride=1x{stride} pad=0_0x{low}_{high} rhs_dilate=1x{dilation}}}, to_apply=add"
    )
    check(source([f"f32[12,{size}]"], body), [whole_numbers(f"f32[12,{size}]")], parts=2)


@given(st.data())
@settings(max_examples=15)
def test_slices_of_any_joined_arrays(data: st.DataObject) -> None:
    """What a stencil reads beyond its edges: wrapped, mirrored or repeated, from one array or several."""
    n, lines, cuts = 40, list[str](), list[str]()
    for k in range(data.draw(st.integers(1, 3))):
        widths = data.draw(st.lists(st.integers(1, n), min_size=1, max_size=3))
        for m, width in enumerate(widths):
            low = data.draw(st.integers(0, n - width))
            lines.append(f"x{k}_{m} = f32[12,{width}] slice(p0), slice={{[0:12], [{low}:{low + width}]}}")
        whole = n + sum(widths)
        place = data.draw(st.integers(0, len(widths)))
        names = [f"x{k}_{m}" for m in range(len(widths))]
        joined = ", ".join([*names[:place], "p0", *names[place:]])
        lines.append(f"c{k} = f32[12,{whole}] concatenate({joined}), dimensions={{1}}")
        start, row = data.draw(st.integers(0, whole - 30)), data.draw(st.integers(0, 2))
        cuts.append(f"s{k}")
        lines.append(f"s{k} = f32[10,30] slice(c{k}), slice={{[{row}:{row + 10}], [{start}:{start + 30}]}}")
    total = cuts[0]
    for k, other in enumerate(cuts[1:]):
        lines.append(f"t{k} = f32[10,30] add({total}, {other})")
        total = f"t{k}"
    body = "\n ".join([*lines, f"ROOT r = f32[10,30] negate({total})"])
    check(source([f"f32[12,{n}]"], body), [whole_numbers(f"f32[12,{n}]")], parts=2)


@given(st.data())
@settings(max_examples=20, derandomize=True)
def test_arrays_turned_along_several_dimensions(data: st.DataObject) -> None:
    """Slices of one array joined anew along any dimension: turned round, wrapped, out of order, with some twice."""
    sizes = data.draw(st.lists(st.integers(2, 40), min_size=2, max_size=3))
    shape = f"f32[{','.join(map(str, sizes))}]"
    lines, total = [f"a0 = {shape} negate(p0)"], "a0"
    for k in range(data.draw(st.integers(1, 4))):
        d, left, names = data.draw(st.integers(0, len(sizes) - 1)), 0, list[str]()
        left = sizes[d]
        while left:
            width = data.draw(st.integers(1, left))
            low = data.draw(st.integers(0, sizes[d] - width))
            cut = ", ".join(f"[{low}:{low + width}]" if n == d else f"[0:{m}]" for n, m in enumerate(sizes))
            piece = ",".join(str(width if n == d else m) for n, m in enumerate(sizes))
            names.append(f"x{k}_{len(names)}")
            lines.append(f"{names[-1]} = f32[{piece}] slice(p0), slice={{{cut}}}")
            left -= width
        lines.append(f"c{k} = {shape} concatenate({', '.join(names)}), dimensions={{{d}}}")
        lines.append(f"a{k + 1} = {shape} add({total}, c{k})")
        total = f"a{k + 1}"
    body = "\n ".join([*lines, f"ROOT r = {shape} multiply({total}, {total})"])
    for gpu in (False, True):
        check(source([shape], body), [whole_numbers(shape)], parts=2, gpu=gpu)


def test_short_rows_are_cut_and_others_found() -> None:
    """Turned along both dimensions: the inner one is cut, and along the outer one the place is chosen, not the value."""
    body = (
        "a = f32[9,WIDE] slice(p0), slice={[1:10], [0:WIDE]}\n b = f32[1,WIDE] slice(p0), slice={[0:1], [0:WIDE]}\n"
        " c = f32[10,WIDE] concatenate(a, b), dimensions={0}\n"
        " d = f32[10,REST] slice(p0), slice={[0:10], [1:WIDE]}\n e = f32[10,1] slice(p0), slice={[0:10], [0:1]}\n"
        " f = f32[10,WIDE] concatenate(d, e), dimensions={1}\n ROOT r = f32[10,WIDE] add(c, f)"
    )
    for wide, loops in ((31, "1x1"), (32, "1x1 + 2")):
        made = emitted("cpu", [f"f32[10,{wide}]"], body.replace("WIDE", str(wide)).replace("REST", str(wide - 1)))
        assert (made.emitter, made.notes["loops"]) == ("concatenate", loops)
        assert "scf.if" not in str(pipeline.run(made.module, TransformOptions()))


def test_concatenations_a_reshape_hides() -> None:
    """No dimension of the result shows where the operands meet: inside another dimension, or in rows of other length."""
    for result in ("f32[6,10,8]", "f32[480]", "f32[48,10]"):
        body = f"c = f32[6,80] concatenate(p0, p1), dimensions={{1}}\n d = {result} reshape(c)\n"
        shapes = ["f32[6,30]", "f32[6,50]", result]
        assert emitted("cpu", shapes, f"{body} ROOT r = {result} add(d, p2)").emitter == "loop"


@pytest.mark.parametrize("shapes, body", CASES)
@pytest.mark.parametrize("gpu", [False, True])
def test_concatenate(shapes: list[str], body: str, gpu: bool) -> None:
    target = "sim:sm_90" if gpu else "cpu"
    assert emitted(target, shapes, body).emitter == "concatenate"
    inputs = [array(s) if s[0] != "p" else array(s.replace("pred", "s32")) > 2 for s in shapes]
    check(source(shapes, body), inputs, parts=3, gpu=gpu)


@pytest.mark.parametrize("shapes, body", SPREAD)
@pytest.mark.parametrize("gpu", [False, True])
def test_every_second_element(shapes: list[str], body: str, gpu: bool) -> None:
    kernel = emitted("sim:sm_90" if gpu else "cpu", shapes, body)
    assert gpu or kernel.emitter == "concatenate" and "arith.remsi" not in str(kernel.module)
    check(source(shapes, body), [array(s) for s in shapes], parts=3, gpu=gpu)


@pytest.mark.parametrize("target", ["cpu", "sm_90"])
def test_no_piece_branches_over_the_operands(target: str) -> None:
    """The only conditions are a GPU block's: which piece is its own, and where the piece ends."""
    ir = str(emitted(target, *ROWS).module)
    assert ir.count("tensor.extract") == 3
    # a GPU block asks which piece is its own, its threads where the piece ends
    assert ir.count("arith.cmpi") == (0 if target == "cpu" else 4 + 3)


def test_the_pieces_of_a_cpu_kernel_vectorise() -> None:
    shapes = ["f32[64,300]", "f32[64,500]", "f32[64,800]"]
    body = (
        "c = f32[64,800] concatenate(p0, p1), dimensions={1}\n m = f32[64,800] multiply(c, c)\n"
        " ROOT r = f32[64,800] add(m, p2)"
    )
    assert emitted("cpu", shapes, body).notes["loops"] == "1x1 + 1x1"
    code = str(compile(text.parse(source(shapes, body)), "x86-64-v3").stage("asm"))
    assert re.search(r"vmulps\s+%ymm", code)


def test_vectors_only_where_pieces_are_aligned() -> None:
    n = 1 << 20
    even = emitted("sm_90", [f"f32[{n}]", f"f32[{n}]"], f"ROOT r = f32[{2 * n}] concatenate(p0, p1), dimensions={{0}}")
    assert even.notes["vector"] == "4 + 4" and "st.global.v4" in ptx(
        source([f"f32[{n}]", f"f32[{n}]"], f"ROOT r = f32[{2 * n}] concatenate(p0, p1), dimensions={{0}}")
    )
    odd = [f"f32[{n - 1}]", f"f32[{n + 1}]"]
    assert (
        emitted("sm_90", odd, f"ROOT r = f32[{2 * n}] concatenate(p0, p1), dimensions={{0}}").notes["vector"] == "1 + 1"
    )


def test_too_many_pieces_stay_one_loop() -> None:
    names = ", ".join(["p0"] * 70)
    body = f"ROOT r = f32[140] concatenate({names}), dimensions={{0}}"
    assert emitted("cpu", ["f32[2]"], body).emitter == "loop"
    check(source(["f32[2]"], body), [array("f32[2]")])


def _blocks(count: int, name: str, chain: int = 0) -> str:
    """Blocks of 3 by 5 on the diagonal of a matrix, each from a parameter through so many ops of its own."""
    lines = []
    for n in range(count):
        lines.append(f"{name}0{n} = f32[1,3,5] slice(p0), slice={{[{n}:{n + 1}],[0:3],[0:5]}}")
        lines += [f"{name}{k + 1}{n} = f32[1,3,5] negate({name}{k}{n})" for k in range(chain)]
        lines.append(f"{name}r{n} = f32[3,5] reshape({name}{chain}{n})")
        pad = f"0_0x{5 * n}_{5 * (count - n - 1)}"
        lines.append(f"{name}p{n} = f32[3,{5 * count}] pad({name}r{n}, zero), padding={pad}")
    operands = ", ".join(f"{name}p{n}" for n in range(count))
    result = f"{name} = f32[{3 * count},{5 * count}] concatenate({operands}), dimensions={{0}}"
    return "\n ".join(["zero = f32[] constant(0)", *lines, result])


def test_a_piece_counts_as_what_it_computes() -> None:
    """The blocks of a matrix are many instructions, of which each piece has few."""
    one = _blocks(40, "a") + "\n ROOT r = f32[120,200] negate(a)"
    two = _blocks(20, "a", 3) + "\n " + _blocks(20, "b").split("\n ", 1)[1] + "\n ROOT r = f32[60,100] add(a, b)"
    for body, shape in (one, "f32[40,3,5]"), (two, "f32[20,3,5]"):
        assert emitted("cpu", [shape], body).emitter == "concatenate"
        check(source([shape], body), [array(shape)])


def test_pieces_with_much_in_each_stay_one_loop() -> None:
    long = "\n ".join(f"m{n + 1} = f32[2] negate(m{n})" for n in range(50))
    joined = ", ".join(["m50"] * 60)
    body = f"m0 = f32[2] negate(p0)\n {long}\n ROOT r = f32[120] concatenate({joined}), dimensions={{0}}"
    assert emitted("cpu", ["f32[2]"], body).emitter == "loop"
    check(source(["f32[2]"], body), [array("f32[2]")])


# -- slices ------------------------------------------------------------------------------------------------------------

HORIZONTAL = (
    ["f32[30]", "f32[4,25]", "f32[7]"],
    "a = f32[30] negate(p0)\n b = f32[4,25] multiply(p1, p1)\n f = f32[100] reshape(b)\n c = f32[7] abs(p2)\n"
    " j = f32[137] concatenate(a, f, c), dimensions={0}\n"
    " x = f32[30] slice(j), slice={[0:30]}\n y = f32[100] slice(j), slice={[30:130]}\n"
    " z = f32[7] slice(j), slice={[130:137]}\n v = f32[4,25] reshape(y)\n"
    " ROOT r = (f32[30], f32[4,25], f32[7]) tuple(x, v, z)",
)
SLICES = [
    HORIZONTAL,
    # strided and overlapping slices of a computed value
    (
        ["f32[40,30]"],
        "a = f32[40,30] multiply(p0, p0)\n x = f32[20,30] slice(a), slice={[0:40:2],[0:30]}\n"
        " y = f32[40,10] slice(a), slice={[0:40],[15:25]}\n z = f32[1,1] slice(a), slice={[39:40],[29:30]}\n"
        " ROOT r = (f32[20,30], f32[40,10], f32[1,1]) tuple(x, y, z)",
    ),
]


@pytest.mark.parametrize("shapes, body", SLICES)
@pytest.mark.parametrize("gpu", [False, True])
def test_slices(shapes: list[str], body: str, gpu: bool) -> None:
    kernel = emitted("sim:sm_90" if gpu else "cpu", shapes, body)
    assert kernel.emitter == "slices"
    check(source(shapes, body), [array(s) for s in shapes], parts=3, gpu=gpu)


def test_each_slice_reads_its_own_operand_only() -> None:
    kernel = emitted("sm_90", *HORIZONTAL)
    assert kernel.launch.grid == (3, 1, 1)
    ir = str(kernel.module)
    assert ir.count("tensor.extract") == 3 and ir.count("tensor.insert") == 3


# -- outputs of several shapes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("gpu", [False, True])
def test_outputs_of_several_shapes_have_blocks_of_their_own(gpu: bool) -> None:
    shapes = ["f32[1000]", "f32[20,30]", "f32[]"]
    body = (
        "b = f32[1000] broadcast(p2), dimensions={}\n a = f32[1000] add(p0, b)\n m = f32[1000] multiply(p0, b)\n"
        " t = f32[20,30] tanh(p1)\n n = f32[] negate(p2)\n"
        " ROOT r = (f32[1000], f32[20,30], f32[], f32[1000]) tuple(a, t, n, m)"
    )
    kernel = emitted("sm_90", shapes, body)
    assert kernel.emitter == "loop" and kernel.launch.grid == (8 + 5 + 1, 1, 1)
    check(source(shapes, body), [array(s) for s in shapes], rtol=1e-6, atol=1e-6, parts=3, gpu=gpu)


# -- any sizes, types and layouts --------------------------------------------------------------------------------------


@st.composite
def concatenations(draw: st.DrawFn) -> tuple[list[str], str]:
    rank = draw(st.integers(1, 3))
    d = draw(st.integers(0, rank - 1))
    dims = draw(st.lists(st.integers(1, 9), min_size=rank, max_size=rank))
    parts = draw(st.lists(st.integers(0, 40), min_size=2, max_size=5).filter(lambda p: sum(n > 0 for n in p) > 1))
    kind = draw(st.sampled_from(["f32", "bf16", "s8", "f64", "pred", "c64"]))

    def shape(n: int) -> str:
        sizes = [n if k == d else m for k, m in enumerate(dims)]
        order = draw(st.permutations(range(rank)))
        return f"{kind}[{','.join(map(str, sizes))}]{{{','.join(map(str, order))}}}"

    shapes = [shape(n) for n in parts]
    operands = ", ".join(f"p{n}" for n in range(len(parts)))
    result = shape(sum(parts))
    return shapes, f"ROOT r = {result} concatenate({operands}), dimensions={{{d}}}"


@settings(max_examples=12, derandomize=True)
@given(concatenations())
def test_any_concatenation(case: tuple[list[str], str]) -> None:
    shapes, body = case
    program = source(shapes, body)
    inputs = []
    for n, s in enumerate(shapes):
        dims = tuple(int(v) for v in re.findall(r"\[(.*?)\]", s)[0].split(","))
        dtype = root_fusion(program).operands[n].shape.element_type.dtype
        inputs.append((np.arange(prod(dims)) % 7 + n).reshape(dims).astype(dtype))
    for gpu in (False, True):
        check(program, inputs, parts=2, gpu=gpu)


# -- why this emitter --------------------------------------------------------------------------------------------------


def test_the_trace_tells_which_emitter_and_why() -> None:
    shapes, body = ROWS
    negated = body.replace("ROOT r =", "c =") + f"\n  ROOT r = {body.split(' = ')[1].split(' ')[0]} negate(c)"
    made = compile(text.parse(source(shapes, negated)), "cpu")
    (told,) = [d for d in made.trace.decisions if d.rule == "emitter"]
    assert told.ok and told.reason == f"concatenate: '{told.object}' joins 3 operands"
    small = (["f32[20,30]"], "ROOT r = f32[30,20] transpose(p0), dimensions={1,0}")
    (told,) = [d for d in compile(text.parse(source(*small)), "cpu").trace.decisions if d.rule == "emitter"]
    assert not told.ok and told.reason.startswith("loop: too few elements to tile; each output element")
