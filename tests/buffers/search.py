"""Looks for programs whose values do not survive in their buffers: ``python -m tests.fuzz --buffers --count 5000``.

Three of four run in their buffers by the evaluator; the fourth is a fusion whose outputs lie in its inputs, compiled.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from random import Random

from heron.cli.series import series
from tests.backends import fusions_in_place
from tests.backends.fusions_in_place import random_fusion
from tests.buffers.programs import random_program
from tests.buffers.test_random_programs import WAYS, check


def search(count: int, seed: int, out: Path) -> int:
    """Try `count` programs; the exit code, 1 when one failed, which is then in the folder `out`."""
    start = time.perf_counter()
    with series("programs", count) as work:
        for n in work.over(range(seed, seed + count)):
            names = (*WAYS, None)[n % (len(WAYS) + 1)]
            try:
                if names is None:
                    fusions_in_place.check(random_fusion(Random(n)))
                else:
                    check(Random(n), names)
            except Exception as error:
                out.mkdir(parents=True, exist_ok=True)
                path = out / f"buffers_{n}.hlo"
                path.write_text((random_fusion if names is None else random_program)(Random(n)))
                how = "compiled" if names is None else f"passes {', '.join(names)}"
                print(f"{type(error).__name__}: {error}\n{path}, {how}")
                return 1
            tried = n - seed + 1
            if tried % 500 == 0 and not sys.stderr.isatty():
                print(f"{tried} programs, {time.perf_counter() - start:.0f} s", flush=True)
    print(f"{work.done:g} programs agree, {time.perf_counter() - start:.0f} s")
    return work.code(False)
