"""How long a fresh process waits for heron: the import, and the first result."""

from __future__ import annotations

import statistics
import subprocess
import sys
from dataclasses import dataclass

from benchmarks import programs

#: seconds that `import heron` may take
GOAL = 0.3

_IMPORT = "import time; t = time.perf_counter(); import heron; print(time.perf_counter() - t)"
_FIRST = """import sys, time
t = time.perf_counter()
import heron
from heron.cli import values
module = heron.parse(open(sys.argv[1]).read())
arrays = values.random(module, 0)
heron.compile(module, target="cpu").run(arrays)
print(time.perf_counter() - t)
"""


@dataclass(frozen=True, slots=True)
class Startup:
    """Seconds in a fresh process: of `import heron`, and from there to a small program's first result."""

    import_heron: float
    first_result: float


def measure(repeats: int = 5) -> Startup:
    """Medians over fresh processes."""

    def median(text: str, *arguments: str) -> float:
        runs = [
            subprocess.run([sys.executable, "-c", text, *arguments], capture_output=True, text=True, check=True)
            for _ in range(repeats)
        ]
        return statistics.median(float(r.stdout) for r in runs)

    return Startup(median(_IMPORT), median(_FIRST, str(programs.path("softmax", small=True))))
