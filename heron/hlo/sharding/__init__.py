"""Shardings: how values are spread over devices, as XLA writes them::

s = parse("{devices=[2,1,4]<=[8] last_tile_dim_replicate}")
s.tile_shape(row_major(F32, 6, 8))  # f32[3,8]
s.devices_of((1, 0))                # (4, 5, 6, 7)
str(s)                              # the text again
"""

from heron.hlo.sharding.mesh import Axis, Mesh, NamedSharding, Split
from heron.hlo.sharding.text import parse
from heron.hlo.sharding.tiles import Iota, TileAssignment
from heron.hlo.sharding.value import Kind, ShardGroup, Sharding

__all__ = [
    "Axis",
    "Iota",
    "Kind",
    "Mesh",
    "NamedSharding",
    "ShardGroup",
    "Sharding",
    "Split",
    "TileAssignment",
    "parse",
]
