"""Operand maps against what the ops do: each map is checked point by point on an array that holds its own positions."""

from __future__ import annotations

import numpy as np
import pytest

from heron.analysis.indexing.hlo_inverse import computation_maps, input_to_output
from heron.analysis.indexing.hlo_maps import output_to_input, reshape_index
from heron.analysis.indexing.map import IndexingMap
from heron.hlo import text
from heron.hlo.evaluator import Evaluator
from heron.hlo.instruction import Instruction


def instruction(line: str, *parameters: str) -> Instruction:
    """The instruction `line`, on parameters of these shapes."""
    entry = [f"  p{n} = {shape} parameter({n})" for n, shape in enumerate(parameters)]
    computations = "add { a = s32[] parameter(0)\n b = s32[] parameter(1)\n ROOT c = s32[] add(a, b) }"
    source = "\n".join(["HloModule m", computations, "ENTRY e {", *entry, f"  ROOT r = {line}", "}", ""])
    return text.parse(source).entry.root


MOVES = {
    "broadcast": ("s32[4,3,2] broadcast(p0), dimensions={2,0}", "s32[2,4]"),
    "transpose": ("s32[4,2,3] transpose(p0), dimensions={2,0,1}", "s32[2,3,4]"),
    "slice": ("s32[2,2] slice(p0), slice={[1:3], [0:4:2]}", "s32[3,5]"),
    "reverse": ("s32[3,4] reverse(p0), dimensions={1}", "s32[3,4]"),
    "reshape": ("s32[6,2,10] reshape(p0)", "s32[2,6,5,2]"),
    "reshape of ones": ("s32[1,8,1,3] reshape(p0)", "s32[24]"),
    "reshape mixed": ("s32[4,9,5] reshape(p0)", "s32[6,6,5]"),
    "negate": ("s32[3,4] negate(p0)", "s32[3,4]"),
}


@pytest.mark.parametrize("name", MOVES)
def test_moves(name: str) -> None:
    line, shape = MOVES[name]
    i = instruction(line, shape)
    dims = i.operands[0].shape.dims
    positions = np.arange(np.prod(dims), dtype=np.int32).reshape(dims)
    result = Evaluator().run_instruction(i, [positions])
    result = -result if i.opcode == "negate" else result
    m = output_to_input(i, 0)
    assert m is not None and not m.constraints and not m.syms
    for index in np.ndindex(*i.shape.dims):
        assert result[index] == positions[m.evaluate(index)], (m, index)
    back = input_to_output(i, 0)
    assert back is not None
    assert_inverse(m, back, dims)


def assert_inverse(m: IndexingMap, back: IndexingMap, dims: tuple[int, ...]) -> None:
    """The pairs (result index, operand index) of both maps are the same."""
    forward = {(d, m.evaluate(d, s)) for d, s in m.points()}
    backward = {(back.evaluate(d, s), d) for d, s in back.points()}
    assert forward == backward, (m, back)


DOT = (
    "s32[2,3,5] dot(p0, p1), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}"
)
REGIONS = {
    "pad": ("s32[5,8] pad(p0, p1), padding=1_1x0_1_1", ("s32[3,4]", "s32[]"), 0),
    "pad negative": ("s32[2,6] pad(p0, p1), padding=-1_0x1_1", ("s32[3,4]", "s32[]"), 0),
    "concatenate 0": ("s32[3,7] concatenate(p0, p1), dimensions={1}", ("s32[3,4]", "s32[3,3]"), 0),
    "concatenate 1": ("s32[3,7] concatenate(p0, p1), dimensions={1}", ("s32[3,4]", "s32[3,3]"), 1),
    "reduce": ("s32[3,2] reduce(p0, p1), dimensions={1}, to_apply=add", ("s32[3,4,2]", "s32[]"), 0),
    "dot lhs": (
        DOT,
        ("s32[2,3,4]", "s32[2,4,5]"),
        0,
    ),
    "dot rhs": (
        DOT,
        ("s32[2,3,4]", "s32[2,4,5]"),
        1,
    ),
}


@pytest.mark.parametrize("name", REGIONS)
def test_regions(name: str) -> None:
    """An operand element reaches a result element exactly when changing it changes the result."""
    line, shapes, n = REGIONS[name]
    i = instruction(line, *shapes)
    values = [np.zeros(o.shape.dims, np.int32) for o in i.operands]
    for k, v in enumerate(values):
        v[...] = 0 if k == n or o_is_scalar(i, k) else 1
    m, back = output_to_input(i, n), input_to_output(i, n)
    assert m is not None and back is not None
    reached = set()
    for source in np.ndindex(*i.operands[n].shape.dims):
        values[n][source] = 1
        for target in zip(*np.nonzero(Evaluator().run_instruction(i, values) - base(i, values, n)), strict=True):
            reached.add((tuple(map(int, target)), source))
        values[n][source] = 0
    assert {(d, m.evaluate(d, s)) for d, s in m.points()} == reached, m
    assert_inverse(m, back, i.operands[n].shape.dims)


def o_is_scalar(i: Instruction, k: int) -> bool:
    return i.operands[k].shape.rank == 0


def base(i: Instruction, values: list[np.ndarray], n: int) -> np.ndarray:
    return Evaluator().run_instruction(i, [np.zeros_like(v) if k == n else v for k, v in enumerate(values)])


def test_reduce_window_and_convolution() -> None:
    i = instruction(
        "s32[4,4] reduce-window(p0, p1), window={size=2x3 stride=2x1 pad=1_1x1_1}, to_apply=add", "s32[6,4]", "s32[]"
    )
    m = output_to_input(i, 0)
    assert repr(m) == (
        "(d0, d1)[s0, s1] -> (d0 * 2 + s0 - 1, d1 + s1 - 1), domain: d0 in [0, 3], d1 in [0, 3], s0 in [0, 1], "
        "s1 in [0, 2], d0 * 2 + s0 in [1, 6], d1 + s1 in [1, 4]"
    )


def test_runtime_maps() -> None:
    i = instruction("s32[2,3] dynamic-slice(p0, p1, p2), dynamic_slice_sizes={2,3}", "s32[5,9]", "s32[]", "s32[]")
    assert repr(output_to_input(i, 0)) == (
        "(d0, d1){rt0, rt1} -> (d0 + rt0, d1 + rt1), domain: d0 in [0, 1], d1 in [0, 2], rt0 in [0, 3], rt1 in [0, 6]"
    )
    i = instruction(
        "s32[4,1,3] gather(p0, p1), offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0}, "
        "index_vector_dim=1, slice_sizes={1,3}",
        "s32[10,3]",
        "s32[4,1]",
    )
    assert repr(output_to_input(i, 0)) == (
        "(d0, d1, d2){rt0} -> (rt0, d2), domain: d0 in [0, 3], d1 in [0, 0], d2 in [0, 2], rt0 in [0, 9]"
    )


def test_reshape_divides_only_where_it_must() -> None:
    from heron.analysis.indexing.expr import dims

    assert [str(e) for e in reshape_index(dims(3), (7, 6, 4), (7, 24))] == ["d0", "d1 * 4 + d2"]
    assert [str(e) for e in reshape_index(dims(2), (7, 24), (7, 6, 4))] == ["d0", "d1 floordiv 4", "d1 mod 4"]


def test_fusion_maps_compose() -> None:
    source = """HloModule m
ENTRY e {
  p = f32[6,4] parameter(0)
  s = f32[6,2] slice(p), slice={[0:6], [0:4:2]}
  t = f32[2,6] transpose(s), dimensions={1,0}
  r = f32[12] reshape(t)
  ROOT a = f32[12] add(r, r)
}
"""
    computation = text.parse(source).entry
    maps = computation_maps(computation)
    (found,) = maps[computation.parameters[0]]
    assert repr(found) == "(d0) -> (d0 mod 6, (d0 floordiv 6) * 2), domain: d0 in [0, 11]"


def test_unknown_ops_have_no_map() -> None:
    i = instruction('s32[8] custom-call(p0), custom_call_target="x"', "s32[8]")
    assert output_to_input(i, 0) is None and input_to_output(i, 0) is None
