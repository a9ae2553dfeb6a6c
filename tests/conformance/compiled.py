"""Cases compiled for a target, against the evaluator: ``python -m tests.conformance --target sim:sm_90``.

The corners that the evaluator is held to XLA on (NaN, windows in padding, indices out of bounds, empty arrays, the ends of
every type) are corners of code generation, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

import numpy as np

import heron
from heron.errors import HeronError
from heron.hlo.ir import types
from heron.hlo.ir.op import Trait, get
from tests.conformance import conversions, coverage, elementwise, structural
from tests.conformance.case import Case, Closeness, agreement
from tests.conformance.runner import Outcome, difference, leaves, packed

#: cases compiled together
PACK = 30
#: functions in compiled programs, in units of the last place (docs/reference/accuracy.md)
_ULPS = 4.0
#: f32 sums of terms of up to a hundred are rounded after each term; the evaluator rounds once
_FLOOR = 1e-5
#: cases in which compiled programs are known to differ, and why
EXCUSES = {
    "convolution * infinity over holes, *": "compiled loops leave padding and holes out, where 0 * inf would be NaN",
    "cholesky c* not positive definite*": "NaN in both parts, where LAPACK and the evaluator have nan + 0i",
    "power f8e8m0fnu*": "computed in f32, whose 0 below the least power of two is NaN in f8e8m0fnu",
    "atan2 f8e8m0fnu*": "computed in f32, whose 0 below the least power of two is NaN in f8e8m0fnu",
}


def cases(full: bool = False) -> list[Case]:
    """All cases but those of complex functions, which tests/codegen/test_complex_special_values.py is about."""
    real = [c for c in elementwise.cases(full) if not types.by_name(c.type).is_complex]
    return [*structural.cases(full), *real, *conversions.cases(full), *coverage.cases()]


@np.errstate(all="ignore")
def run(chosen: Sequence[Case], target: str, pack: int = PACK) -> Iterator[Outcome]:
    """The outcome of every case: ``agree``, ``documented``, ``refused`` or ``differ``."""
    for start in range(0, len(chosen), pack):
        yield from _together(chosen[start : start + pack], target)


def _together(group: Sequence[Case], target: str) -> Iterator[Outcome]:
    """Compiled as one program; one by one where that is refused."""
    module = packed(group) if len(group) > 1 else group[0].module
    try:
        executable = heron.compile(module, target)
    except HeronError as error:
        if len(group) == 1:
            yield Outcome(group[0], "refused", f"{error.code} {error}")
            return
        for case in group:
            yield from _together([case], target)
        return
    flat = iter(executable.run([a.copy() for case in group for a in case.inputs]))
    for case in group:
        ours = heron.evaluate(case.module, *case.inputs)
        yield _judged(case, ours, [next(flat) for _ in ours], target)


def _judged(case: Case, ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray], target: str) -> Outcome:
    close = case.close
    for n, (a, b, shape) in enumerate(zip(ours, theirs, leaves(case.module.entry.root.shape), strict=True)):
        t = shape.element_type
        if a.dtype != b.dtype or a.shape != b.shape:
            return Outcome(case, "differ", f"output {n} is {b.dtype}{list(b.shape)}, not {shape}")
        if Trait.TRANSCENDENTAL in get(case.op).traits:
            close = Closeness(max(close.ulps, _ULPS), close.floor, close.bits, close.zeros)
        elif close.floor and t.name in ("f32", "c64"):
            close = Closeness(close.ulps, _FLOOR, close.bits, close.zeros)
        wrong = ~agreement(a, b, t, close)
        if wrong.any():
            excuse = next((why for name, why in EXCUSES.items() if fnmatchcase(case.name, name)), "")
            words = excuse or difference(case, n, a, b, wrong, target)
            return Outcome(case, "documented" if excuse else "differ", words)
    return Outcome(case, "agree")
