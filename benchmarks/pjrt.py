"""What a call costs under JAX on heron, beside JAX's own CPU in the same process: ``python -m benchmarks.pjrt``.

Medians in microseconds: dispatch of ``x + 1``, a program of 20 inputs and outputs, small arrays to the device, and 4 MB
from the device to NumPy (which shares the memory), of arrays NumPy has not seen.
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
    parser.add_argument("--rounds", type=int, default=40, help="turns of each device")
    arguments = parser.parse_args()
    os.environ["JAX_PLATFORMS"] = "heron"
    from heron.pjrt import jax_plugin

    jax_plugin.initialize()
    import jax

    devices = {"heron": jax.devices()[0], "cpu": jax.devices("cpu")[0]}
    heron, cpu = measure(devices, arguments.rounds).values()
    if arguments.json:
        print(json.dumps({"heron_us": heron, "cpu_us": cpu}, indent=2))
        return
    print(f"{'':24}{'heron us':>10}{'JAX CPU us':>12}{'ratio':>8}")
    for name, ours in heron.items():
        print(f"{name:24}{ours:10.1f}{cpu[name]:12.1f}{ours / cpu[name]:8.2f}")


def measure(devices: dict[str, Any], rounds: int) -> dict[str, dict[str, float]]:
    """Medians in microseconds by device and row. Devices take turns, so that what else the machine does hits all."""
    import jax
    import numpy as np

    add = jax.jit(lambda x: x + 1)
    add_all = jax.jit(lambda *xs: tuple(x + 1 for x in xs))
    host = np.ones(6, np.float32)

    def rows(device: Any) -> dict[str, tuple[Callable[[], Callable[[], Any]], int]]:
        """By name: what prepares a round and gives the call that is timed, and how often it is called."""
        one = jax.device_put(np.array([1, 2, 3], np.float32), device)
        many = [jax.device_put(np.array([n], np.float32), device) for n in range(20)]
        large = jax.device_put(np.ones(1 << 20, np.float32), device)

        def fresh() -> Callable[[], Any]:
            results = iter(jax.block_until_ready([add(large) for _ in range(20 + _WARM)]))
            return lambda: np.asarray(next(results))

        return {
            "x + 1": (lambda: lambda: add(one), 100),
            "20 in, 20 out": (lambda: lambda: add_all(*many), 25),
            "device_put of 24 bytes": (lambda: lambda: jax.device_put(host, device), 25),
            "NumPy from 4 MB": (fresh, 20),
        }

    found: dict[str, dict[str, list[float]]] = {name: {} for name in devices}
    by_device = {name: rows(device) for name, device in devices.items()}
    for n in range(rounds):
        for name in sorted(devices, reverse=n % 2 == 1):
            for row, (prepare, times) in by_device[name].items():
                found[name].setdefault(row, []).extend(_times(prepare(), times))
    return {name: {row: statistics.median(t) * 1e6 for row, t in table.items()} for name, table in found.items()}


#: calls before those that are timed
_WARM = 3


def _times(call: Callable[[], Any], count: int) -> list[float]:
    for _ in range(_WARM):
        call()
    times = []
    for _ in range(count):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return times


if __name__ == "__main__":
    main()
