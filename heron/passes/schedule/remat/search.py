"""Search: which values to compute again, by bytes saved for the time it takes."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from itertools import count

import numpy as np

from heron.analysis.cost.estimate import estimate
from heron.analysis.cost.kernel import kernel_cost
from heron.analysis.cost.program import trips_of
from heron.analysis.graph.dataflow import Value
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.passes.schedule.remat.held import Held, Stay, Use
from heron.passes.schedule.remat.recipe import Recipe, Recipes, is_repeatable
from heron.passes.schedule.remat.rewrite import cut, is_plain
from heron.records import dataclass
from heron.targets import Target

#: how near the goal comes at a time, of the peak
STEP = 0.05
#: stays below this part of what is to be saved are left alone
WORTH = 1 / 500


@dataclass(frozen=True, slots=True)
class Choice:
    """`values` computed again before `reader` by `steps` instructions: `bytes` less in between, `seconds` more work.
    With no work more, they are only computed later than before."""

    values: tuple[Value, ...]
    reader: Instruction
    steps: int
    bytes: int
    seconds: float
    peak_before: int
    peak_after: int


@dataclass(slots=True)
class _Plan:
    stays: dict[Stay, int]
    use: Use
    tick: int
    place: int
    recipe: Recipe
    seconds: float
    gain: float

    @property
    def score(self) -> float:
        return self.gain / (self.seconds + 1e-9)


class Search:
    """Takes the peak of `held` down to `goal` bytes, or as far as it can; ``choices`` says what it did."""

    def __init__(self, held: Held, goal: int, target: Target, block: int) -> None:
        self.held, self.goal, self.target = held, goal, target
        self.choices: list[Choice] = []
        self.repeatable = _Remembered(held)
        self.recipes = Recipes(held, block, self.repeatable)
        self._seconds: dict[Instruction, float] = {}
        self._runs: dict[Computation, float] = {}
        self._heap: list[tuple[float, int, Stay, Use]] = []
        self._ticket = count()
        self._peak = held.peak
        self._least = 0

    def run(self) -> list[Choice]:
        """Cut stays until the peak is at the goal or nothing helps any more.

        The goal comes nearer step by step: what is above it counts alike at all ticks, so that of a goal far away
        most would be won where memory is not short.
        """
        final = self.goal
        while self._peak > final:
            before = self._peak
            self.goal = max(final, int(before * (1 - STEP)))
            self._approach()
            if self._peak > self.goal:
                break
        return self.choices

    def _approach(self) -> None:
        self._heap.clear()
        self._least = int((self._peak - self.goal) * WORTH)
        self._offer([s for stays in self.held.stays.values() for s in stays])
        while self._heap and self._peak > self.goal:
            _, _, stay, use = heapq.heappop(self._heap)
            plan = self._plan(stay, use)
            if plan is None:
                continue
            if self._heap and plan.score < -self._heap[0][0]:
                self._push(plan.score, stay, use)
                continue
            self._do(plan)

    def _offer(self, stays: Iterable[Stay]) -> None:
        for s in stays:
            if s.value.kind != "defined" or self.held.weight[s.value] <= self._least:
                continue
            for _, use in self.held.gaps(s):
                plan = self._plan(s, use)
                if plan is not None:
                    self._push(plan.score, s, use)

    def _push(self, score: float, stay: Stay, use: Use) -> None:
        heapq.heappush(self._heap, (-score, next(self._ticket), stay, use))

    def _do(self, plan: _Plan) -> None:
        before = self._peak
        new = cut(self.held, plan.stays, plan.tick, plan.place, plan.recipe)
        self._peak = self.held.peak
        values = tuple(s.value for s in plan.stays)
        saved = sum(self.held.weight[v] for v in values)
        steps = len(plan.recipe.steps)
        self.choices.append(Choice(values, plan.use.reader, steps, saved, plan.seconds, before, self._peak))
        self._offer([*plan.stays, *new, *plan.recipe.kept])

    # -- what a cut would do -----------------------------------------------------------------------------------------
    def _plan(self, stay: Stay, use: Use) -> _Plan | None:
        """The better of two ways to end `stay` early and have its value again for `use`; None when neither helps."""
        if use not in stay.uses or not self.repeatable(stay.value.instruction):
            return None
        held = self.held
        tick, place = held.place(use)
        stays = {s: n for s, n in self._together(stay, tick, place) if self._can_redirect(s, n)}
        first = min((_needed(s, n) for s, n in stays.items()), default=tick)
        if stay not in stays or not (held.used[first + 1 : tick] > self.goal).any():
            return None
        i = stay.value.instruction
        wanted = {s.value for s in stays}
        saved = sum(held.weight[v] for v in wanted)
        plans = []
        for keep in (False, True):
            recipe = self.recipes.find(i, tick, place, saved, wanted, keep)
            if recipe is None or (plans and recipe.steps == plans[0].recipe.steps):
                continue
            gain = self._gain(stays, tick, recipe)
            if gain > 0:
                plans.append(_Plan(stays, use, tick, place, recipe, self._time(recipe, stays), gain))
        return max(plans, key=lambda p: p.score, default=None)

    def _together(self, stay: Stay, tick: int, place: int) -> list[tuple[Stay, int]]:
        """The stays that one recomputation serves: those of all values of the instruction that are not needed until
        then, with the number of the use that ends them."""
        held, found = self.held, []
        for v in held.values(stay.value.instruction):
            for s in held.stays[v]:
                if not s.first < tick <= s.last:
                    continue
                n = next((n for n, u in enumerate(s.uses) if u.is_result or held.place(u) >= (tick, place)), -1)
                if n >= 0 and not s.uses[n].is_result and _needed(s, n) + 1 < tick:
                    found.append((s, n))
        return found

    def _can_redirect(self, s: Stay, n: int) -> bool:
        held, made = self.held, s.value.instruction
        for u in s.uses[n:]:
            assert u.reader.parent is not None
            read = [u.reader.parent.root] if u.is_result else u.reader.operands
            if u.is_result and read[0] is made:
                return False
            for o in read:
                if any(v is s.value for v in held.values(o)) and not is_plain(held, o):
                    return False
            if not any(v is s.value for o in read for v in held.values(o)):
                return False
        return True

    def _gain(self, stays: dict[Stay, int], tick: int, recipe: Recipe) -> float:
        """Bytes over the goal that would go, summed over ticks; 0 when the peak would grow."""
        held = self.held
        first = min([_needed(s, n) for s, n in stays.items()] + [k.last for k in recipe.kept]) + 1
        before = held.used[first : tick + 1]
        after = held.bytes[first : tick + 1].copy()
        for s, n in stays.items():
            after[_needed(s, n) + 1 - first : tick - first] -= held.weight[s.value]
        for k in recipe.kept:
            after[k.last + 1 - first :] += held.weight[k.value]
        after += held.passing[first : tick + 1]
        after[-1] += max(0, recipe.passing - int(held.passing[tick]))
        if after.max() > self._peak:
            return 0.0
        return float(np.maximum(before - self.goal, 0).sum() - np.maximum(after - self.goal, 0).sum())

    def _time(self, recipe: Recipe, stays: dict[Stay, int]) -> float:
        made = next(iter(stays))
        home = made.value.instruction.parent
        assert home is not None
        seconds = sum(self._cost(i) for i in recipe.steps)
        rest = [s for v in self.held.values(made.value.instruction) for s in self.held.stays[v]]
        if all(not s.uses[: stays.get(s)] for s in rest if s.provider is made.provider):
            seconds -= self._cost(recipe.steps[-1])  # nobody reads the first one any more
        return seconds * self._times(home)

    def _cost(self, i: Instruction) -> float:
        if i not in self._seconds:
            self._seconds[i] = estimate(kernel_cost(i, self.target.is_gpu), self.target).seconds
        return self._seconds[i]

    def _times(self, c: Computation) -> float:
        """The number of executions of a computation, as far as it is known."""
        if c not in self._runs:
            caller = self.held.graph.caller(c)
            times = 1.0
            if caller is not None:
                assert caller.parent is not None
                times = self._times(caller.parent) * ((trips_of(caller) or 1.0) if caller.opcode == "while" else 1.0)
            self._runs[c] = times
        return self._runs[c]


def _needed(s: Stay, n: int) -> int:
    """The last tick a stay is needed at before its use number `n`."""
    return max((u.last for u in s.uses[:n]), default=s.first)


class _Remembered:
    """`is_repeatable`, asked once for each instruction; what reads whole tuples cannot be given others."""

    def __init__(self, held: Held) -> None:
        self.held, self.known = held, dict[Instruction, bool]()

    def __call__(self, i: Instruction) -> bool:
        if i not in self.known:
            self.known[i] = is_repeatable(i) and all(is_plain(self.held, o) for o in i.operands)
        return self.known[i]
