"""Collectives along atoms of the mesh, and a device's number along them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import scalar
from heron.hlo.ir.types import S32, U32
from heron.hlo.sharding.atoms import Axes

if TYPE_CHECKING:
    from heron.passes.sharding.partition.context import Partitioner


def index(p: Partitioner, axes: Axes) -> Instruction:
    """This device's number along these atoms, row-major; s32[]."""
    return p.once(("index", axes), lambda: _index(p, axes))


def _index(p: Partitioner, axes: Axes) -> Instruction:
    runs: list[Axes] = []
    for atom in axes:
        if runs and runs[-1][-1] + 1 == atom:
            runs[-1] = (*runs[-1], atom)
        else:
            runs.append((atom,))
    if not runs:
        return p.constant(0, S32)
    if len(runs) == 1:
        return _digit(p, axes)
    total = index(p, runs[0])
    for run in runs[1:]:
        total = p.add("add", [p.scaled(total, p.mesh.size(run)), index(p, run)], scalar(S32))
    return total


def _digit(p: Partitioner, run: Axes) -> Instruction:
    """The number along neighbouring atoms: a digit of the device's place in the mesh."""
    below = p.mesh.size(range(run[-1] + 1, len(p.mesh.sizes)))
    size = p.mesh.size(run)
    found = place(p)
    if below > 1:
        found = p.add("divide", [found, p.constant(below, S32)], scalar(S32))
    if run[0] > 0 and p.mesh.size(range(run[0])) > 1:
        found = p.add("remainder", [found, p.constant(size, S32)], scalar(S32))
    return found


def place(p: Partitioner) -> Instruction:
    """This device's place in the mesh, row-major; s32[]."""
    return p.once("place", lambda: _place(p))


def _place(p: Partitioner) -> Instruction:
    number = p.convert(p.add("partition-id", (), scalar(U32)), S32)
    if p.devices.are_in_order:
        return number
    table = p.constant(p.devices.places, S32)
    return p.reshape(p.dynamic_slice(table, {0: number}, (1,)), ())


def _reducer(p: Partitioner, reducer: str | Computation, value: Instruction) -> Computation:
    return reducer if isinstance(reducer, Computation) else p.reducer(reducer, value.shape.element_type)


def all_reduce(p: Partitioner, value: Instruction, axes: Axes, reducer: str | Computation) -> Instruction:
    """`value` combined over the devices along these atoms."""
    if not axes:
        return value
    return p.add(
        "all-reduce",
        [value],
        value.shape,
        channel_id=p.channel(),
        replica_groups=p.devices.groups(axes),
        use_global_device_ids=True,
        to_apply=_reducer(p, reducer, value),
    )


def reduce_scatter(p: Partitioner, value: Instruction, dim: int, axes: Axes, reducer: str | Computation) -> Instruction:
    """The device's share along `dim` of `value` combined over these atoms."""
    if not axes:
        return value
    dims = value.shape.dims
    return p.add(
        "reduce-scatter",
        [value],
        value.shape.with_dims((*dims[:dim], dims[dim] // p.mesh.size(axes), *dims[dim + 1 :])),
        channel_id=p.channel(),
        replica_groups=p.devices.groups(axes),
        use_global_device_ids=True,
        dimensions=(dim,),
        to_apply=_reducer(p, reducer, value),
    )


def all_gather(p: Partitioner, value: Instruction, dim: int, axes: Axes) -> Instruction:
    """The values of the devices along these atoms, one behind the other."""
    if not axes:
        return value
    dims = value.shape.dims
    return p.add(
        "all-gather",
        [value],
        value.shape.with_dims((*dims[:dim], dims[dim] * p.mesh.size(axes), *dims[dim + 1 :])),
        channel_id=p.channel(),
        replica_groups=p.devices.groups(axes),
        use_global_device_ids=True,
        dimensions=(dim,),
    )


def all_to_all(p: Partitioner, value: Instruction, split_dim: int, concat_dim: int, axes: Axes) -> Instruction:
    """Pieces of `split_dim` exchanged, then joined along `concat_dim`."""
    if not axes:
        return value
    count, dims = p.mesh.size(axes), value.shape.dims
    pieces = p.reshape(value, (*dims[:split_dim], count, dims[split_dim] // count, *dims[split_dim + 1 :]))
    sent = p.add(
        "all-to-all",
        [pieces],
        pieces.shape,
        channel_id=p.channel(),
        replica_groups=p.devices.groups(axes),
        dimensions=(split_dim,),
    )
    # the dimension of senders goes in front of the one along which their pieces are joined
    rest = [d for d in range(len(dims) + 1) if d != split_dim]
    at = concat_dim
    order = [*rest[:at], split_dim, *rest[at:]]
    if order != list(range(len(order))):
        turned = tuple(sent.shape.dims[d] for d in order)
        sent = p.add("transpose", [sent], sent.shape.with_dims(turned), dimensions=tuple(order))
    joined = [dims[d] // count if d == split_dim else dims[d] for d in range(len(dims))]
    joined[concat_dim] *= count
    return p.reshape(sent, joined)


def permute(p: Partitioner, value: Instruction, axes: Axes, target: Callable[[int], int | None]) -> Instruction:
    """Member n of each group along these atoms sends to member ``target(n)``."""
    return send(p, value, p.devices.pairs(axes, target))


def send(p: Partitioner, value: Instruction, pairs: tuple[tuple[int, int], ...]) -> Instruction:
    """`value` sent from the first to the second device of each pair; zeros where nothing arrives."""
    return p.add("collective-permute", [value], value.shape, channel_id=p.channel(), source_target_pairs=pairs)
