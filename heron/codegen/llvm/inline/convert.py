"""Conversions between float formats that hardware lacks, written with integers so that they vectorise.

``heron.convert.A.B``; ``bf16bits`` is bf16 held in an i16. Narrowing rounds to nearest, ties to even; what exceeds the
format becomes its infinity, or its NaN where it has none (as ml_dtypes converts). From f64 the value first goes to f32
rounded to odd, so that the second rounding is exact.
"""

from __future__ import annotations

from heron.codegen.llvm.inline.builder import REGISTRY, Body, Build, Definition, Value
from heron.records import dataclass


@dataclass(frozen=True, slots=True)
class Small:
    """A narrow format. ``nan``: 'ieee' (infinities), 'ones' (all-ones is NaN), 'minus_zero' (0x80 is NaN), 'none'."""

    name: str
    exponent: int
    mantissa: int
    bias: int
    nan: str

    @property
    def sign_shift(self) -> int:
        return self.exponent + self.mantissa

    @property
    def nan_bits(self) -> int:
        if self.nan == "minus_zero":
            return 1 << self.sign_shift
        if self.nan == "ones":
            return (1 << self.sign_shift) - 1
        return (((1 << self.exponent) - 1) << self.mantissa) | (1 << (self.mantissa - 1))

    @property
    def largest(self) -> int:
        """The bits of the largest finite value."""
        top = (1 << self.sign_shift) - 1
        if self.nan == "ones":
            return top - 1
        return top if self.nan in ("minus_zero", "none") else ((((1 << self.exponent) - 1) << self.mantissa) - 1)


FORMATS = (
    Small("f8e5m2", 5, 2, 15, "ieee"),
    Small("f8e4m3", 4, 3, 7, "ieee"),
    Small("f8e3m4", 3, 4, 3, "ieee"),
    Small("f8e4m3fn", 4, 3, 7, "ones"),
    Small("f8e5m2fnuz", 5, 2, 16, "minus_zero"),
    Small("f8e4m3fnuz", 4, 3, 8, "minus_zero"),
    Small("f8e4m3b11fnuz", 4, 3, 11, "minus_zero"),
    Small("f6e2m3fn", 2, 3, 1, "none"),
    Small("f6e3m2fn", 3, 2, 3, "none"),
    Small("f4e2m1fn", 2, 1, 1, "none"),
)


def define(source: str, target: str, argument: str, result: str, build: Build) -> None:
    """Register one conversion."""
    name = f"heron.convert.{source}.{target}"
    REGISTRY[name] = Definition(name, (argument,), result, build)


def widen(f: Body, x: Value, form: Small) -> Value:
    """Small bits (i8) to f32: the fields are put in place and the exponent is moved.

    A denormal gets the exponent of the smallest normal number and the leading one that goes with it, which is taken off
    again. No value on the way is a denormal of f32.
    """
    bits = x.cast("zext", "i32")
    sign = (bits.shr(form.sign_shift) & 1) << 31
    fields = bits & ((1 << form.sign_shift) - 1)
    denormal = fields < 1 << form.mantissa
    base = f.select(denormal, (128 - form.bias) << 23, (127 - form.bias) << 23, "i32")
    leading = f.select(denormal, 2.0 ** (1 - form.bias), 0.0, "f32")
    value = ((fields << (23 - form.mantissa)) + base).as_float("f32") - leading
    if form.nan == "ieee":
        special = fields >= (((1 << form.exponent) - 1) << form.mantissa)
        exact = ((fields << (23 - form.mantissa)) | 0x7F800000).as_float("f32")
        value = f.select(special, exact, value)
    elif form.nan == "ones":
        value = f.select(fields.eq(form.nan_bits), float("nan"), value)
    signed = (value.bits() | sign).as_float("f32")
    return f.select(bits.eq(form.nan_bits), float("nan"), signed) if form.nan == "minus_zero" else signed


def narrow(f: Body, x: Value, form: Small) -> Value:
    """f32 to small bits, rounded to nearest even."""
    bits = x.bits()
    sign = bits.shr(31) << form.sign_shift
    a = bits & 0x7FFFFFFF
    drop = 23 - form.mantissa
    # normal results: add half a unit (less one when the kept bit is even), rebase the exponent, shift
    odd = a.shr(drop) & 1
    normal = (a + odd + ((1 << (drop - 1)) - 1)).shr(drop) - ((127 - form.bias) << form.mantissa)
    # denormal results: adding a power of two whose unit is the format's smallest step rounds for us
    step = 2.0 ** (1 - form.bias - form.mantissa + 23)
    tiny = (a.as_float("f32") + step).bits() - f.constant(step, "f32").bits()
    smallest_normal = 2.0 ** (1 - form.bias)
    fields = f.select(a.as_float("f32") < smallest_normal, tiny, normal)
    over = fields > form.largest
    if form.nan == "ieee":
        fields = f.select(over, f.constant(form.largest + 1, "i32"), fields)
    elif form.nan == "none":
        fields = f.select(over, f.constant(form.largest, "i32"), fields)
    else:
        fields = f.select(over, f.constant(form.nan_bits, "i32"), fields)
    is_nan = x.is_nan()
    if form.nan == "none":  # there is none: ml_dtypes gives minus zero
        return f.select(is_nan, f.constant(1 << form.sign_shift, "i32"), fields | sign).cast("trunc", "i8")
    if form.nan == "minus_zero":
        # there is no negative zero, and an overflow is NaN whatever its sign
        keep = f.both(fields.ne(0), f.invert(over))
        result = f.select(keep, fields | sign, fields)
        return f.select(is_nan, f.constant(form.nan_bits, "i32"), result).cast("trunc", "i8")
    fields = f.select(is_nan, f.constant(form.nan_bits, "i32"), fields)
    return (fields | sign).cast("trunc", "i8")


def round_to_odd(f: Body, x: Value) -> Value:
    """f64 to f32 such that a second rounding to fewer than 22 mantissa bits is right."""
    near = x.narrow("f32")
    back = near.extend()
    bits = near.bits()
    # truncate toward zero, then set the last bit when anything was lost
    away = back.abs() > x.abs()
    truncated = f.select(away, bits - 1, bits)
    sticky = f.select(back.ne(x), truncated | 1, bits)
    return f.select(x.is_nan(), near, sticky.as_float("f32"))


def to_bf16_bits(f: Body, x: Value) -> Value:
    """f32 to the bits of bf16, as i16."""
    bits = x.bits()
    rounded = (bits + ((bits.shr(16) & 1) + 0x7FFF)).shr(16)
    quiet = bits.shr(16) | 0x40
    return f.select(x.is_nan(), quiet, rounded).cast("trunc", "i16")


def computed_to_bf16_bits(f: Body, x: Value) -> Value:
    """The same for what was computed from bf16 values: the low half of a NaN is 0 then, and rounding keeps it one."""
    bits = x.bits()
    return (bits + ((bits.shr(16) & 1) + 0x7FFF)).shr(16).cast("trunc", "i16")


def from_bf16_bits(f: Body, x: Value) -> Value:
    """The bits of bf16 to f32."""
    return (x.cast("zext", "i32") << 16).as_float("f32")


def to_bf16(f: Body, x: Value) -> Value:
    """f32 to bf16."""
    return to_bf16_bits(f, x).as_float("bf16")


def from_e8m0(f: Body, x: Value) -> Value:
    """2^(bits-127); 0xFF is NaN; 0 is the denormal 2^-127."""
    bits = x.cast("zext", "i32")
    value = f.select(bits.eq(0), f.constant(0x00400000, "i32"), bits << 23).as_float("f32")
    return f.select(bits.eq(255), float("nan"), value)


def to_e8m0(f: Body, x: Value) -> Value:
    """The nearest power of two of a positive value, ties up; everything else is NaN."""
    bits = x.bits()
    denormal = f.select(bits > 0x400000, f.constant(1, "i32"), 0)  # code 0 is 2^-127; above it ml_dtypes goes up
    rounded = f.select(bits < 0x800000, denormal, (bits + 0x400000).shr(23))
    bad = f.either(f.invert(x > 0.0), rounded > 254)
    return f.select(bad, f.constant(255, "i32"), rounded).cast("trunc", "i8")


REGISTRY["heron.round.f32.bf16bits"] = Definition("heron.round.f32.bf16bits", ("f32",), "i16", computed_to_bf16_bits)


def _register() -> None:
    narrowers: dict[str, Build] = {form.name: (lambda f, x, form=form: narrow(f, x, form)) for form in FORMATS}
    wideners: dict[str, Build] = {form.name: (lambda f, x, form=form: widen(f, x, form)) for form in FORMATS}
    narrowers["f8e8m0fnu"], wideners["f8e8m0fnu"] = to_e8m0, from_e8m0
    for name, build in wideners.items():
        define(name, "f32", "i8", "f32", build)
        define(name, "f64", "i8", "f64", lambda f, x, b=build: b(f, x).extend())
        define(name, "f16", "i8", "f16", lambda f, x, b=build: b(f, x).narrow("f16"))
    for name, build in narrowers.items():
        define("f32", name, "f32", "i8", build)
        define("f64", name, "f64", "i8", lambda f, x, b=build: b(f, round_to_odd(f, x)))
        define("f16", name, "f16", "i8", lambda f, x, b=build: b(f, x.extend("f32")))
    for a, read in wideners.items():
        for b, write in narrowers.items():
            define(a, b, "i8", "i8", lambda f, x, r=read, w=write: w(f, r(f, x)))
    define("f64", "f16", "f64", "f16", lambda f, x: round_to_odd(f, x).narrow("f16"))
    _register_bf16("bf16", "bf16", to_bf16, lambda f, x: x.extend("f32"), wideners, narrowers)
    # the same where bf16 travels as i16
    _register_bf16("bf16bits", "i16", to_bf16_bits, from_bf16_bits, wideners, narrowers)


def _register_bf16(
    name: str, type_: str, write: Build, read: Build, wideners: dict[str, Build], narrowers: dict[str, Build]
) -> None:
    define("f32", name, "f32", type_, write)
    define("f64", name, "f64", type_, lambda f, x: write(f, round_to_odd(f, x)))
    define("f16", name, "f16", type_, lambda f, x: write(f, x.extend("f32")))
    define(name, "f32", type_, "f32", read)
    define(name, "f64", type_, "f64", lambda f, x: read(f, x).extend())
    define(name, "f16", type_, "f16", lambda f, x: read(f, x).narrow("f16"))
    for small, build in wideners.items():
        define(small, name, "i8", type_, lambda f, x, b=build: write(f, b(f, x)))
    for small, build in narrowers.items():
        define(name, small, type_, "i8", lambda f, x, b=build: b(f, read(f, x)))


_register()
