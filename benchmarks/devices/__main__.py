"""``python -m benchmarks.devices``: run time of sharded programs on 8 devices, against XLA:CPU, worst first.

    python -m benchmarks.devices [NAME ...] [--runs 5] [--partitioned] [--json OUT]

``--partitioned``: both sides run what XLA's partitioner made of a program, so that only running is compared. Programs
run in turns in one process; a time is the median of the runs. "sum" ratios at the end are geometric means.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from math import exp, log
from pathlib import Path
from typing import Any

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8 " + os.environ.get("XLA_FLAGS", "")
os.environ["JAX_PLATFORMS"] = "cpu"

from benchmarks.devices import blocks, control, manual, moves, training  # noqa: E402, F401  they register programs
from benchmarks.devices.case import PROGRAMS  # noqa: E402
from benchmarks.devices.sides import Heron, Xla, refused, worst_error  # noqa: E402


def seconds(run: Any) -> tuple[float, Any]:
    began = time.perf_counter()
    result = run()
    return time.perf_counter() - began, result


def measured(name: str, runs: int, partitioned: bool) -> dict[str, Any]:
    """Times of one program, in milliseconds, and the largest error."""
    xla = Xla(PROGRAMS[name](), name)
    heron = Heron(xla, partitioned)
    _, wanted = seconds(xla.run)
    _, found = seconds(heron.run)
    times: dict[str, list[float]] = {"xla": [], "heron": []}
    for _ in range(runs):
        for side, run in (("xla", xla.run), ("heron", heron.run)):
            spent, result = seconds(run)
            times[side].append(spent * 1e3)
            del result
    row = {side: statistics.median(each) for side, each in times.items()}
    return {"name": name, **row, "ratio": row["heron"] / row["xla"], "error": worst_error(wanted, heron, found)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--partitioned", action="store_true")
    parser.add_argument("--json")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    failures: dict[str, str] = {}
    for name in options.names or PROGRAMS:
        with refused(name, failures):
            rows.append(measured(name, options.runs, options.partitioned))
            print(f"{name}: {rows[-1]['heron']:.2f} ms, {rows[-1]['ratio']:.2f} of XLA's", file=sys.stderr, flush=True)
    print(f"\n{'program':22s} {'XLA ms':>9s} {'heron ms':>9s} {'ratio':>6s} {'error':>8s}")
    for r in sorted(rows, key=lambda r: -r["ratio"]):
        print(f"{r['name']:22s} {r['xla']:9.2f} {r['heron']:9.2f} {r['ratio']:6.2f} {r['error']:8.0e}")
    if rows:
        mean = exp(sum(log(r["ratio"]) for r in rows) / len(rows))
        print(f"{len(rows)} programs, geometric mean {mean:.2f}, worst {max(r['ratio'] for r in rows):.2f}")
    for name, why in failures.items():
        print(f"{name}: {why}")
    if options.json:
        Path(options.json).write_text(json.dumps({"programs": rows, "failures": failures}, indent=1))


if __name__ == "__main__":
    main()
