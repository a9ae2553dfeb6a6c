"""The shardings that ops are computed in, and the bytes that reshards send."""

from __future__ import annotations

import pytest

import heron
from heron.analysis.sharding.choice import Choice, compute_shardings
from heron.analysis.sharding.cost import reshard_bytes
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import row_major
from heron.hlo.ir.types import F32
from heron.hlo.sharding.atoms import AtomicMesh, TensorSharding
from heron.hlo.sharding.mesh import Mesh

#: atoms: x is 0, y is 1 and 2
MESH = AtomicMesh.of(Mesh((("x", 2), ("y", 4))))
X, Y = (0,), (1, 2)


def split(*dims: tuple[int, ...], sums: tuple[int, ...] = ()) -> TensorSharding:
    return TensorSharding.closed(dims, sums)


def root(lines: str) -> Instruction:
    return heron.parse(f"HloModule m\n\nENTRY e {{\n{lines}\n}}\n").entry.root


def dims(choice: Choice) -> tuple[list[tuple[tuple[int, ...], ...]], tuple[tuple[int, ...], ...]]:
    """The dimensions of all operands and of the first result."""
    return [s.dims for s in choice.operands], choice.results[0].dims


DOT = root("""a = f32[64,128] parameter(0)
b = f32[128,256] parameter(1)
ROOT d = f32[64,256] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}""")
ADD = root("""a = f32[64,256] parameter(0)
b = f32[64,256] parameter(1)
ROOT s = f32[64,256] add(a, b)""")


# -- bytes -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("source", "target", "sent"),
    [
        (split(X, ()), split(X, ()), 0),
        # whole to split: everyone has it
        (split((), ()), split(X, Y), 0),
        # gathers: each device gets what it lacks
        (split(X, ()), split((), ()), 32 * 64 * 4),
        (split((), Y), split((), ()), 3 * 64 * 16 * 4),
        # all-to-all of one eighth
        (split(X, Y), split((*X, *Y), ()), 32 * 16 * 4 * 3 / 4),
        # neighbours change places
        (split((0, 1), ()), split((1, 0), ()), 16 * 64 * 4),
        # sums: twice the share, or once when the result is split
        (split((), (), sums=X), split((), ()), 64 * 64 * 4),
        (split((), (), sums=X), split(X, ()), 64 * 64 * 4 / 2),
        (split((), (), sums=X), split((), (), sums=X), 0),
    ],
)
def test_bytes_of_a_reshard(source: TensorSharding, target: TensorSharding, sent: float):
    assert reshard_bytes(MESH, row_major(F32, 64, 64), source, target) == sent


def test_parts_of_uneven_arrays_count_as_they_are_kept():
    assert reshard_bytes(MESH, row_major(F32, 5), split(Y), split(())) == 3 * 2 * 4


# -- what fits is left alone -----------------------------------------------------------------------------------------
def test_matching_shardings_cost_nothing():
    found = compute_shardings(DOT, [split(X, ()), split((), Y)], [split(X, Y)], MESH)
    assert dims(found) == ([(X, ()), ((), Y)], (X, Y))
    assert not any(found.sent)
    assert not found.reduced


def test_whole_operands_are_cut_for_a_split_result():
    found = compute_shardings(DOT, [split((), ()), split((), ())], [split(X, Y)], MESH)
    assert dims(found) == ([(X, ()), ((), Y)], (X, Y))


def test_an_op_without_a_rule_is_computed_whole():
    i = root('a = f32[8] parameter(0)\nROOT d = f32[8] custom-call(a), custom_call_target="who"')
    found = compute_shardings(i, [split(X)], [split(X)], MESH)
    assert dims(found) == ([((),)], ((),))


# -- products --------------------------------------------------------------------------------------------------------
def test_contracted_parts_give_partial_sums():
    found = compute_shardings(DOT, [split((), Y), split(Y, ())], [split((), ())], MESH)
    assert dims(found) == ([((), Y), (Y, ())], ((), ()))
    assert found.results[0].unreduced == set(Y)
    assert (found.reduced, found.reducer) == (Y, "add")


def test_small_weights_are_gathered_for_a_large_batch():
    i = root("""a = f32[4096,32] parameter(0)
b = f32[32,64] parameter(1)
ROOT d = f32[4096,64] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}""")
    found = compute_shardings(i, [split(X, ()), split(X, ())], [split(X, ())], MESH)
    assert dims(found) == ([(X, ()), ((), ())], (X, ()))


def test_large_weights_stay_where_they_are():
    i = root("""a = f32[4,4096] parameter(0)
b = f32[4096,8] parameter(1)
ROOT d = f32[4,8] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}""")
    found = compute_shardings(i, [split(X, ()), split(X, ())], [split(X, ())], MESH)
    assert dims(found) == ([((), X), (X, ())], ((), ()))
    assert found.results[0].unreduced == set(X)


# -- partial sums ----------------------------------------------------------------------------------------------------
def test_two_partial_sums_are_added_before_they_are_reduced():
    sums = split((), (), sums=X)
    found = compute_shardings(ADD, [sums, sums], [split((), ())], MESH)
    assert found.operands == (sums, sums)
    assert found.results == (sums,)
    assert found.reduced == X


def test_a_partial_sum_and_a_whole_value_are_not_added():
    found = compute_shardings(ADD, [split((), (), sums=X), split((), ())], [split(X, ())], MESH)
    assert dims(found) == ([(X, ()), (X, ())], (X, ()))
    assert not any(s.unreduced for s in found.operands)


def test_a_partial_sum_with_two_users_is_reduced_once():
    i = root("""a = f32[8,8] parameter(0)
n = f32[8,8] negate(a)
ROOT s = (f32[8,8], f32[8,8]) tuple(n, a)""").operands[0]
    found = compute_shardings(i, [split((), (), sums=X)], [split((), ())], MESH)
    assert not found.operands[0].unreduced


@pytest.mark.parametrize(
    ("line", "stays"),
    [
        ("negate(a)", True),
        ("abs(a)", False),
        ("transpose(a), dimensions={1,0}", True),
        # times an infinity, summands of opposite signs are no sum; an integer is none
        ("multiply(a, b)", False),
        ("multiply(a, half)", True),
        ("multiply(a, endless)", False),
        ("divide(a, b)", False),
        ("maximum(a, b)", False),
        ("dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}", False),
        ("select(p, a, a)", True),
    ],
)
def test_linear_ops_keep_partial_sums(line: str, stays: bool):
    given = "a = f32[8,8] parameter(0)\nb = f32[8,8] parameter(1)\np = pred[8,8] parameter(2)\n"
    given += "c = f32[] constant(0.5)\nhalf = f32[8,8] broadcast(c), dimensions={}\n"
    given += "d = f32[] constant(inf)\nendless = f32[8,8] broadcast(d), dimensions={}\n"
    i = root(f"{given}ROOT r = f32[8,8] {line}")
    sums = [split((), (), sums=X if o.name == "a" else ()) for o in i.operands]
    found = compute_shardings(i, sums, [split((), ())], MESH)
    assert bool(found.results[0].unreduced) == stays
    assert not compute_shardings(i, sums, [split((), ())], MESH, keeps_sums=False).operands[0].unreduced


def test_products_of_integers_keep_partial_sums():
    i = root("a = s32[8] parameter(0)\nb = s32[8] parameter(1)\nROOT r = s32[8] multiply(a, b)")
    found = compute_shardings(i, [split((), sums=X), split(())], [split(())], MESH)
    assert found.results[0].unreduced == set(X)


def test_sums_over_split_dimensions_carry_on():
    body = "add { x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT s = f32[] add(x, y) }"
    text = f"""HloModule m

{body}

ENTRY e {{
  a = f32[8,6] parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[6] reduce(a, z), dimensions={{0}}, to_apply=add
}}
"""
    i = heron.parse(text).entry.root
    found = compute_shardings(i, [split(Y, (), sums=X), split()], [split(())], MESH)
    assert found.operands[0] == split(Y, (), sums=X)
    assert set(found.reduced) == {0, 1, 2}


# -- dimensions that must be whole -----------------------------------------------------------------------------------
def test_matrices_are_swapped_for_batches():
    i = root("""a = f32[64,64] parameter(0)
ROOT s = f32[64,64] cholesky(a)""")
    found = compute_shardings(i, [split(X, ())], [split(X, ())], MESH)
    assert dims(found) == ([((), ())], ((), ()))
    i = root("""a = f32[64,16,16] parameter(0)
ROOT s = f32[64,16,16] cholesky(a)""")
    found = compute_shardings(i, [split((), X, ())], [split((), X, ())], MESH)
    assert dims(found) == ([(X, (), ())], (X, (), ()))


def test_moving_and_positional_factors_are_split_only_when_asked():
    i = root("a = f32[64] parameter(0)\nROOT r = f32[64] reverse(a), dimensions={0}")
    assert dims(compute_shardings(i, [split(X)], [split(X)], MESH)) == ([((),)], ((),))
    assert dims(compute_shardings(i, [split(X)], [split(X)], MESH, moves=True)) == ([(X,)], (X,))


def test_uneven_parts_are_kept_where_a_dimension_has_one_factor():
    i = root("a = f32[7,2] parameter(0)\nROOT r = f32[14] reshape(a)")
    assert dims(compute_shardings(i, [split(X, ())], [split(X)], MESH)) == ([((), ())], ((),))
    i = root("a = f32[7] parameter(0)\nROOT r = f32[7] negate(a)")
    assert dims(compute_shardings(i, [split(Y)], [split(Y)], MESH)) == ([(Y,)], (Y,))


def test_a_factor_that_results_lack_is_not_split():
    i = root("""a = f32[8] parameter(0)
ROOT r = f32[4] custom-call(a), custom_call_target="who",
  frontend_attributes={xla.sdy.sharding_rule="([i])->([j]) {i=8, j=4}"}""")
    assert dims(compute_shardings(i, [split(X)], [split(())], MESH))[0] == [((),)]
