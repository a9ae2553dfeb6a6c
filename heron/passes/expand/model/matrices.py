"""Batches of matrices as expansions of linear algebra use them; [..., rows, columns]."""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import F32, PRED, S32, ElementType
from heron.passes.rewriting.building import applied, array, convert, reshape, scalar, splat, transpose
from heron.passes.rewriting.expander import home


def widened(x: Instruction) -> Instruction:
    """`x` in f32 when it is narrower."""
    return convert(x, F32) if x.shape.element_type.bits < 32 else x


def conj(x: Instruction) -> Instruction:
    """The complex conjugate; reals are theirs."""
    if not x.shape.element_type.is_complex:
        return x
    c = home(x)
    return c.add("complex", [c.add("real", [x]), -c.add("imag", [x])])


def real(x: Instruction) -> Instruction:
    return home(x).add("real", [x]) if x.shape.element_type.is_complex else x


def like(r: Instruction, x: Instruction) -> Instruction:
    """Real numbers as the type of `x`."""
    if not x.shape.element_type.is_complex:
        return r
    return home(r).add("complex", [r, splat(home(r), r.shape, 0)])


def flipped(x: Instruction) -> Instruction:
    """Every matrix transposed."""
    n = x.shape.rank
    return transpose(x, [*range(n - 2), n - 1, n - 2])


def product(x: Instruction, y: Instruction) -> Instruction:
    """Matrix products, batch by batch."""
    n = x.shape.rank
    batch = tuple(range(n - 2))
    return home(x).add(
        "dot",
        [x, y],
        array(x.shape.element_type, (*x.shape.dims[:-1], y.shape.dims[-1])),
        lhs_batch_dims=batch,
        rhs_batch_dims=batch,
        lhs_contracting_dims=(n - 1,),
        rhs_contracting_dims=(n - 2,),
        operand_precision=("highest", "highest"),
    )


def row(x: Instruction, k: Instruction) -> Instruction:
    """[..., 1, columns]"""
    return _part(x, k, x.shape.rank - 2)


def column(x: Instruction, k: Instruction) -> Instruction:
    """[..., rows, 1]"""
    return _part(x, k, x.shape.rank - 1)


def _part(x: Instruction, k: Instruction, d: int) -> Instruction:
    sizes = tuple(1 if n == d else size for n, size in enumerate(x.shape.dims))
    return home(x).add("dynamic-slice", [x, *_starts(x, k, d)], dynamic_slice_sizes=sizes)


def with_row(x: Instruction, k: Instruction, new: Instruction) -> Instruction:
    return home(x).add("dynamic-update-slice", [x, new, *_starts(x, k, x.shape.rank - 2)])


def with_column(x: Instruction, k: Instruction, new: Instruction) -> Instruction:
    return home(x).add("dynamic-update-slice", [x, new, *_starts(x, k, x.shape.rank - 1)])


def _starts(x: Instruction, k: Instruction, d: int) -> list[Instruction]:
    zero = scalar(home(x), S32, 0)
    return [k if n == d else zero for n in range(x.shape.rank)]


def places(x: Instruction, d: int, dims: Sequence[int] | None = None) -> Instruction:
    """The index in dimension `d` (from the end where negative) of every element of arrays like `x`."""
    dims = x.shape.dims if dims is None else dims
    return home(x).add("iota", [], array(S32, dims), iota_dimension=d % len(dims))


def kept(p: Instruction, x: Instruction, other: object = 0) -> Instruction:
    """`x` where `p` holds, elsewhere a number."""
    return home(x).add("select", [p, x, splat(home(x), x.shape, other)])


def triangle(x: Instruction, lower: bool) -> Instruction:
    """Each matrix with zeros in its other triangle."""
    i, j = places(x, -2), places(x, -1)
    return kept(j.le(i) if lower else j.ge(i), x)


def total(x: Instruction, dims: Sequence[int]) -> Instruction:
    """The sum over dimensions, which stay with size 1."""
    return _reduced("add", x, dims, 0)


def scale(x: Instruction) -> Instruction:
    """[..., 1, 1]: about the largest magnitude in each matrix, a power of two; NaN where not all elements are finite.

    A value divided by it can be squared and summed without overflow, and loses no digit.
    """
    c, info = home(x), ml_dtypes.finfo(real_type(x).dtype)
    most = _reduced("maximum", abs(x), (-2, -1), 0)
    exponent_bits = info.bits - 1 - int(info.nmant)
    power = c.add("reduce-precision", [most], exponent_bits=exponent_bits, mantissa_bits=0)
    # the largest power of two has no reciprocal
    low, high = (splat(c, power.shape, 2.0 ** int(e)) for e in (info.minexp, info.maxexp - 2))
    return kept(c.add("is-finite", [most]), c.add("clamp", [low, power, high]), float("nan"))


def real_type(x: Instruction) -> ElementType:
    return x.shape.element_type.component if x.shape.element_type.is_complex else x.shape.element_type


def spread(x: Instruction, to: Instruction) -> Instruction:
    """[..., 1, 1] over whole matrices with the dimensions of `to`."""
    flat = reshape(x, x.shape.dims[:-2])
    dims = array(x.shape.element_type, to.shape.dims)
    return home(x).add("broadcast", [flat], dims, dimensions=tuple(range(flat.shape.rank)))


def any_of(x: Instruction, dims: Sequence[int]) -> Instruction:
    """Whether one of them holds; the dimensions stay with size 1."""
    assert x.shape.element_type is PRED
    return _reduced("or", x, dims, False)


def _reduced(opcode: str, x: Instruction, dims: Sequence[int], start: object) -> Instruction:
    c, t = home(x), x.shape.element_type
    over = sorted(d % x.shape.rank for d in dims)
    rest = [n for d, n in enumerate(x.shape.dims) if d not in over]
    assert c.module is not None
    combiner = applied(c.module, opcode, t)
    made = c.add("reduce", [x, scalar(c, t, start)], array(t, rest), dimensions=tuple(over), to_apply=combiner)
    return reshape(made, [1 if d in over else n for d, n in enumerate(x.shape.dims)])
