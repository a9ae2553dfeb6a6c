"""What a call costs under JAX on heron, beside JAX's own CPU in the same process: ``python -m benchmarks.pjrt``.

Medians in microseconds: dispatch of ``x + 1``, a program of 20 inputs and outputs, small arrays to the device, and 4 MB
from the device to NumPy (which shares the memory).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from typing import Any


def main() -> None:
    """Print the table, or JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pjrt", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON document instead of a table")
    parser.add_argument("--repeats", type=int, default=2000, help="calls measured for each row")
    arguments = parser.parse_args()
    os.environ["JAX_PLATFORMS"] = "heron"
    from heron.pjrt import jax_plugin

    jax_plugin.initialize()
    import jax

    heron, cpu = (measure(d, arguments.repeats) for d in (jax.devices()[0], jax.devices("cpu")[0]))
    if arguments.json:
        print(json.dumps({"heron_us": heron, "cpu_us": cpu}, indent=2))
        return
    print(f"{'':24}{'heron us':>10}{'JAX CPU us':>12}{'ratio':>8}")
    for name, ours in heron.items():
        print(f"{name:24}{ours:10.1f}{cpu[name]:12.1f}{ours / cpu[name]:8.2f}")


def measure(device: Any, repeats: int) -> dict[str, float]:
    """Medians by name, in microseconds."""
    import jax
    import numpy as np

    one = jax.device_put(np.array([1, 2, 3], np.float32), device)
    many = [jax.device_put(np.array([n], np.float32), device) for n in range(20)]
    large = jax.device_put(np.ones(1 << 20, np.float32), device)
    host = np.ones(6, np.float32)
    add = jax.jit(lambda x: x + 1)
    add_all = jax.jit(lambda *xs: tuple(x + 1 for x in xs))
    results = [add(large) for _ in range(50)]
    jax.block_until_ready(results)
    rest = iter(results)
    return {
        "x + 1": _median(lambda: add(one), repeats),
        "20 in, 20 out": _median(lambda: add_all(*many), repeats // 4),
        "device_put of 24 bytes": _median(lambda: jax.device_put(host, device), repeats // 4),
        "NumPy from 4 MB": _median(lambda: np.asarray(next(rest)), 40, warm=5),
    }


def _median(call: Callable[[], Any], repeats: int, warm: int = 50) -> float:
    for _ in range(warm):
        call()
    times = []
    for _ in range(max(1, repeats)):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1e6


if __name__ == "__main__":
    main()
