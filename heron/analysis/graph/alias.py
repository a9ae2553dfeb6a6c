"""Alias sets: values that share one buffer, and whether they may: their live intervals must not overlap."""

from __future__ import annotations

from heron.analysis.fusion.sharing import may_share_buffer
from heron.analysis.graph.dataflow import Value
from heron.analysis.graph.liveness import Liveness
from heron.hlo.facts import works_in_step
from heron.hlo.ir.instruction import Instruction
from heron.records import dataclass

#: (first tick, last tick, value)
Hold = tuple[int, int, Value]


@dataclass(frozen=True, slots=True)
class Clash:
    """Two values that want one buffer at the same time, or from two memory spaces."""

    first: Value
    second: Value
    tick: int

    def __str__(self) -> str:
        spaces = [v.memory_space for v in (self.first, self.second)]
        if spaces[0] != spaces[1]:
            return f"{self.first.name} lies in memory space {spaces[0]}, {self.second.name} in {spaces[1]}"
        return f"{self.first.name} is still needed when {self.second.name} is written"


class AliasSets:
    """Values partitioned into buffers: `find` names a value's set, `join` merges two when nothing clashes."""

    def __init__(self, liveness: Liveness) -> None:
        self.liveness = liveness
        self._up: dict[Value, Value] = {}
        self._holds: dict[Value, list[Hold]] = {}
        for v, intervals in liveness.intervals.items():
            self._up[v] = v
            self._holds[v] = [(a, b, v) for a, b in intervals]
        self._in_place: set[tuple[Value, Value]] = set()
        for f in liveness.flow.flows:
            if f.kind == "in-place":
                self.allow(f.at, f.source, f.target)

    def allow(self, i: Instruction, source: Value, target: Value) -> bool:
        """Let `target`, which `i` writes, start on the tick at which `i` reads `source`, if it reads it only once."""
        at = self.liveness.flow.at
        if sum(v is source for o in i.operands for v in _values(at[o])) != 1:
            return False
        self._in_place.add((source, target))
        return True

    def allow_in_step(self) -> list[tuple[Value, Value]]:
        """Allow every result that its kernel may compute in place over an operand last used there; the pairs."""
        flow, intervals, start = self.liveness.flow, self.liveness.intervals, self.liveness.timeline.start
        pairs: list[tuple[Value, Value]] = []
        for v in flow.values:
            i = v.instruction
            if v.kind != "defined" or not works_in_step(i):
                continue
            now = start[i]
            for n, operand in enumerate(i.operands):
                source = flow.at[operand]
                if not isinstance(source, Value) or source.size != v.size or source.kind == "constant":
                    continue
                if any(end == now for _, end in intervals[source]) and may_share_buffer(i, n, v.index):
                    if self.allow(i, source, v):
                        pairs.append((source, v))
        return pairs

    def find(self, v: Value) -> Value:
        """The value that stands for `v`'s set."""
        up = self._up
        top = v
        while up[top] is not top:
            top = up[top]
        while up[v] is not top:
            up[v], v = top, up[v]
        return top

    def holds(self, v: Value) -> list[Hold]:
        """When the buffer of `v` holds which value, in order of time."""
        return self._holds[self.find(v)]

    def sets(self) -> dict[Value, list[Value]]:
        """The values of each set, by its standing value, in order of definition."""
        found: dict[Value, list[Value]] = {}
        for v in self._up:
            found.setdefault(self.find(v), []).append(v)
        return found

    def join(self, a: Value, b: Value) -> Clash | None:
        """Put the sets of `a` and `b` together; or say which values clash and change nothing."""
        a, b = self.find(a), self.find(b)
        if a is b:
            return None
        if a.memory_space != b.memory_space:
            return Clash(a, b, 0)
        one, two = self._holds[a], self._holds[b]
        merged = sorted(one + two, key=_by_time)
        last = merged[0]
        for hold in merged[1:]:
            if hold[0] < last[1] or (hold[0] == last[1] and (last[2], hold[2]) not in self._in_place):
                return Clash(last[2], hold[2], hold[0])
            last = hold
        small, large = (a, b) if len(one) < len(two) else (b, a)
        self._up[small] = large
        self._holds[large] = merged
        del self._holds[small]
        return None


def _by_time(hold: Hold) -> tuple[int, int]:
    return hold[0], hold[1]


def _values(tree: object) -> list[Value]:
    if isinstance(tree, Value):
        return [tree]
    return [v for t in tree for v in _values(t)] if isinstance(tree, tuple) else []
