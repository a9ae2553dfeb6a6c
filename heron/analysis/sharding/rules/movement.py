"""Ops that only move elements: broadcast, transpose, reshape, reverse, concatenate, pad, bitcast-convert."""

from __future__ import annotations

from functools import lru_cache
from math import gcd

from heron.analysis.sharding.rule import FactorKind, OpRule
from heron.analysis.sharding.rules.builder import RuleBuilder
from heron.analysis.sharding.rules.registry import rule
from heron.hlo.ir.instruction import Instruction


@rule("broadcast")
def broadcast(i: Instruction) -> OpRule:
    """Dimensions of the operand pass through; new ones are the result's alone."""
    return _repeated(i.operands[0].shape.dims, i.shape.dims, i.dimensions)


@lru_cache(maxsize=1024)
def _repeated(x: tuple[int, ...], y: tuple[int, ...], dimensions: tuple[int, ...]) -> OpRule:
    b = RuleBuilder([x], [y])
    source = {d: n for n, d in enumerate(dimensions)}
    for d, size in enumerate(y):
        b.add(size, (source.get(d),), d)
    return b.build()


@rule("transpose")
def transpose(i: Instruction) -> OpRule:
    """Every dimension passes through."""
    return _permuted(i.operands[0].shape.dims, i.shape.dims, i.dimensions)


@lru_cache(maxsize=1024)
def _permuted(x: tuple[int, ...], y: tuple[int, ...], dimensions: tuple[int, ...]) -> OpRule:
    b = RuleBuilder([x], [y])
    for d, source in enumerate(dimensions):
        b.add(x[source], source, d)
    return b.build()


@rule("reverse")
def reverse(i: Instruction) -> OpRule:
    """Along reversed dimensions the parts change places."""
    dims = i.shape.dims
    turned = FactorKind.PERMUTATION
    return RuleBuilder.of(i).same(dims, _kinds(len(dims), i.dimensions, turned)).build()


@rule("concatenate")
def concatenate(i: Instruction) -> OpRule:
    """The joined dimension must be whole; when slices are joined, elements move between neighbours."""
    dims = i.shape.dims
    return RuleBuilder.of(i).same(dims, _kinds(len(dims), i.dimensions, _joined(i))).build()


def _joined(i: Instruction) -> FactorKind:
    cut = [o.opcode == "slice" for o in i.operands]
    sources = {o.operands[0] if is_cut else o for o, is_cut in zip(i.operands, cut, strict=True)}
    moves = all(cut) or (any(cut) and len(sources) == 1)
    return FactorKind.PERMUTATION if moves else FactorKind.NEED_REPLICATION


def _kinds(rank: int, dims: tuple[int, ...], kind: FactorKind) -> list[FactorKind]:
    return [kind if d in dims else FactorKind.PASS_THROUGH for d in range(rank)]


@rule("pad")
def pad(i: Instruction) -> OpRule:
    """Along padded dimensions elements move between neighbours."""
    x = i.operands[0].shape.dims
    moved = tuple(d for d, edges in enumerate(i.padding) if any(edges))
    return RuleBuilder.of(i).same(x, _kinds(len(x), moved, FactorKind.PERMUTATION)).build()


@rule("bitcast-convert")
def bitcast_convert(i: Instruction) -> OpRule:
    """The dimension that one side has more, for the parts of an element, must be whole."""
    b = RuleBuilder.of(i)
    (x,), (y,) = b.operands, b.results
    for d, size in enumerate(min(x, y, key=len)):
        b.add(size, d, d)
    if len(x) != len(y):
        longer = max(x, y, key=len)
        last = len(longer) - 1
        b.add(longer[-1], last if longer is x else None, last if longer is y else None, FactorKind.NEED_REPLICATION)
    return b.build()


# -- reshape ---------------------------------------------------------------------------------------------------------
@rule("reshape")
def reshape(i: Instruction) -> OpRule | None:
    """Common factors of both shapes pass through, others are whole. An array without elements has no rule."""
    return reshaped(i.operands[0].shape.dims, i.shape.dims) if i.shape.num_elements else None


@lru_cache(maxsize=1024)
def reshaped(source: tuple[int, ...], target: tuple[int, ...]) -> OpRule:
    """The rule of a reshape.

    Both shapes are walked from the major side. While the products of the factors so far agree, the greatest common
    divisor of what is left of both dimensions becomes a common factor. Where there is none, each side gets factors of
    its own until the products agree again.
    """
    b = RuleBuilder([source], [target])
    walk = _Walk(b, source, target)
    while not walk.is_done:
        walk.step()
    return b.build()


class _Side:
    """One shape of a reshape: the dimension that is being cut, and what is left of it."""

    def __init__(self, dims: tuple[int, ...]) -> None:
        self.dims, self.dim = dims, 0
        #: the product of all factors so far, and what the current dimension still has
        self.done, self.left = 1, dims[0] if dims else 1

    @property
    def is_done(self) -> bool:
        return self.dim == len(self.dims)

    @property
    def is_one(self) -> bool:
        return not self.is_done and self.dims[self.dim] == 1

    def take(self, size: int) -> None:
        self.done *= size
        self.left //= size
        if self.left == 1:
            self.dim += 1
            self.left = 1 if self.is_done else self.dims[self.dim]


class _Walk:
    """The walk over both shapes of a reshape."""

    def __init__(self, b: RuleBuilder, source: tuple[int, ...], target: tuple[int, ...]) -> None:
        self.b, self.source, self.target = b, _Side(source), _Side(target)

    @property
    def is_done(self) -> bool:
        return self.source.is_done and self.target.is_done

    def step(self) -> None:
        """Add the next factor, or one for each side."""
        x, y = self.source, self.target
        common = gcd(x.left, y.left)
        if x.is_one or y.is_one:
            self._own(x if x.is_one else y, 1)
        elif x.done != y.done:
            behind, ahead = (x, y) if x.done < y.done else (y, x)
            self._own(behind, _until(behind, ahead, common))
        elif common > 1:
            self.b.add(common, x.dim, y.dim)
            x.take(common)
            y.take(common)
        else:
            self._own(x, x.left)
            self._own(y, y.left)

    def _own(self, side: _Side, size: int) -> None:
        """A factor of one shape. Its parts are no parts of the other shape."""
        d = side.dim
        kind = FactorKind.PASS_THROUGH if size == 1 else FactorKind.NEED_REPLICATION
        self.b.add(size, d if side is self.source else None, d if side is self.target else None, kind)
        side.take(size)


def _until(behind: _Side, ahead: _Side, common: int) -> int:
    """The next factor of the side whose product is behind: up to the other's product where it divides, else all but
    the common divisor, else all."""
    missing, rest = divmod(ahead.done, behind.done)
    if not rest and behind.left % missing == 0:
        return missing
    return behind.left // common if behind.left > common else behind.left
