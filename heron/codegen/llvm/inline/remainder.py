"""fmod of f32, and by divisors that are not tiny."""

from __future__ import annotations

from heron.codegen.llvm.inline.builder import Body, Value, inline

#: bits of the quotient that one step takes away: with more, a quotient could be wrong by two
_STEP = 50
#: binary orders from the smallest f32 to the largest
_ORDERS = 277
#: the smallest divisor of `fmod_near`: three steps take the quotient of the largest f32 by it
NEAR = 2.0**-22


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
