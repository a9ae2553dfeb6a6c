"""Shardings that are found for parameters."""

from __future__ import annotations

from math import inf

import pytest

import heron
from heron.analysis.sharding.parameters import choose_parameters, splits
from heron.analysis.sharding.program import ProgramShardings
from heron.hlo.ir.shape import row_major
from heron.hlo.ir.types import F32
from heron.hlo.sharding.atoms import AtomicMesh, TensorSharding
from heron.hlo.sharding.mesh import Mesh

#: atoms: x is 0, y is 1 and 2
MESH = AtomicMesh.of(Mesh((("x", 2), ("y", 4))))
X, Y = (0,), (1, 2)
TEXT = """HloModule mlp

ENTRY e {
  x = f32[1024,512] parameter(0)
  a = f32[512,2048] parameter(1)
  b = f32[2048,512] parameter(2)
  h = f32[1024,2048] dot(x, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[1024,2048] tanh(h)
  ROOT y = f32[1024,512] dot(t, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


def test_ways_to_split():
    found = {s.dims for s in splits(row_major(F32, 6, 8), MESH)}
    assert found == {((), ()), (X, ()), ((), X), ((), Y), (X, Y), ((), X + Y)}


@pytest.mark.parametrize(
    ("limit", "chosen"),
    [
        # the batch alone: nothing is sent
        (inf, {"x": (X + Y, ())}),
        # columns, then rows, of the matrices along the other axis: one sum over devices
        (6e6, {"x": (X, ()), "a": ((), Y), "b": (Y, ())}),
    ],
)
def test_parameters_of_a_network(limit: float, chosen: dict[str, object]):
    module = heron.parse(TEXT)
    found = choose_parameters(module, ProgramShardings(MESH), limit)
    assert {i.name: s.dims for i, s in found.shardings.items()} == chosen
    assert found.after.cost < found.before.cost
    assert found.after.memory <= min(limit, found.before.memory)


def test_too_little_memory_is_used_as_well_as_can_be():
    module = heron.parse(TEXT)
    found = choose_parameters(module, ProgramShardings(MESH), 1e6)
    assert found.after.memory < choose_parameters(module, ProgramShardings(MESH), 6e6).after.memory


def test_given_shardings_stay():
    module = heron.parse(TEXT)
    given = ProgramShardings(MESH)
    first = module.entry.parameters[0]
    given.set(first, (), TensorSharding.closed([(), X]))
    found = choose_parameters(module, given)
    assert first not in found.shardings
    assert given.of(first).dims == ((), X)


def test_layers_are_split_alike():
    layers = "".join(
        f"  w{n} = f32[512,512] parameter({n + 1})\n"
        f"  h{n + 1} = f32[1024,512] dot(h{n}, w{n}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n"
        for n in range(6)
    )
    module = heron.parse(
        f"HloModule deep\n\nENTRY e {{\n  h0 = f32[1024,512] parameter(0)\n{layers}  ROOT r = f32[1024,512] tanh(h6)\n}}\n"
    )
    found = choose_parameters(module, ProgramShardings(MESH), 5e6)
    ways = {s.dims for i, s in found.shardings.items() if i.name.startswith("w")}
    assert len(ways) <= 1
    assert found.after.memory <= 5e6
