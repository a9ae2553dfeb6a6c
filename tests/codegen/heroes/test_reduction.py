"""The reduction emitter on the CPU and on the simulated GPU, against the evaluator."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from heron import targets
from heron.codegen.emit import emit_fusion
from tests.codegen.run_gpu_kernel import check_sim, ptx
from tests.codegen.run_kernel import check, root_fusion

RNG = np.random.default_rng(3)


def program(shape: tuple[int, ...], dims: list[int], type_: str = "f32", op: str = "add", init: str = "0") -> str:
    out = [n for d, n in enumerate(shape) if d not in dims]
    source, result = ",".join(map(str, shape)), ",".join(map(str, out))
    return f"""HloModule m
r {{ a = {type_}[] parameter(0) b = {type_}[] parameter(1) ROOT c = {type_}[] {op}(a, b) }}
f {{ p = {type_}[{source}] parameter(0) z = {type_}[] constant({init})
  ROOT q = {type_}[{result}] reduce(p, z), dimensions={{{",".join(map(str, dims))}}}, to_apply=r }}
ENTRY e {{ p = {type_}[{source}] parameter(0) ROOT k = {type_}[{result}] fusion(p), kind=kInput, calls=f }}"""


SHAPES = [
    ((8, 100), [1]),
    ((5, 3000), [1]),
    ((100, 70), [0]),
    ((7, 100, 33), [1]),
    ((130,), [0]),
    ((5, 6, 70, 9), [0, 2]),
    ((65, 16, 5), [1, 2]),
    ((3, 200, 3), [1]),
]


@pytest.mark.parametrize(("shape", "dims"), SHAPES)
@pytest.mark.parametrize(("op", "init"), [("add", "0"), ("add", "2.5"), ("maximum", "-inf"), ("minimum", "0.5")])
def test_cpu(shape: tuple[int, ...], dims: list[int], op: str, init: str) -> None:
    x = RNG.normal(size=shape).astype(np.float32)
    check(program(shape, dims, op=op, init=init), [x], rtol=1e-5, atol=1e-4, parts=3)


@pytest.mark.parametrize(("shape", "dims"), SHAPES)
def test_gpu(shape: tuple[int, ...], dims: list[int]) -> None:
    x = RNG.normal(size=shape).astype(np.float32)
    kernel = check_sim(program(shape, dims, init="2.5"), [x], rtol=1e-5, atol=1e-4)
    assert kernel.emitter == "reduce"


@pytest.mark.parametrize("parts", [1, 4, 7])
@pytest.mark.parametrize(("shape", "dims"), [((64, 4500), [0]), ((2, 64, 2500), [1]), ((3, 65, 130), [1])])
def test_any_range_of_column_items(shape: tuple[int, ...], dims: list[int], parts: int) -> None:
    """Ranges begin and end anywhere: within a tile of columns, within an outer position."""
    source = program(shape, dims)
    assert "columns" in emit_fusion(root_fusion(source), "k", targets.get("cpu")).notes["form"]
    check(source, [RNG.integers(-9, 9, shape).astype(np.float32)], parts=parts)


def test_a_few_columns_share_what_is_computed_once() -> None:
    """Vectors of 3: one power an element, and the reduced loop is the innermost."""
    source = """HloModule m
r { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
f { d = f32[9,70] parameter(0) x = f32[70,3] parameter(1) z = f32[] constant(0)
  s = f32[9,70] sqrt(d)
  w = f32[9,70,3] broadcast(s), dimensions={0,1}
  y = f32[9,70,3] broadcast(x), dimensions={1,2}
  p = f32[9,70,3] multiply(w, y)
  ROOT q = f32[9,3] reduce(p, z), dimensions={1}, to_apply=r }
ENTRY e { d = f32[9,70] parameter(0) x = f32[70,3] parameter(1)
  ROOT k = f32[9,3] fusion(d, x), kind=kInput, calls=f }"""
    kernel = emit_fusion(root_fusion(source), "k", targets.get("cpu"))
    assert kernel.notes["form"] == "3 columns of 70 in registers" and kernel.launch.work_items == 9
    assert str(kernel.module).count("math.sqrt") == 1
    inputs = [np.abs(RNG.normal(size=(9, 70))).astype(np.float32), RNG.normal(size=(70, 3)).astype(np.float32)]
    check(source, inputs, rtol=1e-5, atol=1e-4, parts=2)


TYPES = [
    ("s32", np.int32, "multiply", "1"),
    ("u8", np.uint8, "maximum", "0"),
    ("s64", np.int64, "minimum", "9223372036854775807"),
    ("pred", np.bool_, "and", "true"),
    ("pred", np.bool_, "or", "false"),
    ("u16", np.uint16, "xor", "0"),
    ("f64", np.float64, "add", "0"),
    ("bf16", ml_dtypes.bfloat16, "add", "0"),
    ("f16", np.float16, "maximum", "-inf"),
    ("c64", np.complex64, "add", "(0, 0)"),
]


@pytest.mark.parametrize(("type_", "dtype", "op", "init"), TYPES)
@pytest.mark.parametrize(("shape", "dims"), [((9, 96), [1]), ((80, 37), [0])])
def test_types(type_: str, dtype: type, op: str, init: str, shape: tuple[int, ...], dims: list[int]) -> None:
    x = (RNG.normal(size=shape) * 3).astype(dtype) if type_[0] in "fbc" else RNG.integers(0, 2, shape).astype(dtype)
    if type_ == "c64":
        x = x + 1j * x[::-1]
    tolerance = 0.15 if type_ == "bf16" else 1e-4 if type_[0] in "fc" else 0
    source = program(shape, dims, type_, op, init)
    check(source, [x], rtol=tolerance, atol=tolerance * 10)
    check_sim(source, [x], rtol=tolerance, atol=tolerance * 10)


def test_bf16_sums_accumulate_in_f32() -> None:
    x = np.ones((4, 4096), ml_dtypes.bfloat16)
    (out,) = _outputs(program((4, 4096), [1], "bf16"), [x])
    assert out.astype(np.float32).tolist() == [4096] * 4  # in bf16 the sum would stop at 256


def _outputs(source: str, inputs: list[np.ndarray]) -> list[np.ndarray]:
    from tests.codegen.run_kernel import run_instruction

    return run_instruction(root_fusion(source), inputs)


SOFTMAX_LIKE = """HloModule m
max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] maximum(a, b) }
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
f { x = f32[SIZES] parameter(0) s = f32[KEPT] parameter(1) w = f32[] parameter(2)
  wide = f32[SIZES] broadcast(w), dimensions={}
  scaled = f32[SIZES] multiply(x, wide)
  lowest = f32[] constant(-inf) zero = f32[] constant(0)
  m = f32[KEPT] reduce(scaled, lowest), dimensions={DIM}, to_apply=max
  t = f32[KEPT] reduce(x, zero), dimensions={DIM}, to_apply=add
  u = f32[KEPT] subtract(t, s)
  v = f32[KEPT] multiply(u, m)
  flat = f32[1,KEPT] reshape(v)
  ROOT r = (f32[1,KEPT], f32[SIZES], f32[KEPT]) tuple(flat, scaled, m) }
ENTRY e { x = f32[SIZES] parameter(0) s = f32[KEPT] parameter(1) w = f32[] parameter(2)
  ROOT k = (f32[1,KEPT], f32[SIZES], f32[KEPT]) fusion(x, s, w), kind=kInput, calls=f }"""


@pytest.mark.parametrize(("sizes", "kept", "dim"), [("12,70", 12, 1), ("70,45", 45, 0), ("2100,75", 75, 0)])
def test_prologue_epilogue_side_output_and_two_reduces(sizes: str, kept: int, dim: int) -> None:
    source = SOFTMAX_LIKE.replace("SIZES", sizes).replace("KEPT", str(kept)).replace("{DIM}", f"{{{dim}}}")
    shape = tuple(int(n) for n in sizes.split(","))
    inputs = [RNG.normal(size=shape), RNG.normal(size=kept), np.array(1.5)]
    inputs = [a.astype(np.float32) for a in inputs]
    check(source, inputs, rtol=1e-4, atol=1e-3, parts=2)
    if shape[0] < 1000:
        assert check_sim(source, inputs, rtol=1e-4, atol=1e-3).emitter == "reduce"


ARGMAX = """HloModule m
pick { a = f32[] parameter(0) i = s32[] parameter(1) b = f32[] parameter(2) j = s32[] parameter(3)
  more = pred[] compare(b, a), direction=GT
  same = pred[] compare(b, a), direction=EQ
  first = pred[] compare(j, i), direction=LT
  tie = pred[] and(same, first)
  take = pred[] or(more, tie)
  v = f32[] select(take, b, a)
  k = s32[] select(take, j, i)
  ROOT t = (f32[], s32[]) tuple(v, k) }
f { x = f32[SIZES] parameter(0)
  n = s32[SIZES] iota(), iota_dimension=DIM
  lowest = f32[] constant(-inf) zero = s32[] constant(0)
  r = (f32[KEPT], s32[KEPT]) reduce(x, n, lowest, zero), dimensions={DIM}, to_apply=pick
  ROOT g = s32[KEPT] get-tuple-element(r), index=1 }
ENTRY e { x = f32[SIZES] parameter(0) ROOT k = s32[KEPT] fusion(x), kind=kInput, calls=f }"""


@pytest.mark.parametrize(("sizes", "kept", "dim"), [("9,400", 9, 1), ("80,37", 37, 0), ("5,128", 5, 1), ("3,90", 3, 1)])
def test_argmax(sizes: str, kept: int, dim: int) -> None:
    source = ARGMAX.replace("SIZES", sizes).replace("KEPT", str(kept)).replace("DIM", str(dim))
    x = RNG.integers(0, 20, [int(n) for n in sizes.split(",")]).astype(np.float32)
    check(source, [x])
    assert check_sim(source, [x]).emitter == "reduce"


def test_positions_of_maxima_are_kept_in_lanes() -> None:
    """LLVM cannot reassociate a choice by comparisons: partial results lie beside each other instead."""
    source = ARGMAX.replace("SIZES", "9,400").replace("KEPT", "9").replace("DIM", "1")
    kernel = emit_fusion(root_fusion(source), "k", targets.get("cpu"))
    assert kernel.notes["form"] == "rows of 400, 32 partial results"


def test_bare_variadic_reduce_has_two_outputs() -> None:
    source = ARGMAX.replace("SIZES", "9,400").replace("KEPT", "9").replace("DIM", "1")
    source = source.replace("  r = (f32[9]", "  ROOT r = (f32[9]").split("  ROOT g")[0] + "}\nENTRY e "
    source += "{ x = f32[9,400] parameter(0) ROOT k = (f32[9], s32[9]) fusion(x), kind=kInput, calls=f }"
    x = RNG.normal(size=(9, 400)).astype(np.float32)
    check(source, [x])
    check_sim(source, [x])


def test_different_reductions_go_to_the_loop_emitter() -> None:
    source = """HloModule m
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
f { x = f32[80,80] parameter(0) z = f32[] constant(0)
  a = f32[80] reduce(x, z), dimensions={0}, to_apply=add
  b = f32[80] reduce(x, z), dimensions={1}, to_apply=add
  ROOT t = (f32[80], f32[80]) tuple(a, b) }
ENTRY e { x = f32[80,80] parameter(0) ROOT k = (f32[80], f32[80]) fusion(x), kind=kInput, calls=f }"""
    kernel = emit_fusion(root_fusion(source), "k", targets.get("cpu"))
    assert kernel.emitter == "loop" and "do not share" in kernel.notes["reason"]
    check(source, [RNG.normal(size=(80, 80)).astype(np.float32)], rtol=1e-4, atol=1e-3)


def test_ptx_reads_vectors_and_guards_shared_memory() -> None:
    text = ptx(program((4096, 4096), [1]))
    assert "ld.global.nc.v4" in text and "shfl.sync.down" in text and "atom" not in text
    assert text.count("@%p") >= 2
    assert ".shared" in ptx(program((4096, 4096), [0], "bf16"))
