"""Shardings of arrays by factors."""

from __future__ import annotations

import pytest

from heron.analysis.sharding.projection import is_exact, joined, project
from heron.analysis.sharding.rule import parse
from heron.hlo.sharding.atoms import AtomicMesh, TensorSharding
from heron.hlo.sharding.mesh import Mesh

#: atoms: x is 0, y is 1 and 2, z is 3 (of size 3)
MESH = AtomicMesh.of(Mesh((("x", 2), ("y", 4), ("z", 3))))
DOT = parse("([i, k], [k, j])->([i, j]) {i=8, j=16, k=32} reduction={k}")


@pytest.mark.parametrize(
    ("sizes", "axes", "factors", "overflow"),
    [
        ((8,), (0, 1), ((0, 1),), ()),
        ((4, 8), (0, 1, 2), ((0, 1), (2,)), ()),
        ((4, 8), (0,), ((0,), ()), ()),
        # the minor factor may be uneven, a major one not
        ((8,), (3,), ((3,),), ()),
        ((4, 8), (3,), ((), ()), (3,)),
        ((2, 8), (0, 3), ((0,), (3,)), ()),
        # a single step is split no further
        ((2,), (0, 1), ((0,),), (1,)),
        ((3,), (3, 0), ((3,),), (0,)),
        # factors of size 1 take nothing
        ((1, 4), (0,), ((), (0,)), ()),
        ((1,), (0,), ((),), (0,)),
    ],
)
def test_atoms_go_to_factors(sizes, axes, factors, overflow):
    names = "ijk"[: len(sizes)]
    text = ", ".join(f"{n}={s}" for n, s in zip(names, sizes, strict=True))
    rule = parse(f"([{names}])->([{', '.join(names)}]) {{{text}}}")
    found = project(rule, 0, TensorSharding.closed([axes]), MESH)
    assert found.axes == factors
    assert found.overflow == (overflow,)
    assert joined(rule.operands[0], found.axes, found.overflow) == (axes,)


def test_arrays_are_numbered_through_operands_and_results():
    assert project(DOT, 1, TensorSharding.closed([(0,), (1,)]), MESH).axes == ((), (1,), (0,))
    assert project(DOT, 2, TensorSharding.closed([(0,), (1,)]), MESH).axes == ((0,), (1,), ())
    assert joined(DOT.results[0], ((0,), (1, 2), (3,))) == ((0,), (1, 2))


@pytest.mark.parametrize(
    ("axes", "exact"),
    [
        (((), ()), True),
        (((0,), ()), True),
        (((0, 1), (2,)), True),
        # the second factor before the first is full
        (((0,), (2,)), False),
        # uneven parts of the merged dimension are no parts of its factors
        (((3,), ()), False),
        (((), (3,)), False),
    ],
)
def test_exact_parts(axes, exact):
    assert is_exact(parse("([i, j])->([ij]) {i=4, j=8}"), axes, MESH) == exact


def test_uneven_parts_of_one_factor_are_exact():
    assert is_exact(DOT, ((3,), (), (3,)), MESH)
