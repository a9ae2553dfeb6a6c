"""How long a fresh process waits for heron: the import, and the first result.

Python reads modules from bytecode, as it does wherever heron is installed; an environment that forbids it is overruled.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

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
    """Seconds in a fresh process: of `import heron`, and from there to a small program's first result, compiled or
    from the cache.
    """

    import_heron: float
    first_result: float
    first_kept: float


def measure(repeats: int = 5) -> Startup:
    """Medians over fresh processes."""
    first = (_FIRST, str(programs.path("softmax", small=True)))
    with tempfile.TemporaryDirectory() as folder:

        def median(*arguments: str, cache: bool = False) -> float:
            """Without the first run, which writes bytecode, and the program to the cache."""
            times = [_seconds(arguments, Path(folder), cache) for _ in range(repeats + 1)]
            return statistics.median(times[1:])

        return Startup(median(_IMPORT), median(*first), median(*first, cache=True))


def _seconds(arguments: tuple[str, ...], folder: Path, cache: bool) -> float:
    """What one process says."""
    changes = {"PYTHONPYCACHEPREFIX": str(folder), "HERON_CACHE_DIR": str(folder), "HERON_CACHE": str(int(cache))}
    environment = {**os.environ, **changes}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-c", *arguments]
    return float(subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout)
