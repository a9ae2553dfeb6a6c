"""The page's plots, as SVG files. Needs matplotlib: ``pip install 'heron[bench]'``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.compare import geomean
from benchmarks.performance.growth import Growth
from benchmarks.performance.limits import KINDS
from benchmarks.performance.programs import Program
from heron.errors import HeronError

_COLORS = dict(zip(KINDS, ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#aa3377"), strict=True))
_PLAIN, _PALE = "#4477aa", "#bbccdd"


def draw(programs: Sequence[Program], growths: Sequence[Growth], folder: Path) -> list[Path]:
    """Write ratios.svg, roofline.svg, threads.svg and growth.svg. Raises CLI012 without matplotlib."""
    plt = need_matplotlib()
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for name, plot in (
        ("ratios", lambda: _ratios(plt, programs)),
        ("roofline", lambda: _roofline(plt, programs)),
        ("threads", lambda: _threads(plt, programs)),
        ("growth", lambda: _growth(plt, growths)),
    ):
        figure = plot()
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None}, bbox_inches="tight")
        plt.close(figure)
        made.append(folder / f"{name}.svg")
    return made


def need_matplotlib() -> Any:
    """``matplotlib.pyplot``, set up. Raises CLI012 where it is missing."""
    try:
        import matplotlib  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise HeronError(
            "CLI012", "plots need matplotlib", why=str(error), hint="pip install 'heron[bench]', or leave --write out"
        ) from None
    matplotlib.use("svg")
    # the same figures give the same file; text stays text
    matplotlib.rcParams.update({"svg.hashsalt": "heron", "svg.fonttype": "none", "font.size": 8})
    import matplotlib.pyplot as plt  # pyright: ignore[reportMissingImports]

    return plt


def _bars(plt: Any, names: Sequence[str]) -> tuple[Any, Any]:
    figure, axes = plt.subplots(figsize=(7, 0.8 + 0.2 * len(names)))
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(axis="x", color="#dddddd")
    axes.set_axisbelow(True)
    return figure, axes


def _ratios(plt: Any, programs: Sequence[Program]) -> Any:
    shown = sorted((p for p in programs if math.isfinite(p.ratio("run"))), key=lambda p: p.ratio("run"))
    figure, axes = _bars(plt, [p.name for p in shown])
    for what, color, shift in (("run", _PLAIN, -0.2), ("compile", _PALE, 0.2)):
        ratios = [p.ratio(what) for p in shown]
        label = f"{what} time (geometric mean {geomean(ratios):.2f})"
        axes.barh([n + shift for n in range(len(shown))], ratios, 0.4, color=color, label=label)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xlabel("heron over XLA:CPU; left of the line heron is faster")
    axes.legend(loc="upper right")
    return figure


def _roofline(plt: Any, programs: Sequence[Program]) -> Any:
    shown = sorted(((p.name, p.limits) for p in programs if p.limits), key=lambda x: -x[1].roofline)
    figure, axes = _bars(plt, [name for name, _ in shown])
    for kind, color in _COLORS.items():
        places = [n for n, (_, found) in enumerate(shown) if found.next.split(":")[0] == kind]
        axes.barh(places, [100 * shown[n][1].roofline for n in places], 0.7, color=color, label=kind)
    axes.set_xlim(0, 100)
    axes.set_xlabel("% of the roofline; colour: the next limit")
    axes.legend(loc="lower right")
    return figure


def _threads(plt: Any, programs: Sequence[Program]) -> Any:
    shown = sorted((p for p in programs if math.isfinite(p.speedup)), key=lambda p: -p.speedup)
    figure, axes = _bars(plt, [p.name for p in shown])
    for light, color, label in ((True, _PLAIN, "arithmetic"), (False, _PALE, "memory")):
        places = [n for n, p in enumerate(shown) if p.memory_light is light]
        axes.barh(places, [shown[n].speedup for n in places], 0.7, color=color, label=f"waits for {label}")
    axes.axvline(1.7, color="black", linewidth=0.8)
    axes.set_xlabel("time of one thread over time of all")
    axes.legend(loc="lower right")
    return figure


def _growth(plt: Any, growths: Sequence[Growth]) -> Any:
    figure, axes = plt.subplots(figsize=(7, 4))
    for g in growths:
        axes.plot(g.sizes, [1e9 * s / n for s, n in zip(g.seconds, g.sizes, strict=True)], marker="o", label=g.op)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("elements")
    axes.set_ylabel("ns an element")
    axes.grid(color="#dddddd")
    axes.legend(fontsize=7)
    return figure
