"""Runs programs on one platform and writes what each gave: ``python -m tests.devices.child OUT heron|cpu|one NAME…``.

Each program's outcome is a pickle behind the last one, so that those before a crash are kept.
"""

from __future__ import annotations

import os
import pickle
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from tests.devices.program import Devices, Program, library


def main() -> None:
    out, platform, *names = sys.argv[1:]
    os.environ.setdefault("JAX_PLATFORMS", "heron" if platform == "heron" else "cpu")
    if os.environ["JAX_PLATFORMS"] == "heron" or os.environ.get("HERON_AS"):
        from heron.pjrt import jax_plugin

        jax_plugin.initialize()
    warnings.filterwarnings("ignore", "Some donated buffers were not usable")
    with Path(out).open("wb") as file:
        for name in names:
            pickle.dump((name, _outcome(library()[name], Devices(platform == "one"))), file)
            file.flush()


def _outcome(p: Program, devices: Devices) -> dict[str, Any]:
    import jax

    try:
        with jax.enable_x64(p.wide):
            leaves = jax.tree.leaves(p.function(devices))
            return {"leaves": [_leaf(x) for x in leaves]}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}", "where": traceback.format_exc(limit=-6)}


def _leaf(x: Any) -> dict[str, Any]:
    """A result's value, and which part of it each device has. Copies of one part must agree."""
    import jax

    if not isinstance(x, jax.Array):
        return {"value": np.asarray(x), "parts": None}
    if jax.numpy.issubdtype(x.dtype, jax.dtypes.prng_key):
        x = jax.random.key_data(x)
    value = np.asarray(x)
    parts = {}
    for shard in x.addressable_shards:
        own = np.asarray(shard.data)
        same = np.array_equal(own, value[shard.index], equal_nan=own.dtype.kind in "fc")
        assert same, f"device {shard.device.id} has another part {shard.index} than the array"
        parts[shard.device.id] = tuple((s.start or 0, s.stop or 0) for s in shard.index)
    return {"value": value, "parts": parts, "weak": x.weak_type, "committed": x.committed}


if __name__ == "__main__":
    main()
