"""Gathers and scatters on several devices."""

from __future__ import annotations

import numpy as np

from heron.hlo.text import parse
from tests.passes.sharding.devices import agree, sharded

COUNTED = """HloModule m, num_partitions=4
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY main {
  x = f32[8,6] parameter(0) @[{'x'}, {}]@
  k = s32[8,1] parameter(1) @[{'x'}, {}]@
  n = s32[8,1] iota(), iota_dimension=0 @[{'x'}, {}]@
  at = s32[8,2] concatenate(n, k), dimensions={1} @[{'x'}, {}]@
  g = f32[8] gather(x, at), offset_dims={}, collapsed_slice_dims={0,1}, start_index_map={0,1}, index_vector_dim=1,
    slice_sizes={1,1} @[{'x'}]@
  ROOT r = f32[8,6] scatter(x, at, g), update_window_dims={}, inserted_window_dims={0,1},
    scatter_dims_to_operand_dims={0,1}, index_vector_dim=1, to_apply=add @[{'x'}, {}]@
}"""


def test_indices_that_count_exchange_nothing():
    module = parse(sharded("mesh['x'=4]\n" + COUNTED))
    inputs = [np.arange(48, dtype=np.float32).reshape(8, 6), np.arange(8, dtype=np.int32).reshape(8, 1) % 6]
    assert "channel_id" not in str(agree(module, inputs))
