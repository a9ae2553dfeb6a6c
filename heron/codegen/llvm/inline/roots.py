"""cbrt and rsqrt."""

from __future__ import annotations

from heron.codegen.llvm.inline.builder import Body, Value, inline

#: m^(-1/3) on [1/2, 4], relative error 2^-8.4: the start of Newton's iteration
START = (1.7952830191070361, -1.5036023326515757, 1.027318842986826, -0.3892255714352246, 0.07451874407519948,
         -0.005621354501465655)  # fmt: skip


@inline("rsqrt")
def rsqrt(f: Body, x: Value) -> Value:
    """1/√x: two correctly rounded operations, 1 ULP."""
    return 1.0 / x.sqrt()


@inline("cbrt")
def cbrt(f: Body, x: Value) -> Value:
    """|x| = 2^(3q)·m, m in [1/2, 4): Newton for m^(-1/3) without division, then one exact-residual step."""
    t = x.format
    a = x.abs()
    tiny = a < 2.0 ** (1 - t.bias)
    bits = f.select(tiny, a * 2.0**54, a).bits()  # 54 = 3·18
    exponent = (bits >> t.mantissa) - (t.bias - 1)
    # floor(exponent / 3) for |exponent| < 2048
    third = ((exponent + 3072) * 21846 >> 16) - 1024
    m_bits = (bits & ((1 << t.mantissa) - 1)) | ((t.bias - 1) << t.mantissa)
    m = m_bits.as_float(t.name) * f.pow2(exponent - third * 3, t.name)
    r = f.poly(m, START)
    for _ in range(1 if t.name == "f32" else 2):
        r = f.fma(r * f.fma(-(m * r), r * r, 1.0), 1.0 / 3.0, r)
    y = m * r * r
    square, square_low = f.two_prod(y, y)
    cube, cube_low = f.two_prod(square, y)
    residual = (m - cube) - f.fma(square_low, y, cube_low)
    y = f.fma(residual * (r * r), 1.0 / 3.0, y)
    y = y * f.pow2(third - f.select(tiny, f.constant(18, t.integer), f.constant(0, t.integer)), t.name)
    ordinary = f.both(a > 0.0, a < float("inf"))
    return f.select(ordinary, y.copysign(x), x)
