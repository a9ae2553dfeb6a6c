"""The modified Bessel function of the first kind and first order, scaled: ``exp(-|x|) I1(x)``.

Chebyshev series, interpolated to double precision: up to 8 of ``f(x) / x`` over x, beyond of ``f(x) sqrt(x)`` over 1/x.
"""

from __future__ import annotations

from collections.abc import Sequence

from heron.frontends.stablehlo.special.expression import Expression, in_working_type, where

_NEAR = (
    1.26293593221816824e-01,
    -1.76416518357834062e-01,
    1.02643658689847109e-01,
    -5.29459812080949888e-02,
    2.47264490306264850e-02,
    -1.05640848946261644e-02,
    4.15642294431284309e-03,
    -1.51357245063120523e-03,
    5.12285956168522091e-04,
    -1.61760815825818193e-04,
    4.78156510753935518e-05,
    -1.32731636559026129e-05,
    3.47025130794238484e-06,
    -8.56872026248283211e-07,
    2.00329475079256789e-07,
    -4.44505909834179048e-08,
    9.38153701398428289e-09,
    -1.88724931677748998e-09,
    3.62558503431163870e-10,
    -6.66343513343628613e-11,
    1.17355543113544292e-11,
    -1.98338907374581200e-12,
    3.21771509206026362e-13,
    -4.98638392640835304e-14,
    7.01730046520790486e-15,
    -5.58634650912833176e-16,
    -4.46748416751599673e-16,
    5.07365989671253095e-16,
    -5.58089856057020058e-16,
)
_FAR = (
    3.89288117509140053e-01,
    -9.76109749136147217e-03,
    -1.10588938762604550e-04,
    -3.88256480887644207e-06,
    -2.51223623771753485e-07,
    -2.63146884592891408e-08,
    -3.83538035179955681e-09,
    -5.58974342438137791e-10,
    -1.89749376869994808e-11,
    3.25260522172531575e-11,
    1.41259039812265056e-11,
    2.03562490517079140e-12,
    -7.19758956193132906e-13,
    -4.08384018239141271e-13,
    -2.08384560965334925e-14,
    4.27157202110894790e-14,
    1.06734720447667203e-14,
    -3.82402889136498825e-15,
    -1.58994500015413991e-15,
    3.23524974763707485e-16,
    2.36599967361832437e-16,
    -2.22751373835186896e-17,
    -6.18227989906505247e-16,
    3.28638678862576003e-17,
    -5.79154992062829894e-16,
)


@in_working_type
def bessel_i1e(x: Expression) -> Expression:
    """``exp(-|x|) I1(x)``, an odd function."""
    size = abs(x)
    near = _chebyshev(size / 4.0 - 1.0, _NEAR) * size
    far = _chebyshev(16.0 / size - 1.0, _FAR) * size.named("rsqrt")
    value = where(size.compare("LE", 8.0), near, far)
    return where(x.less(0.0), -value, value)


def _chebyshev(t: Expression, coefficients: Sequence[float]) -> Expression:
    """``Σ c[k] T[k](t)`` by Clenshaw's recurrence."""
    twice = t + t
    b1, b2 = t.like(0.0), t.like(0.0)
    for c in reversed(coefficients[1:]):
        b1, b2 = twice * b1 - b2 + c, b1
    return t * b1 - b2 + coefficients[0]
