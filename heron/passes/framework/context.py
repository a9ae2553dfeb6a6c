"""PassContext: what passes read (options, target) and write (decisions, fired rules), and how one pass is run."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import field
from typing import TYPE_CHECKING, Any

from heron.errors import HeronError
from heron.hlo.ir.instruction import clock
from heron.options import Options
from heron.passes.framework.changes import changed_since
from heron.records import dataclass
from heron.trace import Decision, Trace

if TYPE_CHECKING:
    from heron.hlo.ir.instruction import Instruction
    from heron.hlo.ir.module import Module
    from heron.passes.framework.base import Pass
    from heron.passes.framework.checks import ValueCheck
    from heron.passes.framework.measured import Fragment
    from heron.passes.framework.pipeline import Unsettled


#: the pass after which every value has a layout that counts
LAYOUTS_FROM = "layout-assignment"


@dataclass(slots=True)
class Run:
    """One run of one pass: whether it changed the module and how often each of its rules fired.

    ``fired`` counts by name, ``lines`` by name and source line.
    """

    name: str
    changed: bool = False
    fired: Counter[str] = field(default_factory=Counter)
    lines: Counter[str] = field(default_factory=Counter)


class PassContext:
    """Made once per compile and handed to every pass.

    ``options`` tell which rewrites may fire, ``target`` is the machine (None: any), ``trace`` takes timings, decisions
    and notes. ``records`` are the runs so far; ``rules`` counts fired rewrite rules by (pass, rule, source line).
    """

    def __init__(self, options: Options | None = None, target: Any = None, trace: Trace | None = None) -> None:
        self.options = options or Options()
        self.target = target
        self.trace = trace if trace is not None else Trace()
        self.records: list[Run] = []
        self.rules: Counter[tuple[str, str, str]] = Counter()
        #: what passes are timed with
        self.clock = time.perf_counter
        #: loops that were stopped before they settled
        self.unsettled: list[Unsettled] = []
        #: told of every part of the program that can be done in several ways; `heron tune` listens
        self.asks: Callable[[Fragment], None] | None = None
        #: called with a pass's name after each run that changed the module
        self.on_changed: Callable[[str, Module], None] | None = None
        #: whether passes may leave alone what has not changed since they looked at it last
        self.revisits_changes_only = True
        self._looked: dict[Pass, tuple[Module, int]] = {}  # the module a pass looked at last, and when
        self._settled: dict[Pass, tuple[Module, int]] = {}  # the module a pass left alone, and the changes before that
        self._changes = 0
        self._opcodes: tuple[tuple[Module | None, int, int], set[str]] = (None, 0, 0), set()
        self._run = Run("")
        self._inside: list[str] = []
        self._dumps = 0
        self._values: ValueCheck | None = None
        self._values_begun = False
        self._bounded: Module | None = None  # the module whose dimensions are known to have bounds

    # -- for passes --------------------------------------------------------------------------------------------------
    def decide(
        self,
        ok: bool,
        reason: str,
        *,
        rule: str = "",
        subject: str = "",
        object: str = "",
        cost_before: float | None = None,
        cost_after: float | None = None,
    ) -> Decision:
        """Keep a choice or a refusal; the result is true when `ok`. ``rule`` is the running pass unless given."""
        rule = rule or self._run.name
        return self.trace.decide(Decision(ok, reason, rule, subject, object, cost_before, cost_after))

    def fired(self, rule: str, source_line: str, times: int = 1) -> None:
        """Count a rewrite rule; ``source_line`` is where it is written, as ``file.py:12``."""
        self._run.fired[rule] += times
        self._run.lines[f"{rule} {source_line}"] += times
        self.rules[self._run.name, rule, source_line] += times

    def may_fire(self, rule: str, source_line: str, at: Instruction) -> bool:
        """Whether a rewrite that was found may be made. A bisection counts them and stops at some number."""
        return True

    def look(self, step: Pass, module: Module) -> set[Instruction] | None:
        """The changes since the last call by `step` in the running pipeline; None if it must look at everything."""
        if not (self._inside and self.revisits_changes_only):
            return None
        of, then = self._looked.get(step, (None, 0))
        self._looked[step] = module, clock()
        return changed_since(module, then) if of is module else None

    def note(self, text: str) -> None:
        """Keep a sentence for the user."""
        self.trace.note(text)

    # -- for pipelines -----------------------------------------------------------------------------------------------
    @contextlib.contextmanager
    def inside(self, pipeline: str) -> Iterator[None]:
        """Passes run within carry the pipeline's name in their records."""
        self._inside.append(pipeline)
        try:
            yield
        finally:
            self._inside.pop()
            if not self._inside:  # whatever comes next, others may have changed the module before
                self._looked.clear()
                self._settled.clear()

    def is_settled(self, step: Pass, module: Module) -> bool:
        """Whether `step` finds nothing in `module`, or left it alone when it ran last and nothing has changed since."""
        if not self.revisits_changes_only:
            return False
        return self._finds_nothing(step, module) or self._settled.get(step) == (module, self._changes)

    def run_pass(self, step: Pass, module: Module) -> bool:
        """Run one pass or pipeline on `module`; time it, check and dump its result as the options say.

        Raises HLO031 (a dimension without a bound), PASS003 when the values changed (``check=values``), PASS007 when
        the result does not verify.
        """
        from heron.passes.framework.pipeline import Pipeline

        if module is not self._bounded:
            module.need_bounds()
            self._bounded = module
        if isinstance(step, Pipeline):
            return step.run(module, self)
        if self.options.check == "values" and not self._values_begun:
            self._begin_values(module)
        self.trace.begin(step.name)
        before = module.instruction_count()
        if self._finds_nothing(step, module, before):
            self.trace.record_pass(step.name, False, 0.0, before, before, "/".join(self._inside))
            return False
        outer, self._run = self._run, (run := Run(step.name))
        start = self.clock()
        try:
            changed = self._run.changed = step.run(module, self)
            seconds = self.clock() - start
            self.records.append(self._run)
        finally:
            self._run = outer
        pipeline = "/".join(self._inside)
        after = module.instruction_count() if changed else before
        self.trace.record_pass(step.name, changed, seconds, before, after, pipeline, run.lines)
        if changed:
            module.update_schedule()
            self._changes += 1
            self._check(step, module)
        elif self._inside:
            self._settled[step] = module, self._changes
        return changed

    def _finds_nothing(self, step: Pass, module: Module, count: int = -1) -> bool:
        """Whether the module, of ``count`` instructions if that is known, has no op that `step` looks for."""
        if step.looks_for is None:
            return False
        state = module, self._changes, module.instruction_count() if count < 0 else count
        if state != self._opcodes[0]:
            self._opcodes = state, {i.opcode for i in module.instructions()}
        return step.looks_for.isdisjoint(self._opcodes[1])

    def _begin_values(self, module: Module) -> None:
        from heron.passes.framework.checks import ValueCheck

        self._values_begun = True
        try:
            self._values = ValueCheck(module)
        except HeronError as error:
            self.note(f"values are not checked, the program cannot be evaluated: {error.what} ({error.code})")

    def _check(self, step: Pass, module: Module) -> None:
        if self.on_changed is not None:
            self.on_changed(step.name, module)
        if self.options.dump_dir:
            from heron.passes.framework.checks import dump

            self._dumps += 1
            dump(module, self.options.dump_dir, self._dumps, step.name)
        if self.options.check:
            from heron.passes.framework.checks import verify_after

            verify_after(step.name, module, any(r.name == LAYOUTS_FROM for r in self.records))
        if self._values is not None:
            self._values.after(step.name, module)
