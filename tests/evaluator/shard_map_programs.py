"""Run as a program: prints, pickled, HLO of `shard_map` functions as JAX lowers them, inputs, and what XLA:CPU gives.

Each function comes with Shardy's custom calls and with GSPMD's.
"""

from __future__ import annotations

import os
import pickle
import sys
from functools import partial
from typing import Any

import numpy as np

X = np.arange(32, dtype=np.float32).reshape(8, 4)
Y = np.arange(12, dtype=np.float32).reshape(4, 3)


def programs() -> dict[str, tuple[Any, tuple[np.ndarray, ...]]]:
    """Functions over a mesh of 2 x 4 devices, with their arguments."""
    import jax
    import jax.numpy as jnp
    from jax import lax
    from jax.sharding import PartitionSpec as P

    mesh = jax.sharding.Mesh(np.array(jax.devices()).reshape(2, 4), ("a", "b"))
    mapped = partial(jax.shard_map, mesh=mesh, check_vma=False)

    def ring(x: Any) -> Any:
        return lax.ppermute(x, "b", [(n, (n + 1) % 4) for n in range(4)]) + lax.axis_index("a")

    def looped(x: Any) -> Any:
        return lax.fori_loop(0, 3, lambda _, v: lax.psum(v, "a") / 2 + 1, x)

    return {
        "product": (mapped(lambda x, y: lax.psum(x @ y, "b"), in_specs=(P("a", "b"), P("b")), out_specs=P("a")), (X, Y)),
        "gather": (mapped(lambda x: lax.all_gather(x, "b", tiled=True), in_specs=P(("b", "a")), out_specs=P("a")), (X,)),
        "scatter": (mapped(lambda x: lax.psum_scatter(x, "b", tiled=True), in_specs=P("a"), out_specs=P(("a", "b"))), (X,)),
        "exchange": (
            mapped(lambda x: lax.all_to_all(x, "b", 0, 1, tiled=True), in_specs=P("a", "b"), out_specs=P(("a", "b"))), (X,),
        ),
        "ring": (mapped(ring, in_specs=P("b", "a"), out_specs=P("b", "a")), (X,)),
        "largest": (mapped(lambda x: lax.pmax(x, ("b", "a")), in_specs=P(("a", "b")), out_specs=P()), (X,)),
        "loop": (mapped(looped, in_specs=P("a", "b"), out_specs=P(None, "b")), (X,)),
        "sine": (lambda x: jnp.sum(mapped(jnp.sin, in_specs=P("b"), out_specs=P("b"))(x), 0), (X,)),
    }  # fmt: skip


def main() -> None:
    import jax

    found = []
    for shardy in (True, False):
        jax.config.update("jax_use_shardy_partitioner", shardy)
        for name, (function, arguments) in programs().items():
            jitted = jax.jit(function)
            text = jitted.lower(*arguments).as_text("hlo")
            found.append((name, shardy, text, arguments, np.asarray(jitted(*arguments))))
    sys.stdout.buffer.write(pickle.dumps(found))


if __name__ == "__main__":
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
    main()
