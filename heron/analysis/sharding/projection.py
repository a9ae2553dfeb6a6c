"""Shardings of arrays as shardings of an op's factors, and back.

The atoms of a dimension are dealt to its factors, major to minor. A factor takes an atom that divides what is left of
it; the minor factor of a dimension takes an atom that does not divide, too, for its parts are rounded up. Atoms after
one that finds no place are the dimension's *overflow*: no factor has them.

    mesh x=2, y=4 (atoms 0; 1, 2), [{'x', 'y'}] of a dimension of factors i=4, j=8  →  i: (0, 1), j: (2,)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from heron.analysis.sharding.rule import Dims, OpRule
from heron.hlo.sharding.atoms import AtomicMesh, Axes, TensorSharding
from heron.records import dataclass


@dataclass(frozen=True, slots=True)
class Projection:
    """The sharding of one array by factors.

    Attributes:
        axes: for each factor of the rule its atoms, major to minor; () for factors that the array does not have.
        overflow: for each dimension the atoms that fit no factor.
    """

    axes: tuple[Axes, ...]
    overflow: tuple[Axes, ...]


def project(rule: OpRule, array: int, sharding: TensorSharding, mesh: AtomicMesh) -> Projection:
    """The sharding of array number `array` of the rule (operands, then results) by factors."""
    return _project(rule, array, sharding.dims, mesh.sizes)


@lru_cache(maxsize=1 << 16)
def _project(rule: OpRule, array: int, dims: tuple[Axes, ...], sizes: tuple[int, ...]) -> Projection:
    found: list[Axes] = [()] * len(rule.factors)
    overflow: list[Axes] = []
    for numbers, axes in zip(rule.arrays[array], dims, strict=True):
        rest = axes
        for number in numbers:
            if not rest:
                break
            taken, is_full = _taken(rule.factors[number].size, rest, sizes, number == numbers[-1])
            found[number] = rest[:taken]
            rest = rest[taken:]
            if not is_full:
                break
        overflow.append(rest)
    return Projection(tuple(found), tuple(overflow))


def _taken(size: int, axes: Axes, sizes: tuple[int, ...], is_minor: bool) -> tuple[int, bool]:
    """The number of leading atoms that a factor takes, and whether it is split into single steps by them."""
    left = size
    for n, atom in enumerate(axes):
        if left <= 1:
            return n, True
        if left % sizes[atom] and not is_minor:
            return n, False
        left = -(-left // sizes[atom])
    return len(axes), left <= 1


def joined(dims: Dims, axes: Sequence[Axes] | Mapping[int, Axes], overflow: Sequence[Axes] = ()) -> tuple[Axes, ...]:
    """The atoms of each dimension of an array with these factors; `axes` by factor number."""
    found = [tuple(atom for number in numbers for atom in axes[number]) for numbers in dims]
    if overflow:
        found = [own + more for own, more in zip(found, overflow, strict=True)]
    return tuple(found)


def is_exact(rule: OpRule, axes: Sequence[Axes], mesh: AtomicMesh) -> bool:
    """Whether every array has the parts that its factors have, where factors are split by these atoms.

    Of a dimension with several factors each part must be as large as the others, and a factor may be split only when
    those major to it are split into single steps. A dimension with one factor may have uneven parts.
    """
    return all(_is_exact(rule, numbers, axes, mesh) for dims in rule.arrays for numbers in dims)


def _is_exact(rule: OpRule, numbers: tuple[int, ...], axes: Sequence[Axes], mesh: AtomicMesh) -> bool:
    if len(numbers) == 1:
        return True
    is_full = True
    for number in numbers:
        parts = mesh.size(axes[number])
        if parts > 1 and (not is_full or rule.factors[number].size % parts):
            return False
        is_full = is_full and parts == rule.factors[number].size
    return True
