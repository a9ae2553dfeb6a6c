"""sin, cos, tan for every magnitude: x = n·π/2 + r, polynomials in r, quadrant by n.

Usual arguments are reduced with π/2 as a sum of doubles and fma. Huge ones multiply by 2/π modulo 4, from constants
that hold exactly the bits that matter (Payne and Hanek's idea). Both are straight-line; a select picks. The form for
usual arguments leaves the second out.
"""

from __future__ import annotations

from heron.codegen.llvm.inline.builder import Body, Value, inline

#: π/2 as an unevaluated sum of doubles
PI_2 = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)
TWO_PI_INVERSE = 0.6366197723675814
#: (sin r - r) / r³ and (cos r - 1 + r²/2) / r⁴ in r², |r| <= π/4; errors 2^-37 2^-42 and 2^-68 2^-73
SIN = {
    "f32": (-0.1666666716337204, 0.008333329111337662, -0.00019839245942421257, 2.7171968213224318e-06),
    "f64": (-0.16666666666666666, 0.008333333333333325, -0.0001984126984125593, 2.7557319214261535e-06,
            -2.5052104860265748e-08, 1.6058353624284162e-10, -7.577816735037562e-13),
}  # fmt: skip
COS = {
    "f32": (0.0416666679084301, -0.0013888885732740164, 2.479989780113101e-05, -2.7235893185206805e-07),
    "f64": (0.041666666666666664, -0.0013888888888888883, 2.480158730157957e-05, -2.7557319218579785e-07,
            2.0876755028176143e-09, -1.1470361925870973e-11, 4.7409345571496185e-14),
}  # fmt: skip
#: 2^(26a)·2/π mod 4 for a = 1, 2, 3 in four parts of 29 bits: products with a 24-bit mantissa are exact
HUGE_F32 = (
    (1.72352696955204, 4.8093533183690695e-09, 5.165171188494019e-18, 1.1195682975026274e-26),
    (1.3227502331137657, 5.003241640433309e-09, 4.220776498202813e-18, 1.990895485811361e-26),
    (1.8357618600130081, 3.0772192294303835e-09, 1.1744408176984715e-17, 2.2831412711600875e-26),
)
#: 2/π in 48-bit pieces: the sum over k of piece[k]·2^(-48(k+1))
PIECES = (
    179192535600708, 23270068279249, 269607407508322, 164485373595713, 279625518014139, 217023475117626,
    72902017812041, 51582721954332, 279404452032809, 183888630658549, 51381843323292, 123311537225281,
    63298527134547, 63722760724363, 208877819469816, 167125197363215, 262985436846602, 119981743701711,
    43752994852678, 69709976300077, 128813497838565, 265511607155191, 152087256787963, 105214343208200,
    94571694849147, 118386223725600,
)  # fmt: skip
TABLE = "heron.table.two_over_pi"
#: magnitudes from which arguments are reduced as huge ones
HUGE = {"f32": 2.0**49, "f64": 2.0**30}


def mod4(f: Body, x: Value) -> Value:
    """x minus the nearest multiple of 4; exact."""
    return f.fma((x * 0.25).rint(), -4.0, x)


def reduce_f32(f: Body, x: Value) -> tuple[Value, Value]:
    """(quadrant as i64, r in double) for x, a float widened to double."""
    a = x.abs()
    quadrant, n = f.round_to_int(f.at_most(a, 2.0**50) * TWO_PI_INVERSE)
    near = f.fma(n, -PI_2[1], f.fma(n, -PI_2[0], a))
    if f.usual:
        return quadrant, near
    # |x| >= 2^49: m·(2^(26a)·2/π mod 4) with m = x·2^(-26a), a whole number below 2^50
    beyond, far_beyond = a >= 2.0**74, a >= 2.0**100
    pick = lambda c: f.select(far_beyond, f.constant(c[2], "f64"), f.select(beyond, f.constant(c[1], "f64"), c[0]))  # noqa: E731
    m = a * pick([2.0 ** (-26 * step) for step in (1, 2, 3)])
    parts = [mod4(f, m * pick([row[i] for row in HUGE_F32])) for i in range(4)]
    total, error = f.two_sum(parts[0], parts[1])
    far_quadrant, whole = f.round_to_int(total)
    far = ((total - whole) + (error + (parts[2] + parts[3]))) * PI_2[0]
    huge = a >= HUGE["f32"]
    return f.select(huge, far_quadrant, quadrant), f.select(huge, far, near)


def reduce_f64(f: Body, x: Value) -> tuple[Value, Value, Value]:
    """(quadrant, r, low part of r) for |x|."""
    a = x.abs()
    quadrant, n = f.round_to_int(f.at_most(a, 2.0**31) * TWO_PI_INVERSE)
    r1 = f.fma(n, -PI_2[0], a)  # exact
    product, error = f.two_prod(n, PI_2[1])
    near, low = f.two_sum(r1, -product)
    near_low = f.fma(n, -PI_2[2], low - error)
    if f.usual:
        return quadrant, near, near_low
    huge = a >= HUGE["f64"]
    far_quadrant, far, far_low = reduce_huge(f, a)
    return (
        f.select(huge, far_quadrant, quadrant),
        f.select(huge, far, near),
        f.select(huge, far_low, near_low),
    )


def reduce_huge(f: Body, a: Value) -> tuple[Value, Value, Value]:
    """As `reduce_f64` for a >= 2^30: pieces whose products are multiples of 4 are skipped, five more are used."""
    f.globals[TABLE] = (
        f"@{TABLE} = internal unnamed_addr constant [{len(PIECES)} x double] ["
        + ", ".join(f"double {piece}.0" for piece in PIECES)
        + "]"
    )
    exponent = (a.bits() >> 52) - (1023 + 52 + 2)
    first = (exponent * 1366) >> 16  # exponent / 48 rounded down, exact in range
    first = f.select(exponent < 0, f.constant(0, "i64"), first)
    first = f.select(first > len(PIECES) - 5, f.constant(0, "i64"), first)  # inf and nan
    scaled = a * f.pow2((first + 1) * -48, "f64")
    products = []
    for i in range(5):
        place = f.op(f"getelementptr inbounds double, ptr @{TABLE}, i64 {first + i}", "i64")
        piece = f.op(f"load double, ptr {place}, align 8", "f64")
        products.append(f.two_prod(scaled * 2.0 ** (-48 * i), piece))
    (p0, e0), (p1, e1), (p2, e2), (p3, e3), (p4, _) = products
    # only the first three can pass 4; from e2 on terms are below 2^-41
    total, errors = mod4(f, p0), [e2, p3]
    for term in (mod4(f, e0), mod4(f, p1), e1, p2):
        total, carry = f.two_sum(total, term)
        errors.append(carry)
    middle, low = errors[0], e3 + p4
    for term in errors[1:]:
        middle, rest = f.two_sum(middle, term)
        low = low + rest
    total = mod4(f, total)
    quadrant, whole = f.round_to_int(total)
    high, carry = f.two_sum(total - whole, middle)
    high, carry = f.fast_two_sum(high, carry + low)
    r, error = f.two_prod(high, PI_2[0])
    r_low = f.fma(high, PI_2[1], f.fma(carry, PI_2[0], error))
    r, r_low = f.fast_two_sum(r, r_low)
    return quadrant, r, r_low


Pair = tuple[Value, Value]


def sin_poly(f: Body, r: Value, low: Value | None = None) -> Pair:
    """sin(r + low) as big + small."""
    z = r * r
    cubic = r * z * f.poly(z, SIN[r.type])
    if low is not None:
        cubic = f.fma(low, f.fma(z, -0.5, 1.0), cubic)
    return r, cubic


def cos_poly(f: Body, r: Value, low: Value | None = None) -> Pair:
    """cos(r + low) as big + small."""
    z = r * r
    quartic = z * z * f.poly(z, COS[r.type])
    half = z * 0.5
    top = 1.0 - half
    rest = (1.0 - top) - half  # what rounding 1 - z/2 lost
    if low is not None:
        quartic = f.fma(-r, low, quartic)
    return top, rest + quartic


def sin_cos(f: Body, x: Value) -> tuple[Value, Pair, Pair]:
    """(quadrant, sin r, cos r) of |x|; each of the two is an unevaluated sum."""
    if x.type == "f64":
        quadrant, r, low = reduce_f64(f, x)
        return quadrant, sin_poly(f, r, low), cos_poly(f, r, low)
    quadrant, wide = reduce_f32(f, x.extend())
    r = wide.narrow()
    return quadrant.cast("trunc", "i32"), sin_poly(f, r), cos_poly(f, r)


def flip(f: Body, x: Value, bit: Value) -> Value:
    """-x when bit 1 of ``bit`` is set."""
    t = x.format
    return (x.bits() ^ ((bit & 2) << (t.width - 2))).as_float(t.name)


def valid(f: Body, x: Value, result: Value) -> Value:
    """nan for infinite or nan x."""
    if f.usual:
        return result
    return f.select(x.abs() < float("inf"), result, float("nan"))


@inline("sin", usual=HUGE)
def sin(f: Body, x: Value) -> Value:
    quadrant, s, c = sin_cos(f, x)
    value = flip(f, f.select((quadrant & 1).ne(0), c[0] + c[1], s[0] + s[1]), quadrant)
    return valid(f, x, sign_times(value, x))


@inline("cos", usual=HUGE)
def cos(f: Body, x: Value) -> Value:
    quadrant, s, c = sin_cos(f, x)
    value = f.select((quadrant & 1).ne(0), s[0] + s[1], c[0] + c[1])
    return valid(f, x, flip(f, value, quadrant + (quadrant & 1)))


def sign_times(value: Value, x: Value) -> Value:
    """value with its sign flipped when x is negative."""
    t = x.format
    return (value.bits() ^ (x.bits() & (-1 << (t.width - 1)))).as_float(t.name)


@inline("tan", types=("f64",), usual=HUGE)
def tan(f: Body, x: Value) -> Value:
    """sin/cos, or -cos/sin in odd quadrants, with one step that repairs the quotient."""
    quadrant, s, c = sin_cos(f, x)
    odd = (quadrant & 1).ne(0)
    s, c = f.fast_two_sum(*s), f.fast_two_sum(*c)
    top, top_low = f.select(odd, -c[0], s[0]), f.select(odd, -c[1], s[1])
    bottom, bottom_low = f.select(odd, s[0], c[0]), f.select(odd, s[1], c[1])
    inverse = 1.0 / bottom
    ratio = top * inverse
    rest = f.fma(-ratio, bottom, top) + f.fma(-ratio, bottom_low, top_low)
    return valid(f, x, sign_times(f.fma(rest, inverse, ratio), x))


@inline("tan", types=("f32",), usual=HUGE)
def tan_f32(f: Body, x: Value) -> Value:
    """In double after the reduction: two rounded polynomials and a division would pass 2 ULP in float."""
    wide = x.extend()
    quadrant, r = reduce_f32(f, wide)
    z = r * r
    s = f.fma(r * z, f.poly(z, SIN["f32"]), r)
    c = f.fma(z * z, f.poly(z, COS["f32"]), f.fma(z, -0.5, 1.0))
    odd = (quadrant & 1).ne(0)
    ratio = f.select(odd, -c, s) / f.select(odd, s, c)
    return valid(f, x, sign_times(ratio, wide).narrow())
