"""Scans along a split dimension: shares are scanned, then combined with what all shares before them come to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from heron.analysis.fusion.prefix_scan import Scan
from heron.analysis.values.splat import splat_value
from heron.hlo import facts
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.window import WindowDim
from heron.passes.expand.model.whole_arrays import apply_to_arrays, is_elementwise
from heron.passes.sharding.partition.part import Part

if TYPE_CHECKING:
    from heron.passes.sharding.partition.context import Partitioner


def is_blockwise(i: Instruction, scan: Scan) -> bool:
    """Whether a scan can be done in blocks: one result an element, by a combiner that arrays have too."""
    return scan.source == scan.results and scan.delay <= 1 and is_elementwise(i.to_apply)


def partition_scan(
    p: Partitioner,
    i: Instruction,
    scan: Scan,
    arrays: Sequence[Part],
    starts: Sequence[Instruction],
    inits: Sequence[Instruction],
) -> list[Part]:
    """The parts of a reduce-window that is a scan along a split dimension.

    `starts` change nothing when combined; `inits` are combined once.
    """
    dim, axes = scan.dimension, arrays[0].sharding.dims[scan.dimension]
    # forward, no share with elements follows one with rubbish
    values = [p.masked(part, (dim,), s) if scan.reverse else part.value for part, s in zip(arrays, starts, strict=True)]
    local = _scanned(p, i, scan, values, starts)
    before = _gathered(p, i, scan, axes, _totals(p, i, scan, values, local, starts), starts)
    kept = tuple(d for d in range(local[0].shape.rank) if d != dim)
    spread = [p.add("broadcast", [b], x.shape, dimensions=kept) for b, x in zip(before, local, strict=True)]
    results = combined(p, i, [*local, *spread] if scan.reverse else [*spread, *local])
    if starts is not inits:
        first = [p.full(v, x.shape.element_type, x.shape.dims) for v, x in zip(inits, results, strict=True)]
        results = combined(p, i, [*first, *results])
    shapes = i.shape.tuple_shapes or (i.shape,)
    return [Part(x, s, part.sharding) for x, s, part in zip(results, shapes, arrays, strict=True)]


def combined(p: Partitioner, i: Instruction, arrays: Sequence[Instruction]) -> list[Instruction]:
    """The combiner of `i` applied to whole arrays: left ones, then right ones."""
    return apply_to_arrays(p.frame.computation, i.to_apply, arrays, like=i)


def _scanned(
    p: Partitioner, i: Instruction, scan: Scan, values: Sequence[Instruction], starts: Sequence[Instruction]
) -> list[Instruction]:
    """Each share scanned by itself."""
    size = values[0].shape.dims[scan.dimension]
    low, high = size - 1 + scan.delay, -scan.delay
    own = WindowDim(size, pad_low=high, pad_high=low) if scan.reverse else WindowDim(size, pad_low=low, pad_high=high)
    window = tuple(own if d == scan.dimension else WindowDim(1) for d in range(values[0].shape.rank))
    return elements(
        p, p.add("reduce-window", [*values, *starts], window=window, to_apply=p.copied(i.to_apply)), len(values)
    )


def _totals(
    p: Partitioner,
    i: Instruction,
    scan: Scan,
    values: Sequence[Instruction],
    local: Sequence[Instruction],
    starts: Sequence[Instruction],
) -> list[Instruction]:
    """All of each share combined; the dimension has one element."""
    dim, size = scan.dimension, values[0].shape.dims[scan.dimension]
    if not scan.delay:
        last = 0 if scan.reverse else size - 1
        return [p.slice(x, dim, last, last + 1) for x in local]
    made = elements(p, _reduced(p, i, dim, values, starts), len(values))
    one = tuple(1 if d == dim else n for d, n in enumerate(values[0].shape.dims))
    return [p.reshape(x, one) for x in made]


def _gathered(
    p: Partitioner,
    i: Instruction,
    scan: Scan,
    axes: tuple[int, ...],
    totals: Sequence[Instruction],
    starts: Sequence[Instruction],
) -> list[Instruction]:
    """The combination of the shares before this one; without the dimension."""
    dim, taken = scan.dimension, list[Instruction]()
    for total, start in zip(totals, starts, strict=True):
        every = p.all_gather(total, dim, axes)
        dims = every.shape.dims
        number = p.iota(dims, dim)
        earlier = p.compare("GT" if scan.reverse else "LT", number, p.index(axes))
        taken.append(p.add("select", [earlier, every, p.full(start, every.shape.element_type, dims)]))
    return elements(p, _reduced(p, i, dim, taken, starts), len(taken))


def _reduced(
    p: Partitioner, i: Instruction, dim: int, values: Sequence[Instruction], starts: Sequence[Instruction]
) -> Instruction:
    return p.add("reduce", [*values, *starts], dimensions=(dim,), to_apply=p.copied(i.to_apply))


def elements(p: Partitioner, made: Instruction, count: int) -> list[Instruction]:
    """The elements of a tuple; an array itself."""
    if not made.shape.is_tuple:
        return [made]
    return [p.add("get-tuple-element", [made], made.shape.at((n,)), index=n) for n in range(count)]


def identities(p: Partitioner, i: Instruction, inits: list[Instruction]) -> list[Instruction]:
    """Values that change nothing when combined: of single ops they are known, otherwise initial values must be such.

    They are `inits` themselves where these change nothing.
    """
    opcode = facts.combiner(i.to_apply)
    if opcode is None:
        return inits
    element_type = inits[0].shape.element_type
    identity = facts.identity(opcode, element_type)
    if identity is None or splat_value(inits[0]) == identity:
        return inits
    return [p.constant(identity, element_type)]
