"""Trace: one object per compile that every stage writes into.

Writing costs an append and two clock reads. `heron.trace.trace` adds files and tables.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any

from heron.records import dataclass


@dataclass(frozen=True, slots=True)
class Decision:
    """A choice or a refusal as a value; true when the answer was yes.

    `rule` names the pass that decided, `subject` and `object` the instructions concerned. Costs are in the rule's own
    unit (microseconds or bytes), or None if no cost was compared.
    """

    ok: bool
    reason: str
    rule: str = ""
    subject: str = ""
    object: str = ""
    cost_before: float | None = None
    cost_after: float | None = None

    def __bool__(self) -> bool:
        return self.ok


@dataclass(slots=True)
class Stage:
    """A named span of the compile, in seconds, with the spans inside it.

    ``start``: seconds after the record was made; None for a sum of many small pieces.
    """

    name: str
    seconds: float = 0.0
    children: list[Stage] = field(default_factory=list)
    start: float | None = None

    def walk(self, depth: int = 0) -> Iterator[tuple[int, Stage]]:
        """This stage and those inside it, outermost first, with their depth."""
        yield depth, self
        for child in self.children:
            yield from child.walk(depth + 1)


@dataclass(frozen=True, slots=True)
class PassRecord:
    """One run of one pass: whether it changed the module, its seconds, instruction counts before and after.

    `rules` counts the rewrite rules that fired, by name and source line: ``multiply_one multiply.py:12``.
    `start`: seconds after the record was made.
    """

    name: str
    changed: bool
    seconds: float
    before: int
    after: int
    pipeline: str = ""
    rules: dict[str, int] = field(default_factory=dict)
    start: float = 0.0


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of work inside a stage, or beside the stages in a thread of its own: of what ``kind``, ``kernel`` or
    ``thread``; its begin after the record was made, and its length, in seconds."""

    name: str
    kind: str
    start: float
    seconds: float


@dataclass(slots=True)
class KernelRecord:
    """One distinct kernel: its emitter, its launch, bytes of code, seconds to compile.

    `source` names the instructions that launch it: identical fusions share one kernel. `launch` holds grid, block and
    other launch settings of the target, `resources` the assembler's report (registers, spills, …).
    """

    name: str
    emitter: str
    source: list[str] = field(default_factory=list)
    launch: dict[str, Any] = field(default_factory=dict)
    code_size: int = 0
    seconds: float = 0.0
    resources: dict[str, int] = field(default_factory=dict)

    @property
    def uses(self) -> int:
        """The number of instructions that launch it."""
        return max(1, len(self.source))


class Record:
    """The record of one compile. All fields are plain data and survive `save` and `load`."""

    def __init__(self, module: str = "", target: str = "") -> None:
        self.module = module
        self.target = target
        #: options that differ from their defaults, as text
        self.options: dict[str, str] = {}
        self.stages: list[Stage] = []
        self.spans: list[Span] = []
        self.passes: list[PassRecord] = []
        self.kernels: list[KernelRecord] = []
        #: thunks that are not kernels, by kind: ``gemm``, ``copy``, ``while``, …
        self.thunks: dict[str, int] = {}
        self.decisions: list[Decision] = []
        #: what became of instructions that a kernel was made of: old name -> the kernel's
        self.became: dict[str, str] = {}
        #: bytes by kind: arguments, outputs, temp, constants, peak
        self.memory: dict[str, int] = {}
        self.notes: list[str] = []
        #: the scheduled program as HLO text, and its buffers as `BufferAssignment.to_json` gives them; kept in traces
        #: that are saved, for questions asked later
        self.program: str = ""
        self.buffers: dict[str, Any] = {}
        #: the estimated steps of a run, in order, as `heron cost --json` gives them; of saved traces
        self.costs: dict[str, Any] = {}
        #: the program after every pass, and the texts of its kernels, where they were asked for: see `heron.view`
        self.versions: dict[str, Any] = {}
        self.texts: list[dict[str, Any]] = []
        #: meshes and collectives of a program for several devices
        self.devices: dict[str, Any] = {}
        #: told of the program ahead of the passes (with an empty name), and after each that changed it
        self.on_program: Callable[[str, Any], None] | None = None
        #: called with the name of each stage, pass or kernel as it comes along; for progress displays
        self.on_event: Callable[[str], None] | None = None
        self._open: list[Stage] = []
        self._last = ""
        self._zero = time.perf_counter()
        #: what other threads are at
        self._beside: list[str] = []

    # -- writing -----------------------------------------------------------------------------------------------------
    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[Stage]:
        """Time a span: ``with trace.stage("passes"):``. Spans nest; a span that raises is recorded too."""
        self.begin(name)
        stage = Stage(name)
        (self._open[-1].children if self._open else self.stages).append(stage)
        self._open.append(stage)
        start = stage.start = self._now()
        try:
            yield stage
        finally:
            stage.seconds = self._now() - start
            self._open.pop()

    def stage_add(self, name: str, seconds: float) -> None:
        """Add seconds to a span inside the open one, for work in many small pieces."""
        siblings = self._open[-1].children if self._open else self.stages
        for stage in siblings:
            if stage.name == name:
                stage.seconds += seconds
                return
        siblings.append(Stage(name, seconds))

    @contextlib.contextmanager
    def unclocked(self) -> Iterator[None]:
        """A span that counts for nothing: work that keeps more of the compile than its record."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self._zero += time.perf_counter() - start

    def _now(self) -> float:
        return time.perf_counter() - self._zero

    def begin(self, name: str) -> None:
        """Report to the watcher that a pass, kernel or other piece of work begins."""
        self._last = name
        if self.on_event is not None:
            self.on_event(name)

    @contextlib.contextmanager
    def beside(self, name: str) -> Iterator[None]:
        """A span of work that may run in a thread parallel to others."""
        self._beside.append(name)
        start = self._now()
        try:
            yield
        finally:
            self._beside.remove(name)
            self.spans.append(Span(name, "thread", start, self._now() - start))

    def span(self, name: str, kind: str, seconds: float) -> None:
        """Record a piece of work that has just ended."""
        self.spans.append(Span(name, kind, self._now() - seconds, seconds))

    @property
    def at(self) -> str:
        """The work in progress: the open stages, the latest pass or kernel, the work of other threads."""
        stages = [f"stage '{s.name}'" for s in self._open] or [f"after stage '{s.name}'" for s in self.stages[-1:]]
        last = [f"'{self._last}'"] if self._last and (not self._open or self._last != self._open[-1].name) else []
        return ", ".join([*stages, *(dict.fromkeys(self._beside) or last)]) or "the beginning"

    def record_pass(
        self,
        name: str,
        changed: bool,
        seconds: float,
        before: int,
        after: int,
        pipeline: str = "",
        rules: Mapping[str, int] | None = None,
    ) -> PassRecord:
        """Record one finished run of a pass."""
        start = self._now() - seconds
        record = PassRecord(name, changed, seconds, before, after, pipeline, dict(rules or {}), start)
        self.passes.append(record)
        return record

    def kernel(
        self,
        name: str,
        emitter: str,
        source: Iterable[str] = (),
        launch: Mapping[str, Any] | None = None,
        code_size: int = 0,
        seconds: float = 0.0,
    ) -> KernelRecord:
        """Record a new kernel; append to the record's `source` if another instruction launches it too."""
        self.begin(name)
        record = KernelRecord(name, emitter, list(source), dict(launch or {}), code_size, seconds)
        self.kernels.append(record)
        return record

    def count_thunk(self, kind: str, times: int = 1) -> None:
        """Count a step of the program that is not a kernel: a library call, a copy, control flow."""
        self.thunks[kind] = self.thunks.get(kind, 0) + times

    def decide(self, decision: Decision) -> Decision:
        """Record a decision and return it, so that an ``if`` can test it."""
        self.decisions.append(decision)
        return decision

    def note(self, text: str) -> None:
        """Record a sentence for the summary; a repeated one is kept once."""
        if text not in self.notes:
            self.notes.append(text)

    # -- reading -----------------------------------------------------------------------------------------------------
    @property
    def seconds(self) -> float:
        """Seconds of all outermost stages together."""
        return sum(s.seconds for s in self.stages)
