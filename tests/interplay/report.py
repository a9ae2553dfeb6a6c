"""What a search says while it runs and at its end."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.interplay.running import Job, Outcome

KINDS = ("right", "undecided", "wrong", "refused", "exception", "lost")


def row(key: str, job: Job, outcome: Outcome) -> dict[str, Any]:
    """A line of the results."""
    return {
        "key": key,
        "number": job.number,
        "families": job.program.families,
        "kinds": outcome.kinds,
        "texts": {k: v[-2000:] for k, v in outcome.texts.items()},
        "seconds": {k: round(v, 3) for k, v in outcome.seconds.items()},
        "faults": outcome.faults,
        "program": repr(job.program),
    }


def rows(path: Path) -> list[dict[str, Any]]:
    """Lines written earlier; the last one may be cut off."""
    found = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return found


def fault(row: dict[str, Any]) -> None:
    print(f"\nprogram {row['number']}: {row['kinds']}")
    for target, text in row["texts"].items():
        print(f"  {target}: {text}")
    print(f"  python -m tests.interplay --program {json.dumps(row['program'])}", flush=True)


def progress(done: int, count: int, rows: Sequence[dict[str, Any]], seconds: float) -> None:
    """A line now and then for the log of a search; a terminal has a bar."""
    if sys.stderr.isatty() or done % 25 and done != count:
        return
    faults = sum(bool(r["faults"]) for r in rows)
    left = seconds / done * (count - done)
    print(f"{done} of {count}, {faults} not right, {left:.0f} s left", file=sys.stderr, flush=True)


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    targets = list(dict.fromkeys(t for r in rows for t in r["kinds"]))
    return {
        "programs": len(rows),
        "targets": {t: dict(Counter(r["kinds"].get(t, "") for r in rows if t in r["kinds"])) for t in targets},
        "families": dict(Counter(f for r in rows for f in r["families"])),
        "seconds": {t: round(sum(r["seconds"].get(t, 0) for r in rows), 1) for t in ("lower", "parts", *targets)},
        "faults": [
            {k: r[k] for k in ("number", "kinds", "texts", "program")}
            for r in rows
            if r["faults"] or "jax" in r["kinds"]
        ],
    }


def table(rows: Sequence[dict[str, Any]], targets: str) -> str:
    """Outcomes by target, and which targets ran which programs."""
    found = summary(rows)
    total = sum(found["seconds"].values())
    lines = [
        f"{found['programs']} programs on {targets} (/N: those whose number N divides), {round(total, 1)} CPU seconds",
        f"{'target':12}" + "".join(f"{k:>11}" for k in KINDS) + f"{'seconds':>11}",
    ]
    for target, kinds in found["targets"].items():
        counts = "".join(f"{kinds.get(k, 0):>11}" for k in KINDS)
        lines.append(f"{target:12}{counts}{found['seconds'][target]:>11}")
    return "\n".join(lines)
