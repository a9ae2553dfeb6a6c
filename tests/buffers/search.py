"""Looks for programs whose values do not survive in their buffers: ``python -m tests.fuzz --buffers --count 5000``."""

from __future__ import annotations

import time
from pathlib import Path
from random import Random

from tests.buffers.programs import random_program
from tests.buffers.test_random_programs import WAYS, check


def search(count: int, seed: int, out: Path) -> bool:
    """Try `count` programs; whether one failed, which is then in the folder `out`."""
    start = time.perf_counter()
    for n in range(seed, seed + count):
        names = WAYS[n % len(WAYS)]
        try:
            check(Random(n), names)
        except Exception as error:
            out.mkdir(parents=True, exist_ok=True)
            path = out / f"buffers_{n}.hlo"
            path.write_text(random_program(Random(n)))
            print(f"{type(error).__name__}: {error}\n{path}, passes {', '.join(names)}")
            return True
        if (n - seed + 1) % 500 == 0:
            print(f"{n - seed + 1} programs, {time.perf_counter() - start:.0f} s", flush=True)
    print(f"{count} programs agree, {time.perf_counter() - start:.0f} s")
    return False
