"""Random numbers of both generators, and samplers. The bits are exact; so is all that is made of bits alone."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax import random as jr

from tests.interplay.fragment import Fragment as F


def _key(k):
    return jr.wrap_key_data(k)


def _rbg(k):
    return jr.wrap_key_data(jnp.concatenate([k, k ^ 1]), impl="rbg")


FRAGMENTS = [
    F("threefry_bits", "u32[2] key; f32[n]", lambda k, x: jr.bits(_key(k), x.shape), exact=True),
    F("threefry_bits8", "u32[2] key; f32[n,3]", lambda k, x: jr.bits(_key(k), x.shape, "uint8"), exact=True),
    F("threefry_bits64", "u32[2] key; f64[n]", lambda k, x: jr.bits(_key(k), x.shape, "uint64"), exact=True),
    F("threefry_split", "u32[2] key", lambda k: jr.key_data(jr.split(_key(k), 3)), exact=True),
    F("threefry_fold", "u32[2] key; s32[] index", lambda k, i: jr.key_data(jr.fold_in(_key(k), i)), exact=True),
    F("uniform", "u32[2] key; f32[n]", lambda k, x: jr.uniform(_key(k), x.shape), exact=True),
    F("uniform_f64", "u32[2] key; f64[n]", lambda k, x: jr.uniform(_key(k), x.shape, "float64"), exact=True),
    F("uniform_range", "u32[2] key; f32[n,3]", lambda k, x: jr.uniform(_key(k), x.shape, minval=-2, maxval=3)),
    F("uniform_bf16", "u32[2] key; f32[n]", lambda k, x: jr.uniform(_key(k), x.shape, "bfloat16"), exact=True),
    F("normal", "u32[2] key; f32[n]", lambda k, x: jr.normal(_key(k), x.shape)),
    F("normal_f64", "u32[2] key; f64[n]", lambda k, x: jr.normal(_key(k), x.shape, "float64")),
    F("normal_noise", "u32[2] key; f32[n,4]", lambda k, x: x + 0.1 * jr.normal(_key(k), x.shape)),
    F("normal_complex", "u32[2] key; f32[n]", lambda k, x: jr.normal(_key(k), x.shape, "complex64")),
    F("randint", "u32[2] key; f32[n]", lambda k, x: jr.randint(_key(k), x.shape, -3, 11), exact=True),
    F("randint_u8", "u32[2] key; f32[n]", lambda k, x: jr.randint(_key(k), x.shape, 0, 200, "uint8"), exact=True),
    F("bernoulli", "u32[2] key; f32[n] unit", lambda k, p: jr.bernoulli(_key(k), p), exact=True),
    F(
        "dropout",
        "u32[2] key; f32[n,3]",
        lambda k, x: jnp.where(jr.bernoulli(_key(k), 0.7, x.shape), x / 0.5, 0),
        exact=True,
    ),
    F("permutation", "u32[2] key; f32[n]", lambda k, x: jr.permutation(_key(k), x), exact=True),
    F("permutation_rows", "u32[2] key; f32[n,2]", lambda k, x: jr.permutation(_key(k), x, axis=0), exact=True),
    F("choice", "u32[2] key; f32[n]", lambda k, x: jr.choice(_key(k), x, (5,)), exact=True),
    F(
        "choice_no_replace",
        "u32[2] key; f32[n]",
        lambda k, x: jr.choice(_key(k), x, (x.size,), replace=False),
        exact=True,
    ),
    F("categorical", "u32[2] key; f32[n,4]", lambda k, x: jr.categorical(_key(k), x)),
    F("gumbel", "u32[2] key; f32[n]", lambda k, x: jr.gumbel(_key(k), x.shape) + x),
    F("exponential", "u32[2] key; f32[n]", lambda k, x: jr.exponential(_key(k), x.shape)),
    F("laplace", "u32[2] key; f32[n]", lambda k, x: jr.laplace(_key(k), x.shape)),
    F("logistic", "u32[2] key; f32[n]", lambda k, x: jr.logistic(_key(k), x.shape)),
    F("cauchy", "u32[2] key; f32[n]", lambda k, x: jr.cauchy(_key(k), x.shape)),
    F("gamma", "u32[2] key; f32[n] positive", lambda k, a: jr.gamma(_key(k), a), most=17),
    F("beta", "u32[2] key; f32[n] positive", lambda k, a: jr.beta(_key(k), a, a), most=13),
    F("dirichlet", "u32[2] key; f32[n] positive", lambda k, a: jr.dirichlet(_key(k), a), most=13),
    F("poisson", "u32[2] key; f32[n] positive", lambda k, a: jr.poisson(_key(k), a), most=17),
    F("truncated_normal", "u32[2] key; f32[n]", lambda k, x: jr.truncated_normal(_key(k), -1.0, 1.5, x.shape)),
    F("rademacher", "u32[2] key; f32[n]", lambda k, x: jr.rademacher(_key(k), x.shape), exact=True),
    F("student_t", "u32[2] key; f32[n] positive", lambda k, a: jr.t(_key(k), a + 2), most=13),
    F("weibull", "u32[2] key; f32[n] positive", lambda k, a: jr.weibull_min(_key(k), 1.0, a)),
    F(
        "multivariate_normal",
        "u32[2] key; f32[n]",
        lambda k, x: jr.multivariate_normal(_key(k), x, jnp.eye(x.size) * 2),
        most=13,
    ),
    F(
        "orthogonal_like",
        "u32[2] key; f32[n]",
        lambda k, x: jnp.linalg.qr(jr.normal(_key(k), (4, 4)) + 3 * jnp.eye(4))[1],
        most=3,
    ),
    F(
        "ball",
        "u32[2] key; f32[n]",
        lambda k, x: jr.rademacher(_key(k), x.shape) * jnp.abs(jr.normal(_key(k), x.shape)),
    ),
    F("rbg_bits", "u32[2] key; f32[n]", lambda k, x: jr.bits(_rbg(k), x.shape), exact=True, mapped=False),
    F("rbg_uniform", "u32[2] key; f32[n,3]", lambda k, x: jr.uniform(_rbg(k), x.shape), exact=True, mapped=False),
    F("rbg_normal", "u32[2] key; f32[n]", lambda k, x: jr.normal(_rbg(k), x.shape), mapped=False),
    F(
        "rbg_philox",
        "u64[2] bits; f32[n]",
        lambda k, x: lax.rng_bit_generator(k, x.shape, algorithm=lax.RandomAlgorithm.RNG_PHILOX),
        exact=True,
        mapped=False,
    ),
    F(
        "rbg_threefry",
        "u64[2] bits; f32[n]",
        lambda k, x: lax.rng_bit_generator(k, x.shape, algorithm=lax.RandomAlgorithm.RNG_THREE_FRY),
        exact=True,
        mapped=False,
    ),
    F(
        "scan_keys",
        "u32[2] key; f32[n]",
        lambda k, x: lax.scan(lambda c, v: (jr.key_data(jr.split(_key(c))[0]), v + jr.uniform(_key(c))), k, x),
    ),
    F(
        "vmap_keys",
        "u32[2] key; f32[n]",
        lambda k, x: jax.vmap(lambda c: jr.uniform(c, (2,)))(jr.split(_key(k), x.size)),
        exact=True,
    ),
    F("random_walk", "u32[2] key; f32[n]", lambda k, x: jnp.cumsum(jr.rademacher(_key(k), x.shape)), exact=True),
    F("metropolis", "u32[2] key; f32[n]", lambda k, x: _metropolis(k, x)),
    F(
        "reservoir",
        "u32[2] key; f32[n] distinct",
        lambda k, x: jnp.sort(x[jr.randint(_key(k), (4,), 0, x.size)]),
        exact=True,
    ),
]


def _metropolis(k, x):
    def step(i, v):
        key = jr.fold_in(_key(k), i)
        proposal = v + jr.uniform(key, v.shape, v.dtype) - 0.5
        return jnp.where(jr.uniform(jr.fold_in(key, 1), v.shape) < 0.5, proposal, v)

    return lax.fori_loop(0, 4, step, x)
