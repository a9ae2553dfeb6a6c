"""``python -m benchmarks.zoo.digits [WORD]``: how many digits heron keeps, and how many XLA:CPU.

The programs of the zoo run in f32 on heron and on JAX's CPU, and once more on JAX's CPU with all their floats in f64.
An error is that of a result against the f64 one: the largest over its elements, over the largest magnitude in it.
Left out are programs with 64-bit types of their own, results that are no floats, and those that are far off on both
sides, because f32 draws other random numbers or takes other branches. ``--write``: into docs/reference/benchmarks.md.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click
import numpy as np

from benchmarks import sections
from benchmarks.compare import geomean
from benchmarks.zoo.catalogue import Program, programs
from benchmarks.zoo.measure import SIDES
from heron.cli.series import series

#: errors below which a result counts as exact: half a unit in the last place of f32
_EXACT = 6e-8
#: errors from which on f32 computes something else
_OTHER = 1e-2
#: results that are shown
_SHOWN = 25
_WIDE = {np.dtype(np.float32): np.float64, np.dtype(np.complex64): np.complex128}


@dataclass
class Result:
    """One result of a program: its errors by side."""

    name: str
    number: int
    error: dict[str, float]

    @property
    def ratio(self) -> float:
        """heron's error over that of JAX's CPU."""
        ours, theirs = (max(self.error[side], _EXACT) for side in SIDES)
        return ours / theirs


def measured(p: Program) -> list[Result]:
    """The results of a program; none where it has no form in f64."""
    import jax

    def leaves(values: Any) -> list[np.ndarray]:
        return [np.asarray(v) for v in jax.tree.leaves(values)]

    function, arguments = p.make()
    found = {s: leaves(jax.jit(function)(*jax.device_put(arguments, jax.devices(s)[0]))) for s in SIDES}
    with jax.enable_x64(True):
        function, arguments = p.make()
        wide = jax.device_put(jax.tree.map(_widened, arguments), jax.devices("cpu")[0])
        try:
            exact = leaves(jax.jit(function)(*wide))
        except (TypeError, ValueError):  # it names a 32-bit type somewhere
            return []
    results = [
        Result(p.name, n, {s: _error(found[s][n], exact[n]) for s in SIDES})
        for n, a in enumerate(found["cpu"])
        if a.dtype in _WIDE and a.size and a.shape == exact[n].shape
    ]
    return [r for r in results if r.error["cpu"] < _OTHER]


def _widened(x: Any) -> Any:
    dtype = _WIDE.get(getattr(x, "dtype", None))
    return x if dtype is None else np.asarray(x).astype(dtype)


def _error(found: np.ndarray, exact: np.ndarray) -> float:
    finite = np.isfinite(exact) & np.isfinite(found)
    if not finite.any():
        return 0.0
    x, y = found[finite].astype(np.complex128), exact[finite].astype(np.complex128)
    return float(np.abs(x - y).max() / (np.abs(y).max() + 1e-30))


def report(results: Sequence[Result]) -> str:
    """The results with the largest ratios, and the means."""
    lines = [f"{'program':45s} result    heron  JAX's CPU  ratio"]
    for r in sorted(results, key=lambda r: r.ratio, reverse=True)[:_SHOWN]:
        lines.append(f"{r.name:45s} {r.number:6d}  {r.error['heron']:.1e}    {r.error['cpu']:.1e} {r.ratio:6.1f}")
    ratios = [r.ratio for r in results]
    more = sum(x > 2 for x in ratios)
    less = sum(x < 0.5 for x in ratios)
    mean = geomean(ratios) if ratios else 1.0
    lines.append(
        f"{len(results)} results; heron's error over that of JAX's CPU, geometric mean: {mean:.2f}; "
        f"more than twice: {more}, less than half: {less}"
    )
    return "\n".join(lines)


@click.command()
@click.argument("word", default="")
@click.option("--write", is_flag=True, help="Write the section of docs/reference/benchmarks.md.")
def main(word: str, write: bool) -> None:
    """Compare the programs whose name contains WORD, or of that theme (default: all)."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu,heron")
    chosen = [p for p in programs(word) if not p.wide]
    results: list[Result] = []
    with series("programs", len(chosen)) as work:
        for p in work.over(chosen, lambda p: p.name):
            results += measured(p)
    text = report(results)
    click.echo(text)
    if write and not work.is_interrupted:
        sections.put("Digits", f"`python -m benchmarks.zoo.digits --write`.\n\n```\n{text}\n```")


if __name__ == "__main__":
    main()
