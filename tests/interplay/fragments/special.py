"""Special functions, and distributions made of them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax.scipy.special as s
import jax.scipy.stats as st
from jax import lax

from tests.interplay.fragment import Fragment as F

#: name, domain, for functions of one array
_PLAIN = {
    "erf": "", "erfc": "", "erfinv": "small", "gammaln": "positive", "gamma": "positive", "digamma": "positive",
    "expit": "", "logit": "unit", "log_ndtr": "", "ndtr": "", "ndtri": "unit", "i0": "", "i0e": "", "i1": "", "i1e": "",
    "entr": "positive", "xlogy": "positive", "spence": "positive", "exp1": "positive", "expi": "positive",
    "log_softmax": "", "softmax": "", "factorial": "positive", "bernoulli": "", "sinc": "", "kl_div": "positive",
    "rel_entr": "positive", "boxcox": "positive",
}  # fmt: skip

_TWO = ("xlogy", "kl_div", "rel_entr", "boxcox")
_SKIP = ("bernoulli", "sinc")


def _slope(function):
    return jax.grad(lambda x: jnp.sum(function(x)))


FRAGMENTS = [
    *[
        F(f"special_{name}", f"f32[n] {domain}", getattr(s, name), ulps=512)
        for name, domain in _PLAIN.items()
        if hasattr(s, name) and name not in (*_TWO, *_SKIP)
    ],
    *[
        F(f"special_{name}", f"f32[n] {_PLAIN[name]}; f32[n] positive", getattr(s, name), ulps=512)
        for name in _TWO
        if hasattr(s, name)
    ],
    *[
        F(f"special_{name}_f64", f"f64[n] {_PLAIN[name]}", getattr(s, name), ulps=4096)
        for name in ("erf", "gammaln", "digamma", "i0e", "exp1")
    ],
    *[
        F(f"special_{name}_grad", f"f32[n] {_PLAIN[name]}", _slope(getattr(s, name)), ulps=1024)
        for name in ("erf", "gammaln", "i1e", "ndtri", "erfinv")
    ],
    F("expn", "f32[n] positive", lambda x: s.expn(3, x), ulps=1024),
    F("exp1_and_expn", "f32[n] positive", lambda x: (s.exp1(x), s.expn(2, x)), ulps=1024),
    F("betainc", "f32[n] positive; f32[n] positive; f32[n] unit", s.betainc, ulps=4096),
    F("betaln", "f32[n] positive; f32[n] positive", s.betaln, ulps=1024),
    F("gammainc", "f32[n] positive; f32[n] positive", lambda a, x: (s.gammainc(a, x), s.gammaincc(a, x)), ulps=4096),
    F(
        "igamma_grad",
        "f32[n] positive; f32[n] positive",
        jax.grad(lambda a, x: jnp.sum(s.gammainc(a, x)), (0, 1)),
        ulps=1 << 15,
    ),
    F("polygamma", "f32[n] positive", lambda x: s.polygamma(1, x), ulps=4096),
    F("zeta", "f32[n] large", lambda x: s.zeta(x, 1.5), ulps=1024),
    F("multigammaln", "f32[n] large", lambda x: s.multigammaln(x, 2), ulps=1024),
    F("hyp1f1", "f32[n] positive; f32[n] unit", lambda a, x: s.hyp1f1(a, a + 1, x), ulps=4096, most=17),
    F("bessel_jn", "f32[n] positive", lambda x: s.bessel_jn(x, v=2)[2], ulps=1 << 15, most=33),
    F("sph_terms", "f32[n] small", lambda x: [1.5 * x * x - 0.5, 2.5 * x**3 - 1.5 * x], ulps=256),
    F("logsumexp_sign", "f32[n]; f32[n]", lambda x, b: s.logsumexp(x, b=jnp.abs(b) + 0.1)),
    F("lbeta_f64", "f64[n] positive; f64[n] positive", s.betaln, ulps=1 << 14),
    F("bessel_i0e_bf16", "bf16[n]", lax.bessel_i0e, ulps=8),
    F("norm_logpdf", "f32[n]", lambda x: (st.norm.logpdf(x), st.norm.cdf(x)), ulps=256),
    F("norm_ppf", "f32[n] unit", st.norm.ppf, ulps=512),
    F("gamma_logpdf", "f32[n] positive; f32[n] positive", st.gamma.logpdf, ulps=512),
    F("beta_logpdf", "f32[n] unit", lambda x: st.beta.logpdf(x, 2.0, 3.0), ulps=512),
    F("t_logpdf", "f32[n]", lambda x: st.t.logpdf(x, 3.0), ulps=512),
    F("poisson_logpmf", "s32[n] index; f32[n] positive", st.poisson.logpmf, ulps=512),
    F("binom_logpmf", "s32[n] index; f32[n] unit", lambda k, p: st.binom.logpmf(k, 5, p), ulps=512),
    F(
        "expon_laplace",
        "f32[n] positive",
        lambda x: (st.expon.logpdf(x), st.laplace.cdf(x), st.logistic.logpdf(x)),
        ulps=256,
    ),
    F("chi2_cdf", "f32[n] positive", lambda x: st.chi2.cdf(x, 3.0), ulps=4096),
    F("kde", "f32[n]; f32[5]", lambda x, y: jnp.mean(jnp.exp(-0.5 * (x[:, None] - y) ** 2), 0), ulps=256),
    F("vonmises", "f32[n]", lambda x: st.vonmises.logpdf(x, 2.0), ulps=512),
]
