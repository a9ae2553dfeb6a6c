"""Pipelines: readable lists of passes, nested, and run to a fixed point where wanted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import TYPE_CHECKING

from heron.errors import HeronError
from heron.hlo.text.printer import identity
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.canonical import Fingerprints
from heron.passes.framework.changes import diff
from heron.records import dataclass

if TYPE_CHECKING:
    from heron.hlo.ir.module import Module
    from heron.passes.framework.context import PassContext


@dataclass(frozen=True)
class Pipeline(Pass):
    """Runs its steps in order. Raises PASS002 when built with passes in an order one of them forbids."""

    name: str  # type: ignore[misc]
    steps: tuple[Pass, ...] = field(default=())

    def __init__(self, name: str, steps: Iterable[Pass]) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "steps", tuple(steps))
        check_order(self)

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        with ctx.inside(self.name):
            for step in self.steps:
                changed |= ctx.run_pass(step, module)
        return changed

    def flatten(self) -> Iterator[Pass]:
        for step in self.steps:
            yield from step.flatten()

    def lines(self, indent: str = "") -> Iterable[str]:
        yield f"{indent}{self.name}:"
        for step in self.steps:
            yield from step.lines(indent + "  ")


@dataclass(frozen=True)
class Fixpoint(Pipeline):
    """Runs its steps round and round until each of them has nothing left to do.

    A pass that left the module alone is not run again before another one changes something, also when the same steps
    come in a later loop of the pipeline. Passes that ask `PassContext.look` see what has changed since their last run.

    Passes that undo each other are noticed from the fourth round on, when the module is one it has been before. The
    loop stops then, and after `max_iterations`: see `Unsettled`.
    """

    max_iterations: int = 25

    def __init__(self, name: str, steps: Iterable[Pass], max_iterations: int = 25) -> None:
        object.__setattr__(self, "max_iterations", max_iterations)
        super().__init__(name, steps)

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        quiet = 0  # steps in a row that changed nothing
        seen: dict[int, int] = {}
        fingerprints = Fingerprints()
        rounds: list[int] = []  # where in ctx.records each round began
        with ctx.inside(self.name):
            for n in range(self.max_iterations):
                rounds.append(len(ctx.records))
                for step in self.steps:
                    if not ctx.is_settled(step, module) and ctx.run_pass(step, module):
                        changed, quiet = True, 0
                    else:
                        quiet += 1
                    if quiet == len(self.steps):
                        return changed
                if n < 3:
                    continue
                print_ = fingerprints.of(module)
                if print_ in seen:
                    who = _who_fights(ctx, rounds[seen[print_] + 1])
                    self._give_up(module, ctx, f"stopped, {who} undo each other")
                    return changed
                seen[print_] = n
            who = _who_fights(ctx, rounds[-1])
            self._give_up(module, ctx, f"stopped after {self.max_iterations} rounds, {who} still change")
        return changed

    def _give_up(self, module: Module, ctx: PassContext, what: str) -> None:
        """Go round once more to see what changes, and tell."""
        before, states = identity(module), list[str]()
        for step in self.steps:
            if ctx.run_pass(step, module):
                states.append(identity(module))
        # what one pass does another may undo within the round: the first change is the one to see
        found = Unsettled(self.name, what, diff(before, states[0]) if states else "")
        ctx.note(f"{found.loop}: {found.what}")
        ctx.unsettled.append(found)
        if ctx.options.check:
            raise found.error()

    def lines(self, indent: str = "") -> Iterable[str]:
        first, *rest = super().lines(indent)
        yield f"{first.removesuffix(':')}, to a fixed point:"
        yield from rest


@dataclass(frozen=True, slots=True)
class Unsettled:
    """A loop that was stopped: its name, who was still at work, and how two of the states it went through differ."""

    loop: str
    what: str
    difference: str

    def error(self) -> HeronError:
        """PASS008, for when checks are on."""
        lines = self.difference.splitlines()
        if len(lines) > 40:
            lines = [*lines[:40], f"… {len(lines) - 40} more lines"]
        return HeronError(
            "PASS008",
            f"loop '{self.loop}' does not settle: {self.what}",
            why="from one state to the next\n" + "\n".join(f"    {line}" for line in lines),
            hint="without check=verify or check=values it is only noted; heron opt --stats shows it all",
        )


def _who_fights(ctx: PassContext, since: int) -> str:
    """The passes that changed something in the records from `since` on, with the rules that fired."""
    fired: dict[str, set[str]] = {}
    for record in ctx.records[since:]:
        if record.changed:
            fired.setdefault(record.name, set()).update(record.fired)
    return " and ".join(
        name + (f" (rules {', '.join(sorted(rules))})" if rules else "") for name, rules in fired.items()
    )


def check_order(pipeline: Pipeline) -> None:
    """Hold the passes' constraints against their places in the pipeline. Raises PASS002 for the first one broken."""
    passes = list(pipeline.flatten())
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for n, p in enumerate(passes):
        first.setdefault(p.name, n)
        last[p.name] = n
    for constraint in dict.fromkeys(c for p in passes for c in p.constraints):
        if _is_broken(constraint, first, last):
            must = "must come before" if constraint.before in first else "is missing and must come before"
            raise HeronError(
                "PASS002",
                f"pipeline '{pipeline.name}': '{constraint.before}' {must} '{constraint.after}'",
                why=constraint.reason,
                hint="the order was " + ", ".join(p.name for p in passes),
            )


def _is_broken(c: Constraint, first: dict[str, int], last: dict[str, int]) -> bool:
    if c.after not in first:
        return False
    if c.before not in first:
        return c.needed
    return (last if c.all_runs else first)[c.before] > first[c.after]
