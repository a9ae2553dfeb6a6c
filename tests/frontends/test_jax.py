"""JAX functions: as modules, with the lines they were written on, and compiled by `heron.jit`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import heron
from heron.errors import HeronError

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
