"""Python's operators on instructions: ``(x * 2 + y) @ w[0, :, ::2]`` adds what it says to the computation of `x`.

Operands spread over each other by NumPy's rules, and numbers take the other side's element type. ``==`` stays identity,
for instructions are keys of tables everywhere: comparisons are the methods `eq`, `ne`, `lt`, `le`, `gt`, `ge`. Meanings
are HLO's: ``/`` and ``%`` of integers truncate towards zero, ``>>`` keeps the sign of signed integers. Errors point at
the line of Python.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from heron.errors import HeronError
from heron.hlo.callers import at_caller
from heron.hlo.ir import literal as literals
from heron.hlo.ir.broadcasting import broadcast_together, common_dims
from heron.hlo.ir.shape import Shape, row_major

if TYPE_CHECKING:
    from heron.hlo.ir.computation import Computation
    from heron.hlo.ir.instruction import Instruction


def _located(operator: Callable[..., Instruction]) -> Callable[..., Instruction]:
    @functools.wraps(operator)
    def apply(*operands: Any) -> Instruction:
        try:
            return operator(*operands)
        except HeronError as error:
            raise at_caller(error) from None

    return apply


def _home(x: Instruction) -> Computation:
    if x.parent is None:
        raise HeronError("HLO026", f"'{x.opcode}' belongs to no computation, so operators cannot add instructions")
    return x.parent


def _constant(home: Computation, value: Any, like: Shape) -> Instruction:
    """A constant of the type of `like`: of its own dimensions for arrays, a scalar for numbers."""
    array = np.asarray(value)
    with np.errstate(over="ignore", invalid="ignore"):
        typed = array.astype(like.element_type.dtype)
    exact = like.element_type.is_float or like.element_type.is_complex or bool((typed == array).all())
    if not exact:
        raise HeronError("HLO026", f"{value} is no {like.element_type}", hint="convert the other operand first")
    literal = literals.Literal(row_major(like.element_type, *array.shape), typed)
    return home.add("constant", (), literal.shape, literal=literal)


def _pair(x: Instruction, other: Any) -> tuple[Computation, Instruction, Instruction]:
    home = _home(x)
    y = other if not isinstance(other, _OTHERS) else _constant(home, other, x.shape)
    if common_dims(x.shape.dims, y.shape.dims) is None:
        return home, x, y  # the shape rule tells what is wrong
    a, b = broadcast_together(home, (x, y))
    return home, a, b


def _binary(opcode: str, swapped: bool = False) -> Callable[[Any, Any], Instruction]:
    def apply(self: Instruction, other: Any) -> Instruction:
        if not isinstance(other, (Operators, *_OTHERS)):
            return NotImplemented
        home, a, b = _pair(self, other)
        return home.add(opcode, (b, a) if swapped else (a, b))

    apply.__doc__ = f"``{opcode}``."
    return _located(apply)


def _compare(direction: str) -> Callable[[Any, Any], Instruction]:
    def apply(self: Instruction, other: Any) -> Instruction:
        home, a, b = _pair(self, other)
        return home.add("compare", (a, b), direction=direction)

    apply.__doc__ = f"``compare``, direction={direction}."
    return _located(apply)


def _unary(opcode: str) -> Callable[[Any], Instruction]:
    def apply(self: Instruction) -> Instruction:
        return _home(self).add(opcode, (self,))

    apply.__doc__ = f"``{opcode}``."
    return _located(apply)


class Operators:
    """Base of `Instruction`: nothing but operators."""

    __slots__ = ()

    __add__, __radd__ = _binary("add"), _binary("add", swapped=True)
    __sub__, __rsub__ = _binary("subtract"), _binary("subtract", swapped=True)
    __mul__, __rmul__ = _binary("multiply"), _binary("multiply", swapped=True)
    __truediv__, __rtruediv__ = _binary("divide"), _binary("divide", swapped=True)
    __mod__, __rmod__ = _binary("remainder"), _binary("remainder", swapped=True)
    __pow__, __rpow__ = _binary("power"), _binary("power", swapped=True)
    __and__, __rand__ = _binary("and"), _binary("and", swapped=True)
    __or__, __ror__ = _binary("or"), _binary("or", swapped=True)
    __xor__, __rxor__ = _binary("xor"), _binary("xor", swapped=True)
    __lshift__ = _binary("shift-left")
    __neg__, __invert__, __abs__ = _unary("negate"), _unary("not"), _unary("abs")
    eq, ne = _compare("EQ"), _compare("NE")
    lt, le, gt, ge = _compare("LT"), _compare("LE"), _compare("GT"), _compare("GE")
    __iter__ = None  # or Python would iterate by indexing, without end
    __array_ufunc__ = None  # NumPy arrays on the left leave the operator to us

    @_located
    def __rshift__(self: Instruction, other: Any) -> Instruction:  # type: ignore[misc]
        """``shift-right-arithmetic`` for signed integers, else ``shift-right-logical``."""
        signed = self.shape.element_type.is_signed
        home, a, b = _pair(self, other)
        return home.add("shift-right-arithmetic" if signed else "shift-right-logical", (a, b))

    @_located
    def __matmul__(self: Instruction, other: Instruction) -> Instruction:  # type: ignore[misc]
        """``dot`` of the last dimension with the other's last but one (its only one); those before are batches."""
        if not isinstance(other, Operators):  # pyright: ignore[reportUnnecessaryIsInstance]
            return NotImplemented
        x, y = self.shape.rank, other.shape.rank
        if not x or not y:
            raise HeronError("HLO026", "@ needs operands of rank 1 or more", why=f"{self.shape} @ {other.shape}")
        batch = tuple(range(min(x, y) - 2)) if min(x, y) > 2 else ()
        return _home(self).add(
            "dot",
            (self, other),
            lhs_batch_dims=batch,
            lhs_contracting_dims=(x - 1,),
            rhs_batch_dims=batch,
            rhs_contracting_dims=(max(y - 2, 0),),
        )

    @_located
    def __getitem__(self: Instruction, index: Any) -> Instruction:  # type: ignore[misc]
        """``slice``, and a ``reshape`` that drops dimensions indexed by a number. Steps must be positive."""
        bounds, kept = _bounds(self.shape, cast("tuple[Any, ...]", index) if isinstance(index, tuple) else (index,))
        piece = _home(self).add("slice", (self,), slice=bounds)
        if len(kept) == len(bounds):
            return piece
        dims = tuple(piece.shape.dims[d] for d in kept)
        return _home(self).add("reshape", (piece,), row_major(self.shape.element_type, *dims))


_OTHERS = (bool, int, float, complex, np.ndarray, np.generic)
_Slices = tuple[tuple[int, int, int], ...]


def _bounds(shape: Shape, index: tuple[Any, ...]) -> tuple[_Slices, list[int]]:
    """Start, limit and step of every dimension, and the dimensions that stay."""
    if any(e is Ellipsis for e in index):
        n = next(n for n, e in enumerate(index) if e is Ellipsis)
        index = (*index[:n], *(slice(None),) * (shape.rank - len(index) + 1), *index[n + 1 :])
    if not shape.is_array or len(index) > shape.rank:
        raise HeronError("HLO026", f"{len(index)} indices into {shape}")
    index += (slice(None),) * (shape.rank - len(index))
    bounds: list[tuple[int, int, int]] = []
    kept: list[int] = []
    for d, (entry, size) in enumerate(zip(index, shape.dims, strict=True)):
        if isinstance(entry, slice):
            bounds.append(_slice(cast("slice[Any, Any, Any]", entry), size))
            kept.append(d)
            continue
        if isinstance(entry, bool) or not isinstance(entry, int | np.integer) or not -size <= entry < size:
            raise HeronError("HLO026", f"{entry!r} is not an index into dimension {d}", why=f"its size is {size}")
        at = int(cast("int", entry)) % size
        bounds.append((at, at + 1, 1))
    return tuple(bounds), kept


def _slice(entry: slice[Any, Any, Any], size: int) -> tuple[int, int, int]:
    try:
        start, limit, step = entry.indices(size)
    except (TypeError, ValueError) as error:
        raise HeronError("HLO026", f"{entry} is not a slice", why=str(error)) from None
    if step < 1:
        raise HeronError("HLO026", f"a slice with step {step}", hint="reverse() turns dimensions around")
    return start, max(start, limit), step
