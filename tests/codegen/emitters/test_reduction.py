"""The reduction emitter on the CPU and on the simulated GPU, against the evaluator."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import heron
from heron import targets
from heron.codegen.emit import emit_fusion
from heron.codegen.llvm.jit import host
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


def whole(shape: tuple[int, ...]) -> np.ndarray:
    """Small whole numbers: their sums are the same in any order."""
    return RNG.integers(-9, 10, shape).astype(np.float32)


@pytest.mark.parametrize(("shape", "dims"), SHAPES)
@pytest.mark.parametrize(("op", "init"), [("add", "0"), ("add", "2.5"), ("maximum", "-inf"), ("minimum", "0.5")])
def test_cpu(shape: tuple[int, ...], dims: list[int], op: str, init: str) -> None:
    x = whole(shape)
    check(program(shape, dims, op=op, init=init), [x], parts=3)


@pytest.mark.parametrize(("shape", "dims"), SHAPES)
def test_gpu(shape: tuple[int, ...], dims: list[int]) -> None:
    x = whole(shape)
    kernel = check_sim(program(shape, dims, init="2.5"), [x])
    assert kernel.emitter == "reduce"


@pytest.mark.parametrize(("shape", "dims"), SHAPES[:3])
def test_map_after_a_reduction(shape: tuple[int, ...], dims: list[int]) -> None:
    """`map` is as good as the op it applies."""
    source, at = program(shape, dims), f"f32[{shape[1 - dims[0]]}]"
    source = source.replace("  ROOT q =", "  q =").replace(
        "to_apply=r }\nENTRY", f"to_apply=r\n  ROOT m = {at} map(q, q), dimensions={{0}}, to_apply=r }}\nENTRY"
    )
    x = whole(shape)
    assert emit_fusion(root_fusion(source), "k", targets.get("cpu")).emitter == "reduce"
    check(source, [x], parts=3)
    assert check_sim(source, [x]).emitter == "reduce"


@pytest.mark.parametrize("parts", [1, 4, 7])
@pytest.mark.parametrize(("shape", "dims"), [((64, 4500), [0]), ((2, 64, 2500), [1]), ((3, 65, 130), [1])])
def test_any_range_of_column_items(shape: tuple[int, ...], dims: list[int], parts: int) -> None:
    """Ranges begin and end anywhere: within a tile of columns, within an outer position."""
    source = program(shape, dims)
    assert "columns" in emit_fusion(root_fusion(source), "k", targets.get("cpu")).notes["form"]
    check(source, [RNG.integers(-9, 9, shape).astype(np.float32)], parts=parts)


@pytest.mark.parametrize(
    ("shape", "items"), [((3000, 3000), 8), ((9000, 700), 6), ((500, 40_000), 40), ((9, 2000, 600), 9)]
)
def test_columns_of_a_large_source_are_shared_out_evenly(shape: tuple[int, ...], items: int) -> None:
    """Stretches of memory are long, but three work items would keep one of two threads waiting."""
    kernel = emit_fusion(root_fusion(program(shape, [len(shape) - 2])), "k", targets.get("cpu"))
    assert kernel.launch.work_items == items


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


@pytest.mark.parametrize(("length", "lanes"), [(65, 16), (127, 16), (128, 32), (1000, 32)])
def test_the_lanes_of_a_row_follow_its_length(length: int, lanes: int) -> None:
    source = ARGMAX.replace("SIZES", f"3,{length}").replace("KEPT", "3").replace("DIM", "1")
    kernel = emit_fusion(root_fusion(source), "k", targets.get("cpu"))
    assert kernel.notes["form"] == f"rows of {length}, {lanes} partial results"
    check(source, [RNG.integers(0, 9, (3, length)).astype(np.float32)])


EXTREMA = """HloModule m
f { a = T[] parameter(0) b = T[] parameter(1) ROOT c = T[] OP(a, b) }
g { x = T[SIZES] parameter(0) i = T[] constant(INIT) ROOT r = T[KEPT] reduce(x, i), dimensions={DIM}, to_apply=f }
ENTRY e { x = T[SIZES] parameter(0) ROOT k = T[KEPT] fusion(x), kind=kInput, calls=g }
"""


@pytest.mark.parametrize("init", ["-inf", "inf", "-0", "nan", "1"])
@pytest.mark.parametrize(("rows", "length"), [(9, 7), (9, 80), (3, 200)])
@pytest.mark.parametrize("opcode", ["maximum", "minimum"])
@pytest.mark.parametrize(("name", "dtype"), [("f32", np.float32), ("f64", np.float64), ("f16", np.float16)])
def test_extrema_of_numbers_that_are_special(
    name: str, dtype: type, opcode: str, rows: int, length: int, init: str
) -> None:
    """NaN of both signs wins wherever it is, +0 is above -0, and both infinities have their places."""
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, np.finfo(dtype).tiny, 1.0, -1.0], dtype)
    x = RNG.choice(special[:2], (rows, length)).astype(dtype)
    for k in range(2, rows):
        x[k] = RNG.choice(special[:k], length)
        x[k, RNG.integers(length)] = special[k]
    base = EXTREMA.replace("T[", f"{name}[").replace("OP", opcode).replace("INIT", init).replace("KEPT", str(rows))
    check(base.replace("SIZES", f"{rows},{length}").replace("DIM", "1"), [x])
    check(base.replace("SIZES", f"{length},{rows}").replace("DIM", "0"), [np.ascontiguousarray(x.T)])


ALIKE = {
    "the first NaN": "nan = pred[] compare(a, a), direction=NE  more = pred[] compare(a, b), direction=GT  take = pred[] or(more, nan)",
    "the last of the largest": "take = pred[] compare(a, b), direction=GT",
    "the first of the largest": "take = pred[] compare(a, b), direction=GE",
}


@pytest.mark.parametrize(("sizes", "kept", "dim"), [("2,400", 2, 1), ("90,37", 37, 0), ("150,3", 3, 0)])
@pytest.mark.parametrize("name", ALIKE)
def test_the_order_of_elements_that_compare_alike(name: str, sizes: str, kept: int, dim: int) -> None:
    """Partial results are of elements far apart; the one kept is that of elements in order."""
    source = ARGMAX.replace("SIZES", sizes).replace("KEPT", str(kept)).replace("DIM", str(dim))
    before, _, after = source.partition("  more = ")
    source = (
        f"{before}  {ALIKE[name]}\n  v = f32[] select(take, a, b) k = s32[] select(take, i, j)\n"
        + after[after.index("  ROOT t") :]
    )
    x = RNG.choice(np.array([0, 1, 2, np.nan] if "NaN" in name else [0, 1, 2]), [int(n) for n in sizes.split(",")])
    check(source, [x.astype(np.float32)])
    check_sim(source, [x.astype(np.float32)])


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


# -- several reductions, other outputs, layouts, transposes ------------------------------------------------------------

ADD = """HloModule m
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] maximum(a, b) }
"""
FORMS = {
    # along both dimensions of one array, and a loop beside them
    "both ways": """f { x = f32[80,90] parameter(0) y = f32[7] parameter(1) z = f32[] constant(0)
  a = f32[90] reduce(x, z), dimensions={0}, to_apply=add
  b = f32[80] reduce(x, z), dimensions={1}, to_apply=max
  n = f32[7] negate(y)
  m = f32[80] negate(b)
  ROOT t = (f32[90], f32[80], f32[7]) tuple(a, m, n) }
ENTRY e { x = f32[80,90] parameter(0) y = f32[7] parameter(1)
  ROOT k = (f32[90], f32[80], f32[7]) fusion(x, y), kind=kInput, calls=f }""",
    # of different sizes: short and long rows, few columns, many
    "sizes": """f { x = f32[70,128] parameter(0) y = f32[3,2000] parameter(1) w = f32[200,3] parameter(2) z = f32[] constant(0)
  a = f32[70] reduce(x, z), dimensions={1}, to_apply=add
  b = f32[3] reduce(y, z), dimensions={1}, to_apply=add
  c = f32[3] reduce(w, z), dimensions={0}, to_apply=max
  d = f32[128] reduce(x, z), dimensions={0}, to_apply=add
  ROOT t = (f32[70], f32[3], f32[3], f32[128]) tuple(a, b, c, d) }
ENTRY e { x = f32[70,128] parameter(0) y = f32[3,2000] parameter(1) w = f32[200,3] parameter(2)
  ROOT k = (f32[70], f32[3], f32[3], f32[128]) fusion(x, y, w), kind=kInput, calls=f }""",
    # the walk follows memory: the array is turned in the fusion
    "turned": """f { x = f32[90,80] parameter(0) z = f32[] constant(0)
  y = f32[80,90] transpose(x), dimensions={1,0}
  m = f32[80,90] multiply(y, y)
  ROOT a = f32[80] reduce(m, z), dimensions={1}, to_apply=add }
ENTRY e { x = f32[90,80] parameter(0) ROOT k = f32[80] fusion(x), kind=kInput, calls=f }""",
    # or its layout says so; the result and a side output have layouts too
    "layouts": """f { x = f32[6,100,5]{0,1,2} parameter(0) z = f32[] constant(0)
  n = f32[6,100,5]{1,0,2} negate(x)
  a = f32[6,5]{0,1} reduce(x, z), dimensions={1}, to_apply=add
  ROOT t = (f32[6,5]{0,1}, f32[6,100,5]{1,0,2}) tuple(a, n) }
ENTRY e { x = f32[6,100,5]{0,1,2} parameter(0)
  ROOT k = (f32[6,5]{0,1}, f32[6,100,5]{1,0,2}) fusion(x), kind=kInput, calls=f }""",
    # an epilogue that moves the results, and joins what both orders have to say
    "moved": """f { x = f32[6,100,5] parameter(0) s = f32[5,6] parameter(1) z = f32[] constant(0)
  a = f32[6,5] reduce(x, z), dimensions={1}, to_apply=add
  b = f32[5,6] transpose(a), dimensions={1,0}
  c = f32[5,6] multiply(b, s)
  d = f32[30] reshape(c)
  n = f32[6,5] negate(a)
  e = f32[2,15] reshape(n)
  ROOT t = (f32[30], f32[2,15], f32[5,6]) tuple(d, e, b) }
ENTRY e { x = f32[6,100,5] parameter(0) s = f32[5,6] parameter(1)
  ROOT k = (f32[30], f32[2,15], f32[5,6]) fusion(x, s), kind=kInput, calls=f }""",
}


@pytest.mark.parametrize("name", FORMS)
def test_forms(name: str) -> None:
    source = ADD + FORMS[name]
    inputs = [RNG.normal(size=o.shape.dims).astype(np.float32) for o in root_fusion(source).operands]
    check(source, inputs, rtol=1e-4, atol=1e-4, parts=3)
    check(source, inputs, rtol=1e-4, atol=1e-4, gpu=True)
    for target in ("cpu", "sm_90"):
        assert emit_fusion(root_fusion(source), "k", targets.get(target)).emitter == "reduce"


def test_the_walk_follows_memory() -> None:
    """Rows of the turned array are columns of what is read."""
    kernel = emit_fusion(root_fusion(ADD + FORMS["turned"]), "k", targets.get("sm_90"))
    assert kernel.notes["form"] == "columns of 90"


def test_each_reduction_has_blocks_of_its_own() -> None:
    kernel = emit_fusion(root_fusion(ADD + FORMS["sizes"]), "k", targets.get("sm_90"))
    assert kernel.notes["form"] == "rows of 128 and rows of 2000 and columns of 200 and columns of 70"
    assert kernel.launch.block == (1024, 1, 1) and kernel.launch.grid == (3 + 1 + 1 + 8, 1, 1)


def test_what_mixes_reductions_goes_to_the_loop_emitter() -> None:
    source = (
        ADD
        + """f { x = f32[80,80] parameter(0) z = f32[] constant(0)
  a = f32[80] reduce(x, z), dimensions={0}, to_apply=add
  b = f32[80] reduce(x, z), dimensions={1}, to_apply=add
  ROOT t = f32[80] multiply(a, b) }
ENTRY e { x = f32[80,80] parameter(0) ROOT k = f32[80] fusion(x), kind=kInput, calls=f }"""
    )
    kernel = emit_fusion(root_fusion(source), "k", targets.get("cpu"))
    assert kernel.emitter == "loop" and "reductions of different arrays or dimensions" in kernel.notes["reason"]
    check(source, [RNG.normal(size=(80, 80)).astype(np.float32)], rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("columns", [1, 2, 3, 7, 16, 31, 33])
def test_a_few_columns_fill_a_block(columns: int) -> None:
    source = program((700, columns), [0])
    kernel = check_sim(source, [RNG.normal(size=(700, columns)).astype(np.float32)], rtol=1e-4, atol=1e-4)
    if 1 < columns <= 16:
        assert int(kernel.notes["tile"].partition("x")[0]) >= 64


@pytest.mark.parametrize("count", [6, 30])
def test_blocks_shrink_where_partial_results_are_large(count: int) -> None:
    sums = "\n".join(f"  s{n} = c128[40] reduce(x, z{n}), dimensions={{0}}, to_apply=add" for n in range(count))
    inits = "\n".join(f"  z{n} = c128[] constant(({n}, 0))" for n in range(count))
    result = f"({', '.join(['c128[40]'] * count)})"
    source = f"""HloModule m
add {{ a = c128[] parameter(0) b = c128[] parameter(1) ROOT c = c128[] add(a, b) }}
f {{ x = c128[70,40] parameter(0)
{inits}
{sums}
  ROOT r = {result} tuple({", ".join(f"s{n}" for n in range(count))}) }}
ENTRY e {{ x = c128[70,40] parameter(0) ROOT k = {result} fusion(x), kind=kInput, calls=f }}"""
    kernel = emit_fusion(root_fusion(source), "k", targets.get("sm_90"))
    assert kernel.launch.shared_bytes <= 40 << 10 and kernel.launch.block[0] == (256 if count == 6 else 32)
    check(source, [RNG.integers(-9, 9, (70, 40)).astype(np.complex128)], gpu=True)


@pytest.mark.parametrize(("type_", "vector"), [("bf16", 2), ("s8", 4), ("f32", 1)])
def test_columns_of_small_types_are_read_in_words(type_: str, vector: int) -> None:
    source = program((70, 132 * 32 * 4 + 4), [0], type_)
    kernel = emit_fusion(root_fusion(source), "k", targets.get("sm_90"))
    assert kernel.notes["vector"] == str(vector) and kernel.notes["tile"] == f"32x{32 * vector}"
    read = {
        "bf16": "ld.global.nc.v2.b16 ld.global.nc.b32",
        "s8": "ld.global.nc.b32 ld.global.nc.v4.b8",
        "f32": "ld.global.nc.b32",
    }
    text = ptx(program((4096, 132 * 32 * 4 + 4), [0], type_))
    assert any(form in text for form in read[type_].split())
    dtype = root_fusion(source).operands[0].shape.element_type.dtype
    x = RNG.integers(-2, 3, (70, 132 * 32 * 4 + 4)).astype(dtype)
    check(source, [x], gpu=True)


@st.composite
def reductions(draw: st.DrawFn) -> tuple[str, str, int]:
    """A reduce of any dimensions of an array of any type and layout, with a side output and a moved result."""
    type_, op = draw(
        st.sampled_from(
            [
                ("f32", "add"),
                ("bf16", "maximum"),
                ("s8", "add"),
                ("f64", "minimum"),
                ("pred", "or"),
                ("c64", "add"),
                ("u16", "multiply"),
                ("s32", "xor"),
            ]
        )
    )
    rank = draw(st.integers(2, 3))
    gone = draw(st.lists(st.integers(0, rank - 1), min_size=1, max_size=rank, unique=True))
    sizes = [draw(st.integers(64, 140)) if d == gone[0] else draw(st.integers(1, 9)) for d in range(rank)]
    layout, other = (draw(st.permutations(range(rank))) for _ in range(2))
    kept = [n for d, n in enumerate(sizes) if d not in gone]
    turned = list(reversed(range(len(kept))))

    def text(dims: list[int], order: object = ()) -> str:
        minor = f"{{{','.join(map(str, order))}}}" if order else ""  # type: ignore[arg-type]
        return f"{type_}[{','.join(map(str, dims))}]{minor}"

    source, beside, result = text(sizes, layout), text(sizes, other), text(kept)
    end = text([kept[d] for d in turned])
    return (
        f"""HloModule m
r {{ a = {type_}[] parameter(0) b = {type_}[] parameter(1) ROOT c = {type_}[] {op}(a, b) }}
f {{ x = {source} parameter(0) z = {type_}[] parameter(1)
  s = {beside} copy(x)
  q = {result} reduce(x, z), dimensions={{{",".join(map(str, sorted(gone)))}}}, to_apply=r
  t = {end} transpose(q), dimensions={{{",".join(map(str, turned))}}}
  ROOT o = ({end}, {beside}) tuple(t, s) }}
ENTRY e {{ x = {source} parameter(0) z = {type_}[] parameter(1)
  ROOT k = ({end}, {beside}) fusion(x, z), kind=kInput, calls=f }}""",
        type_,
        draw(st.integers(1, 3)),
    )


@settings(max_examples=14, derandomize=True)
@given(reductions())
def test_any_reduction(case: tuple[str, str, int]) -> None:
    source, type_, parts = case
    array, init = root_fusion(source).operands
    dtype = array.shape.element_type.dtype
    x = RNG.integers(0, 2 if type_ in ("pred", "u16") else 9, array.shape.dims).astype(dtype)
    inputs = [x, np.array(1, dtype)]
    tolerance = 1e-5 if type_[0] in "fc" else 0.0
    check(source, inputs, rtol=tolerance, parts=parts)
    check(source, inputs, rtol=tolerance, gpu=True)


def test_ptx_reads_vectors_and_guards_shared_memory() -> None:
    text = ptx(program((4096, 4096), [1]))
    assert "ld.global.nc.v4" in text and "shfl.sync.down" in text and "atom" not in text
    assert text.count("@%p") >= 2
    assert ".shared" in ptx(program((4096, 4096), [0], "bf16"))


SHORT = """HloModule m
add { a = TYPE[] parameter(0)  b = TYPE[] parameter(1)  ROOT c = TYPE[] OP(a, b) }
f { x = TYPE[SIZES] parameter(0)
  z = TYPE[] constant(0)
  n = TYPE[SIZES] negate(x)
  r = TYPE[KEPT] reduce(n, z), dimensions={DIM}, to_apply=add
  q = TYPE[KEPT] multiply(r, r)
  ROOT t = (TYPE[SIZES], TYPE[KEPT]) tuple(n, q) }
ENTRY e { x = TYPE[SIZES] parameter(0) ROOT k = (TYPE[SIZES], TYPE[KEPT]) fusion(x), kind=kInput, calls=f }"""


@pytest.mark.parametrize("t", ["f32", "f64", "s32"])
@pytest.mark.parametrize(
    ("sizes", "kept", "dim"),
    [
        ("40,9", "40", 1), ("40,8", "40", 1), ("32,21", "21", 0), ("3,17,30", "3,30", 1),
        ("12,9", "9", 0), ("15,8", "8", 0), ("16,8", "8", 0),
    ],
)  # fmt: skip
def test_short_sums_take_vectors_on_a_cpu(sizes: str, kept: str, dim: int, t: str) -> None:
    """Fewer elements are written out: along rows of up to 8, and where few columns are less than LLVM makes vectors
    of."""
    source = SHORT.replace("SIZES", sizes).replace("KEPT", kept).replace("DIM", str(dim)).replace("TYPE", t)
    x = RNG.integers(-9, 9, [int(n) for n in sizes.split(",")]).astype({"f32": "f4", "f64": "f8", "s32": "i4"}[t])
    check(source.replace("OP", "add"), [x])
    check(source.replace("OP", "maximum"), [x])
    for op, by_rows in (("add", True), ("maximum", t == "s32" or sizes == "40,9")):
        kernel = emit_fusion(root_fusion(source.replace("OP", op)), "k", targets.get("cpu"))
        assert kernel.emitter == ("reduce" if by_rows and sizes not in ("40,8", "15,8") else "loop")


@pytest.mark.parametrize(
    ("shape", "dim", "emitter"),
    [((40, 9), 0, "reduce"), ((40, 7), 0, "loop"), ((9, 40), 1, "reduce"), ((9, 8), 1, "loop")],
)
def test_extrema_of_short_columns_and_rows_take_vectors(shape: tuple[int, int], dim: int, emitter: str) -> None:
    """Vectors of columns need no partial results; along rows these are integers, which are joined quickly."""
    source = program(shape, [dim], op="maximum", init="-inf")
    assert emit_fusion(root_fusion(source), "k", targets.get("cpu")).emitter == emitter
    x = RNG.normal(size=shape).astype(np.float32)
    x[3, 2] = np.nan
    check(source, [x], parts=3)


@pytest.mark.parametrize("length", [33, 100, 9001])
def test_rows_of_complex_numbers_have_partial_results(length: int) -> None:
    """LLVM makes no vectors of complex sums; neighbouring elements join neighbouring partial results."""
    source = program((5, length), [1], "c64", "add", "(1, 2)")
    assert "partial results" in emit_fusion(root_fusion(source), "k", targets.get("cpu")).notes["form"]
    x = (RNG.normal(size=(5, length)) + 1j * RNG.normal(size=(5, length))).astype(np.complex64)
    check(source, [x], rtol=1e-4, atol=1e-3, parts=2)


@pytest.mark.parametrize("columns", [9, 13, 31])
@pytest.mark.parametrize("t", ["f32", "s32", "f64", "bf16"])
def test_a_few_columns_take_vectors_without_masks(t: str, columns: int) -> None:
    """A load cannot have what a masked store has just put into memory: each row would wait for the one before."""
    source = program((5, 40, columns), [1], t, init="0")
    code = str(heron.compile(heron.parse(source), "x86-64-v4").stage("asm"))
    masked_store = re.search(r"v\w+\s[^\n]*, [-\w]*\(%rsp[^\n]*\{%k", code)
    assert masked_store is None and re.search("%[yz]mm", code)
    dtype = {"f32": np.float32, "s32": np.int32, "f64": np.float64, "bf16": ml_dtypes.bfloat16}[t]
    check(source, [RNG.integers(-9, 9, (5, 40, columns)).astype(dtype)], parts=2)


@pytest.mark.parametrize(
    ("shape", "dim", "op", "masked"),
    [
        ((40, 7, 31), 1, "add", True), ((40, 7, 31), 1, "maximum", True), ((40, 31, 20), 1, "maximum", True),
        ((40, 7, 20), 1, "add", False), ((40, 7, 100), 1, "add", False), ((40, 31), 1, "maximum", True),
        ((40, 24), 1, "maximum", False), ((40, 63), 1, "maximum", False),
    ],
)  # fmt: skip
@pytest.mark.skipif(host().width < 512, reason="the machine has no masks")
def test_short_loops_that_leave_much_over_end_with_a_part_of_a_vector(
    shape: tuple[int, ...], dim: int, op: str, masked: bool
) -> None:
    """Along columns whose rows are written out, and along a row of an extremum; where few are left, masks cost more."""
    source = program(shape, [dim], op=op, init="0" if op == "add" else "-inf")
    text = str(heron.compile(heron.parse(source), "cpu").stage("llvm"))
    assert ("vectorize.predicate" in text) == masked
    x = RNG.normal(size=shape).astype(np.float32)
    x[3, 2] = np.nan
    check(source, [x], rtol=1e-5, atol=1e-5, parts=3)


def test_columns_of_functions_are_masked() -> None:
    """A function for each part of a vector takes longer than to wait."""
    source = program((5, 40, 15), [1]).replace("reduce(p, z)", "reduce(e, z)")
    source = source.replace("  ROOT q", "  e = f32[5,40,15] exponential(p)\n  ROOT q")
    assert "s0 in [0, 14]" in str(emit_fusion(root_fusion(source), "k", targets.get("cpu")).module)
    assert "s0 in [0, 7]" in str(emit_fusion(root_fusion(program((5, 40, 15), [1])), "k", targets.get("cpu")).module)
