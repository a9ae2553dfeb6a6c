"""Partial sums that loops carry: they are added up once behind the loop, whatever linear ops its body applies."""

from typing import Any

import numpy as np
import pytest

from heron.frontends.loading import load
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.hlo.text import parse
from heron.passes.devices import device_pipelines
from heron.passes.framework.context import PassContext
from heron.trace import Trace
from tests.passes.sharding.devices import agree, agree_open, inputs_of, partition, sharded

STATE = "sharding={{mesh['x'=2], []}, {mesh['x'=2], [{}, {}, {}], unreduced={'x'}}, {mesh['x'=2], [{}, {}, {'x'}]}}"
SUM = "{mesh['x'=2], [{}, {}], unreduced={'x'}}"
#: each round writes a product, a partial sum in bf16, into one matrix of an array of f32
LAYERS = f"""mesh['x'=2]
HloModule layers, num_partitions=2
body {{
  t = (s32[], f32[3,4,4], bf16[3,4,6]) parameter(0), {STATE}
  n = s32[] get-tuple-element(t), index=0 @[]@
  total = f32[3,4,4] get-tuple-element(t), index=1
  rows = bf16[3,4,6] get-tuple-element(t), index=2 @[{{}}, {{}}, {{'x'}}]@
  zero = s32[] constant(0) @[]@
  one = s32[] constant(1) @[]@
  m = s32[] add(n, one) @[]@
  x = bf16[1,4,6] dynamic-slice(rows, n, zero, zero), dynamic_slice_sizes={{1,4,6}} @[{{}}, {{}}, {{'x'}}]@
  a = bf16[4,6] reshape(x) @[{{}}, {{'x'}}]@
  d = bf16[4,4] dot(a, a), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}} @[{{}}, {{}}]@
  p = bf16[4,4] custom-call(d), custom_call_target="Sharding", sharding={SUM}
  f = f32[4,4] convert(p), sharding={SUM}
  q = f32[4,4] custom-call(f), custom_call_target="Sharding", sharding={SUM}
  u = f32[1,4,4] reshape(q) @[{{}}, {{}}, {{}}]@
  y = f32[3,4,4] dynamic-update-slice(total, u, n, zero, zero) @[{{}}, {{}}, {{}}]@
  ROOT r = (s32[], f32[3,4,4], bf16[3,4,6]) tuple(m, y, rows)
}}
condition {{
  t = (s32[], f32[3,4,4], bf16[3,4,6]) parameter(0), {STATE}
  n = s32[] get-tuple-element(t), index=0 @[]@
  end = s32[] constant(3) @[]@
  ROOT r = pred[] compare(n, end), direction=LT @[]@
}}
ENTRY main {{
  total = f32[3,4,4] parameter(0) @[{{}}, {{}}, {{}}]@
  rows = bf16[3,4,6] parameter(1) @[{{}}, {{}}, {{'x'}}]@
  zero = s32[] constant(0) @[]@
  t = (s32[], f32[3,4,4], bf16[3,4,6]) tuple(zero, total, rows), {STATE}
  w = (s32[], f32[3,4,4], bf16[3,4,6]) while(t), condition=condition, body=body, {STATE}
  s = f32[3,4,4] get-tuple-element(w), index=1
  ROOT r = f32[3,4,4] copy(s) @[{{}}, {{}}, {{}}]@
}}"""


def _exchanges(module: Module) -> list[tuple[str, str]]:
    """Each collective with the computation that it is in."""
    return [(c.name, i.opcode) for c in module.computations for i in c.instructions if Trait.COLLECTIVE in i.op.traits]


def test_one_sum_behind_the_loop() -> None:
    module = parse(sharded(LAYERS))
    assert _exchanges(agree(module, inputs_of(module))) == [("main", "all-reduce")]


def test_auto_sharding_leaves_the_sums() -> None:
    """A convert that makes a sum of bf16 one of f32 is no reason to exchange bf16 in each round."""
    module = parse(sharded(LAYERS))
    for pipeline in device_pipelines().values():
        pipeline.run(module, PassContext())
    assert [opcode for _, opcode in _exchanges(module)] == ["all-reduce"]


def test_it_is_a_decision() -> None:
    ctx = PassContext(trace=Trace())
    partition(parse(sharded(LAYERS)), ctx)
    assert any("stays a sum over 'x'" in d.reason for d in ctx.trace.decisions)


def test_gradients_of_layers_added_up_over_batches() -> None:
    """Nobody says that the sums are partial: the inner loop stores them, the outer one adds them up."""
    jax = pytest.importorskip("jax")
    mesh, P = jax.sharding.AbstractMesh((4,), ("x",)), jax.sharding.PartitionSpec

    def loss(weights: Any, x: Any) -> Any:
        return jax.numpy.sum(jax.lax.scan(lambda y, w: (y @ w, None), x, weights)[0])

    def gradients(weights: Any, batches: Any) -> Any:
        def step(total: Any, x: Any) -> Any:
            return total + jax.grad(loss)(weights, x), None

        return jax.lax.scan(step, jax.numpy.zeros_like(weights), batches)[0]

    arguments = [
        jax.ShapeDtypeStruct(dims, np.float32, sharding=jax.sharding.NamedSharding(mesh, P(*axes)))
        for dims, axes in (((3, 8, 8), ()), ((2, 16, 8), (None, "x")))
    ]
    lowered = jax.jit(gradients).trace(*arguments).lower(lowering_platforms=("cpu",))
    module = load(lowered.as_text())
    inputs = [np.sign(x) for x in inputs_of(module)]
    made = agree_open(module, inputs)
    assert _exchanges(made) == [(made.entry.name, "all-reduce")]
