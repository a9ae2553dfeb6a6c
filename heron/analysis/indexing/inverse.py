"""Maps turned round: from what is read back to where it is read from.

A map can be turned round where its variables are put together from digits (`d0 floordiv 8`, `d0 mod 8`), each read off
a result that is a sum of digits in a mixed radix: transposes, reshapes, slices, reversals, paddings, windows and
compositions of them. Runtime variables are offsets and stay what they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from heron.analysis.indexing.expr import BinaryExpr, Const, Dim, Expr, FloorDiv, Mod, Sym, add, floordiv, mod, mul
from heron.analysis.indexing.map import IndexingMap, Var
from heron.analysis.indexing.simplify import Simplifier, linear_terms, simplifier
from heron.analysis.indexing.variables import eliminate_symbols, symbols_to_dims

Equation: TypeAlias = tuple[Expr, Expr]  # an expression over dimensions, and its value over results


def inverse(m: IndexingMap) -> IndexingMap | None:
    """The map from results to the point they come from: dimensions, then symbols. None when that cannot be told.

    Its domain is the image of `m`, so `inverse(m) ∘ m` is the identity, and a slice gives a map with a constraint on
    residues.
    """
    m = m.simplify()
    spaces = [Var(lo, hi) for lo, hi in m.result_ranges]
    if m.is_known_empty:
        return IndexingMap.empty(len(m.dims) + len(m.syms), spaces, (), m.rt_vars)
    flat = symbols_to_dims(m, range(len(m.syms)))
    found = _turn(flat, spaces)
    return found if isinstance(found, IndexingMap) else None


def transposed(m: IndexingMap, sizes: Sequence[int]) -> IndexingMap:
    """The map from an element of the tensor read, of these sizes, to the dimensions of the points that read it.

    A part that the element does not decide, or not in a simple way, becomes a symbol: the symbols of `m` first, and if
    need be its dimensions, with constraints that say which of their values belong to the element.
    """
    m = m.simplify()
    spaces = [Var(0, size - 1) for size in sizes]
    rank = len(m.dims)
    if m.is_known_empty:
        return IndexingMap.empty(rank, spaces, (), m.rt_vars)
    flat = symbols_to_dims(m, range(len(m.syms)))
    given: list[int] = []  # variables that become symbols
    while True:
        kept = [at for at in range(len(flat.dims)) if at not in given]
        exprs: list[Expr] = [Const(0)] * len(flat.dims)
        for new, at in enumerate(kept):
            exprs[at] = Dim(new)
        for new, at in enumerate(given):
            exprs[at] = Sym(new)
        move = [Sym(len(given) + k) for k in range(len(m.rt_vars))]
        free = [flat.dims[at] for at in given]
        rest = flat.substitute(exprs, move, [flat.dims[at] for at in kept], free, m.rt_vars)
        found = _turn(rest, spaces)
        if isinstance(found, IndexingMap):
            back = {at: found.results[new] for new, at in enumerate(kept)}
            back |= {at: Sym(new) for new, at in enumerate(given)}
            return eliminate_symbols(found.replace(results=[back[at] for at in range(rank)]))
        # symbols of the map first: they only iterate; then dimensions
        unknown = [kept[at] for at in found]
        given.append(next((at for at in unknown if at >= rank), unknown[0]))


def _turn(flat: IndexingMap, spaces: Sequence[Var]) -> IndexingMap | list[int]:
    """From results to dimensions, symbols staying as they are; or the dimensions that cannot be told."""
    starts = [Dim(i) + v.lo for i, v in enumerate(flat.dims)]  # count from 0, so that digits are plain
    symbols = tuple((v.lo, v.hi) for v in flat.syms + flat.rt_vars)
    from_zero = simplifier(tuple((0, v.hi - v.lo) for v in flat.dims), symbols)
    equations = [(from_zero.simplify(r.substitute(starts)), Dim(at)) for at, r in enumerate(flat.results)]
    equations += [(from_zero.simplify(e.substitute(starts)), Const(lo)) for e, lo, hi in flat.constraints if lo == hi]
    known = _solve(_merge_divisions(equations, from_zero), from_zero)
    if any(e is None for e in known):
        return [at for at, e in enumerate(known) if e is None]
    back = [e + v.lo for e, v in zip(known, flat.dims, strict=True) if e is not None]
    constraints = [(e, v.lo, v.hi) for e, v in zip(back, flat.dims, strict=True)]
    constraints += [(e.substitute(back), lo, hi) for e, lo, hi in flat.constraints]
    constraints += [(r.substitute(back) - Dim(at), 0, 0) for at, r in enumerate(flat.results)]
    return IndexingMap(back, spaces, flat.syms, constraints, flat.rt_vars).simplify()


def _merge_divisions(equations: list[Equation], ranges: Simplifier) -> list[Equation]:
    """`x floordiv c` and `x mod c` of a larger `x` put together again, wherever that leaves fewer divisions."""
    for a, (outer, outer_value) in enumerate(equations):
        for b, (inner, inner_value) in enumerate(equations):
            count = _divisions(outer) + _divisions(inner)
            lo, hi = ranges.range_of(inner)
            if a == b or count < 2 or lo:
                continue
            whole = ranges.simplify(outer * (hi + 1) + inner)
            if _divisions(whole) < count:
                left = [e for at, e in enumerate(equations) if at not in (a, b)]
                return _merge_divisions([*left, (whole, outer_value * (hi + 1) + inner_value)], ranges)
    return equations


def _divisions(e: Expr) -> int:
    if not isinstance(e, BinaryExpr):
        return 0
    return isinstance(e, (FloorDiv, Mod)) + _divisions(e.lhs) + _divisions(e.rhs)


def _solve(equations: list[Equation], ranges: Simplifier) -> list[Expr | None]:
    """Each dimension as an expression over the values; None for one that the equations do not give away."""
    digits: list[dict[int, tuple[int, Expr]]] = [{} for _ in ranges.dims]  # by scale: size and digit
    for e, value in equations:
        for number, scale, size, digit in _read_digits(e, value, ranges):
            digits[number].setdefault(scale, (size, digit))
    return [_from_digits(found, hi) for found, (_, hi) in zip(digits, ranges.dims, strict=True)]


def _read_digits(e: Expr, value: Expr, ranges: Simplifier) -> list[tuple[int, int, int, Expr]]:
    """`(dimension, scale, size, digit)` for the digits that `value == e` gives away."""
    terms, constant = linear_terms(e)
    rest = value - constant
    found: list[tuple[int, int, int, int]] = []  # factor, dimension, scale, size
    for atom, factor in terms.items():
        digit = _digit(atom, ranges)
        if all(isinstance(v, Sym) for v in atom.variables()):
            rest = rest - atom * factor
        elif digit is None:
            return []
        else:
            found.append((factor, *digit))
    found.sort(key=lambda d: abs(d[0]))
    for factor, _, _, size in found:
        if factor < 0:  # a digit that counts down: x * -c == (size - 1 - x) * c - (size - 1) * c
            rest = rest - factor * (size - 1)
    digits = []
    for at, (factor, number, scale, size) in enumerate(found):
        digit = floordiv(rest, Const(abs(factor)))
        if at + 1 < len(found):
            radix, odd = divmod(abs(found[at + 1][0]), abs(factor))
            if odd or radix < size:
                return []
            digit = mod(digit, Const(radix))
        digits.append((number, scale, size, digit if factor > 0 else size - 1 - digit))
    return digits


def _digit(e: Expr, ranges: Simplifier) -> tuple[int, int, int] | None:
    """`(dimension, scale, size)` when `e` is `(Dim floordiv scale) mod size`; otherwise None."""
    size, scale = 0, 1
    if isinstance(e, Mod) and isinstance(e.rhs, Const):
        e, size = e.lhs, e.rhs.value
    if isinstance(e, FloorDiv) and isinstance(e.rhs, Const):
        e, scale = e.lhs, e.rhs.value
    return (e.index, scale, size or ranges.dims[e.index][1] // scale + 1) if isinstance(e, Dim) else None


def _from_digits(digits: dict[int, tuple[int, Expr]], most: int) -> Expr | None:
    """The number up to `most` with these digits, by scale; None when some are missing."""
    total: Expr = Const(0)
    scale = 1
    while scale <= most:
        size, digit = digits.get(scale, (1, total))
        if size <= 1:
            return None
        total = add(total, mul(digit, Const(scale)))
        scale *= size
    return total
