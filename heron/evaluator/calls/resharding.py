"""Borders of manual regions in programs not yet partitioned (what `shard_map` lowers to).

Outside, every device computes with whole values; inside, each with its tile. Going in takes the device's tile, coming
out puts everybody's tiles together. GSPMD's custom calls tell the tiles by `sharding`, Shardy's by frontend attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from heron.errors import HeronError
from heron.evaluator import groups
from heron.evaluator.calls.table import evaluates
from heron.hlo import sharding as shardings
from heron.hlo.sharding import Kind, NamedSharding, Sharding, Split, shardy
from heron.hlo.sharding.atoms import AtomicMesh, TensorSharding

if TYPE_CHECKING:
    from heron.evaluator.walker import Evaluator
    from heron.hlo.ir.instruction import Instruction
    from heron.hlo.ir.shape import Shape


@evaluates("SPMDFullToShardShape", with_evaluator=True)
def full_to_shard(ev: Evaluator, i: Instruction, x: np.ndarray) -> np.ndarray:
    """This device's tile; the operand itself when that is all of it."""
    (operand,) = i.operands
    return _tile(ev, i, x, operand.shape, i.shape, _border(operand, i)[0])


@evaluates("SPMDShardToFullShape", with_evaluator=True)
def shard_to_full(ev: Evaluator, i: Instruction, x: np.ndarray) -> np.ndarray:
    """All tiles, put together."""
    sharding, members = _border(i, i.operands[0])
    return _whole(ev, i, 0, x, i.shape, sharding, members)


@evaluates("xla.sdy.GlobalToLocalShape", with_evaluator=True)
def global_to_local(ev: Evaluator, i: Instruction, *xs: np.ndarray) -> Any:
    """This device's tile of each operand."""
    parts = i.shape.tuple_shapes or (i.shape,)
    given = _shardy(ev, i, "xla.sdy.in_shardings", len(xs))
    found = tuple(_tile(ev, i, x, o.shape, s, g) for x, o, s, g in zip(xs, i.operands, parts, given, strict=True))
    return found if i.shape.is_tuple else found[0]


@evaluates("xla.sdy.LocalToGlobalShape", with_evaluator=True)
def local_to_global(ev: Evaluator, i: Instruction, *xs: np.ndarray) -> Any:
    """All tiles of each operand, put together."""
    parts = i.shape.tuple_shapes or (i.shape,)
    given = _shardy(ev, i, "xla.sdy.out_shardings", len(xs))
    found = tuple(_whole(ev, i, n, x, s, g) for n, (x, s, g) in enumerate(zip(xs, parts, given, strict=True)))
    return found if i.shape.is_tuple else found[0]


# -- tiles -----------------------------------------------------------------------------------------------------------
def _tile(
    ev: Evaluator, i: Instruction, x: np.ndarray, full: Shape, local: Shape, given: Sharding | None
) -> np.ndarray:
    if not full.is_array or x.shape == local.dims and not _is_sum(given):
        return x
    sharding = _fitting(ev, i, given, full, local)
    if sharding.subgroup_place(Kind.UNREDUCED, ev.device.partition):  # the first summand is all of it
        return np.zeros(local.dims, x.dtype)
    part = x[_place(sharding, full, ev.device.partition)]
    return np.pad(part, [(0, n - m) for n, m in zip(local.dims, part.shape, strict=True)])


def _whole(
    ev: Evaluator,
    i: Instruction,
    n: int,
    x: np.ndarray,
    full: Shape,
    given: Sharding | None,
    partners: np.ndarray | None = None,
) -> np.ndarray:
    """The tiles of a value put together; `partners` has a row for each group of partitions that have one value."""
    if not full.is_array or x.shape == full.dims and not _is_sum(given):
        return x
    sharding = _fitting(ev, i, given, full, i.operands[n].shape)
    partitions: list[int] = list(range(ev.world.partitions))
    if partners is not None:
        partitions = next(row for row in np.sort(partners).tolist() if ev.device.partition in row)

    def join(tiles: list[np.ndarray]) -> np.ndarray:
        result = np.zeros(full.dims, x.dtype)
        seen: set[object] = set()
        for partition, tile in zip(partitions, tiles, strict=True):
            place = _place(sharding, full, partition)
            key = tuple(s.start for s in place), sharding.subgroup_place(Kind.UNREDUCED, partition)
            if key in seen:
                continue
            seen.add(key)
            own = tile[tuple(slice(0, s.stop - s.start) for s in place)]
            result[place] = result[place] + own if _is_sum(sharding) else own
        return result

    members = groups.to_devices(ev, partitions, True)
    return ev.world.meet(ev.device, i, (i, n, members), members, x, join)


def _border(whole: Instruction, local: Instruction) -> tuple[Sharding | None, np.ndarray | None]:
    """The sharding of a global value along the axes that are manual in the local one only, and who shares the value.

    Tiles tell no axes: they count as they are. Devices of an enclosing manual computation share no value.
    """
    texts = [v.extras.get("sharding") for v in (whole, local)]
    outer, inner = (None if t is None else shardings.parse(t) for t in texts)
    if outer is None or inner is None or outer.named is None or inner.named is None:
        return outer, None
    mesh = AtomicMesh.of(outer.named.mesh)
    around, inside = mesh.read(outer, whole.shape.rank), mesh.read(inner, local.shape.rank)
    own = inside.manual - around.manual
    dims = [tuple(a for a in axes if a in own) for axes in around.dims]
    sharding = mesh.write(TensorSharding.closed(dims, around.unreduced & own))
    return sharding, mesh.groups([a for a in range(len(mesh.sizes)) if a not in around.manual])


def _is_sum(given: Sharding | None) -> bool:
    """Whether devices have summands of a value."""
    return given is not None and (given.is_unreduced or Kind.UNREDUCED in given.plain.subgroups)


def _place(sharding: Sharding, full: Shape, partition: int) -> tuple[slice, ...]:
    begin, end = sharding.tile_offset(full, partition), sharding.tile_limit(full, partition)
    return tuple(map(slice, begin, end))


def _fitting(ev: Evaluator, i: Instruction, given: Sharding | None, full: Shape, local: Shape) -> Sharding:
    """The sharding in tiles. Raises EVAL004 unless it spreads `full` over this world's partitions in `local` tiles."""
    sharding = given.plain if given is not None else Sharding.replicated()
    count = ev.world.partitions if sharding.is_unreduced else sharding.num_devices
    if count != ev.world.partitions or sharding.tile_shape(full).dims != local.dims:
        raise HeronError(
            "EVAL004",
            f"'{i.custom_call_target}' from {i.operands[0].shape.bare} to {i.shape.bare} needs other devices",
            why=f"there are {ev.world.partitions} partitions; the sharding is {given or 'not given'}",
            hint="`evaluate_devices` (`heron eval --devices N`) runs a program on several",
        )
    return sharding


# -- Shardy ----------------------------------------------------------------------------------------------------------
def _shardy(ev: Evaluator, i: Instruction, name: str, count: int) -> Sequence[Sharding | None]:
    """The shardings a frontend attribute tells, over the manual axes alone; None for each when it tells none."""
    attributes = i.extras.get("frontend_attributes", {})
    held = ev.module.header.get("frontend_attributes", {}) if ev.module is not None else {}
    if name not in attributes or "xla.sdy.meshes" not in held:
        return [None] * count
    found = shardy.read_shardings(attributes[name], shardy.read_meshes(held["xla.sdy.meshes"]))
    if len(found) != count:
        return [None] * count
    manual = shardy.read_manual_axes(attributes.get("xla.sdy.manual_axes", "#sdy<manual_axes{}>"))
    return [s if s.named is None else _manual_part(s.named, manual) for s in found]


def _manual_part(named: NamedSharding, manual: Sequence[str]) -> Sharding:
    """The sharding along the manual axes alone."""
    names = [name for name, _ in named.mesh.axes]
    splits = (tuple(a for a in s.axes if names[a.number] in manual) for s in named.splits)
    return Sharding.of_axes(NamedSharding(named.mesh, tuple(map(Split, splits))))
