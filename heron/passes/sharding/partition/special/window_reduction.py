"""reduce-window: shares with what their windows see of others."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from heron.analysis.fusion.prefix_scan import Scan, scan_of
from heron.hlo import facts
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.window import WindowDim
from heron.hlo.sharding.atoms import TensorSharding
from heron.passes.sharding.partition.halo import exchange
from heron.passes.sharding.partition.moves import Span, own_pieces, tiles, transfer
from heron.passes.sharding.partition.part import Part
from heron.passes.sharding.partition.registry import partitions
from heron.passes.sharding.partition.special.cumulative import Blocks, is_blockwise
from heron.passes.sharding.partition.special.neutral import identities
from heron.passes.sharding.partition.windowed import Reach, extended, is_still, meeting, nothing

if TYPE_CHECKING:
    from heron.passes.sharding.partition.context import Partitioner


@partitions("reduce-window")
def partition_reduce_window(p: Partitioner, i: Instruction, operands: list[Part]) -> list[Part]:
    """Halos hold what changes nothing where they reach beyond the array.

    Scans and windows over much of the array do not fetch it: devices reduce what they have, and results are combined.
    Where no value is known to change nothing, each device has the whole of a dimension that windows move along.
    """
    count = len(operands) // 2
    shape = i.shape.tuple_shapes[0] if i.shape.tuple_shapes else i.shape
    wanted = p.wanted(i, (0,) if i.shape.is_tuple else ())
    if not prod(shape.dims):
        return [nothing(p, s, wanted.manual) for _, s in i.shape.leaves()]
    taken, result = meeting(operands[0], shape.dims, wanted, lambda d: not is_still(i.window[d]))
    inits = [p.whole(part).value for part in operands[count:]]
    starts = identities(p, i, inits)
    if starts is None:
        taken, result = (_whole_where_moving(i, s) for s in (taken, result))
        starts = inits
    arrays = [p.reshard(part, taken) for part in operands[:count]]
    scan = scan_of(i)
    if scan is not None and taken.dims[scan.dimension] and is_blockwise(i, scan):
        return _as_blocks(p, i, scan, arrays, starts, inits)
    window, summed = list(i.window), list[int]()
    for dim, w in enumerate(i.window):
        if is_still(w) or not result.dims[dim]:
            continue
        if _has_identity(i) and _is_cheaper_combined(p, arrays[0], dim, w, shape.dims[dim]):
            summed.append(dim)
            p.decide(True, f"windows over much of dimension {dim} are combined over {p.mesh.text(result.dims[dim])}")
            values = [_in_place(p, part, dim, s) for part, s in zip(arrays, starts, strict=True)]
        else:
            both = [
                extended(p, part, dim, w, shape.dims[dim], s, result.dims[dim])
                for part, s in zip(arrays, starts, strict=True)
            ]
            values, window[dim] = [v for v, _ in both], both[0][1]
        arrays = [replace(part, value=v) for part, v in zip(arrays, values, strict=True)]
    values = [part.value for part in arrays]
    to_apply = p.copied(i.to_apply)
    made = p.add("reduce-window", [*values, *(starts if summed else inits)], window=tuple(window), to_apply=to_apply)
    for dim in summed:
        made = p.all_reduce(made, result.dims[dim], to_apply)
        result = result.with_dim(dim, ())
    if summed and starts is not inits:
        made = p.add(str(facts.combiner(i.to_apply)), [made, p.full(inits[0], shape.element_type, made.shape.dims)])
    return p.leaves(made, i.shape, [result] * count)


def _as_blocks(
    p: Partitioner,
    i: Instruction,
    scan: Scan,
    arrays: list[Part],
    starts: list[Instruction],
    inits: list[Instruction],
) -> list[Part]:
    """The parts of a scan; initial values that change something are combined once."""
    blocks = Blocks(p, i, p.copied(i.to_apply), scan)
    results = blocks.scanned(arrays, starts)
    if starts is not inits:
        first = [p.full(v, x.shape.element_type, x.shape.dims) for v, x in zip(inits, results, strict=True)]
        results = blocks.combined([*first, *results])
    shapes = i.shape.tuple_shapes or (i.shape,)
    return [Part(x, s, part.sharding) for x, s, part in zip(results, shapes, arrays, strict=True)]


def _whole_where_moving(i: Instruction, s: TensorSharding) -> TensorSharding:
    dims = [axes if is_still(w) else () for w, axes in zip(i.window, s.dims, strict=True)]
    return TensorSharding.closed(dims, manual=s.manual)


def _has_identity(i: Instruction) -> bool:
    """Whether the combiner is one commutative op with a known value that changes nothing."""
    opcode = facts.combiner(i.to_apply)
    return opcode is not None and facts.identity(opcode, i.to_apply.root.shape.element_type) is not None


def _is_cheaper_combined(p: Partitioner, part: Part, dim: int, w: WindowDim, outputs: int) -> bool:
    """Whether combining all results over the devices takes fewer transfers than the halo."""
    if not part.sharding.dims[dim]:
        return False
    count = p.mesh.size(part.sharding.dims[dim])
    fetched = transfer(part.dims[dim], part.local_dims[dim], Reach.of(w, outputs, count).want)
    return 2 * outputs * (count - 1) < fetched * count


def _in_place(p: Partitioner, part: Part, dim: int, fill: Instruction) -> Instruction:
    """The whole dimension with the share where it belongs, and elsewhere what changes nothing."""
    axes, size = part.sharding.dims[dim], part.dims[dim]
    given = tiles(size, p.mesh.size(axes))
    mine = own_pieces(given, [Span(s.device, 0, size) for s in given])
    return exchange(p, part.value, dim, axes, mine, size, fill)
