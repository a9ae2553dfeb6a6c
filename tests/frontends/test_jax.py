"""JAX functions: as modules, with the lines they were written on, and compiled by `heron.jit`."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest

import heron
from heron.errors import HeronError
from heron.evaluator import evaluate

jax = pytest.importorskip("jax")
jnp = jax.numpy


@pytest.fixture(autouse=True)
def narrow() -> Iterator[None]:
    """Whatever tests before this one asked of JAX, here its 64-bit types are off."""
    with jax.enable_x64(False):
        yield


def layer(x, params, scale, key):  # noqa: ANN001, ANN201
    hidden = jnp.tanh(x @ params["w"]) * scale
    noise = jax.random.normal(key, hidden.shape)
    return {"hidden": hidden, "rest": (hidden.sum(0) + params["b"], noise)}


X = np.linspace(-1, 1, 15, dtype=np.float32).reshape(3, 5)
PARAMS = {"w": np.full((5, 4), 0.1, np.float32), "b": np.ones(4, np.float32)}


def test_from_jax_keeps_parameters_names_and_lines() -> None:
    module = heron.from_jax(layer, X, PARAMS, 2.0, jax.random.key(0), static_argnums=2)
    assert [str(p.shape.bare) for p in module.entry.parameters] == ["f32[3,5]", "f32[4]", "f32[5,4]", "u32[2]"]
    assert module.entry.parameters[0].name == "x"
    (tanh,) = (i for i in module.instructions() if i.opcode == "tanh")
    assert tanh.name == "tanh" and tanh.metadata is not None
    assert tanh.metadata.source_file.endswith("test_jax.py")
    assert tanh.metadata.source_line == layer.__code__.co_firstlineno + 1
    assert tanh.metadata.op_name.endswith("tanh")


def test_from_jax_by_shapes_and_for_another_platform() -> None:
    shape = jax.ShapeDtypeStruct((4, 4), np.float32)
    module = heron.from_jax(lambda x: jnp.linalg.cholesky(x), shape, platform="cuda")
    assert any("cusolver" in i.attrs.get("custom_call_target", "") for i in module.instructions())


def test_donated_arguments_are_aliased() -> None:
    module = heron.from_jax(lambda x, y: (x + y, y), X, X, donate_argnums=0)
    assert [alias[1] for alias in module.header["input_output_alias"]] == [0]


@pytest.mark.filterwarnings("ignore")
def test_many_operations_agree_with_jax() -> None:
    def everything(x, y):  # noqa: ANN001, ANN202
        def body(state):  # noqa: ANN001, ANN202
            n, z = state
            return n + 1, z * y + n

        n, z = jax.lax.while_loop(lambda s: s[0] < 4, body, (0, x))
        top = jax.lax.top_k(x, 2)
        window = jax.lax.reduce_window(x, 0.0, jax.lax.add, (2, 2), (1, 1), "SAME")
        picked = jax.lax.cond(n > 3, lambda: x @ y, lambda: x)
        q, r = jnp.linalg.qr(x)
        special = jax.lax.erf_inv(x / 4) + jax.lax.igamma(x, y) + jax.lax.bessel_i1e(x)
        spectrum = jnp.abs(jnp.fft.rfft(x))
        return z, top, window, picked, jnp.abs(r), jnp.cumsum(x, 1), jnp.sort(y), special, spectrum, x.at[1:3].add(7)

    rng = np.random.default_rng(0)
    x, y = (rng.uniform(0.5, 2, (4, 4)).astype(np.float32) for _ in range(2))
    got = heron.evaluate(heron.from_jax(everything, x, y), x, y)
    for n, (a, b) in enumerate(zip(got, jax.tree.leaves(jax.jit(everything)(x, y)), strict=True)):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6, err_msg=str(n))


def test_jit_runs_trees_with_static_arguments() -> None:
    compiled = heron.jit(layer, static_argnames="scale")
    key = jax.random.key(1)
    got, want = compiled(X, PARAMS, 2.0, key), jax.jit(layer, static_argnames="scale")(X, PARAMS, 2.0, key)
    assert jax.tree.structure(got) == jax.tree.structure(want)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert isinstance(a, np.ndarray)
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_jit_compiles_once_a_kind_of_arguments() -> None:
    traced = []

    @heron.jit(static_argnums=1)
    def f(x, n):  # noqa: ANN001, ANN202
        """Docs."""
        traced.append(x.shape)
        return x * n

    assert f.__name__ == "f" and f.__doc__ == "Docs."
    for x, n in ((np.ones(3, np.float32), 2), (np.zeros(3, np.float32), 2), (np.ones(3, np.float32), 3)):
        np.testing.assert_array_equal(f(x, n), x * n)
    assert len(traced) == 2
    assert f(np.ones(4, np.float32), n=2).tolist() == [2.0] * 4
    assert f.executable(np.ones(3, np.float32), 2) is f.executable(np.zeros(3, np.float32), 2)
    assert f.module(np.ones(3, np.float32), 2).entry.parameters
    with pytest.raises(HeronError, match="JAX002"):
        f(np.ones(3, np.float32), [1])


def test_scalars_and_wide_types_as_jax_takes_them() -> None:
    assert float(heron.jit(lambda x, y: x + y)(1, 2.5)) == 3.5
    assert heron.jit(lambda x: x + 1)(np.arange(3)).dtype == np.int32


def test_without_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(HeronError, match=r"pip install 'heron\[jax\]'"):
        heron.from_jax(layer, X)


class Pair(NamedTuple):
    first: Any
    second: Any


@jax.tree_util.register_dataclass
@dataclass
class Layer:
    weights: Any
    bias: Any
    name: str = field(default="layer", metadata={"static": True})


@dataclass(frozen=True)
class Scale:
    factor: int

    @functools.partial(heron.jit, static_argnums=0)
    def apply(self, x):  # noqa: ANN001, ANN201
        return x * self.factor


V = np.arange(3, dtype=np.float32)
#: function, options of jit, arguments, named arguments
TREES = {
    "named tuple": (lambda n: Pair(n.second, n.first), {}, (Pair(V, 2 * V),), {}),
    "dataclass with a static field": (lambda p: Layer(p.weights * 2, None, p.name + "!"), {}, (Layer(V, None),), {}),
    "None": (lambda d: {"y": d["x"], "z": None}, {}, ({"x": V, "n": None},), {}),
    "nothing": (lambda: 3.0, {}, (), {}),
    "no result": (lambda x: None, {}, (V,), {}),
    "named arguments in any order": (lambda x, *, b, a: x * a + b, {}, (V,), {"b": V, "a": np.float32(2)}),
    "any number of arguments": (lambda *a, **k: sum(a) + k["z"], {}, (V, V), {"z": V}),
    "static from behind": (lambda x, n: x * n, {"static_argnums": -1}, (V, 3), {}),
    "static with a default": (lambda x, n=2: x * n, {"static_argnums": 1}, (V,), {}),
    "static by its type": (lambda x, n: x[0] if n is True else x * n, {"static_argnums": 1}, (V, True), {}),
    "donated": (lambda x, y: (x + y, y), {"donate_argnums": 0}, (V, V + 1), {}),
    "donated by name": (lambda x, y: (x + y, y), {"donate_argnames": "y"}, (V, V + 1), {}),
    "one result twice, an argument as it is": (lambda x: (x, x, x + 1), {}, (V,), {}),
    "weak types": (lambda x: x + np.float16(1), {}, (2.0,), {}),
    "a list": (lambda x: x[0] + x[1], {}, ([1.0, 2],), {}),
    "keys": (lambda k: jax.vmap(lambda q: jax.random.uniform(q))(k), {}, (jax.random.split(jax.random.key(1), 3),), {}),
    "no elements": (lambda x: x.sum(), {}, (np.zeros((0, 3), np.float32),), {}),
    "jitted by JAX": (jax.jit(jnp.sin), {}, (V,), {}),
    "four bits": (lambda x: x + x, {}, (jnp.ones(3, jnp.int4),), {}),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TREES)
def test_arguments_and_results_of_any_shape(name: str) -> None:
    function, options, args, kwargs = TREES[name]
    before = [np.array(x) for x in args if isinstance(x, np.ndarray)]
    compiled = heron.jit(function, **options)
    if name == "static by its type":
        compiled(args[0], 1)  # 1 == True, but another program
    got, want = compiled(*args, **kwargs), jax.jit(function, **options)(*[_copied(a) for a in args], **kwargs)
    assert jax.tree.structure(got) == jax.tree.structure(want)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(np.asarray(a, np.float32), np.asarray(b, np.float32), rtol=1e-6)
    for a, b in zip(before, (x for x in args if isinstance(x, np.ndarray)), strict=True):
        np.testing.assert_array_equal(a, b)  # donated or not


def _copied(x: Any) -> Any:
    return np.array(x) if isinstance(x, np.ndarray) else x


def test_jit_of_methods_and_inside_transformations() -> None:
    assert Scale(3).apply(V).tolist() == [0, 3, 6] and Scale(5).apply(V).tolist() == [0, 5, 10]
    square = heron.jit(lambda x: (x * x).sum())
    np.testing.assert_array_equal(jax.grad(square)(V), 2 * V)
    assert float(heron.jit(lambda x: square(x) + 1)(V)) == 6.0


def test_jit_follows_the_settings_of_jax() -> None:
    more = heron.jit(lambda x: x + 1)
    assert more(np.arange(2)).dtype == np.int32
    with jax.enable_x64(True):
        assert more(np.arange(2)).dtype == np.int64
    assert more(np.arange(2)).dtype == np.int32


def test_symbolic_shapes_get_the_sizes_of_the_arguments() -> None:
    def scaled(x, w):  # noqa: ANN001, ANN202
        return jax.nn.softmax(x @ w, axis=-1).reshape(-1), x.mean(axis=0), jnp.concatenate([x, x])

    (rows,) = jax.export.symbolic_shape("rows")
    shapes = jax.ShapeDtypeStruct((rows, 4), jnp.float32), jax.ShapeDtypeStruct((4, 3), jnp.float32)
    exported = jax.export.export(jax.jit(scaled))(*shapes)
    compiled = heron.jit(exported.call)
    w = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
    for n in (1, 5):
        x = np.arange(4 * n, dtype=np.float32).reshape(n, 4)
        for found, wanted in zip(compiled(x, w), scaled(x, w), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    module = heron.load(exported.mlir_module_serialized, arguments=[x, w])
    for found, wanted in zip(evaluate(module, x, w), scaled(x, w), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
