"""``python -m benchmarks.devices.launches``: calls of tiny programs on several devices under JAX, beside its CPU.

    python -m benchmarks.devices.launches [--devices 8] [--rounds 12] [--json]

Medians in microseconds of a call and the wait for its result, both sides in turns in one process.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

#: calls that are timed in a round, after those that are not
_CALLS, _WARM = 20, 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={options.devices}"
    os.environ["HERON_DEVICES"], os.environ["JAX_PLATFORMS"] = str(options.devices), "heron"
    from heron.pjrt import jax_plugin

    jax_plugin.initialize()
    found = measure(options.devices, options.rounds)
    if options.json:
        print(json.dumps(found))
        return
    for name, each in found.items():
        print(f"{name:14s} heron {each['heron']:8.1f} us, JAX's CPU {each['cpu']:8.1f} us, {each['ratio']:.2f}")


def measure(count: int, rounds: int) -> dict[str, dict[str, float]]:
    """Microseconds by call and side, and the ratio."""
    import jax

    calls = {side: _calls(side, count) for side in ("heron", "cpu")}
    found: dict[str, dict[str, float]] = {}
    for name in calls["cpu"]:
        times: dict[str, list[float]] = {"heron": [], "cpu": []}
        for n in range(rounds):
            for side in sorted(times, reverse=n % 2 == 1):
                call = calls[side][name]
                for k in range(_WARM + _CALLS):
                    began = time.perf_counter()
                    jax.block_until_ready(call())
                    if k >= _WARM:
                        times[side].append((time.perf_counter() - began) * 1e6)
        row = {side: statistics.median(each) for side, each in times.items()}
        found[name] = {**row, "ratio": row["heron"] / row["cpu"]}
    return found


def _calls(side: str, count: int) -> dict[str, Callable[[], Any]]:
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax import lax
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    mesh = Mesh(np.array(jax.devices(side)[:count]), ("x",))
    spread, whole = NamedSharding(mesh, PartitionSpec("x")), NamedSharding(mesh, PartitionSpec())
    x = jax.device_put(np.arange(count, dtype=np.float32), spread)
    many = [jax.device_put(np.arange(count, dtype=np.float32), spread) for _ in range(20)]
    batch = jax.device_put(np.ones((count * 32, 64), np.float32), spread)
    weights = jax.device_put(np.ones((64, 64), np.float32), whole)
    add, add_all = jax.jit(lambda x: x + 1), jax.jit(lambda *xs: tuple(x + 1 for x in xs))
    parts = PartitionSpec("x"), PartitionSpec()
    psum = jax.jit(jax.shard_map(lambda x: lax.psum(x, "x"), mesh=mesh, in_specs=parts[0], out_specs=parts[1]))
    gradient = jax.grad(lambda w, x: jnp.mean(jnp.tanh(x @ w) ** 2))
    step = jax.jit(lambda w, x: w - 0.1 * gradient(w, x))
    return {
        "x + 1": lambda: add(x),
        "20 in, 20 out": lambda: add_all(*many),
        f"psum of {count}": lambda: psum(x),
        "a layer's step": lambda: step(weights, batch),
    }


if __name__ == "__main__":
    main()
