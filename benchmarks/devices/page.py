"""The section of docs/reference/benchmarks.md about several devices."""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.performance.machine import processor
from heron.runtime.cpu.pool import usable_cpus

HEADING = "Several devices"
#: devices for which launches are measured
_COUNTS = (2, 4, 8)


def text(table: Sequence[str]) -> str:
    """The section: programs, then launches."""
    busy = float(Path("/proc/loadavg").read_text().split()[0])
    day = datetime.datetime.now(datetime.UTC).date()
    programs, launches = "\n".join(table), "\n".join(_launches())
    return f"""Sharded programs on 8 devices of one process, heron against XLA:CPU, {day}, by
`python -m benchmarks.devices --write`: {usable_cpus()} cores ({processor()}), shared with other
programs (a load of {busy:.0f}). Both sides run in turns in one process. "ratio": the median of the turns' ratios;
"least": of the fastest turns; "CPU": of the time of all threads, which other programs disturb least. "scratch":
bytes of a device. "error": the largest difference between the outputs of both, over the largest magnitude of an output.
`cumulative` is left out: a run takes XLA half a minute, and its cumulative log-sum-exp is wrong (NumPy agrees with
heron).

```
{programs}
```

Calls of tiny programs under JAX with the wait for the result, in microseconds, by
`python -m benchmarks.devices.launches --devices N`:

```
{launches}
```"""


def _launches() -> list[str]:
    lines = [f"{'call':16s} {'devices':>7s} {'JAX CPU':>8s} {'heron':>8s} {'ratio':>6s}"]
    for count in _COUNTS:
        command = [sys.executable, "-m", "benchmarks.devices.launches", "--devices", str(count), "--json"]
        for name, row in json.loads(subprocess.run(command, capture_output=True, check=True).stdout).items():
            lines.append(f"{name:16s} {count:7d} {row['cpu']:8.1f} {row['heron']:8.1f} {row['ratio']:6.2f}")
    return lines
