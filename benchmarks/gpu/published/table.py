"""The table of published and predicted times, and its page."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import jax

import heron
from benchmarks.gpu.published.programs import work_of
from heron import targets
from heron.analysis.cost.program import program_cost
from heron.backends.compiler import Compilation
from heron.options import Options
from heron.targets import Target
from heron.trace import Trace

#: how far the model may be off without a reason
MOST = 0.25
_CASES = Path(__file__).parent / "cases.toml"
#: microseconds of one unit of work at a rate of 1, by its unit; times stand for themselves
_RATES = {"TB/s": 1e-6, "GB/s": 1e-3, "TFLOP/s": 1e-6, "Gkeys/s": 1e-3, "% of 3.35 TB/s": 1e-6 / 0.0335}
_TIMES = {"us": 1.0, "ms": 1e3, "s": 1e6}


class Row(NamedTuple):
    """A published figure beside the model: microseconds, and the kernels that the model has times of."""

    program: str
    sizes: tuple[int, ...]
    type: str
    machine: str
    figure: str
    published: float
    predicted: float
    kernels: int
    source: str
    where: str
    reason: str

    @property
    def ratio(self) -> float:
        """Predicted over published."""
        return self.predicted / self.published

    @property
    def is_near(self) -> bool:
        return 1 - MOST <= self.ratio <= 1 + MOST


@cache
def data() -> dict[str, Any]:
    """What `cases.toml` holds."""
    return tomllib.loads(_CASES.read_text())


def rows() -> list[Row]:
    """All cases, predicted now."""
    with jax.enable_x64(True):
        return [_row(case) for case in data()["cases"]]


def _row(case: dict[str, Any]) -> Row:
    work = work_of(case["program"], tuple(case["sizes"]), case["type"])
    target = _machine(case["machine"])
    module = heron.from_jax(work.function, *work.arguments, platform="cuda")
    options = Options(triton="on", math=case.get("math", "ieee"))
    cost = program_cost(Compilation(module, target, options, Trace()).scheduled, target)
    unit, figure = case["unit"], float(case["figure"])
    published = figure * _TIMES[unit] if unit in _TIMES else work.amount * _RATES[unit] / figure
    if floor := case.get("floor", 0.0):  # of the clock, in place of a launch
        published -= floor - 1e6 * target.launch_seconds
    sizes, source = tuple(case["sizes"]), case["source"]
    return Row(
        case["program"], sizes, case["type"], case["machine"], f"{figure:g} {unit}", published,
        1e6 * cost.seconds, len(cost.steps), source, case["where"], case.get("reason", ""),
    )  # fmt: skip


def _machine(name: str) -> Target:
    facts = dict(data()["machines"][name])
    return replace(targets.get(facts.pop("target")), **facts)


def page(found: Sequence[Row]) -> str:
    """docs/reference/published.md."""
    near = sum(r.is_near for r in found)
    kinds = len({r.program for r in found})
    lines = [
        "# Published times of GPU kernels",
        "",
        "What the cost model ([heron/analysis/cost](../../heron/analysis/cost)) predicts of GPU kernels beside figures",
        "that others measured and published. heron's own kernels have been timed on no GPU yet.",
        "`python -m benchmarks.gpu.published --write` made this page; the figures are in",
        "[cases.toml](../../benchmarks/gpu/published/cases.toml).",
        "",
        f"{near} of {len(found)} figures of {kinds} kinds of kernels are within {MOST:.0%}; each of the others has",
        'its reason below the table. Times are microseconds; "published" follows from the figure, less the clock\'s',
        "own part where the same table shows it (reductions and scans). XLA's table does not name the board of its",
        "sm_90: the bandwidth of an H100 is taken. It has 375 products of each type; the model is within 25 % of 99 %",
        "of those in bf16, which it was fitted to, of 62 % of those in f8 and of 45 % of those in tf32 (median ratios",
        "0.97, 1.04 and 0.73). Of FFTs no figure for these machines was found whose source could be cited.",
        "",
        "| kernel | sizes | type | machine | figure | published | predicted | ratio | kernels | source |",
        "|---|---|---|---|---:|---:|---:|---:|---:|---|",
    ]
    for r in found:
        sizes = " x ".join(f"{n:,}" for n in r.sizes)
        cells = (r.program, sizes, r.type, r.machine, r.figure, f"{r.published:.1f}", f"{r.predicted:.1f}")
        lines.append(f"| {' | '.join(cells)} | {r.ratio:.2f} | {r.kernels} | [{r.source}](#sources): {r.where} |")
    lines += ["", "## Why the model is further off", ""]
    lines += [f"- {r.program} {' x '.join(map(str, r.sizes))} ({r.ratio:.2f}): {r.reason}." for r in found if r.reason]
    lines += ["", "## Sources", ""]
    lines += [f"- `{key}`: [{title}]({url})" for key, (title, url) in data()["sources"].items()]
    return "\n".join(lines) + "\n"
