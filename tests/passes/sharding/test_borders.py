"""Borders of manual computations where shares are uneven."""

from __future__ import annotations

import numpy as np

from heron.evaluator import evaluate_devices
from heron.hlo.text import parse
from heron.hlo.verifier import verify
from heron.passes.framework.context import PassContext
from heron.passes.sharding.spmd_partitioner import SpmdPartitioner

MESH = "mesh['i'=4,'j'=2]"
UNEVEN = f"""HloModule m, num_partitions=8
ENTRY e {{
  x = f32[4] parameter(0), sharding={{{MESH}, [{{'i'}}]}}
  c = f32[4] custom-call(x), custom_call_target="Sharding", sharding={{{MESH}, [{{'i'}}]}}
  l = f32[1] custom-call(c), custom_call_target="SPMDFullToShardShape", sharding={{{MESH}, [{{}}], manual={{'i'}}}}
  n = f32[1] negate(l), sharding={{{MESH}, [{{'j'}}], manual={{'i'}}}}
  f = f32[4] custom-call(n), custom_call_target="SPMDShardToFullShape", sharding={{{MESH}, [{{'i', 'j'}}]}}
  ROOT r = f32[4] copy(f), sharding={{{MESH}, [{{}}]}}
}}
"""


def test_other_axes_do_not_divide_the_local_size() -> None:
    """Element 1 of the global array is the share of device 2, not of device 1."""
    module = parse(UNEVEN)
    PassContext().run_pass(SpmdPartitioner(), module)
    verify(module)
    x = np.array([1, 5, 9, 13], np.float32)
    for [found] in evaluate_devices(module, [[x[n // 2 : n // 2 + 1]] for n in range(8)]):
        assert found.tolist() == [-1, -5, -9, -13]
