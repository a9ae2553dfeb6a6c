"""JAX on heron, in processes of their own: each script asserts what it wants."""

from __future__ import annotations

import pytest

from tests.pjrt.under_jax import run

HEAD = """
import gc, threading
import jax, jax.numpy as jnp, numpy as np
import jax.experimental.compilation_cache.compilation_cache
from jax import lax
CPU = jax.devices("cpu")[0]

def on_cpu(f, *args):
    with jax.default_device(CPU):
        return jax.tree.map(np.asarray, f(*args))

def agree(f, *args, exact=False, rtol=2e-5, atol=1e-5):
    ours = jax.tree.leaves(jax.tree.map(np.asarray, jax.jit(f)(*args)))
    theirs = jax.tree.leaves(on_cpu(jax.jit(f), *args))
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape, (a.dtype, a.shape, b.dtype, b.shape)
        if exact or a.dtype.kind not in "fc":
            np.testing.assert_array_equal(a, b)
        else:
            np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)

x = np.linspace(-1, 2, 12, dtype=np.float32).reshape(3, 4)
"""

PROGRAMS = {
    "devices": """
assert [d.platform for d in jax.devices()] == ["heron"] and jax.default_backend() == "heron"
assert "heron" in jax.devices()[0].client.platform_version
assert jax.config.jax_platforms == "heron"  # what the user set stays, though JAX's CPU is there too
y = jax.device_put(x)
assert y.devices() == {jax.devices()[0]}
np.testing.assert_array_equal(jax.device_get(y), x)
np.testing.assert_array_equal(np.asarray(jax.device_put(y, CPU)), x)
np.testing.assert_array_equal(np.asarray(jax.device_put(x[:, ::-2])), x[:, ::-2])
assert jax.devices()[0].memory_stats()["bytes_in_use"] >= x.nbytes
""",
    "transformations": """
agree(lambda x: jnp.tanh(x @ x.T) + 1, x)
agree(jax.grad(lambda x: jnp.sum(jnp.sin(x) ** 2)), x)
agree(jax.vmap(lambda r: jnp.outer(r, r)), x)
agree(jax.hessian(lambda v: jnp.prod(v + 3)), x[0])
agree(lambda x: lax.scan(lambda c, r: (c + r, c * r), x[0], x), x)
agree(lambda n: lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 1.5), (0, 1.0)), 7)
for flag in (True, False):
    agree(lambda p, x: lax.cond(p, jnp.sin, jnp.cos, x), flag, x)
agree(lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, jnp.tan], x), 1, x)

@jax.custom_vjp
def f(x):
    return x * x
f.defvjp(lambda x: (x * x, x), lambda x, g: (g * 100 * x,))
np.testing.assert_allclose(jax.grad(f)(2.0), 200.0)
agree(jax.checkpoint(lambda x: jnp.sum(jnp.exp(x))), x)
assert jnp.arange(3).sum() == 3 and bool(jnp.all(jnp.ones(3) == 1))
""",
    "random numbers are the CPU's": """
key = jax.random.key(7)
for draw in (jax.random.uniform, jax.random.bits, jax.random.rademacher):
    agree(lambda: draw(key, (5, 3)), exact=True)
agree(lambda: jax.random.permutation(key, 20), exact=True)
agree(lambda: jax.random.randint(key, (9,), -5, 5), exact=True)
agree(lambda: jax.random.normal(key, (5,)))
agree(lambda: jax.random.categorical(key, jnp.ones(6), shape=(8,)), exact=True)
agree(lambda: jax.random.gamma(key, 2.0, (4,)))
agree(lambda: jax.random.normal(jax.random.key(1, impl="rbg"), (4,)))
""",
    "linear algebra": """
r = np.random.default_rng(0)
a = r.normal(size=(2, 4, 4)).astype(np.float32)
s = a @ a.transpose(0, 2, 1) + np.eye(4, dtype=np.float32)
import jax.scipy as jsp
for f in (jnp.linalg.cholesky, jnp.linalg.eigvalsh, jnp.linalg.inv):
    agree(f, s, rtol=1e-3, atol=1e-4)
for f in (jnp.linalg.eig, jnp.linalg.qr):
    agree(f, a, rtol=1e-3, atol=1e-4)
for f in (jsp.linalg.schur, jsp.linalg.lu):
    agree(f, a[0], rtol=1e-3, atol=1e-4)
agree(lambda m: jsp.linalg.qr(m, pivoting=True), a[0], rtol=1e-3, atol=1e-4)
agree(lambda d: lax.linalg.tridiagonal_solve(d, d + 4, d, d[:, None]), a[0, 0])
agree(lambda m, b: jsp.linalg.solve_triangular(m, b, lower=True), s[0], a[0], rtol=1e-3)
""",
    "fft, sort, top-k": """
agree(jnp.fft.fft, x)
agree(jnp.fft.irfft2, x.astype(np.complex64))
agree(jnp.argsort, x)
agree(lambda x: lax.top_k(x, 2), x)
agree(lambda x: lax.sort((x, -x), num_keys=1), x)
agree(lambda x: jnp.cumsum(x, axis=1), x)
agree(lambda x: lax.approx_max_k(x, 2), x)
""",
    "types": """
for name in ("bfloat16", "float16", "float8_e4m3fn", "float8_e5m2", "int8", "uint16", "int4", "uint4", "bool", "complex64"):
    agree(lambda x: (x * 2).astype(name), x)
    b = jnp.asarray(x).astype(name)
    assert np.asarray(b).dtype == jnp.dtype(name)
    agree(lambda b: b[::-1], np.asarray(b))
with jax.enable_x64(True):
    agree(lambda x: jnp.sin(x) + 1, x.astype(np.float64))
    agree(lambda n: n << 40, np.arange(3, dtype=np.int64))
agree(lambda x: x.reshape(0, 4), x[:0])
""",
    "donation": """
f = jax.jit(lambda a, b: a + b, donate_argnums=0)
a, b = jnp.ones(1000), jnp.ones(1000)
c = f(a, b)
assert a.is_deleted() and not b.is_deleted() and c[0] == 2
try:
    a + 1
except RuntimeError as e:
    assert "deleted" in str(e)
else:
    raise AssertionError
for donated in ((0,), (0, 1)):
    try:
        jax.jit(lambda a, b: (a + b, a * b), donate_argnums=donated)(b, b).block_until_ready()
    except jax.errors.JaxRuntimeError as e:
        assert "donate" in str(e) and not b.is_deleted()
    else:
        raise AssertionError("one buffer was given away and read")
host = np.ones(1000, np.float32)
d = jax.device_put(host)
f(d, b).block_until_ready()
assert host[0] == 1
seen = np.asarray(b)  # shares the memory, which stays as it is
g = jax.jit(lambda a: a * 5, donate_argnums=0)
e = g(b)
gc.collect()
assert b.is_deleted() and e[0] == 5 and (seen == 1).all()
""",
    "bits above those of the type": """
for kind, bits in ((jnp.int2, 2), (jnp.uint2, 2), (jnp.int4, 4), (jnp.uint4, 4), (jnp.float4_e2m1fn, 4)):
    for count in (1, 300, 70000):
        host = np.resize(np.arange(256, dtype=np.uint8), count)
        there = jax.device_put(host.view(kind))
        same, theirs = jax.jit(lambda a: a[::-1])(there), jax.jit(lambda a: a[::-1])(jax.device_put(host.view(kind), CPU))
        for a in (there, same[::-1]):
            np.testing.assert_array_equal(np.asarray(a).view(np.uint8) & (1 << bits) - 1, host & (1 << bits) - 1)
        np.testing.assert_array_equal(np.asarray(there).view(np.uint8), np.asarray(theirs).view(np.uint8)[::-1])
        np.testing.assert_array_equal(np.asarray(same).astype(np.float32), np.asarray(theirs).astype(np.float32))
for count in (1, 300, 70000):
    host = np.resize(np.arange(256, dtype=np.uint8), count)
    for view in (host, host[::-2]):
        there = jax.device_put(view.view(bool))
        for a in (there, jax.jit(lambda a: a[::-1])(there)[::-1], there.astype(jnp.int32), jnp.where(there, 1, 0)):
            np.testing.assert_array_equal(np.asarray(a).astype(np.int8).view(np.int8), view != 0)
""",
    "options of XLA": """
lowered = jax.jit(lambda x: x + 1).lower(x)
good = {"xla_embed_ir_in_executable": True, "xla_dump_max_hlo_modules": 200, "xla_dump_to": "/nowhere"}
assert (lowered.compile(compiler_options=good)(x) == x + 1).all()
for name, value, why in [
    ("xla_embed_ir_in_executable", "perhaps", "'perhaps' is not a valid bool value"), ("xla_no_such_option", 1, "No such compile option"),
]:
    try:
        lowered.compile(compiler_options={name: value})
    except jax.errors.JaxRuntimeError as e:
        assert why in str(e) and name in str(e), e
    else:
        raise AssertionError
""",
    "errors": """
try:
    jax.jit(lambda x: lax.psum(x, "i") if False else jnp.linalg.eigh(x)).lower(x[:3, :3]).compile(compiler_options={"nonsense": "1"})
except jax.errors.JaxRuntimeError as e:
    assert "No such compile option: 'nonsense'" in str(e)
else:
    raise AssertionError
try:
    jax.jit(lambda x: jax.ffi.ffi_call("nobody_has_this", jax.ShapeDtypeStruct((3, 4), np.float32))(x))(x)
except jax.errors.JaxRuntimeError as e:
    assert "GEN011" in str(e) and "nobody_has_this" in str(e), e
else:
    raise AssertionError
def bad(a):
    raise ValueError("from the callback")
try:
    jax.block_until_ready(jax.jit(lambda x: jax.pure_callback(bad, x, x) + 1)(x))
except jax.errors.JaxRuntimeError as e:
    assert "from the callback" in str(e)
else:
    raise AssertionError
assert jnp.ones(3)[0] == 1
""",
    "callbacks": """
seen = []
f = jax.jit(lambda x: jax.pure_callback(lambda a: np.sin(a), jax.ShapeDtypeStruct(x.shape, x.dtype), x) * 2)
np.testing.assert_allclose(f(x), np.sin(x) * 2, rtol=1e-6)
gc.collect()
np.testing.assert_allclose(f(x), np.sin(x) * 2, rtol=1e-6)
def note(a):
    seen.append(float(a))
    return np.int32(len(seen))
g = jax.jit(lambda a: jax.experimental.io_callback(note, jax.ShapeDtypeStruct((), np.int32), a, ordered=True))
import jax.experimental
assert [int(g(float(n))) for n in range(3)] == [1, 2, 3]
jax.effects_barrier()
assert seen == [0.0, 1.0, 2.0]
@jax.jit
def h(n):
    def body(i, s):
        jax.debug.callback(lambda v: seen.append(int(v)), i, ordered=True)
        return s + i
    return lax.fori_loop(0, n, body, 0)
seen.clear()
assert h(4) == 6
jax.effects_barrier()
assert seen == [0, 1, 2, 3]
seen.clear()
say = lambda what: lambda: jax.debug.callback(lambda: seen.append(what), ordered=True)
k = jax.jit(lambda p: lax.cond(p, say("yes"), say("no")))
k(True), k(False)
jax.effects_barrier()
assert seen == ["yes", "no"]
jax.debug.print("{}", 1)
from jax.experimental import checkify
err, _ = jax.jit(checkify.checkify(lambda a: checkify.check(a > 0, "must be positive") or a))(-1.0)
assert "must be positive" in err.get()
np.testing.assert_allclose(jax.vmap(lambda v: jax.pure_callback(np.cos, v, v, vmap_method="expand_dims"))(x[0]), np.cos(x[0]), rtol=1e-6)
""",
    "dlpack": """
y = jnp.arange(6).reshape(2, 3)
np.testing.assert_array_equal(np.from_dlpack(y), np.arange(6).reshape(2, 3))
given = np.arange(4.0, dtype=np.float32)
z = jnp.from_dlpack(given)
heron, cpu = jax.devices()[0], jax.devices("cpu")[0]
assert z.devices() == {heron} and z.unsafe_buffer_pointer() == given.ctypes.data
assert jnp.from_dlpack(y, copy=False).devices() == {heron}
assert jnp.from_dlpack(given, device=heron, copy=False).unsafe_buffer_pointer() == given.ctypes.data
assert jnp.from_dlpack(given, copy=True).unsafe_buffer_pointer() != given.ctypes.data
on_cpu = jnp.from_dlpack(given, device=cpu)
assert on_cpu.devices() == {cpu} and (np.from_dlpack(on_cpu) == given).all()
turned = np.arange(12, dtype=np.int16).reshape(3, 4).T
np.testing.assert_array_equal(jnp.from_dlpack(turned), turned)
np.testing.assert_array_equal(jnp.from_dlpack(turned) @ jnp.from_dlpack(turned.T), turned @ turned.T)
assert jax.jit(lambda v: v + 1, donate_argnums=0)(z).tolist() == [1, 2, 3, 4] and given.tolist() == [0, 1, 2, 3]
z = jnp.from_dlpack(given)
for kind in ("bfloat16", "float8_e4m3fn", "bool", "complex64"):
    w = jnp.arange(6).reshape(2, 3).astype(kind)
    assert jnp.from_dlpack(w).dtype == w.dtype and jnp.from_dlpack(w).tolist() == w.tolist()
np.testing.assert_array_equal(jax.device_put(z, jax.devices()[0]) + 1, np.arange(4) + 1)
""",
    "layouts asked for": """
from jax.experimental.layout import Format, Layout
turned = Format(Layout((1, 0)), jax.sharding.SingleDeviceSharding(jax.devices()[0]))
y = jax.jit(lambda x: x + 1, out_shardings=turned)(x)
assert y.format.layout.major_to_minor == (1, 0) and (np.asarray(y) == x + 1).all()
z = jax.device_put(x, turned)
for v in (z, z.copy(), jax.device_put(z, jax.devices()[0]), np.from_dlpack(z)):
    np.testing.assert_array_equal(np.asarray(v), x)
np.testing.assert_array_equal(y, x + 1)
np.testing.assert_array_equal(jax.jit(lambda v: v * 2, donate_argnums=0)(z.copy()), x * 2)
np.testing.assert_allclose(jax.jit(lambda v: v @ v.T)(z), x @ x.T, rtol=1e-6)
""",
    "memory of the host": """
there = jax.sharding.SingleDeviceSharding(jax.devices()[0], memory_kind="pinned_host")
y = jax.jit(lambda x: x + 1, out_shardings=there)(x)
assert y.sharding.memory_kind == "pinned_host"
np.testing.assert_array_equal(y, x + 1)
z = jax.device_put(y, there.with_memory_kind("device")) * 2
assert z.sharding.memory_kind == "device"
np.testing.assert_array_equal(z, (x + 1) * 2)
""",
    "collectives on one device": """
from jax.sharding import Mesh, PartitionSpec as P
mesh = Mesh(np.array(jax.devices()), "i")
v = np.arange(8, dtype=np.float32)
for f, want in (
    (lambda q: lax.psum(q, "i"), v),
    (lambda q: lax.pmean(q, "i") + lax.pmax(q, "i"), 2 * v),
    (lambda q: lax.all_gather(q, "i", tiled=True), v),
    (lambda q: lax.psum_scatter(q, "i", tiled=True), v),
    (lambda q: lax.ppermute(q, "i", [(0, 0)]) + lax.axis_index("i"), v),
    (lambda q: lax.ppermute(q, "i", []), 0 * v),
):
    g = jax.shard_map(f, mesh=mesh, in_specs=P("i"), out_specs=P("i"), check_vma=False)
    np.testing.assert_array_equal(jax.jit(g)(v), want)
""",
    "references to scalars": """
r, v = jax.new_ref(0), jax.new_ref(jnp.zeros(3))
@jax.jit
def f(x):
    r[...] += x
    v[1] += r[...]
f(1), f(2)
assert r[...] == 3 and v[...].tolist() == [0, 4, 0]
""",
    "ahead of time": """
f = jax.jit(lambda x: jnp.sin(x) @ x.T)
compiled = f.lower(x).compile()
np.testing.assert_allclose(compiled(x), np.sin(x) @ x.T, rtol=1e-5)
assert "HloModule" in compiled.as_text()
assert compiled.cost_analysis()["flops"] > 0
assert compiled.memory_analysis().argument_size_in_bytes == x.nbytes
from jax import export
for platforms in (("cpu",), ("tpu", "cpu")):  # what was exported for the CPU runs
    np.testing.assert_allclose(export.export(f, platforms=platforms)(x).call(x), np.sin(x) @ x.T, rtol=1e-5)
again = export.export(f)(x)
try:
    import flatbuffers
except ImportError:
    pass
else:
    again = export.deserialize(again.serialize())
np.testing.assert_allclose(again.call(x), np.sin(x) @ x.T, rtol=1e-5)
from jax.experimental import serialize_executable as se
loaded = se.deserialize_and_load(*se.serialize(compiled))
np.testing.assert_allclose(loaded(x), np.sin(x) @ x.T, rtol=1e-5)
""",
    "the compilation cache on disk": """
import tempfile
from heron.pjrt.client import Client
compiled, compile_it = [], Client.compile
Client.compile = lambda *a: compiled.append(a) or compile_it(*a)
before = {name: getattr(jax.config, name) for name in ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")}
with tempfile.TemporaryDirectory() as folder:
    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.experimental.compilation_cache.compilation_cache.reset_cache()
    f = lambda x: jnp.tanh(x @ x.T) + 3
    first = np.asarray(jax.jit(f)(x))
    assert len(compiled) == 1
    jax.clear_caches()
    np.testing.assert_array_equal(np.asarray(jax.jit(f)(x)), first)
    assert len(compiled) == 1, "it was compiled again"
    c = jax.jit(f).lower(x).compile()
    assert "HloModule" in c.as_text() and c.cost_analysis()["flops"] > 0
    for n in (1, 2):  # the function of a callback is of this process
        jax.clear_caches()
        g = jax.jit(lambda x: jax.pure_callback(lambda a: a + n, x, x))
        np.testing.assert_array_equal(g(x), x + n)
    for name, value in before.items():
        jax.config.update(name, value)
    jax.experimental.compilation_cache.compilation_cache.reset_cache()
Client.compile = compile_it
""",
    "platform-dependent code takes the CPU's way": """
f = lambda x: lax.platform_dependent(x, cpu=jnp.sin, default=jnp.cos)
agree(f, x)
g = lambda x: lax.platform_dependent(x, cpu=jnp.sin, heron=jnp.tan, default=jnp.cos)
np.testing.assert_allclose(jax.jit(g)(x), np.tan(x), rtol=1e-5)
""",
    "what runs behind the caller": """
@jax.jit
def slow(x):
    return lax.fori_loop(0, 3000, lambda i, s: jnp.sin(s) + 1e-3, x)
y = slow(jnp.ones(20000))
z = slow(y) + 1
del y
assert np.asarray(z).shape == (20000,)
assert np.isfinite(np.asarray(z)).all()
z.copy_to_host_async()
z.block_until_ready()
""",
    "nothing is left over": """
from heron.pjrt.c_api import handles
f = jax.jit(lambda x: x + 1)
a = f(jnp.ones(3))
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
def calls(a, times):
    for _ in range(times):
        a = f(a)
    a.block_until_ready()
    gc.collect()
    return a, handles.count(), resident()
a, before, memory = calls(a, 2000)
grown = []
while len(grown) < 4 and not any(g < 4 << 20 for g in grown):  # what stays makes every round grow
    a, after, now = calls(a, 10000)
    grown.append(now - memory)
    memory = now
assert after - before <= 2, after - before
assert min(grown) < 4 << 20, grown
before = handles.count()
for n in range(10):
    jax.jit(lambda x: x * n)(a).block_until_ready()
jax.clear_caches()
gc.collect()
assert handles.count() - before <= 2, handles.count() - before
""",
}


ALL = """
import sys, traceback
failed = []
for name, text in PROGRAMS.items():
    try:
        exec(compile(text, name, "exec"), dict(globals()))
    except BaseException as e:
        failed.append(name)
        print(f"--- {name}", "".join(traceback.format_exception(e)), file=sys.stderr)
assert not failed, failed
"""


@pytest.mark.parametrize("half", [0, 1])
def test_programs(half: int) -> None:
    """Two processes for all, because each takes seconds to come up."""
    names = list(PROGRAMS)[half::2]
    run(HEAD + f"PROGRAMS = { {n: PROGRAMS[n] for n in names}!r}\n" + ALL)


def test_interpreter_exit_with_work_under_way() -> None:
    done = run(
        HEAD
        + """
import atexit
y = jax.jit(lambda x: lax.fori_loop(0, 20000, lambda i, s: jnp.sin(s), x))(jnp.ones(10000))
keep = [y, jax.jit(lambda x: x + 1)(y)]
late = jnp.ones(3)
atexit.register(lambda: print("late", float((late + 1).sum())))
""",
        fresh=True,
    )
    assert "late 6.0" in done.stdout and "Traceback" not in done.stderr, done.stderr[-2000:]


def test_several_devices() -> None:
    run(
        HEAD
        + """
assert len(jax.devices("heron")) == 2
a = jax.device_put(x, jax.devices()[1])
assert (a + 1).devices() == {jax.devices()[1]}
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
mesh = Mesh(np.array(jax.devices()), "i")
b = jax.device_put(x, NamedSharding(mesh, P()))
y = jax.jit(lambda v: (v * 2, v + 1))(b)[0]
np.testing.assert_allclose(y, x * 2)
assert y.is_fully_replicated and len(y.devices()) == 2
s = jax.device_put(np.arange(8.0), NamedSharding(mesh, P("i")))
assert jax.jit(lambda v: v.sum())(s) == 28
""",
        HERON_DEVICES="2",
    )


SPREAD = """
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((2,), ("i",), axis_types=(AxisType.Auto,))
spread, whole = NamedSharding(mesh, P("i")), NamedSharding(mesh, P())
v = np.arange(8, dtype=np.float32)
doubled = jax.shard_map(lambda q: q * 2, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
summed = jax.shard_map(lambda q: lax.psum(q.sum(), "i"), mesh=mesh, in_specs=P("i"), out_specs=P())
for run, expected, sharding in (
    (lambda: jax.jit(lambda: jnp.zeros(8), out_shardings=spread)(), 0 * v, spread),
    (lambda: jax.jit(lambda: (jnp.zeros(3), jnp.zeros(8)), out_shardings=(whole, spread))()[1], 0 * v, spread),
    (lambda: jax.jit(lambda q: q + 1, in_shardings=spread)(v), v + 1, spread),
    (lambda: jax.jit(lambda q: lax.with_sharding_constraint(q, spread).sum())(v), v.sum(), whole),
    (lambda: jax.jit(doubled)(v), 2 * v, spread),
    (lambda: jax.jit(summed)(v), v.sum(), whole),
    (lambda: jax.jit(jax.grad(lambda q: doubled(q).sum()))(v), 0 * v + 2, spread),
):
    found = run()
    np.testing.assert_array_equal(found, expected)
    assert found.sharding.is_equivalent_to(sharding, found.ndim), found.sharding
"""


def test_work_over_several_devices() -> None:
    """Whoever says that something is spread: arguments, results, constraints or a map over shards."""
    run(HEAD + SPREAD, HERON_DEVICES="2")


def test_the_simulated_gpu() -> None:
    run(HEAD + "agree(lambda x: jnp.tanh(x).sum(axis=1), x)", HERON_TARGET="sim:sm_90")


def test_other_platforms_are_left_alone() -> None:
    run(
        "import jax; assert jax.default_backend() == 'cpu'; import sys; assert 'llvmlite' not in sys.modules",
        JAX_PLATFORMS="cpu",
        fresh=True,
    )


def test_heron_is_there_and_not_the_default_where_nobody_asks() -> None:
    run("import jax; assert jax.default_backend() == 'cpu'; assert jax.devices('heron')", JAX_PLATFORMS="", fresh=True)
    run("import jax; assert [d.platform for d in jax.devices()] == ['cpu']", JAX_PLATFORMS="", HERON_TARGET="sm_90")


def test_constants_keep_denormals() -> None:
    """JAX compiles on a thread that takes denormals for zero; heron's own threads do not."""
    run(
        """
import jax
import jax.numpy as jnp
import numpy as np
tiny = float(jnp.finfo(jnp.bfloat16).tiny)  # its decimal text is a denormal of f32
x = np.zeros(3, jnp.bfloat16)
assert (np.asarray(jax.jit(lambda x: x + jnp.bfloat16(tiny))(x)) == jnp.bfloat16(tiny)).all()
small = np.float32(1e-40)
assert (np.asarray(jax.jit(lambda x: x + small)(np.zeros(3, np.float32))) == small).all()
big = np.full((2000, 2000), small)
assert (np.asarray(jax.jit(lambda x: x * 2)(big)) == 2 * small).all()
u = jax.random.uniform(jax.random.key(1701), (500,), jnp.bfloat16, minval=tiny)
assert (u > 0).all()
""",
        HERON_DENORMALS="keep",
    )
