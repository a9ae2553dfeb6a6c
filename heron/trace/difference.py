"""The differences of two compiles: options, the first pass that did something else, decisions, and what came of them.

Decisions are matched by their rule and the names they are about. The first that differs is the first cause: what comes
later may only follow from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from itertools import islice
from typing import Any, Literal, TypeVar

from heron.records import dataclass
from heron.trace.record import Decision, PassRecord, Record
from heron.trace.why import fused_into, homes

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Total:
    """A figure of both compiles; ``unit``: ``s``, ``B``, or empty for a count. Measured ones differ at each compile."""

    name: str
    a: float
    b: float
    unit: str = ""
    is_measured: bool = False


@dataclass(frozen=True, slots=True)
class Changed:
    """A decision that differs; None: this compile did not come to it. ``place``: where in its order.

    ``a_kernels`` and ``b_kernels``: the steps that compute the subject in each compile, with their seconds in a run.
    """

    kind: Literal["other answer", "other reason", "other cost", "only one"]
    place: int
    a: Decision | None
    b: Decision | None
    a_kernels: tuple[tuple[str, float], ...] = ()
    b_kernels: tuple[tuple[str, float], ...] = ()

    @property
    def either(self) -> Decision:
        """The decision of A, or that of B where A has none."""
        found = self.a if self.a is not None else self.b
        assert found is not None
        return found


@dataclass(frozen=True, slots=True)
class Step:
    """Steps of a run of one name: how often they run, and their seconds, in each compile; 0 runs where it has none."""

    name: str
    a_runs: float
    b_runs: float
    a_seconds: float
    b_seconds: float


def rules_of_one(a: PassRecord, b: PassRecord) -> list[tuple[str, int, int]]:
    """Rewrite rules that fired more often in one of two runs: name and place, and how often in each."""
    names = dict.fromkeys((*a.rules, *b.rules))
    found = [(name, a.rules.get(name, 0), b.rules.get(name, 0)) for name in names]
    return [row for row in found if row[1] != row[2]]


@dataclass(frozen=True, slots=True)
class Difference:
    """All differences. ``options``: name, value in each; ``first_pass``: the first run that differs, in each."""

    a: str
    b: str
    programs: str
    options: list[tuple[str, str, str]]
    first_pass: tuple[int, PassRecord | None, PassRecord | None] | None
    totals: list[Total]
    decisions: list[Changed]
    steps: list[Step]

    @property
    def is_empty(self) -> bool:
        """Whether the compiles did the same; times of a compile differ always, and do not count."""
        return not (self.options or self.first_pass or self.decisions or self.steps or self.programs)

    def to_json(self) -> dict[str, Any]:
        """Stable fields: as the attributes, dataclasses as objects."""
        found = asdict(self)
        found["first_pass"] = None
        if self.first_pass is not None:
            run, a, b = self.first_pass
            rules = rules_of_one(a, b) if a is not None and b is not None else []
            found["first_pass"] = {"run": run, "a": _flat(a), "b": _flat(b), "rules": rules}
        for row, d in zip(found["decisions"], self.decisions, strict=True):
            row["a"], row["b"] = _flat(d.a), _flat(d.b)
        return {"same": self.is_empty, **found}


def difference(a: Record, b: Record, names: tuple[str, str] = ("A", "B")) -> Difference:
    """The differences of `b` from `a`."""
    return Difference(
        *names,
        _programs(a, b),
        [(key, a.options.get(key, ""), b.options.get(key, "")) for key in _either(a.options, b.options)],
        _first_pass(a, b),
        list(_totals(a, b)),
        _decisions(a, b),
        _steps(a, b),
    )


def _programs(a: Record, b: Record) -> str:
    """A sentence where the two compiles are of different programs or for different machines."""
    if a.target != b.target:
        return f"A is for {a.target or 'no target'}, B for {b.target or 'no target'}"
    if a.module != b.module:
        return f"A is of {a.module}, B of {b.module}"
    if a.passes and b.passes and a.passes[0].before != b.passes[0].before:
        return f"the programs given differ: A has {a.passes[0].before:,} instructions, B {b.passes[0].before:,}"
    return ""


def _either(a: dict[str, str], b: dict[str, str]) -> list[str]:
    return [key for key in dict.fromkeys((*a, *b)) if a.get(key) != b.get(key)]


def _first_pass(a: Record, b: Record) -> tuple[int, PassRecord | None, PassRecord | None] | None:
    """The number of the first pass run that did something else, and both runs."""

    def done(p: PassRecord) -> tuple[object, ...]:
        return p.name, p.changed, p.before, p.after, sorted(p.rules.items())

    for n in range(max(len(a.passes), len(b.passes))):
        x, y = _at(a.passes, n), _at(b.passes, n)
        if x is None or y is None or done(x) != done(y):
            return n, x, y
    return None


def _at(items: list[T], n: int) -> T | None:
    return items[n] if n < len(items) else None


def _totals(a: Record, b: Record) -> Iterator[Total]:
    """The figures that people compare, those that are 0 in both left out."""
    for name, key, unit in (("run, estimated", "seconds", "s"), ("bytes moved", "bytes", "B"), ("flops", "flops", "")):
        yield Total(name, a.costs.get(key, 0), b.costs.get(key, 0), unit)
    yield Total("kernels", len(a.kernels), len(b.kernels))
    yield Total("kernel launches", sum(k.uses for k in a.kernels), sum(k.uses for k in b.kernels))
    for kind in dict.fromkeys((*a.thunks, *b.thunks)):
        yield Total(kind, a.thunks.get(kind, 0), b.thunks.get(kind, 0))
    for kind in dict.fromkeys((*a.memory, *b.memory)):
        yield Total(f"memory: {kind}", a.memory.get(kind, 0), b.memory.get(kind, 0), "B")
    yield Total("machine code", sum(k.code_size for k in a.kernels), sum(k.code_size for k in b.kernels), "B")
    yield Total("compile", a.seconds, b.seconds, "s", is_measured=True)


# -- decisions ---------------------------------------------------------------------------------------------------------
_Key = tuple[str, str, str, int]


def _decisions(a: Record, b: Record) -> list[Changed]:
    """The decisions that differ, in the order in which the compiles came to them."""
    mine, other = _keyed(a.decisions), _keyed(b.decisions)
    found = [_changed(n, d, other.get(key, (n, None))[1]) for key, (n, d) in mine.items()]
    found += [_changed(n, None, d) for key, (n, d) in other.items() if key not in mine]
    kept = sorted((c for c in found if c is not None), key=lambda c: c.place)
    first, second = _Kernels(a), _Kernels(b)
    return [replace(c, a_kernels=first.of(c), b_kernels=second.of(c)) for c in kept]


def _keyed(decisions: Iterable[Decision]) -> dict[_Key, tuple[int, Decision]]:
    """Decisions with their places, by rule and names, and by how often these came before."""
    seen: dict[tuple[str, str, str], int] = {}
    found: dict[_Key, tuple[int, Decision]] = {}
    for n, d in enumerate(decisions):
        names = d.rule, d.subject, d.object
        times = seen[names] = seen.get(names, -1) + 1
        found[*names, times] = n, d
    return found


def _changed(place: int, a: Decision | None, b: Decision | None) -> Changed | None:
    if a is None or b is None:
        return Changed("only one", place, a, b)
    if a.ok != b.ok:
        return Changed("other answer", place, a, b)
    if a.reason != b.reason:
        return Changed("other reason", place, a, b)
    if (a.cost_before, a.cost_after) != (b.cost_before, b.cost_after):
        return Changed("other cost", place, a, b)
    return None


class _Kernels:
    """The steps of a run that compute an instruction."""

    def __init__(self, trace: Record) -> None:
        self._trace, self._into = trace, fused_into(trace)
        self._seconds = {name: seconds for name, (_, seconds) in _by_name(trace).items()}

    def of(self, c: Changed) -> tuple[tuple[str, float], ...]:
        """The steps of the decision's subject with their seconds; no more than three."""
        found = (n for n in homes(self._trace, c.either.subject, self._into) if n in self._seconds)
        return tuple((n, self._seconds[n]) for n in islice(found, 3))


# -- steps -------------------------------------------------------------------------------------------------------------
def _steps(a: Record, b: Record) -> list[Step]:
    """Steps that only one compile has, or that take another time; the largest change first."""
    mine, other = _by_name(a), _by_name(b)
    found = []
    for name in dict.fromkeys((*mine, *other)):
        x, y = mine.get(name, (0.0, 0.0)), other.get(name, (0.0, 0.0))
        if x != y:
            found.append(Step(name, x[0], y[0], x[1], y[1]))
    return sorted(found, key=lambda s: -abs(s.b_seconds - s.a_seconds))


def _by_name(trace: Record) -> dict[str, tuple[float, float]]:
    found: dict[str, tuple[float, float]] = {}
    for s in trace.costs.get("steps", ()):
        runs, seconds = found.get(s["name"], (0.0, 0.0))
        found[s["name"]] = runs + s["runs"], seconds + s["runs"] * s["seconds"]
    return found


def _flat(record: Decision | PassRecord | None) -> dict[str, Any] | None:
    return None if record is None else {name: getattr(record, name) for name in record.__slots__}
