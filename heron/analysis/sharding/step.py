"""One step of propagation: a link passes axes on along the factors of its rule.

For each factor the longest list of axes is found on which all arrays agree that have it. Then each array takes as much
of it as it can: results first, then operands; the factors whose axes come from the largest array first. An array cannot
take an atom that splits another of its factors, that must stay whole in it, or that would split a closed dimension; and
a factor that is not the minor one of its dimension is split evenly or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import prod

from heron.analysis.sharding.edges import Direction
from heron.analysis.sharding.rule import FactorKind, OpRule
from heron.hlo.sharding.atoms import AtomicMesh, Axes, TensorSharding
from heron.records import dataclass


@dataclass(frozen=True, slots=True)
class Refusal:
    """Axes that an array of a link did not get: the number of the array, its dimension, the atoms, and why."""

    array: int
    dim: int
    axes: Axes
    reason: str


@dataclass(slots=True)
class _Share:
    """One factor of one array: its axes, those that do not fit into it, and whether it may get more."""

    dim: int
    axes: Axes
    overflow: Axes
    is_open: bool
    is_minor: bool


#: shares of an array's factors
_Shares = dict[int, _Share]
#: told of a refusal: array, factor, atoms, why
_Tell = Callable[[int, int, Axes, str], None]


class Step:
    """A link's rule, ready to pass axes on between shardings over a mesh.

    Args:
        rule: the sharding rule.
        mesh: the atoms' sizes.
        is_elementwise: whether operands get no more axes than results have.
        is_border: whether this is the border of a manual computation: its arrays differ in atoms that are manual in
            one of them and come first in every dimension of the other, so that what follows must divide the local size.
    """

    def __init__(self, rule: OpRule, mesh: AtomicMesh, is_elementwise: bool = False, is_border: bool = False) -> None:
        self.rule, self.mesh = rule, mesh
        self.is_elementwise, self.is_border = is_elementwise, is_border
        self.sizes = [f.size for f in rule.factors]
        self.arrays = rule.arrays
        self.operands = len(rule.operands)
        #: of each array the product of its factors' sizes
        self.volumes = [prod(self.sizes[f] for dim in dims for f in dim) for dims in self.arrays]

    def run(self, shardings: Sequence[TensorSharding], passing: Direction, other: Direction) -> list[TensorSharding]:
        """The shardings of all arrays after the step.

        Args:
            shardings: those of the operands, then of the results.
            passing: the directions along pass-through factors.
            other: the directions along all other factors.
        """
        given = self._without_manual(shardings) if self.is_border else shardings
        shares = [self._project(n, s) for n, s in enumerate(given)]
        wanted = self._wanted(shares, passing, other)
        if not any(wanted):
            return list(shardings)
        self._share_out(shares, given, wanted, None)
        found = [self._joined(n, given[n], shares[n]) for n in range(len(given))]
        return self._with_manual(shardings, found) if self.is_border else found

    def refusals(self, shardings: Sequence[TensorSharding]) -> list[Refusal]:
        """The axes that arrays have along a factor and that others of the link cannot get."""
        found: list[Refusal] = []
        given = self._without_manual(shardings) if self.is_border else shardings
        shares = [self._project(n, s) for n, s in enumerate(given)]

        def tell(array: int, factor: int, axes: Axes, reason: str) -> None:
            found.append(Refusal(array, shares[array][factor].dim, axes, reason))

        self._disagreements(shares, tell)
        self._share_out(shares, given, self._wanted(shares, Direction.BOTH, Direction.BOTH), tell)
        return found

    # -- what there is -----------------------------------------------------------------------------------------------
    def _project(self, n: int, sharding: TensorSharding) -> _Shares:
        """The atoms of each dimension dealt out to its factors, the major factor first."""
        shares: _Shares = {}
        sizes = self.mesh.sizes
        for d, (factors, axes, is_open) in enumerate(zip(self.arrays[n], sharding.dims, sharding.is_open, strict=True)):
            rest, overflows = axes, False
            for f in factors:
                if overflows:
                    shares[f] = _Share(d, (), (), False, f == factors[-1])
                    continue
                if f == factors[-1]:
                    shares[f] = _Share(d, rest, (), is_open, not self.is_border)
                    break
                left, taken = self.sizes[f], 0
                while taken < len(rest) and left % sizes[rest[taken]] == 0:
                    left //= sizes[rest[taken]]
                    taken += 1
                mine, rest = rest[:taken], rest[taken:]
                overflows = left > 1 and bool(rest)
                shares[f] = _Share(d, mine, rest if overflows else (), is_open, False)
        return shares

    def _wanted(self, shares: list[_Shares], passing: Direction, other: Direction) -> list[Axes]:
        """For each factor the longest list of axes on which the arrays agree, as far as directions allow."""
        return [
            ()
            if factor.is_blocked
            else self._agreed(shares, f, passing if factor.kind is FactorKind.PASS_THROUGH else other)
            for f, factor in enumerate(self.rule.factors)
        ]

    def _agreed(self, shares: list[_Shares], factor: int, direction: Direction) -> Axes:
        if not direction:
            return ()
        parts = shares[: self.operands], shares[self.operands :]
        axes: Axes = ()
        may_grow = True
        for part in reversed(parts) if direction is Direction.BACKWARD else parts:
            for array in part:
                share = array.get(factor)
                if share is not None:
                    axes, may_grow = _joint(axes, share.axes, may_grow)
            may_grow = may_grow and direction is Direction.BOTH
        return axes

    def _disagreements(self, shares: list[_Shares], tell: _Tell) -> None:
        for f, places in enumerate(self.rule.places):
            for a, _ in places:
                for b, _ in places:
                    mine, theirs = shares[a][f].axes, shares[b][f].axes
                    k = next((k for k, (x, y) in enumerate(zip(mine, theirs, strict=False)) if x != y), None)
                    if k is not None:
                        name = self.mesh.text
                        tell(a, f, theirs[k:], f"it is split along {name(mine[k:])} where another array has it")

    # -- who gets what -----------------------------------------------------------------------------------------------
    def _share_out(
        self, shares: list[_Shares], shardings: Sequence[TensorSharding], wanted: list[Axes], tell: _Tell | None
    ) -> None:
        """Give each array as much as it can take of the wanted axes."""
        order = self._order(shares, wanted)
        results = shares[self.operands :]
        for n in (*range(self.operands, len(shares)), *range(self.operands)):
            for f in order:
                share = shares[n].get(f)
                if share is None or not wanted[f]:
                    continue
                axes = self._fitting(n, f, shares, shardings[n], wanted[f], tell)
                if n < self.operands and self.is_elementwise:
                    axes = _no_more_than(results, f, axes)
                if _is_longer(axes, share.axes):
                    share.axes = axes

    def _order(self, shares: list[_Shares], wanted: list[Axes]) -> list[int]:
        """The factors, those whose axes come from the largest array first."""
        keys: list[tuple[int, int, int, int]] = []
        for f, axes in enumerate(wanted):
            size, source = -1, -1
            for n, array in enumerate(shares):
                share = array.get(f)
                if axes and share is not None and share.axes[: len(axes)] == axes and self.volumes[n] > size:
                    size, source = self.volumes[n], n
            keys.append((-size, -self.mesh.size(axes) if self.is_elementwise else 0, source, f))
        return [f for *_, f in sorted(keys)]

    def _fitting(
        self, n: int, f: int, shares: list[_Shares], sharding: TensorSharding, wanted: Axes, tell: _Tell | None
    ) -> Axes:
        """The part of the wanted axes that array `n` can take along factor `f`."""
        share = shares[n][f]
        if not _is_longer(wanted, share.axes):
            return share.axes
        taken = {a for g, s in shares[n].items() if g != f for a in (*s.axes, *s.overflow)}
        axes = share.axes
        for atom in wanted[len(axes) :]:
            reason = self._reason_against(f, share, axes, atom, sharding, taken)
            if reason:
                if tell is not None:
                    tell(n, f, wanted[len(axes) :], reason)
                break
            axes = (*axes, atom)
        return axes

    def _reason_against(
        self, f: int, share: _Share, axes: Axes, atom: int, sharding: TensorSharding, taken: set[int]
    ) -> str:
        """Why an atom cannot be added to a share with these axes; "" when it can."""
        if atom in sharding.replicated:
            return "it must stay whole along it"
        if atom in sharding.unreduced:
            return "it is a sum yet to be made along it"
        if atom in sharding.manual:
            return "the program handles it by itself here"
        if not share.is_open:
            return "the dimension is closed"
        if share.overflow:
            return "axes before it do not divide the dimension's parts"
        if not share.is_minor:
            before = self.mesh.size(axes)
            if self.sizes[f] % (before * self.mesh.sizes[atom]):
                return f"it does not divide {self.sizes[f]}, and other elements of the dimension follow"
        if atom in taken:
            return "another dimension of it is split along it"
        return ""

    # -- back to dimensions ------------------------------------------------------------------------------------------
    def _joined(self, n: int, sharding: TensorSharding, shares: _Shares) -> TensorSharding:
        """The sharding of an array from the shares of its factors; an inner factor follows a full one."""
        found: list[Axes] = []
        for factors, old in zip(self.arrays[n], sharding.dims, strict=True):
            axes: Axes = ()
            for f in factors:
                share = shares[f]
                axes = (*axes, *share.axes, *share.overflow)
                if share.overflow or self.mesh.size(share.axes) < self.sizes[f]:
                    break
            found.append(axes if _is_longer(axes, old) else old)
        dims = tuple(found)
        return sharding if dims == sharding.dims else replace(sharding, dims=dims)

    # -- borders of manual computations ------------------------------------------------------------------------------
    def _borders(self, shardings: Sequence[TensorSharding]) -> Iterator[frozenset[int]]:
        """For each array the atoms that are manual on the other side of the border alone."""
        a, b = shardings
        yield b.manual - a.manual
        yield a.manual - b.manual

    def _without_manual(self, shardings: Sequence[TensorSharding]) -> list[TensorSharding]:
        return [
            replace(s, dims=tuple(tuple(x for x in axes if x not in inner) for axes in s.dims), manual=s.manual | inner)
            for s, inner in zip(shardings, self._borders(shardings), strict=True)
        ]

    def _with_manual(self, old: Sequence[TensorSharding], new: list[TensorSharding]) -> list[TensorSharding]:
        return [
            replace(
                o,
                dims=tuple(
                    (*(x for x in before if x in inner), *after) for before, after in zip(o.dims, n.dims, strict=True)
                ),
            )
            for o, n, inner in zip(old, new, self._borders(old), strict=True)
        ]


def _joint(axes: Axes, other: Axes, may_grow: bool) -> tuple[Axes, bool]:
    """The axes on which two lists agree, and whether a third may make them longer."""
    common = min(len(axes), len(other))
    for k in range(common):
        if axes[k] != other[k]:
            return axes[:k], False
    return (other if may_grow and len(other) > common else axes), may_grow


def _is_longer(axes: Axes, than: Axes) -> bool:
    """Whether `axes` begins with `than` and goes on."""
    return len(axes) > len(than) and axes[: len(than)] == than


def _no_more_than(results: list[_Shares], factor: int, axes: Axes) -> Axes:
    """The axes, cut to those of a result that has fewer of them."""
    for array in results:
        share = array.get(factor)
        if share is not None and _is_longer(axes, share.axes):
            axes = share.axes
    return axes
