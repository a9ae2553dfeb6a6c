"""Programs with manual regions, before partitioning: every device ends with the whole values XLA:CPU gives."""

from __future__ import annotations

import importlib.util
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from heron.errors import HeronError
from heron.evaluator import evaluate, evaluate_devices
from heron.hlo.text import parse


def test_shard_map_does_what_xla_does() -> None:
    if importlib.util.find_spec("jax") is None:
        pytest.skip("needs jax")
    script = Path(__file__).with_name("shard_map_programs.py")
    done = subprocess.run([sys.executable, script], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    for name, shardy, text, inputs, wanted in pickle.loads(done.stdout):
        for device, (got,) in enumerate(evaluate_devices(parse(text), [inputs], 1, 8)):
            np.testing.assert_allclose(got, wanted, rtol=1e-6, err_msg=f"{name}, shardy {shardy}, device {device}")


TILES = """HloModule m
ENTRY e {
  x = f32[5] parameter(0)
  s = f32[5] custom-call(x), custom_call_target="Sharding", sharding={devices=[3]<=[3]}
  t = f32[2] custom-call(s), custom_call_target="SPMDFullToShardShape", sharding={manual}
  n = f32[2] negate(t)
  w = f32[5] custom-call(n), custom_call_target="SPMDShardToFullShape", sharding={devices=[3]<=[3]}
  ROOT r = (f32[2], f32[5]) tuple(t, w)
}
"""


def test_the_last_tile_may_be_padded() -> None:
    x = np.arange(1, 6, dtype=np.float32)
    found = evaluate_devices(parse(TILES), [[x]], 1, 3)
    assert [tile.tolist() for tile, _ in found] == [[1, 2], [3, 4], [5, 0]]
    assert all(whole.tolist() == (-x).tolist() for _, whole in found)


def test_another_number_of_devices_is_refused() -> None:
    x = np.ones(5, np.float32)
    with pytest.raises(HeronError, match="EVAL004.*needs other devices"):
        evaluate(parse(TILES), x)
    with pytest.raises(HeronError, match="there are 2 partitions"):
        evaluate_devices(parse(TILES), [[x]], 1, 2)


def test_summands_of_a_value_enter_and_leave() -> None:
    """Along an unreduced axis the devices' values add up to the global one; along the others they are equal."""
    mesh = "mesh['x'=2,'y'=2]"
    module = parse(f"""HloModule m, num_partitions=4

    ENTRY e {{
      a = f32[4] parameter(0)
      s = f32[4] custom-call(a), custom_call_target="Sharding", sharding={{{mesh}, [{{}}], unreduced={{'x'}}}}
      l = f32[4] custom-call(s), custom_call_target="SPMDFullToShardShape", sharding={{{mesh}, [{{}}], manual={{'x'}}}}
      g = f32[4] custom-call(l), custom_call_target="SPMDShardToFullShape", sharding={{{mesh}, [{{}}], unreduced={{'x'}}}}
      ROOT r = (f32[4], f32[4]) tuple(l, g)
    }}""")
    a = np.arange(4, dtype=np.float32)
    results = evaluate_devices(module, [[a]] * 4)
    for device, (local, whole) in enumerate(results):
        np.testing.assert_array_equal(local, a if device < 2 else 0 * a)
        np.testing.assert_array_equal(whole, a)
