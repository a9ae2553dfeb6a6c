"""The sort kernels on the CPU and on the simulated GPU, against the evaluator."""

from __future__ import annotations

import ctypes
import itertools

import ml_dtypes
import numpy as np
import pytest

from heron import targets
from heron.analysis.fusion import sort_tiles
from heron.codegen.emit import emit_kernels
from heron.codegen.emitters.sort import gpu_tiles
from heron.codegen.kernel import Kernel
from heron.codegen.llvm.nvptx import to_ptx
from heron.compiling import compile
from heron.errors import HeronError
from heron.hlo.text import parse
from heron.options import Options
from tests.codegen.run_gpu_kernel import simulate
from tests.codegen.run_kernel import compare, evaluate, jit, lower, root_fusion

RNG = np.random.default_rng(5)
_names = itertools.count()


def program(shape: tuple[int, ...], d: int, type_: str = "f32", direction: str = "LT") -> str:
    dims = ",".join(map(str, shape))
    return f"""HloModule m
less {{ a = {type_}[] parameter(0) b = {type_}[] parameter(1) i = s32[] parameter(2) j = s32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction={direction} }}
ENTRY e {{ x = {type_}[{dims}] parameter(0) i = s32[{dims}] parameter(1)
  ROOT s = ({type_}[{dims}], s32[{dims}]) sort(x, i), dimensions={{{d}}}, is_stable=true, to_apply=less }}"""


def run(source: str, inputs: list[np.ndarray], target: str) -> list[np.ndarray]:
    """The outputs after all kernels of the sort: on the CPU it finds its operands there, and scratch arrays behind."""
    root = root_fusion(source)
    outputs = [s for _, s in root.shape.leaves()]
    arrays = [np.array(a, order="C") for a in inputs]
    results = arrays if target == "cpu" else [np.zeros(s.dims, s.element_type.dtype) for s in outputs]
    for n, kernel in enumerate(emit_kernels(root, f"sort_{next(_names)}", targets.get(target))):
        first = n == 0 and target != "cpu"
        scratch = kernel.args[len(results) :] if target == "cpu" else ()
        room = [np.empty(a.shape.dims, a.shape.element_type.dtype) for a in scratch]
        assert [a.kind for a in kernel.args] == ["in"] * len(arrays) * first + ["out"] * len(results + room)
        _run(kernel, [*arrays, *results] if first else [*results, *room], target)
    return results


def _run(kernel: Kernel, arrays: list[np.ndarray], target: str) -> None:
    if target == "cpu":
        address = jit().add(lower(kernel), kernel.name).addresses[kernel.name]
        types = [ctypes.c_void_p] * len(arrays) + [ctypes.c_int64] * 2
        ctypes.CFUNCTYPE(None, *types)(address)(*[a.ctypes.data for a in arrays], 0, kernel.launch.work_items)
    else:
        simulate(kernel, arrays)


def check(source: str, inputs: list[np.ndarray], target: str) -> None:
    for got, want in zip(run(source, inputs, target), evaluate(root_fusion(source), inputs), strict=True):
        compare(got, want)


def positions(shape: tuple[int, ...], d: int) -> np.ndarray:
    """An iota along `d`."""
    return np.broadcast_to(np.arange(shape[d]).reshape([-1 if k == d else 1 for k in range(len(shape))]), shape).astype(
        np.int32
    )


SHAPES = [((7,), 0), ((16,), 0), ((17,), 0), ((100,), 0), ((1000,), 0), ((5, 70), 1), ((70, 5), 0), ((3, 40, 4), 1)]


@pytest.mark.parametrize(("shape", "d"), SHAPES)
def test_cpu_is_stable(shape: tuple[int, ...], d: int) -> None:
    keys = RNG.integers(0, 12, shape).astype(np.float32)  # many equal keys
    check(program(shape, d), [keys, positions(shape, d)], "cpu")
    check(program(shape, d, direction="GT"), [keys, positions(shape, d)], "cpu")


@pytest.mark.parametrize(("shape", "d"), SHAPES)
def test_gpu(shape: tuple[int, ...], d: int) -> None:
    keys = np.argsort(RNG.normal(size=shape), axis=d).astype(np.float32)  # all different
    check(program(shape, d), [keys, positions(shape, d)], "sim:sm_90")


@pytest.mark.parametrize(("rows", "length", "together"), [(3000, 8, 16), (2000, 5, 8), (700, 3, 4), (263, 8, 1)])
def test_gpu_packs_short_rows(rows: int, length: int, together: int) -> None:
    """Blocks of several rows, the last of them with fewer."""
    source = program((rows, length), 1)
    (kernel,) = emit_kernels(root_fusion(source), "k", targets.get("sm_90"))
    tile = 1 << (length - 1).bit_length()
    assert kernel.notes["form"] == f"tiles of {tile}" + (f", {together} a block" if together > 1 else "")
    keys = np.argsort(RNG.normal(size=(rows, length)), axis=1).astype(np.float32)
    check(source, [keys, positions((rows, length), 1)], "sim:sm_90")


def test_other_layouts_are_refused() -> None:
    source = program((6, 4), 0).replace("[6,4]", "[6,4]{0,1}")
    with pytest.raises(HeronError, match="GEN004"):
        emit_kernels(root_fusion(source), "k", targets.get("sm_90"))


@pytest.mark.parametrize("threads", [1, 2, 1024])
def test_gpu_steps_over_global_memory(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles smaller than a row; a thread does one or several pairs of a tile."""
    monkeypatch.setattr(sort_tiles, "MAX_TILE", 8)
    monkeypatch.setattr(gpu_tiles, "TILE_THREADS", threads)
    shape = (2, 75)
    keys = np.argsort(RNG.normal(size=shape), axis=1).astype(np.float32)
    source = program(shape, 1)
    kernels = emit_kernels(root_fusion(source), "k", targets.get("sm_90"))
    forms = [k.notes["form"] for k in kernels]
    assert forms[0] == forms[2] == "tiles of 8" and forms[1] == "step 8 apart" and forms[3] == "2 steps, 16 apart"
    assert len({id(k) for k in kernels}) < len(kernels)
    check(source, [keys, positions(shape, 1)], "sim:sm_90")


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90"])
@pytest.mark.parametrize(
    ("type_", "dtype"),
    [("s64", np.int64), ("u8", np.uint8), ("bf16", ml_dtypes.bfloat16), ("f64", np.float64), ("pred", np.bool_)],
)
def test_types(type_: str, dtype: type, target: str) -> None:
    n = 2 if type_ == "pred" else 40
    keys = RNG.permutation(n).astype(dtype)
    check(program((n,), 0, type_), [keys, positions((n,), 0)], target)


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90"])
def test_one_operand_and_comparator_on_several(target: str) -> None:
    source = """HloModule m
less { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = pred[] compare(a, b), direction=LT, type=TOTALORDER }
ENTRY e { x = f32[60] parameter(0) ROOT s = f32[60] sort(x), dimensions={0}, to_apply=less }"""
    x = RNG.normal(size=60).astype(np.float32)
    x[7], x[9], x[11] = np.nan, -np.inf, -0.0
    check(source, [x], target)


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90"])
@pytest.mark.parametrize("shape", [(1,), (0,), (0, 5), (5, 0), (5, 1)])
def test_nothing_to_sort(shape: tuple[int, ...], target: str) -> None:
    keys = RNG.normal(size=shape).astype(np.float32)
    check(program(shape, len(shape) - 1), [keys, np.zeros(shape, np.int32)], target)


@pytest.mark.parametrize("shape", [(20000,), (2, 20000), (20000, 2), (1, 20000, 1)])
def test_long_rows(shape: tuple[int, ...]) -> None:
    keys = RNG.integers(0, 1000, shape).astype(np.float32)
    d = shape.index(20000)
    check(program(shape, d), [keys, positions(shape, d)], "cpu")


@pytest.mark.parametrize("direction", ["LT", "LT, type=TOTALORDER"])
@pytest.mark.parametrize(("shape", "temp", "heap"), [((20000,), 1, 0), ((2, 20000), 0, 1), ((2, 200), 0, 0)])
def test_sorts_take_as_much_as_a_row(shape: tuple[int, ...], temp: int, heap: int, direction: str) -> None:
    """One long row has its scratch memory among the buffers; threads that sort several rows take it from the heap."""
    executable = compile(parse(program(shape, len(shape) - 1, direction=direction)), "cpu", Options(threads=1))
    row = -(-shape[-1] * 4 // 64) * 64 * 2
    assert executable.assignment.temp_bytes == temp * row
    assert executable.memory.temp - executable.assignment.temp_bytes == heap * shape[-1] * 8


def test_scratch_memory_of_a_sort_lies_where_an_output_comes_later() -> None:
    source = """HloModule m
less { a = s32[] parameter(0) b = s32[] parameter(1) ROOT r = pred[] compare(a, b), direction=LT }
ENTRY e { x = s32[20000] parameter(0)
  s = s32[20000] sort(x), dimensions={0}, to_apply=less
  ROOT r = s32[20000] reverse(s), dimensions={0} }"""
    executable = compile(parse(source), "cpu")
    x = RNG.integers(0, 1000, 20000).astype(np.int32)
    assert executable.memory.temp < 1.01 * x.nbytes
    assert np.array_equal(executable.run([x])[0], np.sort(x)[::-1])


TOTAL = ", type=TOTALORDER"
CANONICAL = """
  {p}ne = pred[] compare({p}, {p}), direction=NE {p}eq = pred[] compare({p}, z), direction=EQ
  {p}s = f32[] select({p}eq, z, {p}) {p}c = f32[] select({p}ne, n, {p}s)"""
#: comparators of (f32, s32) by name: text, bits of the keys
COMPARATORS = {
    "float": (f"ROOT r = pred[] compare(a, b), direction=LT{TOTAL}", "32"),
    "descending": (f"ROOT r = pred[] compare(a, b), direction=GT{TOTAL}", "32"),
    "sides changed": (f"ROOT r = pred[] compare(b, a), direction=GT{TOTAL}", "32"),
    "second operand": ("ROOT r = pred[] compare(i, j), direction=GT", "32"),
    "computed": (
        "z = f32[] constant(0) n = f32[] constant(nan)"
        + CANONICAL.format(p="a")
        + CANONICAL.format(p="b")
        + f" ROOT r = pred[] compare(ac, bc), direction=LT{TOTAL}",
        "32",
    ),
    "two keys": (
        f"l = pred[] compare(i, j), direction=LT e = pred[] compare(i, j), direction=EQ "
        f"m = pred[] compare(a, b), direction=GT{TOTAL} n = pred[] and(e, m) ROOT r = pred[] or(l, n)",
        "32 and 32",
    ),
    "two keys by select": (
        f"l = pred[] compare(a, b), direction=LT{TOTAL} e = pred[] compare(a, b), direction=EQ{TOTAL} "
        f"m = pred[] compare(i, j), direction=GT ROOT r = pred[] select(e, m, l)",
        "32 and 32",
    ),
    # no keys: merged
    "not strict": (f"ROOT r = pred[] compare(a, b), direction=LE{TOTAL}", ""),
    "one element twice": (
        "d = s32[] subtract(i, j) e = s32[] subtract(j, i) ROOT r = pred[] compare(d, e), direction=LT",
        "",
    ),
    "different": ("d = s32[] negate(i) e = s32[] abs(j) ROOT r = pred[] compare(d, e), direction=LT", ""),
    "equal by another order": (
        f"l = pred[] compare(a, b), direction=LT{TOTAL} e = pred[] compare(a, b), direction=EQ "
        f"m = pred[] compare(i, j), direction=LT n = pred[] and(e, m) ROOT r = pred[] or(l, n)",
        "",
    ),
}


@pytest.mark.parametrize("name", COMPARATORS)
def test_cpu_sorts_by_the_bits_of_keys(name: str) -> None:
    body, bits = COMPARATORS[name]
    source = program((3, 90), 1).replace("ROOT r = pred[] compare(a, b), direction=LT }", body + " }")
    assert body in source
    (kernel,) = emit_kernels(root_fusion(source), "k", targets.get("cpu"))
    assert kernel.notes["form"] == (f"radix sort of 90 by {bits} bits" if bits else "merge sort of 90")
    if name in ("different", "not strict", "equal by another order"):  # no order: any result is as good
        return
    x = RNG.integers(-9, 9, (3, 90)).astype(np.float32)
    x[x == 4] = -0.0
    x[1, 5:9], x[2, 3], x[0, 8] = np.nan, -np.inf, np.float32(-np.nan)
    check(source, [x, RNG.integers(-3, 3, (3, 90)).astype(np.int32)], "cpu")


@pytest.mark.parametrize(
    ("type_", "dtype"),
    [("s64", np.int64), ("u64", np.uint64), ("s16", np.int16), ("u8", np.uint8), ("pred", np.bool_)]
    + [("bf16", ml_dtypes.bfloat16), ("f64", np.float64), ("f8e5m2", ml_dtypes.float8_e5m2)],
)
@pytest.mark.parametrize("direction", ["LT", "GT"])
def test_cpu_radix_sort_of_types(type_: str, dtype: type, direction: str) -> None:
    size = np.dtype(dtype).itemsize
    keys = RNG.integers(0, 256, (2, 120 * size), np.uint8).view(dtype)  # any bits, NaNs of both signs too
    if type_ == "pred":
        keys = (keys.view(np.uint8) % 2).view(np.bool_)
    keys[1] = keys[1, 0]  # all bytes in common
    is_float = type_[0] in "fb"
    source = program(keys.shape, 1, type_, direction + TOTAL * is_float)
    (kernel,) = emit_kernels(root_fusion(source), "k", targets.get("cpu"))
    assert "radix" in kernel.notes["form"]
    check(source, [keys, positions(keys.shape, 1)], "cpu")


def test_ptx() -> None:
    for kernel in emit_kernels(root_fusion(program((5000,), 0)), "k", targets.get("sm_90"))[:2]:
        text = to_ptx(lower(kernel, "sm_90"))
        assert "bar.sync" in text or "tiles" not in kernel.notes["form"]


@pytest.mark.parametrize(
    ("shape", "start", "k"),
    [((2, 1024), 0, 8), ((3, 700), 0, 5), ((300, 100), 0, 2), ((5, 130), 3, 20), ((500, 33), 1, 3), ((2, 65), 0, 40)],
)
def test_gpu_first_of_rows(shape: tuple[int, ...], start: int, k: int) -> None:
    """Of a row only some of its first elements: of each two short runs the half that comes first is kept."""
    rows, n = shape
    source = f"""HloModule m
less {{ a = f32[] parameter(0) b = f32[] parameter(1) i = s32[] parameter(2) j = s32[] parameter(3)
  before = pred[] compare(a, b), direction=LT same = pred[] compare(a, b), direction=EQ
  first = pred[] compare(i, j), direction=LT ROOT r = pred[] select(same, first, before) }}
fused {{ x = f32[{rows},{n}] parameter(0) i = s32[{rows},{n}] parameter(1)
  s = (f32[{rows},{n}], s32[{rows},{n}]) sort(x, i), dimensions={{1}}, to_apply=less
  v = f32[{rows},{n}] get-tuple-element(s), index=0
  p = s32[{rows},{n}] get-tuple-element(s), index=1
  c = f32[{rows},{k}] slice(v), slice={{[0:{rows}], [{start}:{start + k}]}}
  d = s32[{rows},{k}] slice(p), slice={{[0:{rows}], [{start}:{start + k}]}}
  ROOT t = (f32[{rows},{k}], s32[{rows},{k}]) tuple(c, d) }}
ENTRY e {{ x = f32[{rows},{n}] parameter(0) i = s32[{rows},{n}] parameter(1)
  ROOT f = (f32[{rows},{k}], s32[{rows},{k}]) fusion(x, i), kind=kInput, calls=fused }}"""
    keys = RNG.integers(0, 40, shape).astype(np.float32)
    check(source, [keys, np.ascontiguousarray(positions(shape, 1))], "sim:sm_90")
