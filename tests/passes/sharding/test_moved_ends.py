"""Parameters and results whose devices stand in an order that no common mesh has: values through the whole pipeline."""

from __future__ import annotations

from math import prod

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from heron.evaluator import evaluate, evaluate_devices
from heron.frontends.stablehlo.importer import parse as parse_stablehlo
from heron.hlo.ir.module import Module
from heron.hlo.sharding import Kind, Sharding
from heron.hlo.text import parse
from heron.hlo.verifier import verify
from heron.passes.framework.context import PassContext
from heron.passes.framework.shares import joined, shares
from heron.passes.sharding.constant_splitter import ConstantSplitter
from heron.passes.sharding.sharding_importer import ShardingImporter
from heron.passes.sharding.sharding_propagation import ShardingPropagation
from heron.passes.sharding.spmd_partitioner import SpmdPartitioner


def _partitioned(source: Module) -> Module:
    made = source.clone()
    for step in (ShardingImporter(), ConstantSplitter(), ShardingPropagation(), SpmdPartitioner()):
        step.run(made, PassContext())
        verify(made)
    return made


def _agree(source: Module) -> Module:
    draw = np.random.default_rng(1)
    arrays = [draw.integers(-8, 8, p.shape.dims).astype(np.float32) for p in source.entry.parameters]
    alone = source.clone()
    alone.set_counts()
    want = evaluate(alone, *arrays)
    made = _partitioned(source)
    got = joined(source, made, evaluate_devices(made, shares(source, made, arrays)))
    for x, y in zip(got, want, strict=True):
        np.testing.assert_array_equal(x, y)
    return made


def test_an_array_moves_from_one_order_of_devices_to_another():
    """JAX's device_put between two meshes."""
    made = _agree(
        parse_stablehlo("""
    module @m attributes {mhlo.num_partitions = 4 : i32} {
      sdy.mesh @mesh = <["x"=2, "y"=2], device_ids=[3, 2, 1, 0]>
      sdy.mesh @mesh_0 = <["x"=2, "y"=2]>
      func.func @main(%a: tensor<8x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>})
          -> (tensor<8x2xf32> {sdy.sharding = #sdy.sharding<@mesh_0, [{"x"}, {}]>}) {
        return %a : tensor<8x2xf32>
      }
    }""")
    )
    assert made.spmd_parameter_shardings == ("{devices=[2,2]3,2,1,0}",)
    assert made.entry.parameters[0].extras["sharding"] == "{devices=[2,2]3,2,1,0}"
    assert "frontend_attributes" not in made.header


@st.composite
def _tiles(draw: st.DrawFn, devices: int) -> str:
    """Any tiles of two dimensions with devices in any order."""
    first = draw(st.sampled_from([n for n in range(1, devices + 1) if devices % n == 0]))
    second = draw(st.sampled_from([n for n in range(1, devices + 1) if devices // first % n == 0]))
    rest = devices // first // second
    dims = (first, second, rest) if rest > 1 else (first, second)
    order = draw(st.permutations(range(devices)))
    assert prod(dims) == devices
    return str(Sharding.tile(dims, order, (Kind.REPLICATED,) if rest > 1 else ()))


@settings(deadline=None, max_examples=25)
@given(st.data(), st.sampled_from([2, 4, 6]))
def test_any_orders_of_devices(data: st.DataObject, devices: int):
    a, b, r, s = (data.draw(_tiles(devices)) for _ in range(4))
    _agree(
        parse(f"""HloModule m, num_partitions={devices}

    ENTRY e {{
      a = f32[8,7] parameter(0), sharding={a}
      b = f32[8,7] parameter(1), sharding={b}
      c = f32[8,7] add(a, b)
      ROOT r = (f32[8,7], f32[8,7]) tuple(c, b), sharding={{{r}, {s}}}
    }}""")
    )
