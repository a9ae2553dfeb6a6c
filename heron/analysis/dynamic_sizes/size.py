"""Formulas for sizes: numbers, sizes that come into a computation, values it computes, and sums and the like of them.

Equal formulas are one object, so whether two dimensions surely have one size is ``a is b``.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import field
from typing import Any

from heron.hlo.facts import having
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import Trait
from heron.hlo.ir.shape import Shape, ShapeIndex
from heron.records import dataclass

#: a dimension of a part of a value
Place = tuple[ShapeIndex, int]

_SIGNS = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/"}
#: formulas of more parts than this are not written out
LONGEST = 60
#: limits of sizes beyond this are not followed
LARGEST = 1 << 62


@dataclass(eq=False, slots=True)
class Size:
    """A size: at least `least`, at most `most` where that is known. Never changed but by `Algebra.narrow`.

    ``op`` is ``number`` (args: the number), ``of`` (an instruction that brings a size in, and the place of the
    dimension in it), ``value`` (an ``s32[]`` of the program), or an HLO opcode on two sizes.
    """

    op: str
    args: tuple[Any, ...]
    algebra: Algebra = field(repr=False)
    least: int | None
    most: int | None
    length: int
    serial: int

    @property
    def number(self) -> int | None:
        """The number it always is; None when that is known at run time only."""
        return self.args[0] if self.op == "number" else None

    @property
    def parts(self) -> tuple[Size, ...]:
        """The sizes it is made of."""
        return self.args if self.op not in ("number", "of", "value") else ()

    def __add__(self, other: Size | int) -> Size:
        return self.algebra.combine("add", self, other)

    def __sub__(self, other: Size | int) -> Size:
        return self + -other if isinstance(other, int) else self.algebra.combine("subtract", self, other)

    def __mul__(self, other: Size | int) -> Size:
        return self.algebra.combine("multiply", self, other)

    def __floordiv__(self, other: Size | int) -> Size:
        return self.algebra.combine("divide", self, other)

    def at_least(self, other: Size | int) -> Size:
        """The greater of two."""
        return self.algebra.combine("maximum", self, other)

    def at_most(self, other: Size | int) -> Size:
        """The smaller of two."""
        return self.algebra.combine("minimum", self, other)

    def __str__(self) -> str:
        match self.op:
            case "number":
                return str(self.args[0])
            case "value":
                return f"%{self.args[0].name}"
            case "of":
                source, (index, d) = self.args
                part = "{" + ",".join(map(str, index)) + "}" if index else ""
                return f"%{source.name}{part}[{d}]"
        if self.length > LONGEST:
            return "..."
        a, b = self.args
        if self.op not in _SIGNS:
            return f"{self.op}({a}, {b})"
        if self.op == "add" and b.op == "number" and b.args[0] < 0:
            return f"{_factor(a, self.op)} - {-b.args[0]}"
        return f"{_factor(a, self.op)} {_SIGNS[self.op]} {_factor(b, self.op, right=True)}"


def _factor(a: Size, op: str, right: bool = False) -> str:
    """An operand, in parentheses where it needs them."""
    sum_inside = a.op in having(Trait.ADDS)
    bare = a.op not in _SIGNS or op == "add" or (op == "subtract" and not (right and sum_inside))
    if op == "multiply" and a.op == "multiply":
        bare = True
    return str(a) if bare else f"({a})"


class Algebra:
    """Makes sizes, each once, in the simplest form it knows."""

    def __init__(self) -> None:
        self._made: dict[tuple[Any, ...], Size] = {}

    def number(self, n: int) -> Size:
        """A size known now."""
        return self._size("number", (n,), n, n, 1)

    def of(self, source: Instruction, place: Place) -> Size:
        """A size that comes in with what `source` gives."""
        index, d = place
        return self._size("of", (source, place), 0, source.shape.at(index).dims[d], 1)

    def value(self, x: Instruction) -> Size:
        """A size that the program computes as a number."""
        return self._size("value", (x,), None, None, 1)

    def narrow(self, size: Size, least: int, most: int) -> None:
        """From here on `size` is known to lie in a range: there is a check that says so."""
        size.least = least if size.least is None else max(size.least, least)
        size.most = most if size.most is None else min(size.most, most)

    def combine(self, op: str, a: Size, b: Size | int) -> Size:
        """Two sizes under an HLO opcode; a quotient's divisor is positive."""
        if isinstance(b, int):
            b = self.number(b)
        if op in having(Trait.COMMUTATIVE) and _goes_last(a, b):
            a, b = b, a
        if a.number is not None and b.number is not None:
            return self.number(_ON_NUMBERS[op](a.number, b.number))
        simple = _SIMPLER[op](a, b)
        if simple is not None:
            return simple
        least, most = (None if n is None or abs(n) > LARGEST else n for n in _range(op, a, b))
        return self._size(op, (a, b), least, most, min(a.length + b.length, LONGEST + 1))

    def _size(self, op: str, args: tuple[Any, ...], least: int | None, most: int | None, length: int) -> Size:
        found = self._made.get((op, *args))
        if found is None:
            found = self._made[op, *args] = Size(op, args, self, least, most, length, len(self._made))
        return found


def _goes_last(a: Size, b: Size) -> bool:
    """Operands that may be swapped: numbers go last, else what was made first comes first."""
    return a.op == "number" or (b.op != "number" and a.serial > b.serial)


def _quotient(a: int, b: int) -> int:
    """HLO's: towards zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_ON_NUMBERS = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": _quotient,
    "maximum": max,
    "minimum": min,
}


def _sum(a: Size, b: Size) -> Size | None:
    # (x + m) + n == x + (m + n)
    if b.number == 0:
        return a
    if b.number is not None and a.op == "add" and a.args[1].number is not None:
        return a.args[0] + (a.args[1].number + b.number)
    return None


def _difference(a: Size, b: Size) -> Size | None:
    # x - x == 0
    return a.algebra.number(0) if a is b else None


def _product(a: Size, b: Size) -> Size | None:
    # (x * m) * n == x * (m * n)
    if b.number == 1:
        return a
    if b.number == 0:
        return b
    if b.number is not None and a.op == "multiply" and a.args[1].number is not None:
        return a.args[0] * (a.args[1].number * b.number)
    return None


def _ratio(a: Size, b: Size) -> Size | None:
    # (x * m) / n == x * (m / n) where n divides m;  (x * y) / y == x is not used: y may be 0
    if b.number == 1:
        return a
    if b.number and a.op == "multiply" and a.args[1].number is not None and a.args[1].number % b.number == 0:
        return a.args[0] * (a.args[1].number // b.number)
    return None


def _greatest(a: Size, b: Size) -> Size | None:
    return a if surely_at_most(b, a) else b if surely_at_most(a, b) else None


def _least(a: Size, b: Size) -> Size | None:
    return a if surely_at_most(a, b) else b if surely_at_most(b, a) else None


_SIMPLER = {
    "add": _sum,
    "subtract": _difference,
    "multiply": _product,
    "divide": _ratio,
    "maximum": _greatest,
    "minimum": _least,
}


def surely_at_most(a: Size, b: Size) -> bool:
    """Whether a <= b follows from what is known of both."""
    return a is b or (a.most is not None and b.least is not None and a.most <= b.least)


def _range(op: str, a: Size, b: Size) -> tuple[int | None, int | None]:
    """The least and the most a formula can be."""
    if op == "add":
        return _added(a.least, b.least), _added(a.most, b.most)
    if op == "subtract":
        return _added(a.least, b.most, -1), _added(a.most, b.least, -1)
    if op == "maximum":
        most = max(a.most, b.most) if a.most is not None and b.most is not None else None
        return max((n for n in (a.least, b.least) if n is not None), default=None), most
    if op == "minimum":
        least = min(a.least, b.least) if a.least is not None and b.least is not None else None
        return least, min((n for n in (a.most, b.most) if n is not None), default=None)
    if a.least is None or b.least is None or a.least < 0 or b.least < 0:
        return None, None
    if op == "multiply":
        return a.least * b.least, a.most * b.most if a.most is not None and b.most is not None else None
    low = a.least // b.most if b.most else 0
    return low, a.most // max(b.least, 1) if a.most is not None else None


def _added(a: int | None, b: int | None, sign: int = 1) -> int | None:
    return None if a is None or b is None else a + sign * b


def dynamic_places(s: Shape) -> list[Place]:
    """The dynamic dimensions of all parts."""
    return [(index, d) for index, part in s.leaves() for d, marked in enumerate(part.dynamic) if marked]


def below(size: Size, known: Container[Size] = ()) -> Iterator[Size]:
    """Everything the size is made of, parts before what they make up, itself last; each once, but what is `known`."""
    seen: set[Size] = set()
    work = [(size, False)]
    while work:
        s, done = work.pop()
        if done:
            yield s
        elif s not in seen and s not in known:
            seen.add(s)
            work.append((s, True))
            work += [(p, False) for p in s.parts]
