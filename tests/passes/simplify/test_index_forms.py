"""gather-simplifier, scatter-simplifier and dot-decomposer on all arrangements of dimensions, against the evaluator."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest

from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.hlo.verifier import verify
from heron.options import Options
from heron.passes.expand.dot_decomposer import is_canonical
from heron.passes.framework import registry
from heron.passes.framework.context import PassContext
from heron.passes.simplify import gather_simplifier, scatter_simplifier

ADD = "add {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b)\n}\n"


def run(passes: str, body: str, calls: str = "") -> Module:
    module = parse(f"HloModule m\n\n{calls}\nENTRY main {{\n{body}\n}}\n")
    verify(module)
    ctx = PassContext(Options(check="values"))
    for name in passes.split():
        ctx.run_pass(registry.get(name), module)
    verify(module)
    return module


def dims(numbers: object) -> str:
    return "{" + ",".join(map(str, numbers)) + "}"  # type: ignore[call-overload]


def shape(sizes: object) -> str:
    return "[" + ",".join(map(str, sizes)) + "]"  # type: ignore[call-overload]


@pytest.mark.parametrize("vector", [0, 1, 2])
@pytest.mark.parametrize("offsets", [(0,), (1,), (2,)])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_gathers(vector: int, offsets: tuple[int, ...], order: tuple[int, int]) -> None:
    indices = [3, 2]
    indices.insert(vector, 2)
    result = [3, 2]
    result.insert(offsets[0], 4)
    module = run(
        "gather-simplifier algebraic-simplifier",
        f"x = f32[5,6,4] parameter(0)\nn = s32{shape(indices)} parameter(1)\n"
        f"ROOT r = f32{shape(result)} gather(x, n), offset_dims={dims(offsets)}, collapsed_slice_dims={{0,1}}, "
        f"start_index_map={dims(order)}, index_vector_dim={vector}, slice_sizes={{1,1,4}}",
    )
    assert all(gather_simplifier.is_simple(i) for i in module.instructions() if i.opcode == "gather")


@pytest.mark.parametrize(("implied", "batch"), list(product([True, False], [0, 1])))
def test_batched_gathers(implied: bool, batch: int) -> None:
    """The operand's dimension 0 goes along with one of the dimensions of the indices."""
    indices = [3, 2] if batch == 0 else [2, 3]
    run(
        "gather-simplifier",
        f"x = f32[3,6,4] parameter(0)\nn = s32{shape(indices if implied else [*indices, 1])} parameter(1)\n"
        f"ROOT r = f32{shape([*indices, 2])} gather(x, n), offset_dims={{2}}, collapsed_slice_dims={{1}}, "
        f"start_index_map={{1}}, operand_batching_dims={{0}}, start_indices_batching_dims={{{batch}}}, "
        "index_vector_dim=2, slice_sizes={1,1,2}",
    )


@pytest.mark.parametrize(
    ("passes", "index", "rows"),
    [
        *(("gather-simplifier", t, n) for t, n in (("s8", 131), ("u8", 261), ("s16", 32771), ("u16", 65539))),
        *(
            ("gather-expander", t, n) for t, n in (("s8", 131), ("u8", 261))
        ),  # a loop: many rows take the evaluator long
    ],
)
def test_batches_longer_than_the_indices_count(passes: str, index: str, rows: int) -> None:
    """Positions along the batch stand beside the indices: in the type of those, the last ones would be others."""
    run(
        passes,
        f"x = f32[{rows},3] parameter(0)\nn = {index}[{rows},1] parameter(1)\n"
        f"ROOT r = f32[{rows},1] gather(x, n), offset_dims={{1}}, collapsed_slice_dims={{}}, start_index_map={{1}}, "
        "operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=1, slice_sizes={1,1}",
    )


def test_gather_of_one_window() -> None:
    module = run(
        "gather-simplifier algebraic-simplifier",
        "x = f32[5,6] parameter(0)\nn = s32[2] parameter(1)\n"
        "ROOT r = f32[3] gather(x, n), offset_dims={0}, collapsed_slice_dims={1}, start_index_map={1,0}, "
        "index_vector_dim=0, slice_sizes={3,1}",
    )
    assert {"dynamic-slice"} <= {i.opcode for i in module.instructions()} and "gather" not in str(module)


@pytest.mark.parametrize("vector", [0, 1])
@pytest.mark.parametrize("window", [0, 1])
def test_scatters(vector: int, window: int) -> None:
    indices = [3]
    indices.insert(vector, 1)
    updates = [3]
    updates.insert(window, 4)
    module = run(
        "scatter-simplifier",
        f"x = f32[5,4] parameter(0)\nn = s32{shape(indices)} parameter(1)\nu = f32{shape(updates)} parameter(2)\n"
        f"ROOT r = f32[5,4] scatter(x, n, u), update_window_dims={{{window}}}, inserted_window_dims={{0}}, "
        f"scatter_dims_to_operand_dims={{0}}, index_vector_dim={vector}, to_apply=add",
        ADD,
    )
    assert all(scatter_simplifier.is_simple(i) for i in module.instructions() if i.opcode == "scatter")


def test_batched_scatter() -> None:
    run(
        "scatter-simplifier",
        "x = f32[3,8] parameter(0)\nn = s32[3,2,1] parameter(1)\nu = f32[3,2] parameter(2)\n"
        "ROOT r = f32[3,8] scatter(x, n, u), update_window_dims={}, inserted_window_dims={1}, "
        "scatter_dims_to_operand_dims={1}, input_batching_dims={0}, scatter_indices_batching_dims={0}, "
        "index_vector_dim=2, to_apply=add",
        ADD,
    )


@pytest.mark.parametrize("place", [-3, 0, 2, 6, 7, 100])
@pytest.mark.parametrize("combine", ["s = f32[] add(a, b)", "s = f32[] subtract(a, b)"])
def test_scatter_of_one_window_ignores_places_outside(place: int, combine: str) -> None:
    calls = ADD.replace("s = f32[] add(a, b)", combine)
    module = run(
        "algebraic-simplifier constant-folding algebraic-simplifier dce",
        f"x = f32[8,2] parameter(0)\nn = s32[1] constant({{{place}}})\nu = f32[2,2] parameter(1)\n"
        "ROOT r = f32[8,2] scatter(x, n, u), update_window_dims={0,1}, inserted_window_dims={}, "
        "scatter_dims_to_operand_dims={0}, index_vector_dim=0, to_apply=add",
        calls,
    )
    assert ("scatter" in str(module)) == ("subtract" in combine)


_ARRANGEMENTS = list(permutations(range(4)))


@pytest.mark.parametrize("lhs", range(0, 24, 5))
@pytest.mark.parametrize("rhs", range(0, 24, 7))
def test_dots(lhs: int, rhs: int) -> None:
    """Two summed, one batch and one free dimension, in every fifth and seventh order."""
    p, q = _ARRANGEMENTS[lhs], _ARRANGEMENTS[rhs]
    left, right = [2, 3, 4, 5], [2, 3, 4, 6]  # batch, summed, summed, free
    module = run(
        "dot-decomposer algebraic-simplifier transpose-folding",
        f"x = f32{shape(left[d] for d in p)} parameter(0)\ny = f32{shape(right[d] for d in q)} parameter(1)\n"
        "ROOT r = f32[2,5,6] dot(x, y), "
        f"lhs_batch_dims={{{p.index(0)}}}, lhs_contracting_dims={dims([p.index(1), p.index(2)])}, "
        f"rhs_batch_dims={{{q.index(0)}}}, rhs_contracting_dims={dims([q.index(1), q.index(2)])}",
    )
    assert all(is_canonical(i) for i in module.instructions() if i.opcode == "dot")


@pytest.mark.parametrize("summed", [(), (0,), (0, 1)])
def test_dots_without_free_or_summed_dimensions(summed: tuple[int, ...]) -> None:
    result = [*np.delete([3, 4], summed), *np.delete([3, 4], summed)]
    run(
        "dot-decomposer algebraic-simplifier batch-dot-simplification",
        "x = f32[3,4] parameter(0)\ny = f32[3,4] parameter(1)\n"
        f"ROOT r = f32{shape(result)} dot(x, y), lhs_contracting_dims={dims(summed)}, "
        f"rhs_contracting_dims={dims(summed)}",
    )


def test_an_operand_in_order_is_not_transposed() -> None:
    module = run(
        "dot-decomposer",
        "x = f32[2,3,4] parameter(0)\ny = f32[3,4,5] parameter(1)\n"
        "ROOT r = f32[2,5] dot(x, y), lhs_contracting_dims={1,2}, rhs_contracting_dims={0,1}",
    )
    assert "transpose" not in str(module)


@pytest.mark.parametrize("vector", [0, 1])
@pytest.mark.parametrize("sizes", [(2, 3), (3, 3)])
@pytest.mark.parametrize(("start", "limit"), [(0, 7), (0, 4), (0, 0), (2, 6)])
def test_scatters_that_meet_others_and_slices(vector: int, sizes: tuple[int, int], start: int, limit: int) -> None:
    """Two scatters onto one array, of which the first rows are taken; some places lie beyond them or nowhere."""
    places = [f"{{{', '.join(str(n) for n in row)}}}" for row in ([-1, 5, 2][: sizes[0]], [4, 2, 9][: sizes[1]])]
    if vector == 1:
        places = ["{ " + ", ".join(f"{{{n}}}" for n in row[1:-1].split(", ")) + " }" for row in places]
    else:
        places = [f"{{ {row} }}" for row in places]
    shapes = [shape([n, 1] if vector else [1, n]) for n in sizes]
    attrs = (
        "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
        f"index_vector_dim={vector}, to_apply=add"
    )
    module = run(
        "algebraic-simplifier",
        f"x = s32[7,4] parameter(0)\nu = s32[{sizes[0]},4] parameter(1)\nv = s32[{sizes[1]},4] parameter(2)\n"
        f"m = s32{shapes[0]} constant({places[0]})\nn = s32{shapes[1]} constant({places[1]})\n"
        f"s = s32[7,4] scatter(x, m, u), {attrs}\nt = s32[7,4] scatter(s, n, v), {attrs}\n"
        f"ROOT r = s32[{limit - start},4] slice(t), slice={{[{start}:{limit}], [0:4]}}",
        ADD.replace("f32", "s32"),
    )
    if limit:
        assert sum(i.opcode == "scatter" for i in module.instructions()) == 1


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("kept", [(0, 1), (0, 2), (0,), (0, 1, 2)])
def test_dots_of_repeated_and_summed(side: int, kept: tuple[int, ...]) -> None:
    """Batch, two summed dimensions, a free one: one side repeated, the product summed over its free dimensions."""
    sizes = [2, 3, 4]
    lines = [
        f"x = s32{shape(sizes[d] for d in kept)} parameter(0)",
        "y = s32[2,3,4,5] parameter(1)",
        "zero = s32[] constant(0)",
        f"r = s32[2,3,4] broadcast(x), dimensions={dims(kept)}",
        f"d = s32[2,5] dot({'r, y' if side else 'y, r'}), lhs_batch_dims={{0}}, lhs_contracting_dims={{1,2}}, "
        "rhs_batch_dims={0}, rhs_contracting_dims={1,2}",
        "ROOT s = s32[2] reduce(d, zero), dimensions={1}, to_apply=add",
    ]
    module = run("algebraic-simplifier dce", "\n".join(lines), ADD.replace("f32", "s32"))
    assert len(module.entry.root.shape.dims) == 1
    assert not any(i.opcode == "broadcast" and i.shape.rank == 3 for i in module.entry.instructions)


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("reversal", [0, 1])
def test_convolutions_the_other_way_round(size: int, reversal: int) -> None:
    """Windows larger than the input, moved, padded and spread in every way."""
    fired = 0
    for window, low, high, stride, base, spread in product((3, 5), (0, 2), (1, 4), (1, 2), (1, 2), (1, 2)):
        positions = (size - 1) * base + low + high - (window - 1) * spread
        if positions < 0:
            continue
        module = run(
            "algebraic-simplifier",
            f"x = s32[2,{size},3] parameter(0)\nk = s32[{window},3,4] parameter(1)\n"
            f"ROOT r = s32[2,{positions // stride + 1},4] convolution(x, k), dim_labels=b0f_0io->b0f, window={{"
            f"size={window} stride={stride} pad={low}_{high} "
            f"lhs_dilate={base} rhs_dilate={spread} rhs_reversal={reversal}}}",
        )
        fired += f"size={size}" in str(module)
    assert fired > 20
