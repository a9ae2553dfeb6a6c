"""Maps of every op against the evaluator: an operand's element is named where changing it changes the result."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

from heron.analysis.indexing import IndexingMap, format_map
from heron.analysis.indexing.operands import BUILDERS, WITHOUT_MAP, input_to_output, operand_indexing, output_to_input
from heron.analysis.indexing.runtime import Indexing
from heron.evaluator import Evaluator
from heron.hlo import text
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import all_ops
from heron.hlo.tools.op_examples import usual_program

Pairs = set[tuple[tuple[int, ...], tuple[int, ...]]]

COMPUTATIONS = """
sum { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] add(a, b) }
sum2 { a = f32[] parameter(0)
 b = f32[] parameter(1)
 c = f32[] parameter(2)
 d = f32[] parameter(3)
 e = f32[] add(a, c)
 f = f32[] add(b, d)
 g = f32[] add(e, d)
 h = f32[] add(f, c)
 ROOT r = (f32[], f32[]) tuple(g, h) }
at_least { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT r = pred[] compare(a, b), direction=GE }
running { a = f32[3] parameter(0)
 b = f32[3] parameter(1)
 c = f32[3] add(a, b)
 ROOT r = (f32[3], f32[3]) tuple(c, c) }
"""


example = cache(usual_program)


def module(line: str, *parameters: str) -> Module:
    """A program of the instruction `line`, on parameters p0, p1, … of these shapes."""
    entry = [f"  p{n} = {shape} parameter({n})" for n, shape in enumerate(parameters)]
    return text.parse("\n".join(["HloModule m", COMPUTATIONS, "ENTRY e {", *entry, f"  ROOT r = {line}", "}", ""]))


GATHER = (
    "f32[2,5,3] gather(p0, p1), offset_dims={2}, collapsed_slice_dims={0}, start_index_map={0,1}, index_vector_dim=1, "
    "slice_sizes={1,3}"
)
#: op with its operands' shapes; values of integer operands are given, others are made up
CASES: dict[str, tuple[str, list[str], dict[int, Any]]] = {
    "broadcast": ("f32[4,3,2] broadcast(p0), dimensions={2,0}", ["f32[2,4]"], {}),
    "transpose": ("f32[4,2,3] transpose(p0), dimensions={2,0,1}", ["f32[2,3,4]"], {}),
    "reshape": ("f32[4,9,5] reshape(p0)", ["f32[6,6,5]"], {}),
    "bitcast": ("f32[3,8]{0,1} bitcast(p0)", ["f32[6,4]{1,0}"], {}),
    "bitcast narrower": ("f16[3,8]{1,0} bitcast(p0)", ["f32[3,4]{1,0}"], {}),
    "bitcast wider": ("f32[3,2]{0,1} bitcast(p0)", ["f16[3,4]{1,0}"], {}),
    "bitcast-convert narrower": ("u8[3,4] bitcast-convert(p0)", ["f32[3]"], {}),
    "bitcast-convert wider": ("f32[3] bitcast-convert(p0)", ["u8[3,4]"], {}),
    "slice": ("f32[2,3] slice(p0), slice={[1:3], [0:6:2]}", ["f32[3,6]"], {}),
    "reverse": ("f32[3,4] reverse(p0), dimensions={1}", ["f32[3,4]"], {}),
    "select scalar": ("f32[3] select(p0, p1, p2)", ["pred[]", "f32[3]", "f32[3]"], {}),
    "clamp": ("f32[3] clamp(p0, p1, p2)", ["f32[]", "f32[3]", "f32[]"], {}),
    "concatenate": ("f32[3,9] concatenate(p0, p1, p2), dimensions={1}", ["f32[3,4]", "f32[3,2]", "f32[3,3]"], {}),
    "pad": ("f32[5,8] pad(p0, p1), padding=1_1x0_1_1", ["f32[3,4]", "f32[]"], {}),
    "pad negative": ("f32[2,6] pad(p0, p1), padding=-1_0x1_1", ["f32[3,4]", "f32[]"], {}),
    "reduce": ("f32[3,2] reduce(p0, p1), dimensions={1}, to_apply=sum", ["f32[3,4,2]", "f32[]"], {}),
    "reduce two": (
        "(f32[4], f32[4]) reduce(p0, p1, p2, p3), dimensions={2,0}, to_apply=sum2",
        ["f32[2,4,3]", "f32[2,4,3]", "f32[]", "f32[]"],
        {},
    ),
    "reduce-window": (
        "f32[4,4] reduce-window(p0, p1), window={size=2x3 stride=2x1 pad=1_1x1_1}, to_apply=sum",
        ["f32[6,4]", "f32[]"],
        {},
    ),
    "reduce-window dilated": (
        "f32[5,3] reduce-window(p0, p1), window={size=3x2 stride=1x2 pad=2_0x-1_1 lhs_dilate=2x1 rhs_dilate=1x2}, to_apply=sum",
        ["f32[3,7]", "f32[]"],
        {},
    ),
    "reduce-window two": (
        "(f32[3], f32[3]) reduce-window(p0, p1, p2, p3), window={size=2}, to_apply=sum2",
        ["f32[4]", "f32[4]", "f32[]", "f32[]"],
        {},
    ),
    "select-and-scatter": (
        "f32[5,4] select-and-scatter(p0, p1, p2), window={size=2x3 stride=2x1 pad=1_0x0_0}, select=at_least, scatter=sum",
        ["f32[5,4]", "f32[3,2]", "f32[]"],
        {},
    ),
    "dot": (
        "f32[2,3,5] dot(p0, p1), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}",
        ["f32[2,3,4]", "f32[2,4,5]"],
        {},
    ),
    "dot two": (
        "f32[2,5] dot(p0, p1), lhs_contracting_dims={2,0}, rhs_contracting_dims={0,2}",
        ["f32[4,2,3]", "f32[3,5,4]"],
        {},
    ),
    "convolution": (
        "f32[2,3,4] convolution(p0, p1), window={size=3 stride=2 pad=1_2}, dim_labels=b0f_0io->b0f",
        ["f32[2,5,2]", "f32[3,2,4]"],
        {},
    ),
    "convolution groups": (
        "f32[1,4,5] convolution(p0, p1), window={size=2 rhs_dilate=2 rhs_reversal=1}, dim_labels=bf0_oi0->bf0, "
        "feature_group_count=2",
        ["f32[1,4,7]", "f32[4,2,2]"],
        {},
    ),
    "convolution batch groups": (
        "f32[1,4,4] convolution(p0, p1), window={size=2 pad=1_1 lhs_dilate=2}, dim_labels=bf0_oi0->bf0, batch_group_count=2",
        ["f32[2,2,2]", "f32[4,2,2]"],
        {},
    ),
    "fft": ("c64[2,5] fft(p0), fft_type=RFFT, fft_length={8}", ["f32[2,8]"], {}),
    "sort": ("f32[2,4] sort(p0), dimensions={1}, to_apply=at_least", ["f32[2,4]"], {}),
    "scan": (
        "(f32[3,4], f32[3]) scan(p0, p1), dimensions={1}, num_carries=1, is_reverse=true, is_associative=false, to_apply=running",
        ["f32[3,4]", "f32[3]"],
        {},
    ),
    "triangular-solve": (
        "f32[2,3,2] triangular-solve(p0, p1), left_side=true, lower=true, transpose_a=NO_TRANSPOSE",
        ["f32[2,3,3]", "f32[2,3,2]"],
        {},
    ),
    "triangular-solve right": (
        "f32[2,3] triangular-solve(p0, p1), lower=true, transpose_a=NO_TRANSPOSE",
        ["f32[3,3]", "f32[2,3]"],
        {},
    ),
    "batch-norm-training": (
        "(f32[2,3,2], f32[3], f32[3]) batch-norm-training(p0, p1, p2), epsilon=0.5, feature_index=1",
        ["f32[2,3,2]", "f32[3]", "f32[3]"],
        {},
    ),
    "dynamic-slice": (
        "f32[2,3] dynamic-slice(p0, p1, p2), dynamic_slice_sizes={2,3}",
        ["f32[5,9]", "s32[]", "s32[]"],
        {1: 2, 2: 99},
    ),
    "dynamic-update-slice": (
        "f32[5,6] dynamic-update-slice(p0, p1, p2, p3)",
        ["f32[5,6]", "f32[2,3]", "s32[]", "s32[]"],
        {2: -4, 3: 2},
    ),
    "gather": (GATHER, ["f32[4,6]", "s32[2,2,5]"], {1: [[[0, 1, 2, 3, 9]] + [[0, -5, 2, 3, 9]]] * 2}),
    "gather batching": (
        "f32[2,2] gather(p0, p1), offset_dims={}, collapsed_slice_dims={1}, start_index_map={1}, operand_batching_dims={0}, "
        "start_indices_batching_dims={0}, index_vector_dim=2, slice_sizes={1,1}",
        ["f32[2,5]", "s32[2,2]"],
        {1: [[3, 0], [1, 4]]},
    ),
    "scatter": (
        "f32[6,4] scatter(p0, p1, p2), update_window_dims={0,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={1,0}, "
        "index_vector_dim=0, to_apply=sum",
        ["f32[6,4]", "s32[2,3]", "f32[2,3,2]"],
        {1: [[0, 2, 1], [1, 4, 1]]},
    ),
    "scatter batching": (
        "f32[2,5] scatter(p0, p1, p2), update_window_dims={}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, "
        "input_batching_dims={0}, scatter_indices_batching_dims={0}, index_vector_dim=2, to_apply=sum",
        ["f32[2,5]", "s32[2,3]", "f32[2,3]"],
        {1: [[0, 2, 1], [1, 4, 1]]},
    ),
}  # fmt: skip

#: the maps of these ops, or of these operands of them, name more than what is read; those of others exactly what is
TOO_MANY: dict[str, range] = {
    **dict.fromkeys(
        "all-to-all batch-norm-grad batch-norm-inference batch-norm-training cholesky clamp fft rng rng-bit-generator "
        "scaled-dot scan select select-and-scatter sort topk triangular-solve".split(),
        range(9),
    ),
    "dynamic-update-slice": range(1),
    "pad": range(1, 2),
    "reduce": range(2, 4),
    "reduce-window": range(2, 4),
}
#: operands that only decide where or which, so that a change need not show
INDICES = {"dynamic-slice": 1, "dynamic-update-slice": 2, "gather": 1, "scatter": 1}


def values_of(m: Module, given: dict[int, Any]) -> list[Any]:
    rng = np.random.default_rng(3)
    found: list[Any] = []
    for n, p in enumerate(m.entry.parameters):
        dtype = p.shape.element_type.dtype if p.shape.is_array else None
        if dtype is None:
            found.append(None)
        elif n in given:
            found.append(np.broadcast_to(np.array(given[n], dtype), p.shape.dims).copy())
        elif np.dtype(dtype).kind in "iub":
            found.append(np.ones(p.shape.dims, dtype))
        else:
            values = rng.permutation(p.shape.num_elements).reshape(p.shape.dims) + 1.25
            if p.shape.rank >= 2 and p.shape.dims[-1] == p.shape.dims[-2]:
                values = values + 20 * np.eye(p.shape.dims[-1])  # solvable, positive definite
                values = (values + np.swapaxes(values, -1, -2)) / 2
            found.append(values.astype(dtype))
    return found


def changed(x: np.ndarray, at: tuple[int, ...], every_bit: bool) -> np.ndarray:
    y = np.array(x)
    if every_bit:
        y.view(f"u{y.itemsize}")[at] ^= 2 ** (8 * y.itemsize) - 1
    else:
        y[at] = ~y[at] if y.dtype == bool else y[at] + np.array(1).astype(y.dtype)
    return y


def differences(a: Any, b: Any) -> set[tuple[int, ...]]:
    pairs = zip(np.ravel(a), np.ravel(b), strict=True)
    flat = [k for k, (x, y) in enumerate(pairs) if x.tobytes() != y.tobytes()]
    return {tuple(map(int, np.unravel_index(k, np.shape(a)))) for k in flat}


def named(indexing: Indexing, values: dict[Instruction, Any]) -> Pairs:
    """The (result index, operand index) pairs of a map, runtime variables read where their origins say."""
    m, found = indexing.map, set()
    for point in product(*(range(v.lo, v.hi + 1) for v in m.dims + m.syms)):
        dims, syms = point[: len(m.dims)], list(point[len(m.dims) :])
        runtime: list[int] = []
        for v, origin in zip(m.rt_vars, indexing.runtime, strict=True):
            value = values[origin.source][tuple(e.evaluate(dims, syms) for e in origin.index)]
            runtime.append(min(max(int(value), v.lo), v.hi))
        if m.contains(dims, syms, runtime):
            found.add((dims, m.evaluate(dims, syms, runtime)))
    return found


def check(m: Module, given: dict[int, Any]) -> None:
    root, arrays = m.entry.root, values_of(m, given)
    instructions: dict[Instruction, Any] = {}
    base = Evaluator(m, on_value=instructions.__setitem__).call(m.entry, *arrays)
    outputs = base if root.shape.is_tuple else (base,)
    for n, operand in enumerate(root.operands):
        if operand.opcode != "parameter" or not operand.shape.is_array:
            continue
        number = operand.attrs["number"]
        reached: list[Pairs] = [set() for _ in outputs]
        for at in np.ndindex(*operand.shape.dims):
            other = [
                changed(a, at, root.opcode.startswith("bitcast")) if k == number else a for k, a in enumerate(arrays)
            ]
            result = Evaluator(m).call(m.entry, *other)
            for k, value in enumerate(result if root.shape.is_tuple else (result,)):
                if value is not None:
                    reached[k] |= {(o, at) for o in differences(outputs[k], value)}
        for k in range(len(outputs)):
            if outputs[k] is None:
                continue
            indexing = operand_indexing(root, n, k)
            assert indexing is not None, (root.opcode, n, k)
            pairs = named(indexing, instructions)
            if n >= INDICES.get(root.opcode, 99) and not (root.opcode == "scatter" and n > len(root.operands) // 2):
                continue  # a change of where is not a change of what
            assert reached[k] <= pairs, (n, k, indexing.map)
            if n not in TOO_MANY.get(root.opcode, ()):
                assert reached[k] == pairs, (n, k, indexing.map)
            assert_turned_round(root, n, k, indexing.map)


def assert_turned_round(i: Instruction, n: int, output: int, m: IndexingMap) -> None:
    """Both directions name the same pairs, whatever the values of runtime variables."""
    back = input_to_output(i, n, output)
    assert back is not None, (i.opcode, n, m)
    assert {(x, d) for d, x in any_pairs(m)} == any_pairs(back), (m, back)


def any_pairs(m: IndexingMap) -> Pairs:
    found = set()
    for point in product(*(range(v.lo, v.hi + 1) for v in m.variables)):
        dims, syms, rts = point[: len(m.dims)], point[len(m.dims) :][: len(m.syms)], point[len(m.dims) + len(m.syms) :]
        if m.contains(dims, syms, rts):
            found.add((dims, m.evaluate(dims, syms, rts)))
    return found


@pytest.mark.parametrize("name", CASES)
def test_cases(name: str) -> None:
    line, shapes, given = CASES[name]
    check(module(line, *shapes), given)


def test_every_op_has_maps_or_a_reason() -> None:
    for op in all_ops():
        assert not (op.name in WITHOUT_MAP and op.name in BUILDERS), op.name
        m = text.parse(example(op.name))
        root = m.entry.root
        if op.name in WITHOUT_MAP:
            found = [
                operand_indexing(i, n)
                for i in m.entry.instructions
                if i.opcode == op.name
                for n in range(len(i.operands))
            ]
            assert not any(found), op.name
            continue
        arrays = [n for n, o in enumerate(root.operands) if o.shape.is_array]
        assert root.opcode == op.name and arrays
        for n in arrays:
            assert operand_indexing(root, n) is not None or (op.name, n) in {("set-dimension-size", 1)}, (op.name, n)


@pytest.mark.parametrize(
    "opcode", [o.name for o in all_ops() if o.name not in {*WITHOUT_MAP, "set-dimension-size"} and not o.is_elementwise]
)
def test_examples(opcode: str) -> None:
    given = {"gather": {1: [[2], [0]]}, "scatter": {1: [[2], [0]]}, "rng": {1: 9}}
    check(text.parse(example(opcode)), given.get(opcode, {}))


def test_elementwise_ops() -> None:
    for op in all_ops():
        if op.is_elementwise and op.name != "clamp":
            root = text.parse(example(op.name)).entry.root
            for n in range(len(root.operands)):
                m = output_to_input(root, n)
                assert m is not None and m == IndexingMap.identity(root.shape.dims) == input_to_output(root, n), op.name


@pytest.mark.parametrize(
    ("name", "n", "forward", "backward"),
    [
        (
            "bitcast",
            0,
            "(d0, d1) -> ((d0 + d1 * 3) floordiv 4, (d0 + d1 * 3) mod 4), domain: d0 in [0, 2], d1 in [0, 7]",
            "(d0, d1) -> ((d0 * 4 + d1) mod 3, (d0 * 4 + d1) floordiv 3), domain: d0 in [0, 5], d1 in [0, 3]",
        ),
        (
            "slice",
            0,
            "(d0, d1) -> (d0 + 1, d1 * 2), domain: d0 in [0, 1], d1 in [0, 2]",
            "(d0, d1) -> (d0 - 1, d1 floordiv 2), domain: d0 in [1, 2], d1 in [0, 4], d1 mod 2 in [0, 0]",
        ),
        (
            "pad",
            0,
            "(d0, d1) -> (d0 - 1, d1 floordiv 2), domain: d0 in [1, 3], d1 in [0, 6], d1 mod 2 in [0, 0]",
            "(d0, d1) -> (d0 + 1, d1 * 2), domain: d0 in [0, 2], d1 in [0, 3]",
        ),
        (
            "reduce-window",
            0,
            "(d0, d1)[s0, s1] -> (d0 * 2 + s0 - 1, d1 + s1 - 1), domain: d0 in [0, 3], d1 in [0, 3], s0 in [0, 1], "
            "s1 in [0, 2], d0 * 2 + s0 in [1, 6], d1 + s1 in [1, 4]",
            "(d0, d1)[s0] -> ((d0 + 1) floordiv 2, d1 - s0 + 1), domain: d0 in [0, 5], d1 in [0, 3], s0 in [0, 2], "
            "d1 - s0 in [-1, 2]",
        ),
        (
            "dot",
            0,
            "(d0, d1, d2)[s0] -> (d0, d1, s0), domain: d0 in [0, 1], d1 in [0, 2], d2 in [0, 4], s0 in [0, 3]",
            "(d0, d1, d2)[s0] -> (d0, d1, s0), domain: d0 in [0, 1], d1 in [0, 2], d2 in [0, 3], s0 in [0, 4]",
        ),
        (
            "dynamic-slice",
            0,
            "(d0, d1){rt0, rt1} -> (d0 + rt0, d1 + rt1), domain: d0 in [0, 1], d1 in [0, 2], rt0 in [0, 3], rt1 in [0, 6]",
            "(d0, d1){rt0, rt1} -> (d0 - rt0, d1 - rt1), domain: d0 in [0, 4], d1 in [0, 8], rt0 in [0, 3], rt1 in [0, 6], "
            "d0 - rt0 in [0, 1], d1 - rt1 in [0, 2]",
        ),
        (
            "dynamic-update-slice",
            1,
            "(d0, d1){rt0, rt1} -> (d0 - rt0, d1 - rt1), domain: d0 in [0, 4], d1 in [0, 5], rt0 in [0, 3], rt1 in [0, 3], "
            "d0 - rt0 in [0, 1], d1 - rt1 in [0, 2]",
            "(d0, d1){rt0, rt1} -> (d0 + rt0, d1 + rt1), domain: d0 in [0, 1], d1 in [0, 2], rt0 in [0, 3], rt1 in [0, 3]",
        ),
        (
            "scatter batching",
            2,
            "(d0, d1)[s0]{rt0} -> (d0, s0), domain: d0 in [0, 1], d1 in [0, 4], s0 in [0, 2], rt0 in [0, 4], d1 - rt0 in [0, 0]",
            "(d0, d1){rt0} -> (d0, rt0), domain: d0 in [0, 1], d1 in [0, 2], rt0 in [0, 4]",
        ),
    ],
)
def test_texts(name: str, n: int, forward: str, backward: str) -> None:
    line, shapes, _ = CASES[name]
    root = module(line, *shapes).entry.root
    there, back = output_to_input(root, n), input_to_output(root, n)
    assert there is not None and format_map(there) == forward
    assert back is not None and format_map(back) == backward


def test_known_starts_are_no_variables() -> None:
    """A constant start is clamped, an iota's is its place, and two reads of one value are one variable."""
    source = """HloModule m
ENTRY e {
  p = f32[8,9] parameter(0)
  n = s32[] parameter(1)
  c = s32[] constant(7)
  a = f32[3,2] dynamic-slice(p, c, n), dynamic_slice_sizes={3,2}
  b = f32[8,2] dynamic-slice(p, n, n), dynamic_slice_sizes={8,2}
  q = f32[8,8] slice(p), slice={[0:8], [0:8]}
  w = f32[2,2] dynamic-slice(q, n, n), dynamic_slice_sizes={2,2}
  i = s32[6,1] iota(), iota_dimension=0
  k = s32[6] reshape(i)
  g = f32[6,9] gather(p, k), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,9}
  ROOT r = (f32[3,2], f32[8,2], f32[2,2], f32[6,9]) tuple(a, b, w, g)
}
"""
    a, b, w, g = text.parse(source).entry.root.operands
    want = {
        a: "(d0, d1){rt0} -> (d0 + 5, d1 + rt0), domain: d0 in [0, 2], d1 in [0, 1], rt0 in [0, 7]",
        b: "(d0, d1){rt0} -> (d0, d1 + rt0), domain: d0 in [0, 7], d1 in [0, 1], rt0 in [0, 7]",
        w: "(d0, d1){rt0} -> (d0 + rt0, d1 + rt0), domain: d0 in [0, 1], d1 in [0, 1], rt0 in [0, 6]",
        g: "(d0, d1) -> (d0, d1), domain: d0 in [0, 5], d1 in [0, 8]",
    }
    assert {i: str(output_to_input(i, 0)) for i in want} == want


def test_what_there_is_not() -> None:
    root = module('f32[8] custom-call(p0), custom_call_target="x"', "f32[8]").entry.root
    assert output_to_input(root, 0) is None and input_to_output(root, 0) is None
    root = module("f32[8] negate(p0)", "f32[8]").entry.root
    assert output_to_input(root, 1) is None and output_to_input(root, -1) is None
    assert output_to_input(module("(f32[8]) tuple(p0)", "f32[8]").entry.root, 0, 1) is None
