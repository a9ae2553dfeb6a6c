"""JAX programs with shardings on eight devices, against what NumPy says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pjrt.under_jax import run

HEAD = """
import numpy as np
import jax, jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
explicit = jax.make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
a = np.arange(64, dtype=np.float32).reshape(8, 8) % 7
b = np.arange(64, dtype=np.float32).reshape(8, 8) % 5

def on(*names, mesh=mesh):
    return NamedSharding(mesh, P(*names))

def put(array, *names, mesh=mesh):
    return jax.device_put(array, on(*names, mesh=mesh))

def same(found, expected, *names, mesh=mesh):
    np.testing.assert_array_equal(found, expected)
    if names:
        assert found.sharding.is_equivalent_to(on(*names, mesh=mesh), found.ndim), found.sharding
    for shard in found.addressable_shards:
        np.testing.assert_array_equal(shard.data, np.asarray(expected)[shard.index])
"""

SHARDINGS = """
s, t = put(a, "x", "y"), put(b, "y", None)
same(jax.jit(lambda p, q: p @ q)(s, t), a @ b)
same(jax.jit(lambda p, q: p @ q, out_shardings=on("x"))(s, t), a @ b, "x")
same(jax.jit(lambda p, q: p @ q, out_shardings=on(None, ("y", "x")))(s, t), a @ b, None, ("y", "x"))
same(jax.jit(lambda p: p.sum(), in_shardings=on("y"))(a), a.sum())
same(jax.jit(lambda p: p.T + 1)(s), a.T + 1, "y", "x")
same(jax.jit(lambda p: lax.with_sharding_constraint(p * 2, on(None, "x")))(s), a * 2, None, "x")
same(jax.jit(lambda: jnp.arange(16.0), out_shardings=on(("x", "y")))(), np.arange(16.0), ("x", "y"))
same(jax.jit(lambda p: (p, p + 1))(s)[1], a + 1, "x", "y")
same(s[1], a[1])
same(s + t, a + b)
same(jax.jit(jax.grad(lambda p: (p * p).sum()))(s), 2 * a, "x", "y")
same(jax.jit(lambda p: lax.with_sharding_constraint(p[:5, :3], on("x", "y")).sum())(s), a[:5, :3].sum())
"""

MANUAL = """
smap = jax.shard_map
s = put(a, "x", "y")
same(jax.jit(smap(lambda p: lax.psum(p, "x"), mesh=mesh, in_specs=P("x", "y"), out_specs=P(None, "y")))(s),
     a[:4] + a[4:], None, "y")
same(smap(lambda p: p * lax.axis_index("y"), mesh=mesh, in_specs=P("y"), out_specs=P("y"))(a),
     a * np.repeat(np.arange(4), 2)[:, None])
same(jax.jit(smap(lambda p: lax.ppermute(p, "y", [(i, (i + 1) % 4) for i in range(4)]),
                  mesh=mesh, in_specs=P("y"), out_specs=P("y")))(a), np.roll(a, 2, 0))
partly = smap(lambda p: p + lax.psum(p, "x"), mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
same(jax.jit(partly)(s), a + np.tile(a[:4] + a[4:], (2, 1)))
same(jax.pmap(lambda p: p - lax.psum(p, "i"), axis_name="i")(a), a - a.sum(0))
same(jax.jit(jax.grad(lambda p: smap(lambda q: lax.psum((q * q).sum(), ("x", "y")), mesh=mesh,
     in_specs=P("x", "y"), out_specs=P())(p)))(s), 2 * a, "x", "y")
"""

EXPLICIT = """
with jax.set_mesh(explicit):
    s, t = put(a, "x", "y", mesh=explicit), put(b, "y", None, mesh=explicit)
    assert jax.typeof(s).sharding.spec == P("x", "y")
    product = jax.jit(lambda p, q: jnp.dot(p, q, out_sharding=P("x")))(s, t)
    same(product, a @ b, "x", mesh=explicit)
    same(jax.jit(lambda p: jax.sharding.reshard(p, P(None, "x")) * 2)(s), 2 * a, None, "x", mesh=explicit)
"""

DEVICES = """
for names in ((), ("x",), (None, "y"), (("y", "x"),), ("y", "x")):
    same(jax.device_put(put(a, "x", "y"), on(*names)), a, *names)
four = jax.sharding.Mesh(np.array(jax.devices())[[6, 1, 3, 4]], "z")
s = put(a, "z", mesh=four)
same(jax.jit(lambda p: p - p.sum(0))(s), a - a.sum(0), "z", mesh=four)
assert [d.id for d in jax.jit(lambda p: p + 1)(s).sharding.mesh.devices.flat] == [6, 1, 3, 4]
turned = jax.sharding.Mesh(np.array(jax.devices())[::-1].reshape(2, 4), ("x", "y"))
same(jax.jit(lambda p: p @ p.T, out_shardings=on("x", mesh=turned))(put(a, "x", "y", mesh=turned)), a @ a.T, "x",
     mesh=turned)
"""

DONATION = """
s = put(a, "x", "y")
same(jax.jit(lambda p: p + 1, donate_argnums=0)(s), a + 1, "x", "y")
assert s.is_deleted()
s = put(a, "x", "y")
same(jax.jit(lambda p: p + 1, donate_argnums=0, out_shardings=on("y", "x"))(s), a + 1, "y", "x")
s = put(a, "x")
same(jax.jit(lambda p: p[:4, :4].sum(0), donate_argnums=0)(s), a[:4, :4].sum(0))
assert not s.is_deleted()  # no result has room in it
state = put(np.zeros((8, 8), np.float32), "x")
step = jax.jit(lambda t, g: (t + g, (t * 0).sum()), donate_argnums=0)
for _ in range(20):
    state, _ = step(state, s if not s.is_deleted() else put(a, "x", "y"))
same(state, 20 * a)
"""

ASKED = """
compiled = jax.jit(lambda p, q: p @ q, in_shardings=(on("x", "y"), on("y")), out_shardings=on("x")).lower(a, b).compile()
text = compiled.as_text()
assert "all-reduce" in text and "num_partitions=8" in text, text
assert "sharding={devices=[2,4]<=[8]}" in text, text
memory = compiled.memory_analysis()
assert memory.argument_size_in_bytes == (4 * 2 + 2 * 8) * 4 and memory.output_size_in_bytes == 4 * 8 * 4
assert compiled.cost_analysis()["flops"] > 0
assert compiled.input_shardings[0] == (on("x", "y"), on("y")) and compiled.output_shardings == on("x")
same(compiled(put(a, "x", "y"), put(b, "y")), a @ b, "x")
chosen = jax.jit(lambda p: (p.sum(0), p * 2)).lower(put(a, "x", "y")).compile().output_shardings
assert chosen[1].is_equivalent_to(on("x", "y"), 2) and chosen[0].is_equivalent_to(on("y"), 1), chosen
from jax.experimental import serialize_executable
loaded = serialize_executable.deserialize_and_load(*serialize_executable.serialize(compiled))
same(loaded(put(a, "x", "y"), put(b, "y")), a @ b, "x")
"""

CALLBACKS = """
seen = []
def double(p):
    seen.append(p.shape)
    return np.asarray(p) * 2
shape = jax.ShapeDtypeStruct((4, 2), np.float32)
local = jax.shard_map(lambda p: jax.pure_callback(double, shape, p), mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))
same(jax.jit(local)(put(a, "x", "y")), 2 * a, "x", "y")
assert seen == [(4, 2)] * 8, seen
seen.clear()
whole = jax.jit(lambda p: jax.pure_callback(double, jax.ShapeDtypeStruct((8, 8), np.float32), p) + 1)
same(whole(put(a, "x", "y")), 2 * a + 1)
assert seen and set(seen) == {(8, 8)}, seen
shardings = []
jax.jit(lambda p: jax.debug.inspect_array_sharding(p, callback=shardings.append) or p * 2)(put(a, "x", "y"))
assert shardings[0].is_equivalent_to(on("x", "y"), 2), shardings
"""

CUSTOM = """
from jax.experimental.custom_partitioning import custom_partitioning

@custom_partitioning
def product(p, q):
    return jnp.sin(p) @ q

def partition(mesh, arguments, result):
    local = lambda p, q: lax.psum(jnp.sin(p) @ q + 1, "y")  # it is this one that runs
    return mesh, local, on("x"), (on("x", "y"), on("y"))

product.def_partition(partition, sharding_rule="i k, k j -> i j")
found = jax.jit(product)(put(0 * a, "x", "y"), put(b, "y"))
same(found, 0 * a + 4)
"""

#: what native code runs alone, from the second call on: devices take turns
AGAIN = """
import gc
from heron.pjrt.c_api.slots import quick
local = lambda p: (lax.psum(p, "x") + lax.all_gather(p, "y", axis=1).sum(1), p * lax.axis_index("y"))
f = jax.jit(jax.shard_map(local, mesh=mesh, in_specs=P("x", "y"), out_specs=(P(None, "y"), P("x", "y")), check_vma=False))
s = put(a, "x", "y")
wanted = [np.asarray(x) for x in f(s)]
for n in range(3):
    c, d = f(s)
    same(d, wanted[1], "x", "y")
del c, d
gc.collect()
live, before = quick.live_cells(), [device.memory_stats()["bytes_in_use"] for device in jax.devices()]
results = [f(s) for _ in range(20)]
assert quick.live_cells() == live + 20 * 16, quick.live_cells() - live
assert [device.memory_stats()["bytes_in_use"] for device in jax.devices()] == [x + 20 * 64 for x in before]
for c, d in results:
    assert [x.device for x in d.addressable_shards] == [x.device for x in s.addressable_shards]
    same(d, wanted[1], "x", "y")
    np.testing.assert_array_equal([x.data for x in c.addressable_shards], [x.data for x in f(s)[0].addressable_shards])
del results, c, d
gc.collect()
assert quick.live_cells() == live
half = jax.make_mesh((4,), ("x",), devices=jax.devices()[4:])  # other devices than the first
g = jax.jit(jax.shard_map(lambda p: lax.psum(p, "x"), mesh=half, in_specs=P("x"), out_specs=P()))
t = jax.device_put(a, NamedSharding(half, P("x")))
for _ in range(4):
    found = g(t)
    same(found, a.reshape(4, 2, 8).sum(0))
    assert found.sharding.device_set == set(jax.devices()[4:])
s.delete()
try:
    f(s)
except RuntimeError as error:
    assert "deleted" in str(error)
else:
    raise AssertionError
"""


@pytest.mark.parametrize(
    "script",
    [SHARDINGS, MANUAL, EXPLICIT, DEVICES, DONATION, ASKED, CALLBACKS, CUSTOM, AGAIN],
    ids=["shardings", "manual", "explicit", "devices", "donation", "asked", "callbacks", "custom", "again"],
)
def test_on_eight_devices(script: str) -> None:
    run(HEAD + script, HERON_DEVICES="8")


CACHED = """
import os
jax.config.update("jax_compilation_cache_dir", os.environ["FOLDER"])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
found = []
jax.monitoring.register_event_listener(lambda event, **_: found.append(event))
step = jax.jit(lambda p, q: (p @ q, p.sum(0)), donate_argnums=0, out_shardings=(on("x"), on()))
product, total = step(put(a, "x", "y"), put(b, "y"))
same(product, a @ b, "x")
same(total, a.sum(0))
assert found.count("/jax/compilation_cache/cache_hits") == int(os.environ["HITS"]), found
"""


def test_a_cached_program(tmp_path: Path) -> None:
    for hits in "01":
        run(HEAD + CACHED, HERON_DEVICES="8", FOLDER=str(tmp_path), HITS=hits)


def test_gspmd() -> None:
    run("import jax\njax.config.update('jax_use_shardy_partitioner', False)" + HEAD + SHARDINGS, HERON_DEVICES="8")
