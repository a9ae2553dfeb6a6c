"""Sums of products over rows of an array, written in one form, so that equal ones are seen however they are written.

A polynomial's atoms are arrays: whole ones, a number a column, a number a row, and sums of products along rows. Two
laws beyond those of numbers: a number a row goes outside a sum along the row, and what is less its mean sums to 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import field
from math import prod

from heron.analysis.values.splat import is_splat, splat_value
from heron.hlo.facts import combiner
from heron.hlo.ir.instruction import Instruction
from heron.records import dataclass

#: an atom: what it is, and the instruction, or the product that is summed along rows
Atom = tuple[str, object]
#: atoms with their powers
Product = frozenset[tuple[Atom, int]]
Polynomial = dict[Product, float]

#: no derivative has so many terms
_MOST = 64
_ONE: Product = frozenset()


@dataclass(slots=True)
class Rows:
    """Polynomials over an array whose rows are its last dimensions.

    ``centred`` is the array less its means, ``factor`` the number a row that it is scaled by, a reciprocal
    square root. Only what is ``within`` is taken apart.
    """

    centred: Instruction
    factor: Instruction
    columns: tuple[int, ...]
    within: Collection[Instruction]
    _known: dict[Instruction, Polynomial] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Elements a row."""
        return prod(self.centred.shape.dims[d] for d in self.columns)

    def atom(self, kind: str, i: Instruction) -> Polynomial:
        return {frozenset({((kind, i), 1)}): 1.0}

    def of(self, i: Instruction) -> Polynomial:
        """The polynomial that `i` is; an atom where it is nothing these rules know."""
        found = self._known.get(i)
        if found is None:
            found = self._known[i] = self._made(i)
        return found

    def _made(self, i: Instruction) -> Polynomial:
        if i is self.centred:
            return self.atom("whole", i)
        if i is self.factor:
            return self.atom("row", i)
        value = splat_value(i)
        if value is not None:
            return {_ONE: float(value)} if value else {}
        if i.opcode == "broadcast":
            return self._spread(i)
        made = self._computed(i) if i in self.within else None
        return self._leaf(i) if made is None or len(made) > _MOST else made

    def _computed(self, i: Instruction) -> Polynomial | None:
        match i.opcode:
            case "add":
                return added(self.of(i.operands[0]), self.of(i.operands[1]))
            case "subtract":
                return added(self.of(i.operands[0]), scaled(self.of(i.operands[1]), -1))
            case "negate":
                return scaled(self.of(i.operands[0]), -1)
            case "multiply":
                return times(self.of(i.operands[0]), self.of(i.operands[1]))
            case "divide":
                return self._divided(i)
            case "reduce":
                return self._summed(i)
        return None

    def _leaf(self, i: Instruction) -> Polynomial:
        return self.atom("whole" if i.shape.dims == self.centred.shape.dims else "row", i)

    def _divided(self, i: Instruction) -> Polynomial:
        x, by = i.operands
        value = splat_value(by)
        if value:
            return scaled(self.of(x), 1 / float(value))
        if by is not self.factor.operands[0]:
            return self._leaf(i)
        square: Polynomial = {frozenset({(("row", self.factor), 2)}): 1.0}  # 1 / v is the square of 1 / sqrt(v)
        return times(self.of(x), square)

    def _spread(self, i: Instruction) -> Polynomial:
        dims = i.attrs["dimensions"]
        if i.shape.dims != self.centred.shape.dims:
            return self._leaf(i)
        if dims == self.columns:
            return self.atom("column", i.operands[0])
        rows = tuple([d for d in range(i.shape.rank) if d not in self.columns])
        return self.of(i.operands[0]) if dims == rows else self._leaf(i)

    def _summed(self, i: Instruction) -> Polynomial:
        if len(i.operands) != 2 or tuple(sorted(i.attrs["dimensions"])) != self.columns:
            return self._leaf(i)
        if i.operands[0].shape.dims != self.centred.shape.dims or not is_sum(i):
            return self._leaf(i)
        made: Polynomial = {}
        for product, by in self.of(i.operands[0]).items():
            outside = frozenset({(a, n) for a, n in product if a[0] in ("row", "sum")})
            inside = product - outside
            if not inside:
                made = added(made, {outside: by * self.count})
            elif inside != frozenset({(("whole", self.centred), 1)}):
                made = added(made, times({outside: by}, {frozenset({(("sum", inside), 1)}): 1.0}))
        return made


def is_sum(i: Instruction) -> bool:
    """Whether a reduction adds up from 0."""
    return combiner(i.attrs["to_apply"]) == "add" and is_splat(i.operands[1], 0)


def added(a: Polynomial, b: Polynomial) -> Polynomial:
    """The sum; terms that vanish are left out."""
    made = dict(a)
    for product, by in b.items():
        made[product] = made.get(product, 0.0) + by
    return {product: by for product, by in made.items() if by}


def scaled(a: Polynomial, by: float) -> Polynomial:
    """``by * a``."""
    return {product: by * n for product, n in a.items()}


def times(a: Polynomial, b: Polynomial) -> Polynomial:
    """The product."""
    made: Polynomial = {}
    for p, n in a.items():
        for q, m in b.items():
            powers = Counter(dict(p))
            powers.update(dict(q))
            made = added(made, {frozenset(powers.items()): n * m})
    return made


def same(a: Polynomial, b: Polynomial, near: float) -> bool:
    """Whether both have the same terms, with coefficients as near as that, relatively."""
    if a.keys() != b.keys():
        return False
    return all(abs(n - b[product]) <= near * abs(b[product]) for product, n in a.items())
