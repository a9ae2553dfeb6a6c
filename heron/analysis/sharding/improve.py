"""A search for shardings with which a program sends fewer bytes than with those that propagation found.

Propagation looks at one op at a time and never at bytes. The search begins with its shardings and the cheapest way to
compute every op in them. Where a value is then resharded, it tries another way to compute the op before or behind, lets
all ops that follow choose anew until nothing changes any more, and keeps that if the program as a whole sends less and
its values take no more memory. A reshard that several users share is counted once.

Values that somebody fixed stay as they are: parameters, results, constraints, what loops and branches carry, groups.
Results that nobody fixed may in the end keep an axis that they would be gathered along (`ends.py`).
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Hashable, Iterator

from heron.analysis.sharding.choice import Choice, alternatives
from heron.analysis.sharding.cost import reshard_bytes
from heron.analysis.sharding.ends import keep_split
from heron.analysis.sharding.program import ProgramShardings
from heron.analysis.sharding.ways import Ways
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import Trait
from heron.hlo.ir.shape import ShapeIndex
from heron.hlo.sharding.atoms import TensorSharding
from heron.records import dataclass

#: other ways that are tried for one op
WAYS = 6
#: ops that one try computes as a user behind them needs it, at most
PULLED = 600
#: ops that choose anew after one try, at most
REACH = 400
#: choices that the search makes: for each instruction, and at least
CHOICES, LEAST_CHOICES = 4, 20_000
#: tries of the same change of the same op in other places, after which it is given up
FAILURES = 1
#: the share of its cost that a change must save
SAVING = 0.02


@dataclass(frozen=True, slots=True)
class Change:
    """A leaf of a value whose sharding changes."""

    value: Instruction
    before: TensorSharding
    after: TensorSharding
    index: ShapeIndex = ()


def improved(c: Computation, shardings: ProgramShardings) -> list[Change]:
    """Better shardings for the values of a computation; `shardings` is changed."""
    search = Search(c, shardings)
    search.run()
    kept = [Change(c.root, before, after, index) for index, before, after in keep_split(search)]
    changes = list(search.changes())
    for change in changes:
        shardings.set(change.value, (), change.after)
    return changes + kept


class Search(Ways):
    """The search in one computation: ways that are tried, and kept where that is better."""

    def __init__(self, c: Computation, shardings: ProgramShardings) -> None:
        super().__init__(c, shardings)
        self.failed: Counter[Hashable] = Counter()
        self.left = max(LEAST_CHOICES, CHOICES * len(self.order))

    # -- the search --------------------------------------------------------------------------------------------------
    def run(self) -> None:
        """Try changes, the dearest values first, until none helps or the allowed number of choices is made."""
        tried: set[Hashable] = set()
        while self.left > 0:
            seams = sorted(self.moved, key=lambda i: (-self.moved[i], self.place[i]))
            if not any([self._try_at(value, tried) for value in seams]):
                return

    def _try_at(self, value: Instruction, tried: set[Hashable]) -> bool:
        """Whether another way to compute a value that is resharded, or a user of it, was better."""
        better = False
        for i in (value, *value.users):
            if i in self.fixed or not self.is_chosen(i) or self.has.get(i) is None:
                continue
            needs = list(self._needs(i)) if i is value else []
            for want in (None, *needs):
                better = self._try_ways(i, want, tried) or better
            for need in needs:
                better = self._try_pull(i, need, tried) or better
        return better

    def _try_ways(self, i: Instruction, want: TensorSharding | None, tried: set[Hashable]) -> bool:
        """Whether another way to compute `i` from its operands as they are was better."""
        operands = self._operands(i)
        for way in alternatives(i, operands, [want], self.mesh, WAYS):
            # layers repeat: what did not help in some places will not help in others
            alike = i.opcode, i.shape, *operands, self.has[i], way.split
            if way.results[0] == self.has[i] or not self._may_try((i, way.results[0]), alike, tried):
                continue
            log: dict[Instruction, Choice] = {}
            self._set(i, way, log)
            self._share(i, way, log)
            for o, need in zip(i.operands, way.operands, strict=True):
                if self._is_widened(o, need):
                    self._pull(o, need, log)
            if self._is_better(log):
                return True
            self.failed[alike] += 1
        return False

    def _try_pull(self, i: Instruction, need: TensorSharding, tried: set[Hashable]) -> bool:
        """Whether it was better to compute `i`, and what it is computed from, as a user needs it from the start."""
        alike = "pull", i.opcode, i.shape, self.has[i], need
        if need.unreduced or not self._may_try((i, need, "pull"), alike, tried):
            return False
        log: dict[Instruction, Choice] = {}
        self._pull(i, need, log)
        if log and self._is_better(log):
            return True
        self.failed[alike] += 1
        return False

    def gives(self, i: Instruction, index: ShapeIndex, need: TensorSharding) -> bool:
        """Whether it was better that the computation returns `i` in another sharding, computed so from the start or
        brought there, and no sum is cut for it. `index` is its place in the root's tuple."""
        way = self.choice(i)
        assert way is not None
        before, has, moved = self.shardings.of(self.root, index), self.has[i], self.moved.get(i, 0.0)
        self.peak = self.peak or self.held.fill()
        self.fixed.discard(i)
        self._put(i, way)
        self._note_moved(i, self._moved(i))
        self.shardings.set(self.root, index, need)
        log: dict[Instruction, Choice] = {}
        self._pull(i, need.close(), log)
        is_better = not any(self._choices[j].reduced for j in log) and self._is_better(log, i)
        if not is_better:
            self._take_back(log)
            self.shardings.set(self.root, index, before)
            self._note_moved(i, moved)
        if i is self.root or not is_better:
            self.has[i] = need.close() if is_better else has
            self.fixed.add(i)
        return is_better

    def _pull(self, i: Instruction, need: TensorSharding, log: dict[Instruction, Choice]) -> None:
        """Compute `i` in a sharding, and what it is computed from as that takes it."""
        work = [(i, need)]
        while work and len(log) < PULLED:
            value, wanted = work.pop()
            if value in log or value in self.fixed or not self.is_chosen(value):
                continue
            way = self._way(value, [None] * len(value.operands), [wanted])
            self.left -= 1
            if way.results[0] != wanted:
                continue
            self._set(value, way, log)
            for o, taken in zip(value.operands, way.operands, strict=True):
                has = self.has[o]
                if has is not None and reshard_bytes(self.mesh, o.shape, has, taken):
                    work.append((o, taken))

    def _is_widened(self, i: Instruction, need: TensorSharding) -> bool:
        """Whether a value is to be resharded that is converted from a narrower type, which is cheaper to send."""
        has = self.has[i]
        if has is None or not i.has(Trait.CONVERTS) or need.unreduced:
            return False
        wider = i.shape.element_type.bits > i.operands[0].shape.element_type.bits
        return wider and reshard_bytes(self.mesh, i.shape, has, need) > 0

    def _may_try(self, key: Hashable, alike: Hashable, tried: set[Hashable]) -> bool:
        """Whether a change was neither tried here nor failed in other places, and there are choices left."""
        if self.left <= 0 or key in tried or self.failed[alike] >= FAILURES:
            return False
        tried.add(key)
        return True

    def _is_better(self, log: dict[Instruction, Choice], *more: Instruction) -> bool:
        """Let what follows the changed ops choose anew. If that is not cheaper, take all changes back. Users need
        `more` values otherwise."""
        self._follow(log)
        changed = {*log, *more, *(o for j in log for o in j.operands)}
        after = {j: moved for j in changed if (moved := self._moved(j))}
        before = sum([self.moved.get(j, 0.0) for j in changed]) + sum([self._own(j, way) for j, way in log.items()])
        now = sum(after.values()) + sum([self._own(j, self._choices[j]) for j in log])
        if before - now > SAVING * before:
            old = {j: self.moved.pop(j) for j in changed if j in self.moved}
            self.moved.update(after)
            turned = old.keys() ^ after.keys()
            peak = self.held.refill(log, turned)
            if peak <= self.peak:
                self.peak = peak
                return True
            for j in after:
                del self.moved[j]
            self.moved.update(old)
            self._take_back(log)
            self.held.refill(log, turned)
            return False
        self._take_back(log)
        return False

    def _share(self, i: Instruction, way: Choice, log: dict[Instruction, Choice]) -> None:
        """Let other users take operands of `i` as `i` needs them, where these are there for all now."""
        for o, need in zip(i.operands, way.operands, strict=True):
            has = self.has[o]
            if has is None or has == need or has.unreduced:
                continue
            for user in o.users:
                if user is i or user in self.fixed or self.has.get(user) is None or (now := self.choice(user)) is None:
                    continue
                self.left -= 1
                given = [need if other is o else self.has[other] for other in user.operands]
                found = self._way(user, given, [None])
                if found.cost < now.cost - now.sent[-1]:
                    self._set(user, found, log)

    def _follow(self, log: dict[Instruction, Choice]) -> None:
        """Let the ops behind those that changed choose anew, in order, as long as values change."""
        waiting = [(self.place[u], u) for i in log for u in i.users if self.is_chosen(u)]
        heapq.heapify(waiting)
        seen = set(log)
        while waiting and len(seen) < REACH:
            _, user = heapq.heappop(waiting)
            if user in seen:
                continue
            seen.add(user)
            before = self.has.get(user)
            self._set(user, self._chosen(user), log)
            if self.has.get(user) != before:
                for u in user.users:
                    if self.is_chosen(u):
                        heapq.heappush(waiting, (self.place[u], u))
        self.left -= len(seen)

    def _chosen(self, i: Instruction) -> Choice:
        """The cheapest way in which `i` gives what propagation wants, or anything if that is cheaper."""
        operands = self._operands(i)
        found = self._way(i, operands, self._results(i))
        if i in self.fixed or not any(found.sent):
            return found
        other = self._way(i, operands, [None])
        return other if other.cost < found.cost - found.sent[-1] else found

    # -- the outcome -------------------------------------------------------------------------------------------------
    def changes(self) -> Iterator[Change]:
        """The values whose sharding changes. A partial sum gets the sharding that its first user needs, and stays one
        where it was wanted as one; what every device can make gets the first user's, too."""
        needs: dict[Instruction, TensorSharding] = {}
        for i in reversed(self.order):
            if i in self.fixed or not self.is_chosen(i):
                continue
            after, before = self.has[i], self._wanted(i)
            if after is None or after.unreduced:
                sums = before.unreduced if after is not None else frozenset[int]()
                after = next((need for u in i.users for need in self._made_for(u, i, needs)), before)
                after = TensorSharding.closed(after.dims, sums.difference(*after.dims), after.manual)
            elif i not in self._choices or self._choices[i] == self.first[i]:
                after = before
            needs[i] = after
            if after != before:
                yield Change(i, before, after)

    def _made_for(
        self, user: Instruction, value: Instruction, needs: dict[Instruction, TensorSharding]
    ) -> Iterator[TensorSharding]:
        """The shardings in which a user takes a value. A user that is made from nothing itself is asked for those that
        its own sharding means."""
        choice = self.choice(user)
        if choice is not None and user in needs and self.has[user] is None:
            choice = self._way(user, [None] * len(user.operands), [needs[user]])
        for n, o in enumerate(user.operands):
            if o is value and choice is not None:
                yield choice.operands[n]
