"""Plans: the steps that bring an array from one sharding to another with the fewest bytes on the wire.

A state of the search is the list of atoms of each dimension, and the atoms along which the value is a partial sum. A
step cuts a share further (free), joins shares (all-gather), moves atoms from one dimension to another (all-to-all),
exchanges atoms for others with as many parts (collective-permute), or adds up (all-reduce, reduce-scatter). Costs are
the bytes that rings send and, on a machine, what its links send in their latency for each step. The shortest path is
found among states whose shares are no larger than the larger of the first and the last share; other states are tried
where there is none.

Atoms that stay neighbours are handled as one (`units.py`).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import takewhile
from math import prod
from typing import NamedTuple

from heron.hlo.sharding.atoms import Axes
from heron.passes.sharding.partition.moves import retiled, rounds, sent
from heron.passes.sharding.partition.permutations import aligned
from heron.passes.sharding.partition.units import FEW, units_of
from heron.records import dataclass

#: steps in which nothing is sent
_LOCAL = frozenset({"slice", "spread"})
#: states looked at before the search gives up and joins every share
_MOST_STATES = 2000
#: permutes by which a dimension gets other borders and other units at once; a gather is one collective
_MOST_ROUNDS = 16


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a plan.

    Attributes:
        kind: slice, all-gather, all-to-all, collective-permute, all-reduce, reduce-scatter or retile: a dimension gets
            the borders it has in the end; or spread: the share becomes a summand that is zero elsewhere.
        dim: the dimension whose atoms change; `to` that which gets them in an all-to-all.
        axes: the atoms that come or go.
        dims: the atoms of each dimension after the step.
        bytes: sent by each device.
        count: of collectives.
    """

    kind: str
    dim: int
    axes: Axes
    dims: tuple[Axes, ...]
    bytes: float = 0.0
    to: int = -1
    count: int = 1


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps in order, the bytes that each device sends, and the bytes of the largest share on the way.

    `within` tells whether no share is larger than the larger of the first and the last one; `cost` has the latency of
    all steps beside the bytes.
    """

    steps: tuple[Step, ...]
    bytes: float
    peak: int
    within: bool
    cost: float


class State(NamedTuple):
    """The units of each dimension, those to be added up, and for each dimension whether its tiles are the last ones."""

    dims: tuple[Axes, ...]
    sums: frozenset[int]
    retiled: tuple[bool, ...]


@lru_cache(maxsize=1 << 14)
def plan(
    sizes: tuple[int, ...],
    shape: tuple[int, ...],
    item: int,
    old: tuple[Axes, ...],
    sums: frozenset[int],
    new: tuple[Axes, ...],
    kept: frozenset[int],
    latency: float = 0.0,
) -> Plan:
    """The cheapest steps for an array of sizes `shape`, `item` bytes an element, over atoms of these `sizes`.

    From dimensions split by `old` with partial sums along `sums` to dimensions split by `new` with partial sums along
    `kept`. One collective more is worth `latency` bytes.
    """
    return _Search(sizes, shape, item, old, sums, new, kept, latency).find()


class _Search:
    def __init__(
        self,
        sizes: tuple[int, ...],
        shape: tuple[int, ...],
        item: int,
        old: tuple[Axes, ...],
        sums: frozenset[int],
        new: tuple[Axes, ...],
        kept: frozenset[int],
        latency: float,
    ) -> None:
        self.shape, self.item, self.latency = shape, item, latency
        self.units = units_of(len(sizes), old, sums, new, kept)
        self.sizes = tuple(prod(sizes[a] for a in unit) for unit in self.units)
        number = {unit[0]: n for n, unit in enumerate(self.units)}
        self.old = tuple(tuple(number[a] for a in axes if a in number) for axes in old)
        self.goal = tuple(tuple(number[a] for a in axes if a in number) for axes in new)
        self.sums = frozenset(number[a] for a in sums if a in number)
        self.kept = frozenset(number[a] for a in kept if a in number)
        #: sizes that the tiles of the first and of the last state cover
        self.first = tuple(self._covered(n, axes) for n, axes in zip(shape, self.old, strict=True))
        self.last = tuple(self._covered(n, axes) for n, axes in zip(shape, self.goal, strict=True))
        #: units to be added up in the end that are no partial sums in the beginning
        self.fresh = self.kept - self.sums
        self._bytes: dict[State, int] = {}
        self.place = {u: d for d, axes in enumerate(self.goal) for u in axes}

    def _covered(self, size: int, units: Axes) -> int:
        parts = self.size(units)
        return -(-size // parts) * parts

    def size(self, units: Sequence[int]) -> int:
        """The number of parts along these units."""
        return prod([self.sizes[u] for u in units])

    def cost(self, step: Step) -> float:
        """The bytes that a step is worth."""
        return step.bytes + (0.0 if step.kind in _LOCAL else self.latency * step.count)

    # -- search ------------------------------------------------------------------------------------------------------
    def find(self) -> Plan:
        """The shortest path, within memory where there is one."""
        start = self._state(self.old, self.sums, (False,) * len(self.shape))
        end = self._state(self.goal, self.kept, (True,) * len(self.shape))
        limit = max(self.bytes(start), self.bytes(end))
        for bound in (limit, None):
            found = self._dijkstra(start, end, bound)
            if found is not None:
                return self._plan(start, found, bound is not None)
        return self._plan(start, self._gathered(start, end), False)

    def _plan(self, start: State, path: list[tuple[Step, State]], within: bool) -> Plan:
        peak = max([self.bytes(start), *(self.bytes(s) for _, s in path)])
        steps = tuple(self._written(step) for step, _ in path)
        return Plan(steps, sum(s.bytes for s in steps), peak, within, sum(self.cost(step) for step, _ in path))

    def _written(self, step: Step) -> Step:
        """The step by atoms."""
        axes = tuple(a for u in step.axes for a in self.units[u])
        dims = tuple(tuple(a for u in units for a in self.units[u]) for units in step.dims)
        return Step(step.kind, step.dim, axes, dims, step.bytes, step.to, step.count)

    def _dijkstra(self, start: State, end: State, bound: int | None) -> list[tuple[Step, State]] | None:
        best: dict[State, tuple[float, int]] = {start: (0.0, 0)}
        came: dict[State, tuple[State, Step]] = {}
        queue: list[tuple[float, int, int, State]] = [(0.0, 0, 0, start)]
        count = 0
        done: set[State] = set()
        while queue and len(done) < _MOST_STATES:
            cost, hops, _, state = heapq.heappop(queue)
            if state in done:
                continue
            if state == end:
                return self._path(came, start, end)
            done.add(state)
            for step, after in self.steps(state):
                if bound is not None and self.bytes(after) > bound:
                    continue
                total = cost + self.cost(step), hops + (step.kind not in _LOCAL)
                if after not in best or total < best[after]:
                    best[after], came[after] = total, (state, step)
                    count += 1
                    heapq.heappush(queue, (*total, count, after))
        return None

    def _path(self, came: dict[State, tuple[State, Step]], start: State, end: State) -> list[tuple[Step, State]]:
        path: list[tuple[Step, State]] = []
        at = end
        while at != start:
            before, step = came[at]
            path.append((step, at))
            at = before
        return path[::-1]

    def _gathered(self, start: State, end: State) -> list[tuple[Step, State]]:
        """Everything added up and joined, then cut: the way that is always there."""
        path: list[tuple[Step, State]] = []
        state = start

        def go(step: Step, after: State) -> State:
            path.append((step, after))
            return after

        gone = tuple(sorted(state.sums - end.sums))
        if gone:
            state = go(*self._reduced(state, gone))
        for d, units in enumerate(state.dims):
            if units and units != end.dims[d]:
                state = go(*self._gather(state, d, len(units)))
        for d, units in enumerate(end.dims):
            if units != state.dims[d]:
                state = go(*self._move(state, "slice", d, units, 0.0))
        if end.sums - state.sums:
            go(*self._spread(state, -1, tuple(sorted(end.sums - state.sums))))
        return path

    # -- states ------------------------------------------------------------------------------------------------------
    def _state(self, dims: tuple[Axes, ...], sums: frozenset[int], retiled: Sequence[bool]) -> State:
        """A state in the one form it has: dimensions whose tiles are the same in both ways count as retiled."""
        flags = tuple(
            flag or not units or first == last
            for flag, units, first, last in zip(retiled, dims, self.first, self.last, strict=True)
        )
        return State(dims, sums, flags)

    def extent(self, state: State, d: int) -> int:
        """The size that the tiles of a dimension cover."""
        if not state.dims[d]:
            return self.shape[d]
        return self.last[d] if state.retiled[d] else self.first[d]

    def local(self, state: State, d: int) -> int:
        return self.extent(state, d) // self.size(state.dims[d])

    def bytes(self, state: State) -> int:
        """The bytes of a share."""
        found = self._bytes.get(state)
        if found is None:
            found = self._bytes[state] = self.item * prod([self.local(state, d) for d in range(len(self.shape))])
        return found

    def _grows(self, state: State, d: int, units: Axes) -> bool:
        """Whether a dimension's tiles can be cut along more units."""
        if not state.dims[d]:
            return self.last[d] % self.size(units) == 0
        return self.extent(state, d) % self.size((*state.dims[d], *units)) == 0

    # -- steps -------------------------------------------------------------------------------------------------------
    def steps(self, state: State) -> Iterator[tuple[Step, State]]:
        """Every step that may help, with the state behind it."""
        yield from self._additions(state)
        yield from self._spreads(state)
        used = state.sums.union(*state.dims) if state.dims else state.sums
        for d, units in enumerate(state.dims):
            for added in self._slices(state, d, used):
                if self._grows(state, d, added):
                    yield self._move(state, "slice", d, added, 0.0)
            if not units:
                continue
            if not state.retiled[d]:
                yield from self._retiles(state, d, used)
            if units == self.goal[d][: len(units)] and state.retiled[d]:
                continue
            for n in range(1, len(units) + 1):
                yield self._gather(state, d, n)
                yield from self._exchange(state, d, n)
        for dims in aligned(state.dims, self.goal, self.sizes, state.sums):
            step = Step("collective-permute", -1, (), dims, float(self.bytes(state)))
            yield step, self._state(dims, state.sums, state.retiled)

    def _slices(self, state: State, d: int, used: frozenset[int]) -> Iterator[Axes]:
        """Free units along which to cut a dimension: its own ones, those that go with its last one, and any others that
        give as many parts as the goal has, for an exchange."""
        units = state.dims[d]
        runs = [tuple(u for u in self.goal[d] if u not in used)]
        to = self.place.get(units[-1], d) if units else d
        if to != d:
            behind = self.goal[to][self.goal[to].index(units[-1]) + 1 :]
            runs.append(tuple(takewhile(lambda u: u not in used, behind)))
        for run in runs:
            yield from (run[:n] for n in range(1, len(run) + 1))
        if len(self.units) <= FEW:
            parts, most = self.size(units), self.size(self.goal[d])
            yield from ((u,) for u in self.place if u not in used and most % (parts * self.sizes[u]) == 0)

    def _move(self, state: State, kind: str, d: int, units: Axes, cost: float) -> tuple[Step, State]:
        """The state with more units at the end of a dimension, which may have been partial sums."""
        dims = (*state.dims[:d], (*state.dims[d], *units), *state.dims[d + 1 :])
        after = self._state(dims, state.sums.difference(units), self._flags(state, d))
        return Step(kind, d, units, dims, cost), after

    def _flags(self, state: State, d: int) -> tuple[bool, ...]:
        """Whether tiles are the last ones, where dimension `d` gets units: a whole one is cut as it will be."""
        flag = state.retiled[d] or not state.dims[d]
        return (*state.retiled[:d], flag, *state.retiled[d + 1 :])

    def _gather(self, state: State, d: int, n: int) -> tuple[Step, State]:
        kept, gone = state.dims[d][:-n], state.dims[d][-n:]
        dims = (*state.dims[:d], kept, *state.dims[d + 1 :])
        after = self._state(dims, state.sums, state.retiled)
        sent = self.bytes(state) * (self.size(gone) - 1)
        return Step("all-gather", d, gone, dims, float(sent)), after

    def _exchange(self, state: State, d: int, n: int) -> Iterator[tuple[Step, State]]:
        """The last `n` units of a dimension moved to the one that wants them."""
        kept, gone = state.dims[d][:-n], state.dims[d][-n:]
        to = self.place.get(gone[0], d)
        if to == d or any(self.place.get(u) != to for u in gone) or not self._grows(state, to, gone):
            return
        dims = list(state.dims)
        dims[d], dims[to] = kept, (*dims[to], *gone)
        after = self._state(tuple(dims), state.sums, self._flags(state, to))
        parts = self.size(gone)
        yield Step("all-to-all", d, gone, tuple(dims), self.bytes(after) * (parts - 1) / parts, to), after

    def _retiles(self, state: State, d: int, used: frozenset[int]) -> Iterator[tuple[Step, State]]:
        """Tiles of the last borders, along the same units or the first ones of the goal, with what others have."""
        units, goal = state.dims[d], self.goal[d]
        others = used.difference(units)
        prefixes = [goal[:n] for n in range(1, len(goal) + 1) if others.isdisjoint(goal[:n])]
        for new in dict.fromkeys((units, *prefixes)):
            if self.last[d] % self.size(new) or self.size([u for u in units if u not in new]) > _MOST_ROUNDS:
                continue
            tile = self.local(state, d)
            found = rounds(retiled(self.shape[d], tile, units, new, self.sizes, self.last[d] // self.size(new)))
            count = sum(not r.stays for r in found)
            if new != units and count > _MOST_ROUNDS:
                continue
            dims = (*state.dims[:d], new, *state.dims[d + 1 :])
            after = self._state(dims, state.sums, (*state.retiled[:d], True, *state.retiled[d + 1 :]))
            cost = float(sent(found) * self.bytes(state) // max(1, tile))
            yield Step("retile", d, new, dims, cost, count=count), after

    def _spreads(self, state: State) -> Iterator[tuple[Step, State]]:
        """Shares as summands: units that split a dimension, or none, become those to be added up."""
        if not self.fresh - state.sums:
            return
        for d, units in enumerate(state.dims):
            if units and units[-1] in self.fresh:
                yield self._spread(state, d, units[-1:])
        free = tuple(u for u in sorted(self.fresh - state.sums) if not any(u in units for units in state.dims))
        if free:
            yield self._spread(state, -1, free)

    def _spread(self, state: State, d: int, units: Axes) -> tuple[Step, State]:
        """The state with the last units of dimension `d`, or free ones, to be added up."""
        dims = state.dims if d < 0 else (*state.dims[:d], state.dims[d][:-1], *state.dims[d + 1 :])
        after = self._state(dims, state.sums.union(units), state.retiled)
        return Step("spread", d, units, dims), after

    def _additions(self, state: State) -> Iterator[tuple[Step, State]]:
        gone = sorted(state.sums - self.kept)
        if not gone:
            return
        for u in gone:
            yield self._reduced(state, (u,))
        if len(gone) > 1:
            yield self._reduced(state, tuple(gone))
        for d, units in enumerate(self.goal):
            missing = [u for u in units if u not in state.dims[d]]
            for n in range(1, len(missing) + 1):
                taken = tuple(missing[:n])
                if not state.sums.issuperset(taken) or not self._grows(state, d, taken):
                    break
                parts = self.size(taken)
                step, after = self._move(state, "reduce-scatter", d, taken, 0.0)
                cost = float(self.bytes(after) * (parts - 1))
                yield Step(step.kind, d, taken, step.dims, cost), after

    def _reduced(self, state: State, units: Axes) -> tuple[Step, State]:
        parts = self.size(units)
        cost = 2.0 * self.bytes(state) * (parts - 1) / parts
        return Step("all-reduce", -1, units, state.dims, cost), self._state(
            state.dims, state.sums.difference(units), state.retiled
        )
