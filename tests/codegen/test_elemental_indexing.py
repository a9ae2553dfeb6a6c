"""Ops that move elements, read at run-time places or loop, executed on the CPU against the evaluator."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects import scf

from heron import targets
from heron.codegen.emit import emit_fusion
from heron.codegen.ir.dialects.xla_gpu import LoopOp
from heron.hlo.ir import types
from tests.codegen.run_kernel import check, root_fusion

RNG = np.random.default_rng(7)
REDUCERS = """
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
add16 { a = bf16[] parameter(0)
  b = bf16[] parameter(1)
  ROOT c = bf16[] add(a, b) }
two { a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] parameter(2)
  d = f32[] parameter(3)
  x = f32[] add(a, c)
  y = f32[] maximum(b, d)
  ROOT t = (f32[], f32[]) tuple(x, y) }
max { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] maximum(a, b) }
ge { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=GE }
argmax { a = f32[] parameter(0)
  ai = s32[] parameter(1)
  b = f32[] parameter(2)
  bi = s32[] parameter(3)
  gt = pred[] compare(a, b), direction=GE
  v = f32[] select(gt, a, b)
  i = s32[] select(gt, ai, bi)
  ROOT t = (f32[], s32[]) tuple(v, i) }
poly { a = f32[] parameter(0)
  b = f32[] parameter(1)
  m = f32[] multiply(a, b)
  ROOT c = f32[] add(m, a) }
"""


def array(text: str) -> np.ndarray:
    """Random values of a shape such as `f32[2,3]`; a layout is left out."""
    text = text.partition("{")[0]
    kind, _, dims = text.rstrip("]").partition("[")
    sizes = tuple(int(d) for d in dims.split(",") if d)
    if kind in ("s32", "s64", "u32", "u8"):
        return RNG.integers(-3 if kind[0] == "s" else 0, 9, sizes).astype(types.by_name(kind).dtype)
    values = RNG.normal(size=sizes)
    if kind == "bf16":
        import ml_dtypes

        return values.astype(ml_dtypes.bfloat16)
    if kind == "c64":
        return (values + 1j * RNG.normal(size=sizes)).astype(np.complex64)
    return values.astype(np.float32)


def source(shapes: list[str], body: str, kind: str = "fusion") -> str:
    """A module whose root is a fusion of `body` over parameters p0 … of these shapes."""
    parameters = [f"  p{n} = {s} parameter({n})" for n, s in enumerate(shapes)]
    root = next(line for line in body.splitlines() if "ROOT" in line)
    result = root.split("=", 1)[1].strip()
    result = result[: _shape_end(result)]
    args = ", ".join(f"p{n}" for n in range(len(shapes)))
    return "\n".join([
        "HloModule m", REDUCERS, "f {", *parameters, body, "}", "ENTRY e {", *parameters,
        f"  ROOT r = {result} fusion({args}), kind=kLoop, calls=f", "}", "",
    ])  # fmt: skip


def _shape_end(text: str) -> int:
    if text.startswith("("):
        return text.index(")") + 1
    return text.index(" ")


CASES: dict[str, tuple[list[str], str]] = {
    "broadcast": (["f32[5]"], "ROOT r = f32[3,5,2] broadcast(p0), dimensions={1}"),
    "transpose": (["f32[3,4,5]"], "ROOT r = f32[5,3,4] transpose(p0), dimensions={2,0,1}"),
    "reshape": (["f32[6,10]"], "ROOT r = f32[4,15] reshape(p0)"),
    "slice": (["f32[8,10]"], "ROOT r = f32[3,4] slice(p0), slice={[2:8:2], [1:9:2]}"),
    "reverse": (["f32[4,5,3]"], "ROOT r = f32[4,5,3] reverse(p0), dimensions={0,2}"),
    "pad": (["f32[3,4]", "f32[]"], "ROOT r = f32[5,11] pad(p0, p1), padding=1_1x2_2_1"),
    "pad negative": (["f32[6,4]", "f32[]"], "ROOT r = f32[4,5] pad(p0, p1), padding=-1_-1x1_0"),
    "pad of empty": (["f32[0,4]", "f32[]"], "ROOT r = f32[2,4] pad(p0, p1), padding=1_1x0_0"),
    "concatenate": (
        ["f32[2,3]", "f32[2,1]", "f32[2,4]"],
        "n = f32[2,4] negate(p2)\n ROOT r = f32[2,8] concatenate(p0, p1, n), dimensions={1}",
    ),
    "concatenate many": (
        ["f32[1,3]", "f32[2,3]", "f32[0,3]", "f32[4,3]", "f32[1,3]"],
        "ROOT r = f32[8,3] concatenate(p0, p1, p2, p3, p4), dimensions={0}",
    ),
    "iota": ([], "ROOT r = s32[3,4] iota(), iota_dimension=1"),
    "iota float": ([], "ROOT r = bf16[300] iota(), iota_dimension=0"),
    "constant": ([], "ROOT r = f32[2,3] constant({{1,2,3},{-0.5,nan,inf}})"),
    "constant pred": ([], "ROOT r = pred[4] constant({true,false,true,true})"),
    "constant s4": ([], "ROOT r = s4[4] constant({-8,-1,0,7})"),
    "constant bf16": ([], "ROOT r = bf16[3] constant({1.5,-2,3})"),
    "constant complex": ([], "ROOT r = c64[2] constant({(1,2),(-3,0.5)})"),
    "dynamic-slice": (
        ["f32[6,9]", "s32[]", "s32[]"],
        "ROOT r = f32[2,9] dynamic-slice(p0, p1, p2), dynamic_slice_sizes={2,9}",
    ),
    "dynamic-slice unsigned": (
        ["f32[6,9]", "u32[]", "u32[]"],
        "ROOT r = f32[2,3] dynamic-slice(p0, p1, p2), dynamic_slice_sizes={2,3}",
    ),
    "dynamic-update-slice": (
        ["f32[6,9]", "f32[2,4]", "s32[]", "s32[]"],
        "n = f32[6,9] negate(p0)\n ROOT r = f32[6,9] dynamic-update-slice(n, p1, p2, p3)",
    ),
    "dynamic-update-slice in place": (
        ["f32[6,9]", "f32[2,4]", "s32[]", "s32[]"],
        "n = f32[2,4] negate(p1)\n ROOT r = f32[6,9] dynamic-update-slice(p0, n, p2, p3)",
    ),
    "in place same place": (
        ["f32[6,9]", "f32[2,4]", "s32[]", "s32[]"],
        "o = f32[2,4] dynamic-slice(p0, p2, p3), dynamic_slice_sizes={2,4}\n n = f32[2,4] add(p1, o)\n"
        " ROOT r = f32[6,9] dynamic-update-slice(p0, n, p2, p3)",
    ),
    "in place read elsewhere": (
        ["f32[6,9]", "s32[]", "s32[]"],
        "o = f32[2,4] slice(p0), slice={[3:5],[2:6]}\n ROOT r = f32[6,9] dynamic-update-slice(p0, o, p1, p2)",
    ),
    "gather rows": (
        ["f32[7,5]", "s32[4,1]"],
        "ROOT r = f32[4,5] gather(p0, p1), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
        "index_vector_dim=1, slice_sizes={1,5}",
    ),
    "gather points": (
        ["f32[7,5]", "s32[3,2]"],
        "d = s32[3,2] add(p1, p1)\n ROOT r = f32[3] gather(p0, d), offset_dims={}, collapsed_slice_dims={0,1}, "
        "start_index_map={1,0}, index_vector_dim=1, slice_sizes={1,1}",
    ),
    "gather windows": (
        ["f32[8,9,4]", "s32[2,3]"],
        "ROOT r = f32[3,2,5,4] gather(p0, p1), offset_dims={1,2,3}, collapsed_slice_dims={}, start_index_map={1,0}, "
        "index_vector_dim=0, slice_sizes={2,5,4}",
    ),
    "gather batched": (
        ["f32[3,6,4]", "s32[3,5,1]"],
        "ROOT r = f32[3,5,4] gather(p0, p1), offset_dims={2}, collapsed_slice_dims={1}, start_index_map={1}, "
        "operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=2, slice_sizes={1,1,4}",
    ),
    "reduce": (
        ["f32[4,6,3]", "f32[]"],
        "n = f32[4,6,3] multiply(p0, p0)\n ROOT r = f32[4,3] reduce(n, p1), dimensions={1}, to_apply=add",
    ),
    "reduce to scalar": (["f32[4,6]", "f32[]"], "ROOT r = f32[] reduce(p0, p1), dimensions={0,1}, to_apply=max"),
    "reduce with a custom reducer": (
        ["f32[4,1]", "f32[]"],
        "ROOT r = f32[4] reduce(p0, p1), dimensions={1}, to_apply=poly",
    ),
    "reduce bf16": (["bf16[4,40]", "bf16[]"], "ROOT r = bf16[4] reduce(p0, p1), dimensions={1}, to_apply=add16"),
    "reduce then broadcast": (
        ["f32[4,6]", "f32[]"],
        "s = f32[4] reduce(p0, p1), dimensions={1}, to_apply=max\n b = f32[4,6] broadcast(s), dimensions={0}\n"
        " ROOT r = f32[4,6] subtract(p0, b)",
    ),
    "reduce variadic": (
        ["f32[5,8]", "s32[5,8]", "f32[]", "s32[]"],
        "ROOT r = (f32[5], s32[5]) reduce(p0, p1, p2, p3), dimensions={1}, to_apply=argmax",
    ),
    "part of a variadic reduce": (
        ["f32[5,8]", "f32[]", "s32[]"],
        "i = s32[5,8] iota(), iota_dimension=1\n a = (f32[5], s32[5]) reduce(p0, i, p1, p2), dimensions={1}, "
        "to_apply=argmax\n g = s32[5] get-tuple-element(a), index=1\n h = f32[5] get-tuple-element(a), index=0\n"
        " c = s32[5] convert(h)\n ROOT r = s32[5] add(g, c)",
    ),
    "reduce-window": (
        ["f32[7,8]", "f32[]"],
        "ROOT r = f32[4,6] reduce-window(p0, p1), window={size=3x3 stride=2x1 pad=1_1x0_0}, to_apply=add",
    ),
    "reduce-window dilated": (
        ["f32[7]", "f32[]"],
        "ROOT r = f32[11] reduce-window(p0, p1), window={size=3 pad=1_1 lhs_dilate=2 rhs_dilate=2}, to_apply=max",
    ),
    "pooling of an interior pad": (
        ["f32[2,4,5,8]", "f32[]"],
        "p = f32[2,9,11,8] pad(p0, p1), padding=0_0_0x1_1_1x1_1_1x0_0_0\n"
        " ROOT r = f32[2,8,10,8] reduce-window(p, p1), window={size=1x2x2x1}, to_apply=add",
    ),
    "pooling with padding on all sides": (
        ["f32[2,6,8]", "f32[]"],
        "ROOT r = f32[2,6,8] reduce-window(p0, p1), window={size=1x3x3 pad=0_0x1_1x1_1}, to_apply=max",
    ),
    "pooling of two arrays": (
        ["f32[6,8]", "f32[6,8]", "f32[]"],
        "a = (f32[6,8], f32[6,8]) reduce-window(p0, p1, p2, p2), window={size=3x1 pad=1_1x0_0}, to_apply=two\n"
        " g = f32[6,8] get-tuple-element(a), index=0\n h = f32[6,8] get-tuple-element(a), index=1\n"
        " ROOT r = f32[6,8] add(g, h)",
    ),
    "reduce of a few": (
        ["f32[5,3]", "f32[7,3]", "f32[]"],
        "a = f32[5,7,3] broadcast(p0), dimensions={0,2}\n b = f32[5,7,3] broadcast(p1), dimensions={1,2}\n"
        " d = f32[5,7,3] subtract(a, b)\n m = f32[5,7,3] multiply(d, d)\n"
        " ROOT r = f32[5,7] reduce(m, p2), dimensions={2}, to_apply=add",
    ),
    "reduce of a few pieces": (
        ["f32[7,1]", "f32[7,2]", "f32[]"],
        "a = f32[7,3] concatenate(p0, p1), dimensions={1}\n ROOT r = f32[7] reduce(a, p2), dimensions={1}, to_apply=add",
    ),
    "cumulative sum": (
        ["f32[9]", "f32[]"],
        "ROOT r = f32[9] reduce-window(p0, p1), window={size=9 pad=8_0}, to_apply=add",
    ),
    "dot": (
        ["f32[2,3,4]", "f32[2,5,4]"],
        "ROOT r = f32[2,3,5] dot(p0, p1), lhs_batch_dims={0}, "
        "rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}",
    ),
    "dot bf16": (
        ["bf16[3,40]", "bf16[40,2]"],
        "ROOT r = bf16[3,2] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    ),
    "dot complex": (
        ["c64[3,4]", "c64[4,2]"],
        "ROOT r = c64[3,2] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    ),
    "convolution": (
        ["f32[2,7,8,3]", "f32[3,2,3,4]"],
        "ROOT r = f32[2,4,8,4] convolution(p0, p1), window={size=3x2 stride=2x1 pad=1_1x0_1}, "
        "dim_labels=b01f_01io->b01f",
    ),
    "convolution grouped": (
        ["f32[1,6,4]", "f32[3,2,6]"],
        "ROOT r = f32[1,8,6] convolution(p0, p1), window={size=3 pad=2_2}, "
        "dim_labels=b0f_0io->b0f, feature_group_count=2",
    ),
    "convolution reversed": (
        ["f32[2,6,3]", "f32[3,3,2]"],
        "ROOT r = f32[2,11,2] convolution(p0, p1), window={size=3 pad=1_1 lhs_dilate=2 rhs_reversal=1}, "
        "dim_labels=b0f_0io->b0f",
    ),
    "select-and-scatter": (
        ["f32[6,7]", "f32[3,5]", "f32[]"],
        "ROOT r = f32[6,7] select-and-scatter(p0, p1, p2), window={size=2x3 stride=2x1}, select=ge, scatter=add",
    ),
    "select-and-scatter padded": (
        ["f32[5,4]", "f32[3,4]", "f32[]"],
        "t = f32[5,4] tanh(p0)\n"
        " ROOT r = f32[5,4] select-and-scatter(t, p1, p2), window={size=3x2 stride=2x1 pad=1_1x0_1}, "
        "select=ge, scatter=add",
    ),
    "map": (["f32[4]", "f32[4]"], "ROOT r = f32[4] map(p0, p1), dimensions={0}, to_apply=poly"),
    "call": (
        ["f32[]", "f32[]"],
        "c = f32[] call(p0, p1), to_apply=poly\n ROOT r = f32[] negate(c)",
    ),
    "complex moves": (["c64[3,4]"], "n = c64[3,4] negate(p0)\n ROOT r = c64[4,3] transpose(n), dimensions={1,0}"),
    "complex pad": (["c64[3]", "c64[]"], "ROOT r = c64[5] pad(p0, p1), padding=1_1"),
    "log transpose add": (
        ["f32[4,4]"],
        "l = f32[4,4] tanh(p0)\n t = f32[4,4] transpose(l), dimensions={1,0}\n ROOT r = f32[4,4] add(l, t)",
    ),
    "several outputs": (
        ["f32[4,6]"],
        "n = f32[4,6] negate(p0)\n a = f32[4,6] abs(n)\n t = f32[6,4] transpose(n), dimensions={1,0}\n"
        " s = f32[2,3] slice(a), slice={[1:3],[0:3]}\n"
        " ROOT r = (f32[4,6], f32[4,6], f32[6,4], f32[2,3]) tuple(n, a, t, s)",
    ),
    "layouts": (
        ["f32[3,4,5]{0,1,2}", "f32[3,4,5]"],
        "a = f32[3,4,5]{0,2,1} add(p0, p1)\n t = f32[5,3,4]{2,1,0} transpose(a), dimensions={2,0,1}\n"
        " ROOT r = (f32[3,4,5]{0,2,1}, f32[5,3,4]{2,1,0}, f32[3,4,5]) tuple(a, t, p0)",
    ),
    "bitcast": (
        ["f32[3,4,5]{0,1,2}"],
        "b = f32[5,4,3]{2,1,0} bitcast(p0)\n ROOT r = f32[20,3] bitcast(b)",
    ),
    "nothing": (["f32[0,3]"], "ROOT r = f32[0,3] negate(p0)"),
    "a copy": (["f32[3,4]"], "ROOT r = f32[3,4] copy(p0)"),
}


@pytest.mark.parametrize("target", ["cpu", "gpu"])
@pytest.mark.parametrize("name", CASES)
def test_against_evaluator(name: str, target: str) -> None:
    shapes, body = CASES[name]
    loose = 2e-2 if "bf16" in name else 2e-5
    inputs = [array(s) for s in shapes]
    check(source(shapes, body), inputs, rtol=loose, atol=loose, parts=2, gpu=target == "gpu")


@pytest.mark.parametrize("name", ["transpose", "pad", "gather rows", "dot", "reduce", "dynamic-update-slice"])
def test_bare_instructions(name: str) -> None:
    shapes, body = CASES[name]
    if "\n" in body:
        body = body.splitlines()[-1].replace("(n,", "(p0,")
    parameters = [f"  p{n} = {s} parameter({n})" for n, s in enumerate(shapes)]
    text = "\n".join(["HloModule m", REDUCERS, "ENTRY e {", *parameters, body, "}", ""])
    check(text, [array(s) for s in shapes], rtol=2e-5, atol=2e-5)


def test_out_of_range_starts_are_clamped() -> None:
    shapes, body = CASES["dynamic-slice unsigned"]
    values = [array(s) for s in shapes]
    values[1:] = [np.array(4_000_000_000, np.uint32), np.array(5, np.uint32)]
    check(source(shapes, body), values)
    shapes, body = CASES["dynamic-slice"]
    for start in (-5, 3, 100):
        values = [array(s) for s in shapes]
        values[1:] = [np.array(start, np.int32), np.array(start, np.int32)]
        check(source(shapes, body), values)


@pytest.mark.parametrize("name", ["pooling of an interior pad", "reduce of a few"])
def test_small_windows_are_straight_code(name: str) -> None:
    """No branches inside the innermost loop, and no loops but those that LLVM writes out: it vectorises that loop."""
    kernel = emit_fusion(root_fusion(source(*CASES[name])), "k", targets.get("cpu"))
    loops = [op for op in kernel.module.walk() if isinstance(op, LoopOp)]
    assert not any(isinstance(op, scf.IfOp) for op in kernel.module.walk())
    assert [("heron.full_unroll" in loop.attributes) for loop in loops].count(False) == 1


@pytest.mark.parametrize("name, loops", [("reduce of a few", 2), ("reduce of a few pieces", 0)])
def test_few_elements_are_written_out_by_llvm(name: str, loops: int) -> None:
    """Where all are computed alike; pieces that a number as index tells apart are written out here."""
    kernel = emit_fusion(root_fusion(source(*CASES[name])), "k", targets.get("cpu"))
    assert sum(isinstance(op, LoopOp) for op in kernel.module.walk()) == loops
