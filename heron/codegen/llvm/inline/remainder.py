"""fmod of f32, and by divisors of usual sizes."""

from __future__ import annotations

from heron.codegen.llvm.inline.builder import Body, Value, inline

#: bits of the quotient that one step takes away: with more, a quotient could be wrong by two
_STEP = 50
#: binary orders from the smallest f32 to the largest
_ORDERS = 277
#: the smallest divisor of `fmod_near`: three steps take the quotient of the largest f32 by it; and the largest one, of
#: f64 such that the multiples of it are finite
NEAR = {"f32": (2.0**-22, 2.0**128), "f64": (2.0**-22, 2.0**10)}
#: bits of a quotient of f64 that a step takes away, and steps that those of the largest f64 take
_WIDE_STEP, _WIDE_STEPS = 48, 22


@inline("fmod", arity=2, types=("f32",))
def fmod(f: Body, x: Value, y: Value) -> Value:
    """The exact remainder by f64: subtracts whole multiples of ``|y| * 2**(50 k)``, k from 5 down to 0.

    Every difference is a multiple of the smaller operand's last bit and less than three divisors: it has at most 53
    bits, and fma computes it without an error. A quotient is wrong by one at most, which the end makes up for.
    """
    return _remainder(f, x, y, -(-_ORDERS // _STEP))


@inline("fmod_near", arity=2, types=("f32",))
def fmod_near(f: Body, x: Value, y: Value) -> Value:
    """`fmod` in half as many steps, for divisors of at least `NEAR`: of them `fmod` takes away nothing at first."""
    return _remainder(f, x, y, 3)


@inline("fmod_near", arity=2, types=("f64",), usual={"f64": NEAR["f64"][0] * 2.0**_WIDE_STEP})
def fmod_near_wide(f: Body, x: Value, y: Value) -> Value:
    """The exact remainder: subtracts whole multiples of ``|y| * 2**(48 k)``, k from 21 down to 0.

    The inverse is a little too large, so a quotient is right or too large by one. The rest is then no larger than
    the divisor, has its last bit at most as low, and so at most as many bits: fma computes it without an error.
    """
    size, divisor = x.abs(), y.abs()
    inverse, rest = (1.0 + 2.0**-51) / divisor, size
    for k in reversed(range(1 if f.usual else _WIDE_STEPS)):
        scale = 2.0 ** (_WIDE_STEP * k)
        quotient = (rest * (inverse * (1.0 / scale))).trunc()
        rest = f.fma(-quotient, divisor * scale, rest)
    rest = f.select(rest < 0.0, rest + divisor, rest)
    rest = f.select(rest >= divisor, rest - divisor, rest)
    return f.select(size < divisor, x, rest.copysign(x))


def _remainder(f: Body, x: Value, y: Value, steps: int) -> Value:
    size, divisor = x.extend().abs(), y.extend().abs()
    inverse, rest = 1.0 / divisor, size
    for k in reversed(range(steps)):
        scale = 2.0 ** (_STEP * k)
        quotient = (rest * (inverse * (1.0 / scale))).trunc()
        rest = f.fma(-quotient, divisor * scale, rest)
    rest = f.select(rest < 0.0, rest + divisor, rest)
    rest = f.select(rest >= divisor, rest - divisor, rest)
    return f.select(size < divisor, x, rest.narrow().copysign(x))
