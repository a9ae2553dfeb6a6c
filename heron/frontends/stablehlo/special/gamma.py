"""log-gamma and digamma by Lanczos' approximation.

``Γ(z+1) = sqrt(2π) t^(z+1/2) e^-t A(z)`` with ``t = z + g + 1/2``; below 1/2 by reflection,
``Γ(z) Γ(1-z) = π / sin(πz)``. Coefficients: P. Godfrey's for g = 7 with nine terms.
"""

from __future__ import annotations

import math

from heron.frontends.stablehlo.special.expression import Expression, in_working_type, where

_G = 7.0
_BASE = 0.99999999999980993227684700473478
_TERMS = (
    676.520368121885098567009190444019,
    -1259.13921672240287047156078755283,
    771.3234287776530788486528258894,
    -176.61502916214059906584551354,
    12.507343278686904814458936853,
    -0.13857109526572011689554707,
    9.984369578019570859563e-6,
    1.50563273514931155834e-7,
)


def _reflected(x: Expression) -> tuple[Expression, Expression]:
    """Whether `x` is reflected, and the z ≥ -1/2 that is used for it."""
    below = x.less(0.5)
    return below, where(below, -x, x - 1.0)


def _log_t(z: Expression) -> Expression:
    """``log(z + g + 1/2)``, precise for small z."""
    return (z / (_G + 0.5)).named("log-plus-one") + math.log(_G + 0.5)


@in_working_type
def lgamma(x: Expression) -> Expression:
    """``log |Γ(x)|``; infinite at poles and infinities."""
    below, z = _reflected(x)
    total = z.like(_BASE)
    for k, c in enumerate(_TERMS, 1):
        total = total + c / (z + float(k))
    t, log_t = z + (_G + 0.5), _log_t(z)
    direct = (z + 0.5 - t / log_t) * log_t + (total.named("log") + math.log(2 * math.pi) / 2)
    # sin(π|x|) from the distance to the nearest integer: no digits are lost for large x
    distance = abs(x) - abs(x).named("floor")
    distance = where(distance.compare("GT", 0.5), 1.0 - distance, distance)
    log_sine = (distance * math.pi).named("sine").named("log")
    mirrored = where(log_sine.named("is-finite"), math.log(math.pi) - log_sine - direct, -log_sine)
    result = where(below, mirrored, direct)
    return where(abs(x).equals(math.inf), math.inf, result)


@in_working_type
def digamma(x: Expression) -> Expression:
    """``Γ'(x) / Γ(x)``; NaN at the poles 0, -1, -2, …"""
    below, z = _reflected(x)
    slope, total = z.like(0.0), z.like(_BASE)
    for k, c in enumerate(_TERMS, 1):
        d = z + float(k)
        slope = slope - c / (d * d)
        total = total + c / d
    direct = _log_t(z) + slope / total - _G / (z + (_G + 0.5))
    turned = (x + abs((x + 0.5).named("floor"))) * math.pi
    mirrored = direct - turned.named("cosine") * math.pi / turned.named("sine")
    result = where(below, mirrored, direct)
    pole = x.compare("LE", 0.0) & x.is_integral()
    return where(pole, math.nan, result)
