"""all-gather-pad-ds-simplifier: devices that take windows of a gathered array fetch the pieces in them alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from heron.analysis.devices.groups import device_groups
from heron.analysis.devices.own_part import places_in_groups, slice_starts, sliced_dimension
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.types import PRED, S32
from heron.passes.collectives.model.grouping import free_channels, permuted
from heron.passes.collectives.model.places import device_number, looked_up, starts_at
from heron.passes.collectives.model.reductions import is_alone
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import splat
from heron.passes.sharding.partition.moves import Round, Span, pieces, rounds, sent
from heron.records import dataclass


@register
@dataclass(frozen=True)
class AllGatherPadDsSimplifier(Pass):
    """Replaces a dynamic-slice of a gathered and padded array by collective-permutes of what lies in each window.

    The window of each device is computed from its number. The pieces of other devices' parts in it arrive in as few
    permutes as are found; what was padded is filled in. It is done where that sends less than the all-gather, and no
    device sends more.

    HloModule example, replica_count=2

    g = f32[4] all-gather(f32[2] x), dimensions={0}
    zero = f32[] constant(0)
    p = f32[6] pad(g, zero), padding=1_1
    table = s32[2] constant({0, 3})
    id = u32[] replica-id()
    one = s32[1] dynamic-slice(table, id), dynamic_slice_sizes={1}
    at = s32[] reshape(one)
    ROOT d = f32[3] dynamic-slice(p, at), dynamic_slice_sizes={3}
    ->
    ...
    """

    name = "all-gather-pad-ds-simplifier"
    constraints = (
        Constraint(
            "all-gather-dynamic-slice-permuted-offset-simplifier",
            "all-gather-pad-ds-simplifier",
            "a whole part of one device comes first",
        ),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        channels = free_channels(module)
        for c in module.non_fusion_computations():
            for i in c.instructions:
                fetches = _fetches(i, module) if i.opcode == "dynamic-slice" else None
                if fetches is None:
                    continue
                c.replace(i, _fetched(i, fetches, module, channels))
                ctx.decide(True, f"windows are fetched in {len(fetches)} steps", subject=i.name)
                changed = True
        return changed


def _gathered(i: Instruction) -> tuple[Instruction, Instruction | None]:
    """The operand of the slice, behind a pad if there is one, and that pad."""
    x = i.operands[0]
    return (x.operands[0], x) if x.opcode == "pad" else (x, None)


def _fetches(i: Instruction, module: Module) -> tuple[Round, ...] | None:
    """Steps that bring the pieces of the windows, if they send less than the all-gather. All pieces of a step are of
    one size."""
    gathered, pad = _gathered(i)
    dim, count = sliced_dimension(i), module.replica_count * module.num_partitions
    if gathered.opcode != "all-gather" or not is_alone(gathered) or dim is None or gathered.dimensions != (dim,):
        return None
    if pad is not None and not _pads_ends(pad, dim):
        return None
    # a permute's ids are partitions of one replica, or replicas of one partition
    if len(gathered.users) > 1 or (module.replica_count != 1 and module.num_partitions != 1):
        return None
    groups = device_groups(gathered, module)
    starts = slice_starts(i, dim, module)
    if starts is None or places_in_groups(groups, count) is None:
        return None
    steps = _steps(i, gathered, groups, starts - (pad.padding[dim][0] if pad is not None else 0), dim)
    part = gathered.operands[0].shape.dims[dim]
    if any({p.size for p in r.pieces} != {r.size} for r in steps):
        return None
    # no device may send more, and all together must send less
    most = (len(groups[0]) - 1) * part
    moved = sum(p.size for r in steps if not r.stays for p in r.pieces)
    return steps if sent(steps) <= most and moved < count * most else None


def _pads_ends(pad: Instruction, dim: int) -> bool:
    """Whether a pad has one user, and adds to the ends of that dimension alone."""
    others = any(any(p) for d, p in enumerate(pad.padding) if d != dim)
    return len(pad.users) == 1 and not others and not pad.padding[dim][2]


def _steps(
    i: Instruction, gathered: Instruction, groups: tuple[tuple[int, ...], ...], starts: np.ndarray, dim: int
) -> tuple[Round, ...]:
    """Steps for the windows that begin at `starts` of the gathered array; each group has positions of its own."""
    whole, part, length = gathered.shape.dims[dim], gathered.operands[0].shape.dims[dim], i.shape.dims[dim]
    have: list[Span] = []
    want: list[Span] = []
    for n, group in enumerate(groups):
        base = n * whole
        have += [Span(device, base + k * part, base + (k + 1) * part) for k, device in enumerate(group)]
        windows = [Span(d, base + int(starts[d]), base + int(starts[d]) + length) for d in group]
        want += [w.clipped(base, base + whole) for w in windows]
    return rounds(pieces(have, want))


def _fetched(i: Instruction, steps: tuple[Round, ...], module: Module, channels: Iterator[int]) -> Instruction:
    c, (gathered, pad), dim = i.parent, _gathered(i), sliced_dimension(i)
    assert c is not None and dim is not None
    x, count, rank = gathered.operands[0], module.replica_count * module.num_partitions, i.shape.rank
    empty = splat(c, i.shape, 0) if pad is None else c.add("broadcast", [pad.operands[1]], i.shape, dimensions=())
    result, number = empty, device_number(c, module)
    for step in steps:
        read, write = np.zeros(count, np.int32), np.zeros(count, np.int32)
        has = np.zeros(count, bool)
        for p in step.pieces:
            read[p.source], write[p.target], has[p.target] = p.read, p.write, True
        dims = tuple(step.size if d == dim else n for d, n in enumerate(x.shape.dims))
        piece = x
        if dims != x.shape.dims:
            starts = starts_at(i, dim, looked_up(c, number, read, S32), rank)
            piece = c.add("dynamic-slice", [x, *starts], x.shape.with_dims(dims), dynamic_slice_sizes=dims)
        if not step.stays:
            piece = permuted(piece, [(p.source, p.target) for p in step.pieces], module, channels)
        starts = starts_at(i, dim, looked_up(c, number, write, S32), rank)
        filled = c.add("dynamic-update-slice", [result, piece, *starts], i.shape, like=i)
        where = c.add("broadcast", [looked_up(c, number, has, PRED)], i.shape.with_type(PRED), dimensions=())
        result = filled if has.all() else c.add("select", [where, filled, result], i.shape)
    return result
