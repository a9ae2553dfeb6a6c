"""The scatter emitter on the CPU and on the simulated GPU, against the evaluator."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from heron import targets
from heron.codegen.emit import emit_fusion
from heron.compiling import compile
from heron.errors import HeronError
from heron.evaluator import evaluate as evaluate_module
from heron.hlo import text
from heron.options import Options
from tests.codegen.run_gpu_kernel import check_sim, ptx, run_sim
from tests.codegen.run_kernel import check, compare, evaluate, root_fusion, run_cpu

RNG = np.random.default_rng(11)


def in_place(source: str, inputs: list[np.ndarray], gpu: bool, tolerance: float = 0.0) -> None:
    """Runs the kernel on a copy of the operand, which the output shares, and compares with the evaluator."""
    root = root_fusion(source)
    if gpu:
        check_sim(source, inputs, rtol=tolerance, atol=tolerance)
        return
    kernel = emit_fusion(root, "k", targets.get("cpu"))
    for got, want in zip(run_cpu(kernel, inputs, parts=2), evaluate(root, inputs), strict=True):
        compare(got, want, tolerance, tolerance)


def rows(type_: str, op: str, unique: str = "false", n: int = 9, width: int = 5, updates: int = 30) -> str:
    body = f"{op}(a, b)" if op else "add(b, z)"
    zero = "" if op else f"z = {type_}[] constant(0) "
    return f"""HloModule m
c {{ a = {type_}[] parameter(0) b = {type_}[] parameter(1) {zero}ROOT r = {type_}[] {body} }}
ENTRY e {{ x = {type_}[{n},{width}] parameter(0) i = s32[{updates},1] parameter(1)
  u = {type_}[{updates},{width}] parameter(2)
  ROOT s = {type_}[{n},{width}] scatter(x, i, u), update_window_dims={{1}}, inserted_window_dims={{0}},
    scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, unique_indices={unique}, to_apply=c }}"""


@pytest.mark.parametrize("gpu", [False, True])
@pytest.mark.parametrize(
    ("type_", "dtype", "op"),
    [
        ("f32", np.float32, "add"),
        ("f64", np.float64, "maximum"),
        ("s32", np.int32, "add"),
        ("s32", np.int32, "multiply"),
        ("u8", np.uint8, "add"),
        ("s64", np.int64, "minimum"),
        ("bf16", ml_dtypes.bfloat16, "maximum"),
        ("pred", np.bool_, "or"),
    ],
)
def test_rows_with_duplicates_and_out_of_bounds(type_: str, dtype: type, op: str, gpu: bool) -> None:
    x = RNG.integers(0, 2 if type_ == "pred" else 50, (9, 5)).astype(dtype)
    u = RNG.integers(0, 2 if type_ == "pred" else 50, (30, 5)).astype(dtype)
    i = RNG.integers(-3, 12, (30, 1)).astype(np.int32)
    in_place(rows(type_, op), [x, i, u], gpu, 1e-6 if type_[0] == "f" else 0.0)


@pytest.mark.parametrize("gpu", [False, True])
def test_unique_indices(gpu: bool) -> None:
    x, u = RNG.normal(size=(40, 5)).astype(np.float32), RNG.normal(size=(30, 5)).astype(np.float32)
    i = RNG.permutation(44)[:30].reshape(30, 1).astype(np.int32)
    in_place(rows("f32", "subtract", "true", 40), [x, i, u], gpu)


@pytest.mark.parametrize("gpu", [False, True])
def test_two_index_components_windows_and_batching(gpu: bool) -> None:
    source = """HloModule m
c { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
ENTRY e { x = f32[3,8,7] parameter(0) i = s64[3,4,2] parameter(1) u = f32[3,4,2,3] parameter(2)
  ROOT s = f32[3,8,7] scatter(x, i, u), update_window_dims={2,3}, inserted_window_dims={},
    scatter_dims_to_operand_dims={1,2}, input_batching_dims={0}, scatter_indices_batching_dims={0},
    index_vector_dim=2, to_apply=c }"""
    x, u = RNG.normal(size=(3, 8, 7)).astype(np.float32), RNG.normal(size=(3, 4, 2, 3)).astype(np.float32)
    i = RNG.integers(-1, 8, (3, 4, 2)).astype(np.int64)
    in_place(source, [x, i, u], gpu, 1e-5)


@pytest.mark.parametrize("gpu", [False, True])
def test_updates_computed_in_the_fusion_and_huge_unsigned_indices(gpu: bool) -> None:
    source = """HloModule m
c { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
f { x = f32[9] parameter(0) i = u64[30] parameter(1) u = f32[30] parameter(2)
  v = f32[30] multiply(u, u)
  ROOT s = f32[9] scatter(x, i, v), update_window_dims={}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=c }
ENTRY e { x = f32[9] parameter(0) i = u64[30] parameter(1) u = f32[30] parameter(2)
  ROOT k = f32[9] fusion(x, i, u), kind=kInput, calls=f }"""
    i = RNG.integers(0, 12, 30).astype(np.uint64)
    i[3], i[4] = 2**64 - 1, 2**63
    in_place(source, [RNG.normal(size=9).astype(np.float32), i, RNG.normal(size=30).astype(np.float32)], gpu, 1e-5)


@pytest.mark.parametrize("gpu", [False, True])
def test_several_arrays(gpu: bool) -> None:
    source = """HloModule m
c { a = f32[] parameter(0) p = s32[] parameter(1) b = f32[] parameter(2) q = s32[] parameter(3)
  ROOT r = (f32[], s32[]) tuple(b, q) }
ENTRY e { x = f32[9] parameter(0) y = s32[9] parameter(1) i = s32[4] parameter(2) u = f32[4] parameter(3)
  v = s32[4] parameter(4)
  ROOT s = (f32[9], s32[9]) scatter(x, y, i, u, v), update_window_dims={}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=c }"""
    inputs = [np.arange(9, dtype=np.float32), np.arange(9, dtype=np.int32), np.array([3, 8, 11, 0], np.int32)]
    in_place(source, [*inputs, np.full(4, 7, np.float32), np.full(4, 5, np.int32)], gpu)
    in_place(
        source.replace("tuple(b, q)", "tuple(a, q)"), [*inputs, np.full(4, 7, np.float32), np.ones(4, np.int32)], gpu
    )


def test_wide_windows_are_shared_out() -> None:
    source = rows("f32", "add", n=50, width=1024, updates=64)
    kernel = emit_fusion(root_fusion(source), "k", targets.get("cpu"))
    assert kernel.launch.work_items == 16
    x, u = RNG.normal(size=(50, 1024)).astype(np.float32), RNG.normal(size=(64, 1024)).astype(np.float32)
    in_place(source, [x, RNG.integers(0, 50, (64, 1)).astype(np.int32), u], False, 1e-5)


def test_output_shares_the_operands_buffer() -> None:
    kernel = emit_fusion(root_fusion(rows("f32", "add", updates=300)), "k", targets.get("sm_90"))
    assert [a.alias for a in kernel.args] == [None, None, None, 0]
    assert kernel.notes["updates"] == "atomic"
    text = ptx(rows("f32", "add", updates=300))
    assert "atom.global.add.f32" in text or "red.global.add.f32" in text
    assert "ld.global.nc" in text  # indices and updates are read-only


COMPUTED = """HloModule m
c {{ a = {t}[] parameter(0) b = {t}[] parameter(1) ROOT r = {t}[] {combined} }}
f {{ i = s32[{n},{k}] parameter(0) u = {t}[{n}{window}] parameter(1) {operand}
  ROOT s = {t}[{dims}] scatter(x, i, u), update_window_dims={{{wd}}}, inserted_window_dims={{{gone}}},
    scatter_dims_to_operand_dims={{{to}}}, index_vector_dim=1, indices_are_sorted={is_sorted}, to_apply=c }}
ENTRY e {{ i = s32[{n},{k}] parameter(0) u = {t}[{n}{window}] parameter(1) {extra}
  ROOT r = {t}[{dims}] fusion(i, u{given}), kind=kInput, calls=f }}"""
ONES = "z = {t}[] constant(1) x = {t}[{dims}] broadcast(z), dimensions={{}}"
COPY = "p = {t}[{dims}] parameter(2) x = {t}[{dims}] copy(p)"


def computed(operand: str, n: int, dims: str, window: str = "", t: str = "f32", op: str = "add", **to: str) -> str:
    """A scatter of what its kernel computes."""
    given, rank = operand == COPY, dims.count(",") + 1
    places = to.get("to", "0")
    gone = to.get("gone", places)
    wide = ",".join(str(d + 1) for d in range(rank - len(gone.split(",")) if gone else rank))
    return COMPUTED.format(
        t=t, combined=f"{op}(a, b)" if op else f"{t}[] parameter(1)", n=n, k=places.count(",") + 1, dims=dims,
        window=f",{window}" if window else "", operand=operand.format(t=t, dims=dims), wd=wide, gone=gone, to=places,
        is_sorted=to.get("is_sorted", "false"), extra=f"p = {t}[{dims}] parameter(2)" * given, given=", p" * given,
    )  # fmt: skip


@pytest.mark.parametrize("operand", [ONES, COPY])
@pytest.mark.parametrize(
    ("n", "dims", "window", "to"),
    [
        (30, "9", "", {}),
        (30, "9,8", "8", {}),
        (30, "9,600", "600", {}),
        (30, "40,8", "40", {"to": "1"}),
        (30, "7,8,12", "12", {"to": "0,1"}),
        (5, "9,8", "2,3", {"to": "0,1", "gone": ""}),
        (5, "9,8", "2,3", {"to": "0", "gone": ""}),
        (400, "9", "", {"is_sorted": "true"}),
        (400, "9,8", "8", {"is_sorted": "true"}),
        (129, "90,200", "200", {"is_sorted": "true"}),
        (400, "7,8,12", "12", {"to": "0,1", "is_sorted": "true"}),
        (400, "7,8,12", "8", {"to": "0,2", "is_sorted": "true"}),
    ],
)
def test_computed_operand(operand: str, n: int, dims: str, window: str, to: dict[str, str]) -> None:
    source = computed(operand, n, dims, window, **to)
    shape = tuple(map(int, dims.split(",")))
    limits = [shape[int(d)] for d in to.get("to", "0").split(",")]
    i = np.stack([RNG.integers(-1, limit + 1, n) for limit in limits], axis=1).astype(np.int32)
    if "is_sorted" in to:
        i = i[np.lexsort(i.T[::-1])]
    u = RNG.normal(size=(n, *map(int, filter(None, window.split(","))))).astype(np.float32)
    inputs = [i, u] + [RNG.normal(size=shape).astype(np.float32)] * (operand == COPY)
    for gpu in (False, True):
        in_place(source, inputs, gpu, 1e-4)
    kernel = emit_fusion(root_fusion(source), "k", targets.get("sm_90"))
    assert all(a.alias is None for a in kernel.args)
    assert kernel.notes["updates"] == ("bisected" if "is_sorted" in to else "all looked at")


def test_computed_operand_of_narrow_types_and_updates_that_replace() -> None:
    i = np.sort(RNG.integers(0, 9, 200)).reshape(200, 1).astype(np.int32)
    for t, dtype in (("bf16", ml_dtypes.bfloat16), ("s8", np.int8), ("f64", np.float64)):
        u = RNG.integers(-9, 9, (200, 8)).astype(dtype)
        for op in ("maximum", ""):
            source = computed(ONES, 200, "9,8", "8", t, op, is_sorted="true")
            if not op:
                source = source.replace(
                    f"b = {t}[] parameter(1) ROOT r = {t}[] {t}[] parameter(1)", f"ROOT b = {t}[] parameter(1)"
                )
            in_place(source, [i, u], True)


def test_other_layouts_are_refused() -> None:
    source = rows("f32", "add").replace("f32[9,5]", "f32[9,5]{0,1}")
    for target in ("cpu", "sm_90"):
        with pytest.raises(HeronError, match="GEN004"):
            emit_fusion(root_fusion(source), "k", targets.get(target))


@pytest.mark.parametrize("target", ["cpu", "sm_90"])
def test_reading_what_is_overwritten_is_refused(target: str) -> None:
    """A later update would be computed from elements that an earlier one has changed."""
    source = """HloModule m
c { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
f { x = f32[9] parameter(0) i = s32[9,1] parameter(1) y = f32[9] reverse(x), dimensions={0}
  ROOT s = f32[9] scatter(x, i, y), update_window_dims={}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=c }
ENTRY e { x = f32[9] parameter(0) i = s32[9,1] parameter(1)
  ROOT r = f32[9] fusion(x, i), kind=kInput, calls=f }"""
    with pytest.raises(HeronError, match="GEN135"):
        emit_fusion(root_fusion(source), "k", targets.get(target))


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90"])
@pytest.mark.parametrize("updates", ["y, y", "y, x", "x, x"])
def test_one_array_is_updated_twice(updates: str, target: str) -> None:
    """Each result begins as a copy of the array that is the operand of both."""
    source = f"""HloModule m
c {{ a = f32[] parameter(0) p = f32[] parameter(1) b = f32[] parameter(2) q = f32[] parameter(3)
  s = f32[] add(a, b) t = f32[] multiply(p, q) ROOT r = (f32[], f32[]) tuple(s, t) }}
ENTRY e {{ x = f32[9] parameter(0) i = s32[9,1] parameter(1) y = f32[9] parameter(2)
  ROOT s = (f32[9], f32[9]) scatter(x, x, i, {updates}), update_window_dims={{}}, inserted_window_dims={{0}},
    scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=c }}"""
    x, y = np.arange(9, dtype=np.float32), np.arange(3, 12, dtype=np.float32)
    places = np.array([0, 8, 1, 1, 2, 3, 5, 7, 0], np.int32)[:, None]
    module = text.parse(source)
    got = compile(module, target).run([x, places, y])
    for result, want in zip(got, evaluate_module(module, x, places, y), strict=True):
        np.testing.assert_array_equal(result, want)


def test_computed_operand_with_many_unsorted_updates_is_refused() -> None:
    with pytest.raises(HeronError, match="GEN131"):
        emit_fusion(root_fusion(computed(ONES, 400, "9")), "k", targets.get("sm_90"))


@pytest.mark.parametrize(
    ("type_", "op"),
    [("u8", "add"), ("bf16", "multiply"), ("s16", "maximum"), ("f64", "minimum"), ("c64", "multiply")],
)
def test_ptx_of_swap_loops(type_: str, op: str) -> None:
    assert "atom." in (text := ptx(rows(type_, op, updates=300))) and ".cas." in text


# -- the order of updates ----------------------------------------------------------------------------------------------

FLOATS = [
    ("f32", np.float32, "add"),
    ("bf16", ml_dtypes.bfloat16, "add"),
    ("f64", np.float64, "multiply"),
    ("c64", np.complex64, "add"),
    ("c128", np.complex128, "multiply"),
    ("f32", np.float32, ""),
    ("s32", np.int32, "subtract"),
]


def floats(dtype: type, *dims: int) -> np.ndarray:
    x = RNG.normal(size=dims) * 4
    return (x + 1j * x[::-1] if np.dtype(dtype).kind == "c" else x).astype(dtype)


@pytest.mark.parametrize("form", ["few", "sorted"])
@pytest.mark.parametrize(("type_", "dtype", "op"), FLOATS)
def test_updates_of_one_element_keep_their_order(type_: str, dtype: type, op: str, form: str) -> None:
    """Bit by bit what the CPU computes, one update after the other; complex products within a rounding."""
    source = rows(type_, op)
    i = RNG.integers(-2, 11, (30, 1)).astype(np.int32)
    if form == "sorted":
        source = source.replace("unique_indices=false", "indices_are_sorted=true")
        i = np.sort(i, axis=0)
    inputs = [floats(dtype, 9, 5), i, floats(dtype, 30, 5)]
    tolerance = {"c128": 1e-12, "bf16": 0.2, "f32": 1e-5, "c64": 1e-5}.get(type_, 0.0)
    kernel = check_sim(source, inputs, rtol=tolerance, atol=tolerance)
    assert kernel.notes["updates"] == form
    (one,), (other,) = (
        run_sim(kernel, inputs),
        run_cpu(emit_fusion(root_fusion(source), "k", targets.get("cpu")), inputs),
    )
    compare(one, other, *(tolerance,) * 2 if type_ == "c128" else ())


def test_many_unsorted_updates_are_atomic() -> None:
    x, u = floats(np.complex64, 9, 2), floats(np.complex64, 200, 2)
    i = RNG.integers(-2, 11, (200, 1)).astype(np.int32)
    kernel = check_sim(rows("c64", "add", updates=200, width=2), [x, i, u], rtol=1e-4, atol=1e-4)
    assert kernel.notes["updates"] == "atomic"
    for source in (rows("s32", "add"), rows("u8", "maximum")):
        assert emit_fusion(root_fusion(source), "k", targets.get("sm_90")).notes["updates"] == "atomic"


def test_a_few_windows_that_overlap_in_part() -> None:
    source = """HloModule m
c { a = f32[] parameter(0) b = f32[] parameter(1) d = f32[] subtract(b, a) ROOT r = f32[] multiply(d, b) }
ENTRY e { x = f32[7,9] parameter(0) i = s32[6,2] parameter(1) u = f32[6,3,4] parameter(2)
  ROOT s = f32[7,9] scatter(x, i, u), update_window_dims={1,2}, inserted_window_dims={},
    scatter_dims_to_operand_dims={1,0}, index_vector_dim=1, to_apply=c }"""
    i = np.array([[0, 0], [1, 2], [9, 1], [2, 3], [5, 4], [5, 5]], np.int32)
    kernel = check_sim(source, [floats(np.float32, 7, 9), i, floats(np.float32, 6, 3, 4)], rtol=1e-6, atol=1e-6)
    assert kernel.notes["updates"] == "few"
    sorted_ = source.replace("to_apply", "indices_are_sorted=true, to_apply")  # neighbours are not enough here
    assert emit_fusion(root_fusion(sorted_), "k", targets.get("sm_90")).notes["updates"] == "few"


SORTED = {
    "rows": rows("f32", "add", n=40, updates=300),
    "two components": """HloModule m
c { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
ENTRY e { x = f32[9,4,5] parameter(0) i = u8[300,2] parameter(1) u = f32[300,4] parameter(2)
  ROOT s = f32[9,4,5] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0,2},
    scatter_dims_to_operand_dims={2,0}, index_vector_dim=1, to_apply=c }""",
    "windows that overlap": """HloModule m
c { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
ENTRY e { x = f32[9,5] parameter(0) i = s64[150] parameter(1) u = f32[150,2,5] parameter(2)
  ROOT s = f32[9,5] scatter(x, i, u), update_window_dims={1,2}, inserted_window_dims={},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=c }""",
    "two arrays": """HloModule m
c { a = f32[] parameter(0) p = s32[] parameter(1) b = f32[] parameter(2) q = s32[] parameter(3)
  g = pred[] compare(b, a), direction=GT v = f32[] select(g, b, a) w = s32[] select(g, q, p)
  ROOT r = (f32[], s32[]) tuple(v, w) }
ENTRY e { x = f32[9] parameter(0) y = s32[9] parameter(1) i = s32[200] parameter(2) u = f32[200] parameter(3)
  v = s32[200] parameter(4)
  ROOT s = (f32[9], s32[9]) scatter(x, y, i, u, v), update_window_dims={}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=c }""",
    "batches": """HloModule m
c { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
ENTRY e { x = f32[3,8] parameter(0) i = s32[3,70] parameter(1) u = f32[3,70] parameter(2)
  ROOT s = f32[3,8] scatter(x, i, u), update_window_dims={}, inserted_window_dims={1},
    scatter_dims_to_operand_dims={1}, input_batching_dims={0}, scatter_indices_batching_dims={0},
    index_vector_dim=2, to_apply=c }""",
    "the last one wins": rows("f32", "", n=40, updates=300).replace("add(b, z)", "copy(b)"),
}


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("name", SORTED)
def test_whole_programs_sort_many_updates(name: str, in_place: bool) -> None:
    donors = ", buffer_donor={ (0, {}), (1, {}) }" if in_place else ""
    module = text.parse(SORTED[name].replace("HloModule m", "HloModule m" + donors))
    inputs = []
    for p in module.entry.parameters:
        t, dims = p.shape.element_type, p.shape.dims
        inputs.append(
            RNG.integers(0 if t.is_unsigned else -2, 10, dims).astype(t.dtype)
            if t.is_integer
            else floats(t.dtype, *dims)
        )
    made = compile(module, "sim:sm_90", Options(sim_check="all"))
    assert [k.notes["updates"] for k in made.kernels if k.emitter == "scatter"] == [
        "sorted" if in_place or name == "two components" else "bisected"
    ]
    got = made(*[a.copy() for a in inputs])
    on_cpu = compile(module, "cpu")(*[a.copy() for a in inputs])
    for g, c, w in zip(
        *(x if isinstance(x, tuple) else (x,) for x in (got, on_cpu)), evaluate_module(module, *inputs), strict=True
    ):
        compare(g, c)
        compare(g, w, 1e-5, 1e-5)


def test_without_an_order_many_updates_are_not_sorted() -> None:
    made = compile(text.parse(SORTED["rows"]), "sim:sm_90", Options(deterministic=False))
    assert [k.emitter for k in made.kernels] == ["scatter"] and made.kernels[0].notes["updates"] == "atomic"
    both = compile(text.parse(SORTED["two arrays"]), "sim:sm_90", Options(deterministic=False))
    assert "bisected" in [k.notes.get("updates") for k in both.kernels]


def test_no_updates() -> None:
    source = rows("f32", "add", updates=0)
    x = RNG.normal(size=(9, 5)).astype(np.float32)
    for gpu in (False, True):
        in_place(source, [x, np.zeros((0, 1), np.int32), np.zeros((0, 5), np.float32)], gpu)


@pytest.mark.parametrize(("type_", "elements"), [("s32", (300,)), ("u32", (7, 40)), ("s32", (1,))])
def test_histograms_have_sums_of_their_own_in_shared_memory(type_: str, elements: tuple[int, ...]) -> None:
    """Of updates out of bounds nothing is added; what was there stays part of the sum. Blocks end in any order."""
    count, rank, dims = 5000, len(elements), ",".join(map(str, elements))
    gone, to = ",".join(map(str, range(rank))), ",".join(map(str, range(rank)))
    source = f"""HloModule m
c {{ a = {type_}[] parameter(0) b = {type_}[] parameter(1) ROOT r = {type_}[] add(a, b) }}
ENTRY e {{ x = {type_}[{dims}] parameter(0) i = s32[{count},{rank}] parameter(1) u = {type_}[{count}] parameter(2)
  two = {type_}[{count}] add(u, u)
  ROOT s = {type_}[{dims}] scatter(x, i, two), update_window_dims={{}}, inserted_window_dims={{{gone}}},
    scatter_dims_to_operand_dims={{{to}}}, index_vector_dim=1, to_apply=c }}"""
    dtype = np.int32 if type_ == "s32" else np.uint32
    x = RNG.integers(0, 50, elements).astype(dtype)
    i = np.stack([RNG.integers(-2, n + 2, count) for n in elements], 1).astype(np.int32)
    u = RNG.integers(0, 2**31 - 1, count).astype(dtype)
    kernel = emit_fusion(root_fusion(source), "k", targets.get("sim:sm_90"))
    assert kernel.notes["updates"] == "atomic in shared memory"
    check_sim(source, [x, i, u])


def test_few_updates_for_each_element_go_to_memory() -> None:
    for n, updates in ((300, 4000), (9000, 150_000), (5000, 70_000)):
        kernel = emit_fusion(root_fusion(rows("s32", "add", n=n, width=1, updates=updates)), "k", targets.get("sm_90"))
        assert kernel.notes["updates"] == "atomic"


@pytest.mark.parametrize(("op", "init"), [("maximum", "-inf"), ("minimum", "inf")])
@pytest.mark.parametrize("type_", ["f32", "f64", "s32"])
def test_extrema_are_found_without_a_branch(op: str, init: str, type_: str) -> None:
    """No processor can guess which updates change an element. Zeros by their sign and NaN count."""
    operand = f"{type_}[5] broadcast(z), dimensions={{}}"
    source = f"""HloModule m
r {{ a = {type_}[] parameter(0) b = {type_}[] parameter(1) ROOT c = {type_}[] {op}(a, b) }}
f {{ n = s32[60,1] parameter(0) u = {type_}[60] parameter(1) z = {type_}[] constant({0 if type_ == "s32" else init})
  o = {operand}
  ROOT s = {type_}[5] scatter(o, n, u), update_window_dims={{}}, inserted_window_dims={{0}},
    scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=r }}
ENTRY e {{ n = s32[60,1] parameter(0) u = {type_}[60] parameter(1)
  ROOT k = {type_}[5] fusion(n, u), kind=kInput, calls=f }}"""
    places = RNG.integers(-1, 6, (60, 1)).astype(np.int32)
    updates = RNG.choice([-1.0, -0.0, 0.0, 2.0, np.nan], 60, p=[0.3, 0.3, 0.25, 0.1, 0.05])
    if type_ == "s32":
        updates = RNG.integers(-9, 9, 60)
    updates = updates.astype({"f32": np.float32, "f64": np.float64, "s32": np.int32}[type_])
    kernel = emit_fusion(root_fusion(source), "k", targets.get("cpu"))
    assert "scf.if" not in str(kernel.module)
    check(source, [places, updates])


@pytest.mark.parametrize("op", ["maximum", "minimum"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_extrema_of_any_two_floats(op: str, dtype: type) -> None:
    some = np.array([0, 1, 2.5, np.inf, np.finfo(dtype).max, np.finfo(dtype).tiny, np.nan], dtype)
    some = np.concatenate([some, -some])
    n, type_ = some.size, "f32" if dtype is np.float32 else "f64"
    source = f"""HloModule m
r {{ a = {type_}[] parameter(0) b = {type_}[] parameter(1) ROOT c = {type_}[] {op}(a, b) }}
f {{ o = {type_}[{n * n}] parameter(0) n = s32[{n * n},1] parameter(1) u = {type_}[{n * n}] parameter(2)
  ROOT s = {type_}[{n * n}] scatter(o, n, u), update_window_dims={{}}, inserted_window_dims={{0}},
    scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=r }}
ENTRY e {{ o = {type_}[{n * n}] parameter(0) n = s32[{n * n},1] parameter(1) u = {type_}[{n * n}] parameter(2)
  ROOT k = {type_}[{n * n}] fusion(o, n, u), kind=kInput, calls=f }}"""
    a, b = np.repeat(some, n), np.tile(some, n)
    inputs = [a, np.arange(n * n, dtype=np.int32)[:, None], b]
    found = np.asarray(compile(source)(*inputs))
    (expected,) = evaluate_module(text.parse(source), *inputs)
    np.testing.assert_array_equal(found, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(expected[numbers]))
