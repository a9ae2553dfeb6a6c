"""Finds the pass, and the rewrite of it, that breaks a check, by running fewer and fewer of them.

Passes run in the same order every time, so the first `n` runs of a pipeline are always the same, and so are the first
`m` rewrites of the last of them. Two binary searches find the first run and the first rewrite that break a check.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from heron.errors import HeronError
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.verifier import VerifierOptions, verify
from heron.options import Options
from heron.passes.framework.base import Pass
from heron.passes.framework.changes import diff
from heron.passes.framework.checks import ValueCheck
from heron.passes.framework.context import PassContext
from heron.passes.framework.pipeline import Pipeline
from heron.records import dataclass

#: says what is wrong with a module, or None when it is fine
Check = Callable[[Module], str | None]


class LimitedContext(PassContext):
    """Runs only the first `runs` passes, and lets only the first `rewrites` of the last of them happen."""

    def __init__(self, runs: int | None, rewrites: int | None, options: Options, target: Any) -> None:
        super().__init__(options, target)
        self._runs, self._rewrites = runs, rewrites
        #: name and pipeline of each run
        self.ran: list[tuple[str, str]] = []
        #: the last run's rewrites: rule, source line, instruction
        self.rewrites: list[tuple[str, str, str]] = []

    def run_pass(self, step: Pass, module: Module) -> bool:
        if not isinstance(step, Pipeline):
            if len(self.ran) == self._runs:
                return False
            self.ran.append((step.name, "/".join(self._inside)))
            self.rewrites = []
        return super().run_pass(step, module)

    def may_fire(self, rule: str, source_line: str, at: Instruction) -> bool:
        if len(self.ran) == self._runs and len(self.rewrites) == self._rewrites:
            return False
        # only the rewrites of the last run are told of, and text costs much
        text = str(at) if len(self.ran) == self._runs else ""
        self.rewrites.append((rule, source_line, text))
        return True


@dataclass(frozen=True, slots=True)
class Culprit:
    """The run (counted from 1) of the pass that broke the check, and its rewrite if the pass reports rewrites.

    ``change`` is the difference that run, or that one rewrite, made to the module's text; `problem` what is wrong then.
    """

    pass_name: str
    pipeline: str
    run: int
    runs: int
    problem: str
    change: str
    rule: str = ""
    source_line: str = ""
    instruction: str = ""
    rewrite: int = 0
    rewrites: int = 0


@dataclass
class Bisection:
    """A search for what breaks `check` when `steps` run on `module`.

    ``on_probe`` is called before each try with the number of tries so far and about how many there will be.
    """

    module: Module
    steps: Sequence[Pass]
    check: Check
    options: Options
    target: Any = None
    on_probe: Callable[[int, int], None] | None = None

    def __post_init__(self) -> None:
        self.options = self.options.replace(check="", dump_dir=None)
        self._probes, self._expected = 0, 2

    def search(self) -> Culprit | None:
        """The culprit; None when the check holds after all passes. Raises PASS018 when it fails before any."""
        problem = self.check(self.module.clone())
        if problem is not None:
            raise HeronError("PASS018", "the check fails before any pass has run", why=problem)
        whole = LimitedContext(None, None, self.options, self.target)
        if self._problem(whole, self.module.clone()) is None:
            return None
        runs = len(whole.ran)
        self._expected += runs.bit_length()
        run = self._first_bad(runs, lambda n: (n, None))
        context = LimitedContext(run, None, self.options, self.target)
        problem = self._problem(context, self.module.clone()) or ""
        step, pipeline = context.ran[-1]
        count = len(context.rewrites)
        if not count or self._fails(run, 0):  # broken without a rewrite that could be told apart
            return Culprit(step, pipeline, run, runs, problem, self._change((run - 1, None), (run, None)))
        self._expected += count.bit_length()
        rewrite = self._first_bad(count, lambda m: (run, m))
        context = LimitedContext(run, rewrite, self.options, self.target)
        problem = self._problem(context, self.module.clone()) or ""
        rule, line, at = context.rewrites[-1]
        change = self._change((run, rewrite - 1), (run, rewrite))
        return Culprit(step, pipeline, run, runs, problem, change, rule, line, at, rewrite, count)

    def _first_bad(self, count: int, limits: Callable[[int], tuple[int, int | None]]) -> int:
        """The least of 1…count where the check fails; it holds at 0 and fails at `count`."""
        good, bad = 0, count
        while bad - good > 1:
            middle = (good + bad) // 2
            if self._fails(*limits(middle)):
                bad = middle
            else:
                good = middle
        return bad

    def _fails(self, runs: int, rewrites: int | None) -> bool:
        context = LimitedContext(runs, rewrites, self.options, self.target)
        return self._problem(context, self.module.clone()) is not None

    def _problem(self, context: LimitedContext, module: Module) -> str | None:
        """The problem after the context's passes; a failing pass counts as one."""
        self._probes += 1
        if self.on_probe is not None:
            self.on_probe(self._probes, max(self._probes, self._expected))
        try:
            for step in self.steps:
                context.run_pass(step, module)
            return self.check(module)
        except HeronError as error:
            return error.what + (f": {error.why}" if error.why else "")

    def _change(self, before: tuple[int, int | None], after: tuple[int, int | None]) -> str:
        texts = []
        for limits in (before, after):
            module = self.module.clone()
            self._problem(LimitedContext(*limits, self.options, self.target), module)
            texts.append(str(module))
        return diff(*texts)


def values_check(module: Module) -> Check:
    """Whether a module verifies and gives what `module` gives, on seeded inputs, by the evaluator."""
    reference = ValueCheck(module)

    def check(changed: Module) -> str | None:
        return verify_check(changed) or reference.problem(changed)

    return check


def verify_check(module: Module) -> str | None:
    """The verifier's message about a module."""
    try:
        verify(module, VerifierOptions(scheduled=module.is_scheduled))
    except HeronError as error:
        return f"{error.code}: {error.what}"
    return None
