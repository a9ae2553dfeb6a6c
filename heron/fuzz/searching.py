"""Tries programs, generated ones or changed ones of a corpus, and gives those that show a fault.

The program of a number is the same for the same seed, whatever came before.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field

from heron.analysis.cost.program import is_open_ended
from heron.fuzz.choices import RandomChoices
from heron.fuzz.excuses import excuse
from heron.fuzz.mutating import mutated
from heron.fuzz.programs import program
from heron.options import Options
from heron.records import dataclass
from heron.reduce.case import Case
from heron.reduce.checks import REFERENCE, Differs, Finding
from heron.reduce.checks.running import EVALUATOR, XLA
from heron.reduce.pool import NO_END, Pool

#: codes of errors that say what heron does not do: no faults
REFUSALS = frozenset({"GEN001", "GEN002", "GEN011", "EVAL001"})
#: multiples of the tolerance by which a program of a corpus must differ: it may cancel, where generated ones do not
_CLEARLY = 50.0


@dataclass(frozen=True)
class Hunt:
    """The machines that are compared, where the programs come from, and limits.

    ``seconds`` and ``count``: of the search, whichever comes first; ``timeout``: seconds of one program. ``corpus``:
    programs to change; without one they are generated, of up to ``ops`` steps.
    """

    target: str = "cpu"
    against: str = EVALUATOR
    settings: Options = field(default_factory=Options)
    seed: int = 0
    count: int | None = None
    seconds: float | None = None
    timeout: float = 60.0
    jobs: int = 2
    ops: int = 14
    corpus: tuple[Case, ...] = ()
    loads: tuple[str, ...] = ()


@dataclass(frozen=True)
class Trial:
    """A program with its number, and the check on it."""

    number: int
    case: Case
    check: Differs


@dataclass
class Tally:
    """The programs so far: tried, refused by a machine, and seconds; those that show where XLA is known to be wrong,
    by the reason."""

    tried: int = 0
    refused: int = 0
    seconds: float = 0.0
    excused: Counter[str] = field(default_factory=Counter)


def hunt(
    plan: Hunt, tally: Tally, on_batch: Callable[[Tally], None] = lambda _: None
) -> Iterator[tuple[Trial, Finding]]:
    """The programs that show a fault, as they are found; `tally` is kept up, and shown after each batch."""
    begun = time.monotonic()
    numbers = itertools.count() if plan.count is None else iter(range(plan.count))
    with Pool(Differs(plan.target, plan.against, plan.settings), plan.jobs, plan.timeout, plan.loads) as pool:
        while batch := [trial(plan, n) for n in itertools.islice(numbers, 2 * plan.jobs)]:
            found = pool.findings([t.case for t in batch], checks=[t.check for t in batch])
            tally.tried += len(batch)
            tally.refused += sum(is_refused(f) or is_endless(t.case, f) for t, f in zip(batch, found, strict=True))
            tally.seconds = time.monotonic() - begun
            on_batch(tally)
            for t, finding in _faults(batch, found):
                why = excuse(t.case.module, finding.outputs) if plan.against == XLA else None
                if why is None:
                    yield t, finding
                else:
                    tally.excused[why] += 1
            if plan.seconds is not None and time.monotonic() - begun > plan.seconds:
                return


def trial(plan: Hunt, number: int) -> Trial:
    """The program of that number."""
    choices = RandomChoices(f"{plan.seed}/{number}")
    if plan.corpus:
        case = mutated(choices.one_of(plan.corpus), choices)
        return Trial(number, case, Differs(plan.target, plan.against, plan.settings))
    module, inputs, errors = program(choices, max_ops=plan.ops)
    return Trial(number, Case(module, tuple(inputs)), Differs(plan.target, plan.against, plan.settings, tuple(errors)))


def is_refused(finding: Finding) -> bool:
    """Whether a machine does not do what the program asks for."""
    return finding.kind == REFERENCE or (finding.kind == "error" and finding.sign in REFUSALS)


def is_endless(case: Case, finding: Finding) -> bool:
    """Whether a program is stopped whose loop may run for ever: a changed one often does."""
    return finding.sign == NO_END and is_open_ended(case.module)


def _faults(batch: Sequence[Trial], found: Sequence[Finding]) -> Iterator[tuple[Trial, Finding]]:
    for t, finding in zip(batch, found, strict=True):
        if finding.kind == "differs":
            if t.check.errors is not None or finding.amount >= _CLEARLY:
                yield t, finding
        elif finding.is_fault() and not is_refused(finding) and not is_endless(t.case, finding):
            yield t, finding
