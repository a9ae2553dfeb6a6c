"""A joint program on all targets: what a child process does with one."""

from __future__ import annotations

import contextlib
import gc
import os
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial

import numpy as np

from heron.errors import HeronError
from heron.hlo.ir.module import Module
from heron.options import Options
from tests import guarded
from tests.interplay.judging import Judge
from tests.interplay.program import Program
from tests.interplay.references import keep_parts

#: `cpu:jax` is the CPU with JAX's own handlers of custom calls, as programs under JAX have it
TARGETS = ("eval", "cpu", "cpu:jax", "sim:sm_90")
#: the CPU, with memory around every buffer that must not be touched (`tests.guarded`)
GUARDED = "cpu:guarded"
#: what a search runs unless told otherwise: two thirds of its time are compiles, so the slow targets take a share
SHARES = "eval,cpu,cpu:jax/2,sim:sm_90/4"
#: beside them: the whole program by XLA, which is judged like the others but is no fault of heron
XLA = "xla"
FAULTS = ("wrong", "refused", "exception", "lost")


@dataclass(frozen=True)
class Job:
    program: Program
    targets: tuple[str, ...] = TARGETS
    number: int = -1
    kept: str = ""
    """Folder where XLA's code of parts is kept for later runs; they meet the same parts again and again."""


@dataclass
class Outcome:
    """Of each target: a kind (right, undecided, wrong, refused, exception, lost), and a text that says more."""

    kinds: dict[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    """CPU seconds: a search runs beside other work."""

    @property
    def faults(self) -> list[str]:
        return [t for t, kind in self.kinds.items() if kind in FAULTS and t != XLA]


def drawn_targets(text: str, number: int) -> tuple[str, ...]:
    """The targets of a program of this number: ``sim:sm_90/4`` is one of every fourth."""
    found = [t.partition("/") for t in text.split(",")]
    return tuple(name for name, _, every in found if number % int(every or 1) == 0)


def run(job: Job) -> Outcome:
    """Lower, run and judge; nothing a program does escapes but the end of the process."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    keep_parts(job.kept)
    warnings.filterwarnings("ignore", "Some donated buffers were not usable")
    outcome = Outcome()
    begin = time.process_time()
    try:
        text = job.program.lowered()
        inputs = job.program.inputs()
        judge = Judge(job.program, text, inputs)
        outcome.seconds["lower"] = time.process_time() - begin
        begin = time.process_time()
        _ = judge.reference
    except Exception:
        outcome.kinds["jax"], outcome.texts["jax"] = "exception", traceback.format_exc(limit=-4)
        return outcome
    outcome.seconds["parts"] = time.process_time() - begin
    module = cache(partial(imported, text))
    for target in job.targets:
        if target.endswith(":jax") and "custom_call" not in text:
            continue  # there is nothing to call
        begin = time.process_time()
        kind, detail = _on(target, module, judge, job.program.donated)
        outcome.kinds[target] = kind
        if detail:
            outcome.texts[target] = detail
        outcome.seconds[target] = time.process_time() - begin
    _settle()
    return outcome


@cache
def _settle() -> None:
    """Take what is loaded by now, JAX and heron, out of the garbage collector's rounds: 7 % of a program's time."""
    gc.collect()
    gc.freeze()


def _on(target: str, module: Callable[[], Module], judge: Judge, donated: bool) -> tuple[str, str]:
    try:
        if target == XLA:
            found = judge.whole
        else:
            found = computed(target, module(), judge.inputs, donated)
        verdict = judge.verdict(found)
        return verdict.kind, f"output {verdict.output}: {verdict.detail}" if verdict.detail else ""
    except HeronError as error:
        return "refused", f"{error.code} {error}"
    except Exception:
        return "exception", traceback.format_exc(limit=-4)


def imported(text: str) -> Module:
    from heron.frontends.stablehlo.importer import parse

    return parse(text, "<joint>")


def computed(target: str, module: Module, inputs: Sequence[np.ndarray], donated: bool = False) -> list[np.ndarray]:
    """The module's outputs on one of heron's targets."""
    import heron
    from heron.evaluator import evaluate

    if target == "eval":
        return evaluate(module, *inputs)
    if target == GUARDED:
        return guarded.run(module, inputs, donate=donated)
    with _handlers() if target.endswith(":jax") else contextlib.nullcontext():
        given = [np.array(a) for a in inputs]
        options = Options(sim_check="all")
        return heron.compile(module, target.removesuffix(":jax"), options).run(given, donate=donated)


@contextlib.contextmanager
def _handlers() -> Iterator[None]:
    """JAX's handlers of custom calls stand in for heron's own routines."""
    from heron.pjrt import jax_ffi
    from heron.runtime.host import ffi

    jax_ffi.install()
    try:
        yield
    finally:
        ffi.finders.remove(jax_ffi._of_cpu)
