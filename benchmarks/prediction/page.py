"""How well times are predicted, as text and as a plot."""

from __future__ import annotations

import datetime
import math
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.performance.plots import need_matplotlib
from benchmarks.prediction.measure import Point

#: a prediction is off when it is more than so many times too long or too short
OFF = 3.0
#: steps shorter than this are left out of the table of those that are off: a call alone takes some ns
SHORT = 100e-9

_WORST = 30


def rank_correlation(found: Sequence[Point]) -> float:
    """Spearman's coefficient of predicted and measured times: 1 where one order is the other."""
    ranks = [_ranks([p.predicted for p in found]), _ranks([p.measured for p in found])]
    return statistics.correlation(*ranks) if all(len(set(r)) > 1 for r in ranks) else math.nan


def _ranks(values: Sequence[float]) -> list[float]:
    """The place of each in order; equal ones share the mean of their places."""
    places: dict[float, list[int]] = {}
    for place, value in enumerate(sorted(values)):
        places.setdefault(value, []).append(place)
    return [statistics.mean(places[v]) for v in values]


def is_off(p: Point) -> bool:
    """Whether a prediction is more than `OFF` times too long or too short, of a step that is not tiny."""
    return max(p.ratio, 1 / p.ratio) > OFF and max(p.measured, p.predicted) > SHORT


def report(found: Sequence[Point]) -> str:
    """Totals, a line for each kind of step and of content, and the steps that are furthest off."""
    kernels = [p for p in found if p.kind == "kernel"]
    head = [
        f"{len(found)} steps of {len({p.program for p in found})} programs; rank correlation of predicted and measured "
        f"time {rank_correlation(found):.3f} (kernels alone, {len(kernels)}: {rank_correlation(kernels):.3f})",
        "",
        *_groups("step", found, lambda p: p.kind),
        "",
        *_groups("kernel with", kernels, lambda p: p.content),
        "",
        f"{'furthest off':44} {'content':22} {'predicted':>11} {'measured':>11} {'ratio':>7}",
    ]
    off = sorted((p for p in found if is_off(p)), key=lambda p: -abs(math.log(p.ratio)))
    for p in off[:_WORST]:
        name = p.content if p.kind == "kernel" else p.kind
        head.append(
            f"{p.program[:43]:44} {name:22} {1e6 * p.predicted:8.2f} µs {1e6 * p.measured:8.2f} µs {p.ratio:7.2f}"
        )
    if len(off) > _WORST:
        head.append(f"and {len(off) - _WORST} more")
    return "\n".join(head)


def _groups(title: str, found: Sequence[Point], key: Callable[[Point], str]) -> list[str]:
    lines = [
        f"{title:22} {'steps':>6} {'median ratio':>13} {'10 %':>6} {'90 %':>6} {f'off {OFF:.0f} x':>8} {'rank':>6}"
    ]
    groups: dict[str, list[Point]] = {}
    for p in found:
        groups.setdefault(key(p), []).append(p)
    for name, group in sorted(groups.items(), key=lambda g: -len(g[1])):
        ratios = sorted(p.ratio for p in group)
        low, high = (ratios[min(len(ratios) - 1, q * len(ratios) // 10)] for q in (1, 9))
        lines.append(
            f"{name:22} {len(group):6} {statistics.median(ratios):13.2f} {low:6.2f} {high:6.2f}"
            f" {sum(map(is_off, group)):8} {rank_correlation(group):6.2f}"
        )
    return lines


def plot(found: Sequence[Point], folder: Path) -> None:
    """Write kernels.svg: each step as a point, both times on logarithmic axes. Raises CLI012 without matplotlib."""
    plt = need_matplotlib()
    figure, axes = plt.subplots(figsize=(6, 6))
    for label, color, group in (
        ("kernels", "#4477aa", [p for p in found if p.kind == "kernel"]),
        ("library calls", "#ee6677", [p for p in found if p.kind != "kernel"]),
    ):
        measured, predicted = [1e6 * p.measured for p in group], [1e6 * p.predicted for p in group]
        axes.scatter(measured, predicted, s=4, color=color, label=label, linewidths=0)
    ends = [1e6 * f(f(p.measured, p.predicted) for p in found) for f in (min, max)]
    for factor, style in ((1.0, "-"), (OFF, ":"), (1 / OFF, ":")):
        axes.plot(ends, [factor * e for e in ends], style, color="black", linewidth=0.6)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("measured µs of one run")
    axes.set_ylabel(f"predicted µs; dotted: {OFF:.0f} times off")
    axes.grid(color="#dddddd")
    axes.legend(loc="upper left")
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "kernels.svg", metadata={"Date": None}, bbox_inches="tight")
    plt.close(figure)


def page(found: Sequence[Point]) -> str:
    """docs/reference/prediction.md."""
    from heron import targets

    machine = targets.get("cpu").description.removeprefix("this machine: ")
    return f"""# Predicted and measured time

The cost model ([heron/analysis/cost](../../heron/analysis/cost)) predicts the time of each kernel and library call;
fusion, threads and schedules are decided by it. Here its predictions for the programs of the [zoo](zoo.md), each at its
second size, are compared with times on one thread. `python -m benchmarks.prediction --write` made this page on
{datetime.date.today()}: {machine}. A time is the least of 15 runs.

![Each step as a point: measured time across, predicted time up](prediction/kernels.svg)

"ratio" is predicted over measured; "10 %" and "90 %" are the ratios below which so many steps lie. "off {OFF:.0f} x"
counts predictions that are more than {OFF:.0f} times too long or too short, of steps of more than {1e9 * SHORT:.0f} ns.

```
{report(found)}
```

Reasons why predictions are off:

- A kernel of a few elements is charged 4 ns for its call. It takes some 1 to 10 ns, which the clock cannot tell apart.
- Calls of LAPACK are charged one operation for each element of their first result, whatever the routine. Eigenvectors,
  singular values and factorisations of large matrices therefore seem too cheap.
- Products reach the peak rate of the target only where all three sizes are large. Thin products, and batches of small
  ones, are limited by calls and by memory.
- The model has the peak rate of vectors for every loop. Gathers and reductions over short rows stay far below it, and
  so do loops with rounding, division or random bits: the pairs of `lennard_jones` take 100 times as long as predicted,
  the proposals of `random_walk_metropolis` 50 times.
"""
