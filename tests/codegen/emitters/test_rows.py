"""The rows emitter against the evaluator: normalisations of several shapes and types, and what is none."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

from benchmarks import ptx_text
from heron import targets
from heron.analysis.fusion.fusion import as_fusion
from heron.analysis.fusion.rowwise import kept_words, rows_of, stages_of
from heron.codegen.emit import emit_fusion
from heron.codegen.emitters.rowwise import gpu
from heron.codegen.emitters.rowwise.gpu import Plan
from heron.codegen.llvm.assemble import assemble, knows
from tests.codegen.run_gpu_kernel import check_sim, ptx
from tests.codegen.run_kernel import check, root_fusion

RNG = np.random.default_rng(8)
DTYPES = {"f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16, "f16": np.float16}
TOLERANCE = {"bf16": 3e-2, "f16": 4e-3, "f32": 1e-5, "f64": 1e-12}


def softmax(
    t: str,
    dims: str,
    kept: str,
    by: str,
    over: str,
    extra: str = "",
    root: str = "ROOT d = S divide(e, u)",
    result: str = "S",
) -> str:
    body = f"""
  x = S parameter(0)
  low = {t}[] constant(-inf)
  zero = {t}[] constant(0)
  m = K reduce(x, low), dimensions={{{over}}}, to_apply=largest
  w = S broadcast(m), dimensions={{{by}}}
  s = S subtract(x, w)
  e = S exponential(s)
  t = K reduce(e, zero), dimensions={{{over}}}, to_apply=sum
  u = S broadcast(t), dimensions={{{by}}}
  {extra}
  {root}"""
    text = f"""HloModule m
sum {{ a = {t}[] parameter(0) b = {t}[] parameter(1) ROOT c = {t}[] add(a, b) }}
largest {{ a = {t}[] parameter(0) b = {t}[] parameter(1) ROOT c = {t}[] maximum(a, b) }}
f {{ {body} }}
ENTRY e {{ x = S parameter(0) ROOT r = {result} fusion(x), kind=kLoop, calls=f }}"""
    return text.replace(" S ", f" {t}[{dims}] ").replace(" K ", f" {t}[{kept}] ").replace("(S", f"({t}[{dims}]")


def softmax_of(t: str, shape: tuple[int, ...], kept: int) -> str:
    """A softmax over all dimensions but the first `kept`."""
    dims, rows = (",".join(map(str, d)) for d in (shape, shape[:kept]))
    by, over = (",".join(map(str, d)) for d in (range(kept), range(kept, len(shape))))
    return softmax(t, dims, rows, by, over)


def values(t: str, shape: tuple[int, ...]) -> np.ndarray:
    return RNG.normal(size=shape).astype(DTYPES[t])


SHAPES = [((5, 64), 1), ((3, 4, 130), 2), ((2, 3, 9, 11), 2), ((1, 100), 1), ((1, 7, 1, 80), 3), ((300,), 0)]


#: rows that vectors go across: written out here or by LLVM, several of them a work item or one
SHORT = [((40, 2), 1), ((17, 20, 3), 2), ((4, 5, 16, 2, 2), 3), ((33, 5), 1), ((16, 30, 6), 2), ((50, 7), 1)]


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize(("shape", "kept"), [*SHAPES, *SHORT])
@pytest.mark.parametrize("t", DTYPES)
def test_softmax_on_the_cpu(t: str, shape: tuple[int, ...], kept: int, parts: int) -> None:
    source = softmax_of(t, shape, kept)
    assert emit_fusion(root_fusion(source), "k", targets.get("cpu")).emitter == "rows"
    check(source, [values(t, shape)], rtol=TOLERANCE[t], parts=parts)


#: rows in blocks: whole ones, a part at the end, rows of several dimensions, of several vectors, of as many as there are
BLOCKS = [((64, 10), 1), ((523, 9), 1), ((11, 3, 10), 2), ((40, 3, 5), 1), ((600, 33), 1), ((3, 7, 25, 4, 4), 3)]


@pytest.mark.parametrize("parts", [1, 4])
@pytest.mark.parametrize(("shape", "kept"), BLOCKS)
@pytest.mark.parametrize("t", DTYPES)
def test_rows_in_blocks(t: str, shape: tuple[int, ...], kept: int, parts: int) -> None:
    """The softmax, which keeps its exponentials, and an output for each row beside it."""
    rows = ",".join(map(str, shape[:kept]))
    by, over = (",".join(map(str, d)) for d in (range(kept), range(kept, len(shape))))
    both = f"({t}[{','.join(map(str, shape))}], {t}[{rows}])"
    root = "d = S divide(e, u)\n g = K log(t)\n h = K add(g, m)\n ROOT o = (S, K) tuple(d, h)"
    root = root.replace("(S, K)", both)
    source = softmax(t, ",".join(map(str, shape)), rows, by, over, root=root, result=both)
    made = emit_fusion(root_fusion(source), "k", targets.get("cpu"))
    assert "in a block" in made.notes["form"]
    check(source, [values(t, shape)], rtol=TOLERANCE[t], parts=parts)


@pytest.mark.parametrize(
    ("shape", "kept", "t", "loops", "side_by_side"),
    [
        ((40, 3), 1, "f32", 0, False), ((17, 20, 4), 2, "f32", 0, True), ((17, 20, 5), 2, "f32", 3, True),
        ((3, 20, 5), 2, "f32", 3, False), ((50, 8), 1, "f32", 3, False), ((50, 8), 1, "f64", 0, False),
    ],
)  # fmt: skip
def test_vectors_go_across_short_rows(
    shape: tuple[int, ...], kept: int, t: str, loops: int, side_by_side: bool
) -> None:
    """Loops along rows of 4 are not even made; those along rows of up to 6, and of 8 that fill half a vector, are
    written out by LLVM. What is spread over one of the rows' dimensions needs no division."""
    source = softmax_of(t, shape, kept)
    made = emit_fusion(root_fusion(source), "k", targets.get("cpu"))
    assert sum("heron.short" in op.attributes for op in made.module.walk()) == loops
    assert ("side by side" in made.notes["form"]) == side_by_side
    check(source, [values(t, shape)], rtol=TOLERANCE[t])


@pytest.mark.parametrize(
    ("shape", "kept", "loop"), [((6, 3, 9, 11), 2, 99), ((40, 2, 5), 1, 10), ((5, 8, 7, 13), 1, 728)]
)
def test_a_row_of_several_dimensions_is_one_loop(shape: tuple[int, ...], kept: int, loop: int) -> None:
    """Loops along its last dimension would be short, and each would add up the numbers of a vector."""
    source = softmax_of("f32", shape, kept)
    made = emit_fusion(root_fusion(source), "k", targets.get("cpu"))
    domains = re.findall(r"xla_gpu.loop .*domain: (.*?)\"", str(made.module))
    assert not any("s1" in domain for domain in domains)
    assert sum(f"s0 in [0, {loop - 1}]" in domain for domain in domains) == 3
    check(source, [values("f32", shape)], rtol=TOLERANCE["f32"])


#: several rows a warp, the last warp not full; a warp a row; several warps; several rounds, the last not full
GPU_SHAPES = [*SHAPES, ((70, 8), 1), ((7, 3), 1), ((9, 32, 16), 2), ((600, 200), 1), ((3, 1024), 1), ((2, 5000), 1)]


@pytest.mark.parametrize(("t", "keeps"), [("f32", True), ("f32", False), ("bf16", True), ("f64", False)])
@pytest.mark.parametrize(("shape", "kept"), GPU_SHAPES)
def test_softmax_on_the_gpu(
    t: str, shape: tuple[int, ...], kept: int, keeps: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not keeps:
        monkeypatch.setattr(gpu, "ROUNDS", 0)
    kernel = check_sim(softmax_of(t, shape, kept), [values(t, shape)], rtol=TOLERANCE[t])
    assert kernel.emitter == "rows" and kernel.notes["row"] == ("in registers" if keeps else "read again")


@pytest.mark.parametrize("row", [6144, 50_000])
def test_a_long_row_is_read_again(row: int) -> None:
    """Of f64, 6,144 are more than rounds can be written out for; 50,000 are more than registers hold."""
    t = "f64" if row < 50_000 else "f32"
    kernel = check_sim(softmax_of(t, (2, row), 1), [values(t, (2, row))], rtol=1e-5)
    assert kernel.notes["row"] == ("in registers" if t == "f64" else "read again")


def test_outputs_along_the_row_and_once_a_row() -> None:
    """log-sum-exp beside it, in front of it, and the shifted row."""
    extra = "l = K log(t)\n  g = K add(m, l)\n  d = S divide(e, u)"
    result = "(f32[6], f32[6,70], f32[6,70], f32[6])"
    source = softmax("f32", "6,70", "6", "0", "1", extra, f"ROOT r = {result} tuple(g, d, s, m)", result)
    assert emit_fusion(root_fusion(source), "k", targets.get("cpu")).emitter == "rows"
    check(source, [values("f32", (6, 70))], rtol=1e-5, parts=2)
    assert check_sim(source, [values("f32", (6, 70))], rtol=1e-5).emitter == "rows"


def test_what_is_read_at_other_rows_is_not_done_by_rows() -> None:
    """The reversed rows' sums, and in a square the sums of the columns' numbers."""
    for spread in ("v = f32[80] reverse(t), dimensions={0}\n  y = f32[80,80] broadcast(v), dimensions={0}",
                   "y = f32[80,80] broadcast(t), dimensions={1}"):  # fmt: skip
        source = softmax("f32", "80,80", "80", "0", "1", spread, "ROOT d = S divide(e, y)")
        for target in ("cpu", "sm_90"):
            assert emit_fusion(root_fusion(source), "k", targets.get(target)).emitter != "rows"


#: where the largest element stands, the first of several: the row from there on, less that element, and the two
LARGEST = """HloModule m
later { a = f32[] parameter(0) i = s32[] parameter(1) b = f32[] parameter(2) j = s32[] parameter(3)
  g = pred[] compare(a, b), direction=GT e = pred[] compare(a, b), direction=EQ f = pred[] compare(i, j), direction=LT
  t = pred[] and(e, f) w = pred[] or(g, t) v = f32[] select(w, a, b) k = s32[] select(w, i, j)
  ROOT r = (f32[], s32[]) tuple(v, k) }
f {
  x = S parameter(0) n = s32[D] iota(), iota_dimension=1
  low = f32[] constant(-inf) zero = s32[] constant(0)
  m = (f32[R], s32[R]) reduce(x, n, low, zero), dimensions={1}, to_apply=later
  v = f32[R] get-tuple-element(m), index=0 k = s32[R] get-tuple-element(m), index=1
  w = S broadcast(v), dimensions={0} h = s32[D] broadcast(k), dimensions={0}
  d = S subtract(x, w) p = pred[D] compare(n, h), direction=GE
  nothing = f32[] constant(0) o = S broadcast(nothing), dimensions={}
  s = S select(p, d, o)
  ROOT t = (S, s32[R]) tuple(s, k)
}
ENTRY e { x = S parameter(0) ROOT r = (S, s32[R]) fusion(x), kind=kLoop, calls=f }"""


@pytest.mark.parametrize("shape", [(5, 64), (3, 700)])
def test_reductions_of_two_arrays(shape: tuple[int, int]) -> None:
    rows, row = shape
    source = LARGEST.replace("S ", f"f32[{rows},{row}] ").replace("(S,", f"(f32[{rows},{row}],")
    source = source.replace("[D]", f"[{rows},{row}]").replace("[R]", f"[{rows}]")
    x = RNG.integers(0, 9, shape).astype(np.float32)  # the largest more than once
    assert check_sim(source, [x]).emitter == "rows"
    check(source, [x])


#: the gradient of a layer norm from what the forward pass saved: two sums of a row, one input a row, a column's scale
GRADIENT = """HloModule m
sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
f {
  x = S parameter(0) dy = S parameter(1) mean = K parameter(2) var = K parameter(3) gamma = f32[D] parameter(4)
  zero = f32[] constant(0)
  bm = S broadcast(mean), dimensions={0}
  d = S subtract(x, bm)
  r = K rsqrt(var)
  br = S broadcast(r), dimensions={0}
  h = S multiply(d, br)
  bg = S broadcast(gamma), dimensions={1}
  g = S multiply(dy, bg)
  gh = S multiply(g, h)
  s1 = K reduce(g, zero), dimensions={1}, to_apply=sum
  s2 = K reduce(gh, zero), dimensions={1}, to_apply=sum
  b1 = S broadcast(s1), dimensions={0}
  b2 = S broadcast(s2), dimensions={0}
  t1 = S subtract(g, b1)
  t2 = S multiply(h, b2)
  t3 = S subtract(t1, t2)
  o = S multiply(t3, br)
  ROOT t = (S, S, K) tuple(o, gh, s2)
}
ENTRY e {
  x = S parameter(0) dy = S parameter(1) mean = K parameter(2) var = K parameter(3) gamma = f32[D] parameter(4)
  ROOT r = (S, S, K) fusion(x, dy, mean, var, gamma), kind=kLoop, calls=f
}"""


@pytest.mark.parametrize("shape", [(5, 64), (3, 700)])
def test_a_gradient_from_saved_statistics(shape: tuple[int, int]) -> None:
    """The statistics of rows that are not there are not read."""
    rows, row = shape
    source = GRADIENT.replace("S ", f"f32[{rows},{row}] ").replace(
        "(S, S, K)", f"(f32[{rows},{row}], f32[{rows},{row}], f32[{rows}])"
    )
    source = source.replace("K ", f"f32[{rows}] ").replace("[D]", f"[{row}]")
    inputs = [values("f32", s) for s in (shape, shape, (rows,), (row,))]
    inputs.insert(3, np.abs(values("f32", (rows,))) + 0.5)
    atol = _rounding(*inputs)
    assert check_sim(source, inputs, rtol=2e-5, atol=atol).emitter == "rows"
    check(source, inputs, rtol=2e-5, atol=atol)


def _rounding(x: np.ndarray, dy: np.ndarray, mean: np.ndarray, var: np.ndarray, gamma: np.ndarray) -> float:
    """How far two gradients may be apart by the order of additions: half a unit of all that is summed, each."""
    scale = 1 / np.sqrt(var)[:, None]
    h = np.abs(x - mean[:, None]) * scale
    summed = np.abs(dy * gamma * h).sum(axis=1, keepdims=True)
    return float(np.finfo(np.float32).eps * (h * summed * scale).max())


def test_stages_of_a_softmax() -> None:
    """What a later stage needs of a row is kept where it is computed: the exponential takes the place of the row."""
    fusion = as_fusion(root_fusion(softmax_of("f32", (6, 70), 1)))
    rows = rows_of(fusion)
    assert rows is not None
    first, second, third = stages_of(fusion, rows)
    assert [[i.name for i in s.saved] for s in (first, second, third)] == [["x"], ["e"], []]
    assert [[i.name for i in s.given] for s in (first, second, third)] == [[], ["x"], ["e"]]
    assert kept_words([first, second, third]) == 1


@pytest.mark.parametrize(
    ("row", "words", "room", "threads"), [(4096, 1, 99, 256), (4096, 4, 99, 1024), (4096, 1, 5, 1024), (64, 1, 99, 8)]
)
def test_threads_of_a_row(row: int, words: int, room: float, threads: int) -> None:
    """More of them where elements take many registers or much code; some, however short the row is."""
    plan = Plan.of(row, 1 << 20, 4, words, room, targets.get("sm_90"))
    assert (plan.vector, plan.threads, plan.keeps) == (4, threads, True)


@pytest.mark.skipif(not knows("sm_90"), reason="no assembler for sm_90 is here (pip install '.[ptx]')")
@pytest.mark.parametrize(("t", "shape", "accesses"), [("f32", (4096, 4096), 8), ("bf16", (8192, 512), 4)])
def test_a_row_stays_in_registers(t: str, shape: tuple[int, int], accesses: int) -> None:
    """128-bit loads of the row, as many stores, and nothing between."""
    text = ptx(softmax_of(t, shape, 1))
    (code,) = ptx_text.kernels(text).values()
    assert code.accesses == {128: accesses} and ".local" not in text
    (used,) = assemble(text, "sm_90").resources.values()
    assert not used.spill_bytes and not used.stack_bytes and used.registers <= 64
