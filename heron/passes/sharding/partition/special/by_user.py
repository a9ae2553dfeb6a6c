"""Custom calls for which somebody's function gives the program of one device."""

from __future__ import annotations

import numpy as np

from heron.analysis.sharding.custom import PARTITIONERS
from heron.errors import HeronError
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape
from heron.hlo.sharding import Sharding
from heron.hlo.sharding.atoms import TensorSharding
from heron.passes.sharding.partition.context import Partitioner
from heron.passes.sharding.partition.part import Part


def partition(p: Partitioner, i: Instruction, operands: list[Part]) -> list[Part]:
    """A call of the program that the user's partitioner gives for the shardings of operands and results.

    Raises SPMD020 for a sharding of the user's that the mesh's axes do not express.
    """
    results = [s for _, s in i.shape.leaves()]
    wanted = [p.mesh.write(p.wanted(i, index)) for index, _ in i.shape.leaves()]
    result = Sharding.tuple(wanted) if i.shape.is_tuple else wanted[0]
    given = [p.mesh.write(o.sharding) for o in operands]
    local = PARTITIONERS[i.custom_call_target].partition(i, given, result)
    values = [p.reshard(o, _atoms(p, i, s, o.shape)).value for o, s in zip(operands, local.operands, strict=True)]
    if not results:
        return []
    body = p.copied(local.module.entry)
    for c in body.instructions:
        if c.attrs.get("channel_id") is not None:
            c.attrs["channel_id"] = p.channel()
    made = p.add("call", values, body.root.shape, to_apply=body)
    if made.shape.is_tuple and not i.shape.is_tuple:
        made = p.add("get-tuple-element", [made], made.shape.at((0,)), index=0)
    leaves = local.result.elements or (local.result,)
    return p.leaves(made, i.shape, [_atoms(p, i, s, r) for s, r in zip(leaves, results, strict=True)])


def _atoms(p: Partitioner, i: Instruction, sharding: Sharding, shape: Shape) -> TensorSharding:
    """A sharding in atoms; for one by tiles, those that devices of neighbouring tiles differ in."""
    if sharding.named is not None and sharding.named.mesh == p.mesh.mesh:
        return p.mesh.read(sharding, shape.rank).close()
    spread = sharding.spread(shape).plain
    if spread.is_tile_maximal:
        return TensorSharding.whole(shape.rank)
    devices = p.mesh.devices
    tiles = np.array([spread.tile_index(d) for d in range(p.mesh.count)])
    first = tiles[devices.flat[0]]
    strides: list[list[tuple[int, int]]] = [[] for _ in range(shape.rank)]
    for atom in range(devices.ndim):
        step = tiles[np.take(devices, 1, atom).flat[0]] - first
        for d in np.flatnonzero(step):
            strides[d].append((-int(step[d]), atom))
    found = TensorSharding.closed([[atom for _, atom in sorted(s)] for s in strides])
    if len(set().union(*found.dims)) != sum(map(len, found.dims)) or not (tiles == _tiles(p, found)).all():
        raise HeronError(
            "SPMD020",
            f"'{i.name}' asks for the sharding {sharding}, which the axes of the program's mesh do not express",
            where=str(i)[:200],
            why=f"the mesh is {p.mesh.mesh}",
            hint="let the call's `partition` return shardings by axes of its mesh",
        )
    return found


def _tiles(p: Partitioner, sharding: TensorSharding) -> np.ndarray:
    """For each device the numbers of its tile along the dimensions."""
    places = np.indices(p.mesh.sizes).reshape(len(p.mesh.sizes), -1)
    found = np.zeros((p.mesh.count, sharding.rank), np.int64)
    for d, axes in enumerate(sharding.dims):
        number = np.zeros(p.mesh.count, np.int64)
        for a in axes:
            number = number * p.mesh.sizes[a] + places[a]
        found[p.mesh.devices.reshape(-1), d] = number
    return found
