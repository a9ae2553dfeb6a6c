"""``python -m benchmarks.devices``: sharded programs on 8 devices, against XLA:CPU, worst first.

    python -m benchmarks.devices [NAME ...] [--runs 9] [--seconds 20] [--compiles 0] [--partitioned] [--json OUT]
        [--write]

``--partitioned``: both sides run what XLA's partitioner made of a program, so that only running is compared. Both sides
run in turns in one process; a ratio is the median of the turns' ratios, of the clock's time and of the time of all
threads, or of the fastest turns ("least"). Means are geometric. ``--write``: into docs/reference/benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8 " + os.environ.get("XLA_FLAGS", "")
os.environ["JAX_PLATFORMS"] = "cpu"

from benchmarks import sections  # noqa: E402
from benchmarks.devices import page  # noqa: E402
from benchmarks.devices.measure import Row, mean, measured  # noqa: E402
from benchmarks.devices.programs import PROGRAMS  # noqa: E402
from benchmarks.devices.sides import refused  # noqa: E402

#: where the heads of the columns stand
_PLACES = ("22s", ">9s", ">9s", ">6s", ">6s", ">6s", ">8s", ">7s", ">8s", ">6s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=20.0, help="most time of a program's turns after the second")
    parser.add_argument("--compiles", type=int, default=0)
    parser.add_argument("--partitioned", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    rows: list[Row] = []
    failures: dict[str, str] = {}
    for name in options.names or PROGRAMS:
        with refused(name, failures):
            rows.append(measured(name, options.runs, options.seconds, options.compiles, options.partitioned))
            print(line(rows[-1]), file=sys.stderr, flush=True)
    lines = [*table(rows), *(f"{name}: {why}" for name, why in failures.items())]
    print("\n".join(lines))
    if options.json:
        found = {"programs": [r.record() for r in rows], "failures": failures}
        Path(options.json).write_text(json.dumps(found, indent=1))
    if options.write:
        sections.put(page.HEADING, page.text(lines))


def table(rows: list[Row]) -> list[str]:
    """The rows, the slowest run first, and the means."""
    heads = ("program", "XLA ms", "heron ms", "ratio", "least", "CPU", "error", "scratch", "compile", "CPU")
    if not any(r.compile["xla"].wall for r in rows):
        heads = heads[:-2]
    lines = [" ".join(f"{head:{place}}" for head, place in zip(heads, _PLACES, strict=False))]
    lines += map(line, sorted(rows, key=lambda r: -r.ratio("run")))
    for what in ("run", "compile"):
        for clock, name in (("wall", what), ("cpu", f"{what}, CPU")):
            ratios = [r.ratio(what, clock) for r in rows if getattr(r, what)["xla"].wall]
            if ratios:
                many = f"{len(ratios)} programs" if len(ratios) > 1 else "1 program"
                lines.append(f"{name}: {many}, geometric mean {mean(ratios):.2f}, worst {max(ratios):.2f}")
    return lines


def line(r: Row) -> str:
    """A program's figures."""
    times = " ".join(f"{r.milliseconds('run', side):9.2f}" for side in ("xla", "heron"))
    ratios = f"{r.ratio('run'):6.2f} {r.least('run'):6.2f} {r.ratio('run', 'cpu'):6.2f}"
    compiled = f"{r.ratio('compile'):8.2f} {r.ratio('compile', 'cpu'):6.2f}" if r.compile["xla"].wall else ""
    return f"{r.name:22s} {times} {ratios} {r.error:8.0e} {_scratch(r)} {compiled}".rstrip()


def _scratch(r: Row) -> str:
    """heron's over XLA's."""
    xla, heron = (r.scratch[side] for side in ("xla", "heron"))
    return f"{heron / xla:7.2f}" if xla else f"{'more' if heron else '0':>7s}"


if __name__ == "__main__":
    main()
