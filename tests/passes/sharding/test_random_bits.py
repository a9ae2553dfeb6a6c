"""Random numbers on several devices: the same as on one."""

from __future__ import annotations

import numpy as np
import pytest

from heron.hlo.ir.shape import row_major, tuple_
from heron.hlo.ir.types import BF16, F32, PRED, S8, S32, U32, U64
from tests.passes.sharding.devices import agree
from tests.passes.sharding.draw import Draw


@pytest.mark.parametrize("seed", range(20))
def test_rng(seed):
    draw = Draw(seed)
    t = draw.random.choice((F32, S32, BF16, PRED, S8))
    shape = row_major(t, *draw.sizes(draw.random.randint(0, 2)))
    low, high = draw.b.constant(0, t), draw.b.constant(1 if t is PRED else 9, t)
    drawn = draw.b.rng(low, high, shape=shape, distribution="rng_uniform")
    again = draw.b.rng(low, high, shape=shape, distribution="rng_uniform")
    state = draw.b.rng_get_and_update_state(shape=row_major(U64, 2), delta=3)
    root = draw.b.tuple(drawn, state, again)
    agree(draw.module(root), draw.inputs)


def test_bits_are_made_in_parts():
    """No device makes more than its part, and nothing is exchanged."""
    draw = Draw(0)
    shape = tuple_([row_major(U64, 2), row_major(U32, 16, 6)])
    for algorithm in ("rng_three_fry", "rng_default"):
        module = _sharded(draw, algorithm, shape)
        made = agree(module, [np.array([7, 9], np.uint64)])
        text = str(made)
        assert "u32[4,6]" in text
        assert "u32[16,6]" not in text
        assert "all-" not in text


def _sharded(draw, algorithm, shape):
    from heron.hlo.text import parse

    mesh = "mesh['x'=4]"
    return parse(f"""HloModule m, num_partitions=4
ENTRY main {{
  s = u64[2] parameter(0), sharding={{{mesh}, [{{}}]}}
  r = (u64[2], u32[16,6]) rng-bit-generator(s), algorithm={algorithm}, sharding={{{{{mesh}, [{{}}]}}, {{{mesh}, [{{'x'}}, {{}}]}}}}
  ROOT b = u32[16,6] get-tuple-element(r), index=1, sharding={{{mesh}, [{{'x'}}, {{}}]}}
}}""")
