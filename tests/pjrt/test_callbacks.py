"""Python functions that programs call, under JAX: their errors, their buffers, and JAX's cache."""

from __future__ import annotations

from tests.pjrt.under_jax import run

_HEAD = """
import jax, jax.numpy as jnp, numpy as np
from jax import lax
from jax.experimental import io_callback
x = np.linspace(-1, 2, 12, dtype=np.float32).reshape(3, 4)
def boom(*_):
    raise ValueError("boom")
def raised(call):
    try:
        call()
    except jax.errors.JaxRuntimeError as error:
        return str(error)
    raise AssertionError("no error")
"""


def test_errors_are_raised_at_the_call() -> None:
    """Results are never looked at; nor are arguments ready, in one case."""
    run(
        _HEAD
        + """
for f in (
    lambda v: jax.pure_callback(boom, v, v),
    lambda v: io_callback(boom, v, v),
    lambda v: io_callback(boom, v, v, ordered=True),
    lambda v: jax.debug.callback(boom, v),
):
    assert "ValueError: boom" in raised(lambda: jax.jit(f)(x))
slow = jax.jit(lambda v: lax.fori_loop(0, 3000, lambda i, s: jnp.sin(s), v))
assert "ValueError: boom" in raised(lambda: jax.jit(lambda v: jax.pure_callback(boom, v, v))(slow(jnp.ones(10000))))
assert float(jax.jit(lambda v: v.sum())(x)) == x.sum()  # and the device goes on
"""
    )


def test_functions_run_programs_themselves() -> None:
    """Also large ones, which the device's own thread runs, and those that call functions again."""
    run(
        _HEAD
        + """
large = jax.jit(lambda a: lax.fori_loop(0, 300, lambda i, s: jnp.tanh(s @ s) + a, a).sum())
inner = jax.jit(lambda v: jax.pure_callback(lambda a: np.asarray(large(jnp.full((60, 60), a[0]))).reshape(1), v, v))
outer = jax.jit(lambda v: jax.pure_callback(lambda a: np.asarray(inner(jnp.asarray(a))) + 1, v, v))
given = lax.fori_loop(0, 3000, lambda i, s: jnp.sin(s) + 1e-3, jnp.ones(5000))[:1]  # maybe not ready yet
np.testing.assert_allclose(outer(given), np.asarray(inner(given)) + 1)
""",
        timeout=300,
    )


def test_functions_of_buffers() -> None:
    run(
        _HEAD
        + """
from jax.experimental import buffer_callback as bc
def twice(ctx, out, a):
    assert ctx.stage == bc.ExecutionStage.EXECUTE and out.writeable and not a.writeable
    assert (a.shape, a.dtype, a.ndim) == ((3, 4), np.float32, 2) and a.__dlpack_device__()[0] == 1
    np.testing.assert_array_equal(np.from_dlpack(a), x)
    assert "GPU context is not available" in raised(lambda: ctx.stream)
    np.asarray(out)[...] = np.asarray(a) * 2
f = bc.buffer_callback(twice, jax.ShapeDtypeStruct.like(x))
np.testing.assert_array_equal(f(x), x * 2)
np.testing.assert_array_equal(jax.jit(lambda v: f(v) + f(v))(x), x * 4)
def plus(ctx, out, a):
    np.asarray(out)[...] = np.asarray(a) + 1
in_place = bc.buffer_callback(plus, jax.ShapeDtypeStruct.like(x), input_output_aliases={0: 0})
np.testing.assert_array_equal(jax.jit(lambda v: in_place(v) + v)(x), x + 1 + x)
assert "boom" in raised(lambda: bc.buffer_callback(boom, jax.ShapeDtypeStruct.like(x))(x))
"""
    )


def test_the_cache_on_disk_has_no_functions() -> None:
    """A program with functions is of one process, as JAX sees it; the function called is the one that was given."""
    run(
        _HEAD
        + """
import pathlib, tempfile
with tempfile.TemporaryDirectory() as folder:
    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    files = lambda: len(list(pathlib.Path(folder).iterdir()))
    np.testing.assert_allclose(jax.jit(lambda v: jnp.sin(v) + 1)(x), np.sin(x) + 1, rtol=1e-6)
    kept = files()
    assert kept
    for n in (1, 2):
        jax.clear_caches()
        np.testing.assert_array_equal(jax.jit(lambda v: jax.pure_callback(lambda a: np.add(a, n), v, v))(x), x + n)
    assert files() == kept, list(pathlib.Path(folder).iterdir())
"""
    )


def test_rules_are_the_cpu_s_wherever_they_come_from() -> None:
    """Rules that refuse platforms they do not know, in any module; and those for heron itself, which come first."""
    run(
        _HEAD
        + """
from jax.experimental.sparse.linalg import spsolve
diagonal = jnp.array([2.0, 4.0]), jnp.array([0, 1], jnp.int32), jnp.array([0, 1, 2], jnp.int32)
np.testing.assert_allclose(spsolve(*diagonal, jnp.ones(2)), [0.5, 0.25])

from jax.extend.core import Primitive
from jax.interpreters import mlir
def asks(ctx, a):
    assert ctx.module_context.platforms == ("cpu",) and ctx.module_context.get_backend().platform == "cpu"
    return mlir.ir.Operation.create("stablehlo.negate", [a.type], [a]).results
def made(name, **platform):
    p = Primitive(name)
    p.def_abstract_eval(lambda a: a)
    for rule, names in platform.items():
        mlir.register_lowering(p, {"asks": asks, "same": lambda ctx, a: [a]}[rule], platform=names)
    return p
for p, want in ((made("everywhere", asks=None), -x), (made("cpu", asks="cpu"), -x),
                (made("heron", asks="cpu", same="heron"), x)):
    np.testing.assert_array_equal(jax.jit(lambda v: lax.cond(v.sum() > 0, p.bind, p.bind, v))(x), want)
from jax import export
own = export.export(jax.jit(lambda v: lax.platform_dependent(v, cpu=jnp.sin, heron=jnp.tan)))(x)
assert own.platforms == ("heron",)
np.testing.assert_allclose(jax.jit(own.call)(x), np.tan(x), rtol=1e-5)
both = export.export(jax.jit(lambda v: lax.platform_dependent(v, cpu=jnp.sin, heron=jnp.tan)), platforms=("cpu", "heron"))
np.testing.assert_allclose(both(x).call(x), np.tan(x), rtol=1e-5)
"""
    )


def test_programs_for_a_topology() -> None:
    """JAX compiles them by a client that is there, if it can; jaxlib would keep Python's lock meanwhile."""
    run(
        _HEAD
        + """
from jax.experimental import topologies
from jax.sharding import NamedSharding, PartitionSpec as P
topology = topologies.get_topology_desc(platform=jax.devices()[0].platform)
there = NamedSharding(topologies.make_mesh(topology, (1,), ("x",)), P())
given = jax.ShapeDtypeStruct((4,), jnp.float32)
program = jax.jit(lambda v: v * 2 + 1, in_shardings=there, out_shardings=there).lower(given).compile()
assert "HloModule" in program.as_text()
from heron import HeronError
try:
    jax.devices()[0].client.compile("module {}", topology=None)
except HeronError as error:
    assert error.code == "PJRT018"
else:
    raise AssertionError
""",
        timeout=300,
    )
