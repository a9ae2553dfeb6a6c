"""Hurwitz' zeta function and the polygamma functions, by Euler and Maclaurin's summation."""

from __future__ import annotations

import math

from heron.frontends.stablehlo.special.expression import Expression, in_working_type, where
from heron.frontends.stablehlo.special.gamma import digamma, lgamma

#: (2k)! / B(2k) for k = 1, 2, …
_BERNOULLI = (
    12.0,
    -720.0,
    30240.0,
    -1209600.0,
    47900160.0,
    -1.8924375803183791606e9,
    7.47242496e10,
    -2.950130727918164224e12,
    1.1646782814350067249e14,
    -4.5979787224074726105e15,
    1.8152105401943546773e17,
    -7.1661652561756670113e18,
)
_DIRECT = 9  # terms summed one by one


@in_working_type
def zeta(x: Expression, q: Expression) -> Expression:
    """``Σ (q + k)^-x`` over k ≥ 0, for x > 1."""
    total = q.power(-x)
    a = q
    for _ in range(_DIRECT):
        a = a + 1.0
        total = total + a.power(-x)
    last = a.power(-x)
    total = total + last * a / (x - 1.0) - 0.5 * last
    factor, inverse_square = x, 1.0 / (a * a)
    rest = last / a
    for k, b in enumerate(_BERNOULLI):
        total = total + factor * rest / b
        rest = rest * inverse_square
        n = 2.0 * k
        factor = factor * (x + (n + 1.0)) * (x + (n + 2.0))
    even = (x / 2.0).is_integral() & x.is_integral()
    below, whole = q.compare("LE", 0.0), q.is_integral()
    total = where(below & whole, where(even, q.like(math.inf), math.nan), total)
    total = where(q.less(0.0) & ~whole & ~x.is_integral(), math.nan, total)
    total = where(x.less(1.0), math.nan, total)
    return where(x.equals(1.0), math.inf, total)


@in_working_type
def polygamma(n: Expression, x: Expression) -> Expression:
    """The nth derivative of digamma: ``(-1)^(n+1) n! ζ(n+1, x)``; NaN unless n is a whole number."""
    above = n + 1.0
    half = above / 2.0
    sign = where(half.is_integral(), n.like(1.0), -1.0)
    value = sign * lgamma(above).named("exponential") * zeta(above, x)
    value = where(n.equals(0.0), digamma(x), value)
    return where(n.less(0.0) | ~n.is_integral(), math.nan, value)
