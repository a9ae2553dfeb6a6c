"""exp, exp2, expm1: x = n·ln2 + r, a polynomial in r, scale by 2^n.

Coefficients: Remez fits in 250-bit arithmetic, rounded; the error of each fit is in its comment.
"""

from __future__ import annotations

from heron.codegen.llvm.inline.builder import Body, Value, inline

LOG2_E = 1.4426950408889634
#: ln 2 = hi + lo; n·hi is exact where it matters because the subtraction is an fma
LN2 = {"f32": (0.6931471824645996, -1.9046542121259336e-09), "f64": (0.6931471805599453, 2.3190468138462996e-17)}
#: (e^r - 1 - r) / r², |r| <= ln2/2; relative error of e^r - 1: 2^-33 and 2^-64
EXP = {
    "f32": (0.5, 0.1666666716337204, 0.041666239500045776, 0.00833328627049923, 0.0013948640553280711,
            0.0001990763848880306),
    "f64": (0.5, 0.16666666666666685, 0.04166666666666673, 0.008333333333316687, 0.0013888888888858371,
            0.00019841269897189555, 2.480158737387439e-05, 2.7557234102694816e-06, 2.7557233253774545e-07,
            2.5112287660193985e-08, 2.092697344162212e-09),
}  # fmt: skip
#: (2^r - 1) / r, |r| <= 1/2; relative error 2^-34 and 2^-63
EXP2 = {
    "f32": (0.6931471824645996, 0.24022650718688965, 0.05550410971045494, 0.009618036448955536, 0.0013333429815247655,
            0.00015467219054698944, 1.531507950858213e-05),
    "f64": (0.6931471805599453, 0.24022650695910072, 0.05550410866482177, 0.009618129107628487, 0.0013333558146373795,
            0.0001540353039335456, 1.5252733871437472e-05, 1.3215486823495732e-06, 1.0178045133273393e-07,
            7.054891387020564e-09, 4.457557049916848e-10, 2.5737932444201745e-11),
}  # fmt: skip
#: beyond these exp is inf or 0; at the lower bounds n is the lowest that `scale_positive` takes
EXP_RANGE = {"f32": (-104.5, 89.0), "f64": (-746.0, 710.0)}
EXP2_RANGE = {"f32": (-151.0, 129.0), "f64": (-1076.0, 1025.0)}


def reduce(f: Body, x: Value) -> tuple[Value, Value]:
    """x = n·ln2 + r as (n, r), |r| <= ln2/2."""
    hi, lo = LN2[x.type]
    n, rounded = f.round_to_int(x, LOG2_E)
    return n, f.fma(rounded, -lo, f.fma(rounded, -hi, x))


def expm1_reduced(f: Body, r: Value) -> Value:
    """e^r - 1 for |r| <= ln2/2."""
    return f.fma(r * r, f.poly(r, EXP[r.type]), r)


def clamp(f: Body, x: Value, bounds: tuple[float, float]) -> Value:
    """x within bounds; NaN stays."""
    return f.at_least(f.at_most(x, bounds[1]), bounds[0])


@inline("exp")
def exp(f: Body, x: Value) -> Value:
    n, r = reduce(f, clamp(f, x, EXP_RANGE[x.type]))
    return f.scale_positive(expm1_reduced(f, r) + 1.0, n)


@inline("exp2")
def exp2(f: Body, x: Value) -> Value:
    x = clamp(f, x, EXP2_RANGE[x.type])
    n, rounded = f.round_to_int(x)
    r = x - rounded
    return f.scale_positive(f.fma(r, f.poly(r, EXP2[x.type]), 1.0), n)


@inline("expm1")
def expm1(f: Body, x: Value) -> Value:
    """2^n·(e^r - 1) + (2^n - 1), with 2^(n-1) so that n = 1024 does not overflow; -1 below, ±0 kept."""
    low = {"f32": -20.0, "f64": -40.0}[x.type]
    n, r = reduce(f, clamp(f, x, (low, EXP_RANGE[x.type][1])))
    half = f.pow2(n - 1, x.type)
    result = f.fma(half, expm1_reduced(f, r), half - 0.5) * 2.0
    return result.copysign(x)
