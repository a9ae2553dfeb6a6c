"""Affine integer expressions with floor division and modulo: how an output index becomes an input index.

Expressions are immutable and interned (`Dim(0) is Dim(0)`), so equality is identity and every memo table in the
compiler can key on them. `Dim(i)` and `Sym(i)` are the variables of an `IndexingMap`; the operators `+ - * // %` fold
what is certain without knowing ranges. Rules that need ranges are in `simplify.py`.

Source: the affine expressions of MLIR (mlir/include/mlir/IR/AffineExpr.h), which XLA's indexing maps are made of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeAlias

from heron.errors import HeronError

ExprLike: TypeAlias = "Expr | int"


class Expr:
    """An integer expression; see `Dim`, `Sym`, `Const`, `Add`, `Mul`, `FloorDiv`, `Mod`."""

    __slots__ = ("sort_key",)
    sort_key: tuple[Any, ...]  # canonical order of the terms of a sum

    def __add__(self, other: ExprLike) -> Expr:
        return add(self, as_expr(other))

    def __radd__(self, other: int) -> Expr:
        return add(as_expr(other), self)

    def __sub__(self, other: ExprLike) -> Expr:
        return add(self, mul(as_expr(other), Const(-1)))

    def __rsub__(self, other: int) -> Expr:
        return add(as_expr(other), mul(self, Const(-1)))

    def __mul__(self, other: ExprLike) -> Expr:
        return mul(self, as_expr(other))

    __rmul__ = __mul__

    def __neg__(self) -> Expr:
        return mul(self, Const(-1))

    def __floordiv__(self, other: ExprLike) -> Expr:
        return floordiv(self, as_expr(other))

    def __mod__(self, other: ExprLike) -> Expr:
        return mod(self, as_expr(other))

    def __repr__(self) -> str:
        return format_expr(self)

    def __reduce__(self) -> tuple[Any, ...]:
        raise NotImplementedError

    def evaluate(self, dims: Sequence[Any], syms: Sequence[Any] = ()) -> Any:
        """The value at a point; `dims` and `syms` are ints or NumPy integer arrays that broadcast."""
        raise NotImplementedError

    def substitute(self, dims: Sequence[Expr | None], syms: Sequence[Expr | None] = ()) -> Expr:
        """Replaces `Dim(i)` by `dims[i]` and `Sym(i)` by `syms[i]`; None or past the end keeps the variable."""
        raise NotImplementedError

    def variables(self) -> frozenset[Expr]:
        """The `Dim`s and `Sym`s the expression reads."""
        found: set[Expr] = set()
        stack: list[Expr] = [self]
        while stack:
            e = stack.pop()
            if isinstance(e, BinaryExpr):
                stack += (e.lhs, e.rhs)
            elif not isinstance(e, Const):
                found.add(e)
        return frozenset(found)


class _Variable(Expr):
    __slots__ = ("index",)
    index: int
    rank: ClassVar[int] = 0
    _table: ClassVar[dict[int, Any]]

    def __init_subclass__(cls) -> None:
        cls._table = {}

    def __new__(cls, index: int) -> Any:
        known = cls._table.get(index)
        if known is not None:
            return known
        self = object.__new__(cls)
        self.index = index
        self.sort_key = (cls.rank, index)
        cls._table[index] = self
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.index,))


class Dim(_Variable):
    """The `index`-th dimension variable (`d0`)."""

    __slots__ = ()
    rank = 0

    def evaluate(self, dims: Sequence[Any], syms: Sequence[Any] = ()) -> Any:
        return dims[self.index]

    def substitute(self, dims: Sequence[Expr | None], syms: Sequence[Expr | None] = ()) -> Expr:
        return (dims[self.index] or self) if self.index < len(dims) else self


class Sym(_Variable):
    """The `index`-th symbol (`s0`): range variables first, then runtime variables (`rt0`)."""

    __slots__ = ()
    rank = 1

    def evaluate(self, dims: Sequence[Any], syms: Sequence[Any] = ()) -> Any:
        return syms[self.index]

    def substitute(self, dims: Sequence[Expr | None], syms: Sequence[Expr | None] = ()) -> Expr:
        return (syms[self.index] or self) if self.index < len(syms) else self


class Const(Expr):
    """An integer constant."""

    __slots__ = ("value",)
    value: int
    _table: ClassVar[dict[int, Const]] = {}

    def __new__(cls, value: int) -> Const:
        known = cls._table.get(value)
        if known is not None:
            return known
        self = object.__new__(cls)
        self.value = int(value)
        self.sort_key = (9, self.value)
        cls._table[self.value] = self
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (Const, (self.value,))

    def evaluate(self, dims: Sequence[Any], syms: Sequence[Any] = ()) -> Any:
        return self.value

    def substitute(self, dims: Sequence[Expr | None], syms: Sequence[Expr | None] = ()) -> Expr:
        return self


class BinaryExpr(Expr):
    """An operation on `lhs` and `rhs`; calling the class builds it as written, the operators fold."""

    __slots__ = ("lhs", "rhs")
    lhs: Expr
    rhs: Expr
    rank: ClassVar[int]
    fold: ClassVar[Callable[[Expr, Expr], Expr]]
    _table: ClassVar[dict[tuple[Expr, Expr], Any]]

    def __init_subclass__(cls) -> None:
        cls._table = {}

    def __new__(cls, lhs: ExprLike, rhs: ExprLike) -> Any:
        a = lhs if isinstance(lhs, Expr) else Const(lhs)
        b = rhs if isinstance(rhs, Expr) else Const(rhs)
        key = (a, b)
        known = cls._table.get(key)
        if known is not None:
            return known
        self = object.__new__(cls)
        self.lhs, self.rhs = a, b
        self.sort_key = (*_leading_variable(a), cls.rank, a.sort_key, b.sort_key)
        cls._table[key] = self
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.lhs, self.rhs))

    def substitute(self, dims: Sequence[Expr | None], syms: Sequence[Expr | None] = ()) -> Expr:
        lhs, rhs = self.lhs.substitute(dims, syms), self.rhs.substitute(dims, syms)
        return self if lhs is self.lhs and rhs is self.rhs else type(self).fold(lhs, rhs)


class Add(BinaryExpr):
    """`lhs + rhs`."""

    __slots__ = ()
    rank = 5

    def evaluate(self, dims: Sequence[Any], syms: Sequence[Any] = ()) -> Any:
        return self.lhs.evaluate(dims, syms) + self.rhs.evaluate(dims, syms)


class Mul(BinaryExpr):
    """`lhs * rhs`; `rhs` is a `Const` in every expression the compiler makes."""

    __slots__ = ()
    rank = 4

    def evaluate(self, dims: Sequence[Any], syms: Sequence[Any] = ()) -> Any:
        return self.lhs.evaluate(dims, syms) * self.rhs.evaluate(dims, syms)


class FloorDiv(BinaryExpr):
    """`lhs floordiv rhs`, rounding towards minus infinity; `rhs` is a positive `Const`."""

    __slots__ = ()
    rank = 2

    def evaluate(self, dims: Sequence[Any], syms: Sequence[Any] = ()) -> Any:
        return self.lhs.evaluate(dims, syms) // self.rhs.evaluate(dims, syms)


class Mod(BinaryExpr):
    """`lhs mod rhs`, never negative; `rhs` is a positive `Const`."""

    __slots__ = ()
    rank = 3

    def evaluate(self, dims: Sequence[Any], syms: Sequence[Any] = ()) -> Any:
        return self.lhs.evaluate(dims, syms) % self.rhs.evaluate(dims, syms)


def as_expr(value: ExprLike) -> Expr:
    """`value` itself, or the `Const` of an int."""
    return value if isinstance(value, Expr) else Const(value)


def dims(n: int) -> tuple[Expr, ...]:
    """`(Dim(0), …, Dim(n - 1))`."""
    return tuple(Dim(i) for i in range(n))


def syms(n: int) -> tuple[Expr, ...]:
    """`(Sym(0), …, Sym(n - 1))`."""
    return tuple(Sym(i) for i in range(n))


def add(a: Expr, b: Expr) -> Expr:
    """`a + b` with constants folded and moved to the right."""
    if isinstance(a, Const):
        if isinstance(b, Const):
            return Const(a.value + b.value)
        a, b = b, a
    if isinstance(b, Const):
        if b.value == 0:
            return a
        if isinstance(a, Add) and isinstance(a.rhs, Const):  # (x + c) + d == x + (c + d)
            return add(a.lhs, Const(a.rhs.value + b.value))
    return Add(a, b)


def mul(a: Expr, b: Expr) -> Expr:
    """`a * b`; one of them must be a constant.

    Raises:
        HeronError: GEN101 when both factors are variable (the product is not affine).
    """
    if isinstance(a, Const):
        if isinstance(b, Const):
            return Const(a.value * b.value)
        a, b = b, a
    if not isinstance(b, Const):
        raise HeronError("GEN101", "product of two variable index expressions", where=f"({a}) * ({b})")
    if b.value == 0:
        return b
    if b.value == 1:
        return a
    if isinstance(a, Mul) and isinstance(a.rhs, Const):  # (x * c) * d == x * (c * d)
        return mul(a.lhs, Const(a.rhs.value * b.value))
    return Mul(a, b)


def divisor(b: Expr, what: str) -> int:
    """The value of `b` as the divisor of `what`. Raises GEN102 when it is not a positive constant."""
    if not isinstance(b, Const) or b.value <= 0:
        raise HeronError("GEN102", f"the divisor of {what} must be a positive constant", where=str(b))
    return b.value


def floordiv(a: Expr, b: Expr) -> Expr:
    """`a floordiv b`.

    Raises:
        HeronError: GEN102 when `b` is not a positive constant.
    """
    c = divisor(b, "floordiv")
    if isinstance(a, Const):
        return Const(a.value // c)
    if c == 1:
        return a
    if isinstance(a, Mul) and isinstance(a.rhs, Const) and a.rhs.value % c == 0:
        return mul(a.lhs, Const(a.rhs.value // c))  # (x * kc) floordiv c == x * k
    return FloorDiv(a, b)


def mod(a: Expr, b: Expr) -> Expr:
    """`a mod b`.

    Raises:
        HeronError: GEN102 when `b` is not a positive constant.
    """
    c = divisor(b, "mod")
    if isinstance(a, Const):
        return Const(a.value % c)
    if c == 1:
        return Const(0)
    if isinstance(a, Mul) and isinstance(a.rhs, Const) and a.rhs.value % c == 0:
        return Const(0)  # (x * kc) mod c == 0
    return Mod(a, b)


Add.fold, Mul.fold, FloorDiv.fold, Mod.fold = (  # pyright: ignore[reportAttributeAccessIssue]
    staticmethod(f) for f in (add, mul, floordiv, mod)
)


def _leading_variable(e: Expr) -> tuple[int, int]:
    """Rank and index of the variable that decides where a term stands in a sum."""
    key = e.sort_key
    return key[0], key[1]


# -- text, as MLIR prints affine expressions

_SPELLING = {Mul: " * ", FloorDiv: " floordiv ", Mod: " mod "}
VariableName: TypeAlias = "Callable[[Expr], str]"


def default_name(e: Expr) -> str:
    """`d0` for a dimension, `s0` for a symbol."""
    assert isinstance(e, _Variable)
    return f"{'d' if isinstance(e, Dim) else 's'}{e.index}"


def format_expr(e: Expr, name: VariableName = default_name, strong: bool = False) -> str:
    """The expression as MLIR spells it; `strong` asks for parentheses around a binary expression."""
    if isinstance(e, Const):
        return str(e.value)
    if not isinstance(e, BinaryExpr):
        return name(e)
    text = _format_sum(e, name) if isinstance(e, Add) else _format_product(e, name)
    return f"({text})" if strong else text


def _format_product(e: BinaryExpr, name: VariableName) -> str:
    if isinstance(e, Mul) and isinstance(e.rhs, Const) and e.rhs.value == -1:
        return f"-{format_expr(e.lhs, name, True)}"
    return f"{format_expr(e.lhs, name, True)}{_SPELLING[type(e)]}{format_expr(e.rhs, name, True)}"


def _format_sum(e: Add, name: VariableName) -> str:
    left, rhs = format_expr(e.lhs, name), e.rhs
    if isinstance(rhs, Const) and rhs.value < 0:
        return f"{left} - {-rhs.value}"
    if isinstance(rhs, Mul) and isinstance(rhs.rhs, Const) and rhs.rhs.value < 0:
        factor = -rhs.rhs.value
        if factor == 1:
            return f"{left} - {format_expr(rhs.lhs, name, isinstance(rhs.lhs, Add))}"
        return f"{left} - {format_expr(rhs.lhs, name, True)} * {factor}"
    return f"{left} + {format_expr(rhs, name)}"
