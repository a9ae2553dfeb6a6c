"""A sharded product: ``python sharded_matmul.py`` prints what JAX hands to a compiler, as StableHLO.

`a` is split by rows and `b` by columns over the two devices of the axis x, so their product needs data of both.
"""

import os
import re

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((2, 1), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)


def scaled(a, b):
    result = -((a @ b) * 0.125)
    return jax.lax.with_sharding_constraint(result, NamedSharding(mesh, P("x", "y")))


if __name__ == "__main__":
    rows, columns = NamedSharding(mesh, P("x", None)), NamedSharding(mesh, P(None, "x"))
    a, b = jax.ShapeDtypeStruct((8, 16), jnp.int8), jax.ShapeDtypeStruct((16, 6), jnp.float32)
    lowered = jax.jit(scaled, in_shardings=(rows, columns)).lower(a, b)
    text = lowered.as_text(debug_info=True).replace(os.path.dirname(os.path.abspath(__file__)) + "/", "")
    print(re.sub(r"(:\d+):\d+ to [:\d]+", r"\1:1", text), end="")  # lines are enough
