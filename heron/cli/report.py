"""Outputs and comparisons as tables and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from heron.cli.compare import Comparison
from heron.trace.summary import table

if TYPE_CHECKING:
    from rich.table import Table


def flat(result: Any) -> list[np.ndarray]:
    """An executable's or evaluator's result as a list of arrays: tuples flattened, tokens (None) left out."""
    if result is None:
        return []
    if isinstance(result, (tuple, list)):
        return [leaf for part in result for leaf in flat(part)]
    return [np.asarray(result)]


def facts(array: np.ndarray) -> dict[str, Any]:
    """Shape, dtype, range, mean, how many are not finite, and the first values."""
    known: dict[str, Any] = {"dtype": array.dtype.name, "shape": list(array.shape)}
    first = [_scalar(v) for v in array.ravel()[:4]]
    if array.dtype.kind == "c" or array.size == 0:
        return {**known, "first": [str(v) for v in first]}
    wide = array if array.dtype.kind in "biu" else array.astype(np.float64)
    finite = wide[np.isfinite(wide)]
    if finite.size:
        known.update(min=_scalar(finite.min()), max=_scalar(finite.max()), mean=float(finite.mean(dtype=np.float64)))
    return {**known, "not_finite": int(wide.size - finite.size), "first": first}


def output_table(outputs: Sequence[np.ndarray]) -> Table:
    """One row for each output: type, shape, range and first values."""

    made = table("output>", "dtype", "shape", "min>", "max>", "mean>", "nan/inf>", "first values")
    for n, array in enumerate(outputs):
        f = facts(array)
        made.add_row(
            str(n),
            f["dtype"],
            "x".join(map(str, f["shape"])) or "scalar",
            *(_short(f.get(key)) for key in ("min", "max", "mean")),
            str(f.get("not_finite", "")),
            " ".join(_short(v) for v in f["first"]),
        )
    return made


def comparison_table(rows: Sequence[Comparison]) -> Table:
    """One row for each output: its errors, the worst element, and the verdict."""

    made = table("output>", "dtype", "max abs>", "max rel>", "ULP>", "worst at", "is", "expected", "verdict")
    for c in rows:
        made.add_row(
            str(c.output),
            c.dtype,
            _short(c.max_abs),
            _short(c.max_rel),
            _short(c.max_ulp),
            "[" + ",".join(map(str, c.index)) + "]" if c.index is not None else "",
            _cut(c.actual),
            _cut(c.expected),
            "ok" if c.ok else f"{c.mismatches} DIFFER",
        )
    return made


def verdict(rows: Sequence[Comparison], source: str) -> str:
    """The comparison in one line."""
    wrong = [c for c in rows if not c.ok]
    if not wrong:
        return f"all {len(rows)} outputs agree with {source}"
    return f"{len(wrong)} of {len(rows)} outputs differ from {source}: {', '.join(str(c.output) for c in wrong[:20])}"


def _scalar(value: Any) -> Any:
    """A NumPy scalar as the nearest Python number."""
    if isinstance(value, np.generic) and value.dtype.kind in "biufc":
        return value.item()
    return float(value)


def _short(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return str(int(value)) if abs(value) < 1e6 and value == int(value) else f"{value:.4g}"
    return _cut(str(value))


def _cut(text: str, most: int = 14) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
