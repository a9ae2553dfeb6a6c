"""Training as users write it, on heron and on JAX's CPU: the same losses to float tolerance."""

from __future__ import annotations

import importlib.util

import pytest

from tests.pjrt.under_jax import run

_COMPARE = """
import jax, jax.numpy as jnp, numpy as np

def compare(losses, rtol=1e-4, falls=0.5):
    '''What a function gives on heron beside what it gives on JAX's CPU; the last loss is below a part of the first.'''
    ours = np.array(losses())
    assert np.isfinite(ours).all() and ours[-1] < falls * ours[0], ours
    jax.clear_caches()
    with jax.default_device(jax.devices("cpu")[0]):
        theirs = np.array(losses())
    np.testing.assert_allclose(ours, theirs, rtol=rtol)

key = jax.random.key(0)
"""

_PLAIN = """
def layer(key, n, m):
    return {"w": jax.random.normal(key, (n, m)) / np.sqrt(n), "b": jnp.zeros(m)}

def model(p, x):
    '''A block of attention over 8 tokens, then two dense layers.'''
    q, k, v = (x @ p[name]["w"] for name in "qkv")
    x = x + jax.nn.softmax(q @ k.mT / 4.0) @ v
    x = (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)
    return jax.nn.gelu(x.mean(1) @ p["up"]["w"] + p["up"]["b"]) @ p["down"]["w"] + p["down"]["b"]

def loss(p, x, y):
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(model(p, x)) * jax.nn.one_hot(y, 4), axis=-1))

def adam(p, m, v, g, t):
    m, v = (jax.tree.map(lambda a, b: rate * a + (1 - rate) * f(b), s, g) for s, rate, f in ((m, 0.9, lambda b: b), (v, 0.999, jnp.square)))
    step = lambda a, m, v: a - 3e-3 * (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8)
    return jax.tree.map(step, p, m, v), m, v

def losses():
    keys = jax.random.split(key, 8)
    p = {name: layer(k, 16, 16) for name, k in zip("qkv", keys)} | {"up": layer(keys[3], 16, 32), "down": layer(keys[4], 32, 4)}
    x = jax.random.normal(keys[5], (64, 8, 16))
    y = jnp.argmax(x.mean(1)[:, :4], axis=-1)

    @jax.jit(donate_argnums=(0, 1, 2))
    def step(p, m, v, t):
        value, g = jax.value_and_grad(loss)(p, x, y)
        return adam(p, m, v, g, t), value

    m = jax.tree.map(jnp.zeros_like, p)
    v = jax.tree.map(jnp.zeros_like, p)
    found = []
    for t in range(1, 41):
        (p, m, v), value = step(p, m, v, float(t))
        found.append(float(value))
    return found
"""

_FLAX = """
import optax
from flax import linen as nn

class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Conv(8, (3, 3))(x))
        x = nn.avg_pool(x, (2, 2), strides=(2, 2)).reshape(x.shape[0], -1)
        return nn.Dense(4)(nn.LayerNorm()(nn.Dense(32)(x)))

def losses():
    keys = jax.random.split(key, 2)
    x, y = jax.random.normal(keys[0], (32, 8, 8, 1)), jnp.arange(32) % 4
    net, rule = Net(), optax.adamw(3e-3)
    p = net.init(keys[1], x)
    state = rule.init(p)

    @jax.jit
    def step(p, state):
        f = lambda p: optax.softmax_cross_entropy_with_integer_labels(net.apply(p, x), y).mean()
        value, g = jax.value_and_grad(f)(p)
        changes, state = rule.update(g, state, p)
        return optax.apply_updates(p, changes), state, value

    found = []
    for _ in range(30):
        p, state, value = step(p, state)
        found.append(float(value))
    return found
"""

_NNX = """
import optax
from flax import nnx

class Net(nnx.Module):
    def __init__(self, rngs):
        self.first, self.last = nnx.Linear(8, 32, rngs=rngs), nnx.Linear(32, 1, rngs=rngs)

    def __call__(self, x):
        return self.last(nnx.tanh(self.first(x)))

def losses():
    net = Net(nnx.Rngs(0))
    rule = nnx.Optimizer(net, optax.adam(1e-2), wrt=nnx.Param)
    x = jax.random.normal(key, (64, 8))
    y = jnp.sin(x.sum(-1, keepdims=True))

    @nnx.jit
    def step(net, rule):
        value, g = nnx.value_and_grad(lambda n: jnp.mean((n(x) - y) ** 2))(net)
        rule.update(net, g)
        return value

    return [float(step(net, rule)) for _ in range(60)]
"""

_EQUINOX = """
import equinox as eqx, optax

def losses():
    keys = jax.random.split(key, 2)
    net = eqx.nn.MLP(4, 2, 32, 2, key=keys[0])
    x = jax.random.normal(keys[1], (64, 4))
    y = jnp.stack([x.sum(-1), x.prod(-1)], -1)
    rule = optax.sgd(0.05)
    state = rule.init(eqx.filter(net, eqx.is_array))

    @eqx.filter_jit
    def step(net, state):
        value, g = eqx.filter_value_and_grad(lambda n: jnp.mean((jax.vmap(n)(x) - y) ** 2))(net)
        changes, state = rule.update(g, state)
        return eqx.apply_updates(net, changes), state, value

    found = []
    for _ in range(40):
        net, state, value = step(net, state)
        found.append(float(value))
    return found
"""

_DIFFRAX = """
import diffrax, optax

def losses():
    t = jnp.linspace(0.0, 2.0, 9)
    wanted = jnp.exp(-1.3 * t) * jnp.cos(2.0 * t)

    def far(p):
        field = lambda t, y, p: jnp.stack([-p[0] * y[0] - p[1] * y[1], p[1] * y[0] - p[0] * y[1]])
        found = diffrax.diffeqsolve(
            diffrax.ODETerm(field), diffrax.Tsit5(), 0.0, 2.0, 0.1, jnp.array([1.0, 0.0]), args=p,
            saveat=diffrax.SaveAt(ts=t), stepsize_controller=diffrax.PIDController(rtol=1e-5, atol=1e-7),
        )
        return jnp.mean((found.ys[:, 0] - wanted) ** 2)

    p, found = jnp.array([0.5, 1.5]), []
    step = jax.jit(jax.value_and_grad(far))
    for _ in range(15):
        value, g = step(p)
        p = p - 2.0 * g
        found.append(float(value))
    return found
"""


def test_a_training_loop() -> None:
    run(f"{_COMPARE}{_PLAIN}\ncompare(losses)")


@pytest.mark.parametrize(
    ("libraries", "script", "rtol"),
    [
        (("flax", "optax"), _FLAX, 1e-3),
        (("flax", "optax"), _NNX, 1e-3),
        (("equinox", "optax"), _EQUINOX, 1e-3),
        (("diffrax", "optax"), _DIFFRAX, 1e-3),
    ],
    ids=["flax.linen", "flax.nnx", "equinox", "diffrax"],
)
def test_libraries(libraries: tuple[str, ...], script: str, rtol: float) -> None:
    for name in libraries:
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed: pip install flax optax equinox diffrax")
    run(f"{_COMPARE}{script}\ncompare(losses, rtol={rtol})")
