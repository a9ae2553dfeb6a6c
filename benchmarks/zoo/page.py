"""The zoo's results as text: every program worst first, and how the ratios are distributed."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence

from benchmarks.compare import geomean
from benchmarks.zoo.measure import SIDES, Row

_RATIOS = ("run", "compile", "temp_bytes")
_SCALES = {"run": 1e3, "compile": 1.0, "temp_bytes": 2.0**-20}


def report(rows: Sequence[Row]) -> str:
    """The table, worst run time first; wrong and refused programs before all others."""
    head = ("program", "run ms", "cpu", "ratio", "compile s", "cpu", "ratio", "temp MiB", "cpu", "ratio", "error")
    lines = [head, *(_line(r) for r in sorted(rows, key=_badness, reverse=True))]
    widths = [max(len(line[n]) for line in lines) for n in range(len(head))]
    text = [
        "  ".join(c.ljust(w) if n == 0 else c.rjust(w) for n, (c, w) in enumerate(zip(line, widths, strict=True)))
        for line in lines
    ]
    text += [_distribution(rows, what) for what in _RATIOS]
    text += [f"{r.name}: {'a value is wrong' if r.wrong else r.refused}" for r in rows if r.wrong or r.refused]
    return "\n".join(text)


def _badness(r: Row) -> float:
    return math.inf if r.wrong or r.refused else r.ratio("run")


def _line(r: Row) -> tuple[str, ...]:
    cells = [r.name]
    for what in _RATIOS:
        cells += [_number(getattr(r, what).get(side, math.nan) * _SCALES[what]) for side in SIDES]
        cells.append(_number(r.ratio(what)))
    return (*cells, "wrong" if r.wrong else _number(r.error))


def _distribution(rows: Sequence[Row], what: str) -> str:
    ratios = sorted(x for r in rows if not math.isnan(x := r.ratio(what)))
    if not ratios:
        return f"{what}: nothing measured"
    at = {f"{q} %": ratios[min(len(ratios) - 1, q * len(ratios) // 100)] for q in (5, 25, 50, 75, 95)}
    parts = ", ".join(f"{q} {_number(v)}" for q, v in at.items())
    above = sum(x > 1.1 for x in ratios)
    label = what.replace("_", " ")
    return (
        f"{label}: geometric mean {_number(geomean(ratios))} x JAX's CPU over {len(ratios)} programs; {parts}; "
        f"worst {_number(ratios[-1])}; above 1.1: {above}"
    )


def _number(value: float) -> str:
    if math.isnan(value):
        return "-"
    return "inf" if math.isinf(value) else f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def page(rows: Sequence[Row]) -> str:
    """docs/reference/zoo.md."""
    from heron import targets

    machine = targets.get("cpu").description.removeprefix("this machine: ")
    today = datetime.date.today()
    return f"""# The zoo

{len({r.name.partition(" ")[0] for r in rows})} programs at {len(rows)} sizes, as users of JAX's libraries write
them: solvers, samplers, filters, recurrent cells, layers, graphs, particles, sorts, signals, optimisers. They are
written in plain JAX ([benchmarks/zoo/programs](../../benchmarks/zoo/programs)) and run through JAX on heron and on
JAX's own CPU, by turns in one process. `python -m benchmarks.zoo --write` made this page on {today}: {machine}.

"run" is the median of the ratios of two runs that follow each other; below 1 heron is faster. "error" is the largest
error of an output over the largest magnitude in it. "a value is wrong" stands where that is above the program's
tolerance. Six programs are so ill-conditioned in f32 that XLA's values, too, are far from those in f64:
image_augmentation (heron and XLA both 4.5e-3), lion_step (both 2.0e-4), levenberg_marquardt (2.6e-4 and 1.0e-4),
tempered_particles (both 1.4: draws decide which particle lives), escape_times (both 0.16: 16 of 262,144 pixels escape
at another step), and envelope, whose phase is a running sum of up to 8192 angles (1.8e-3 and 1.7e-3).

```
{report(rows)}
```
"""
