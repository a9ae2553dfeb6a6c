"""Scans along a split dimension: shares are scanned, then combined with what all shares before them come to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from heron.analysis.fusion.prefix_scan import Scan
from heron.hlo import facts
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.window import WindowDim
from heron.hlo.sharding.atoms import Axes, TensorSharding
from heron.passes.expand.model.whole_arrays import apply_to_arrays, is_elementwise
from heron.passes.expand.scan_expander import one_op
from heron.passes.sharding.partition.part import Part
from heron.passes.sharding.partition.registry import partitions
from heron.passes.sharding.partition.windowed import toward
from heron.records import dataclass

if TYPE_CHECKING:
    from heron.passes.sharding.partition.context import Partitioner


@partitions("scan")
def partition_scan(p: Partitioner, i: Instruction, operands: list[Part]) -> list[Part] | None:
    """A scan by one op, in blocks; any other by the default."""
    opcode = one_op(i)
    (dim,) = i.dimensions
    if opcode is None or not operands[0].dims[dim]:
        return None
    x = p.reshard(operands[0], toward(operands[0].sharding, p.wanted(i, (0,))))
    axes, manual = x.sharding.dims, x.sharding.manual
    carry = TensorSharding.closed((*axes[:dim], *axes[dim + 1 :]), manual=manual)
    start, t = p.reshard(operands[1], carry), x.shape.element_type
    blocks = Blocks(p, i, p.reducer(opcode, t), Scan(dim, i.is_reverse, 0, x.dims[dim], x.dims[dim]))
    neutral = [p.constant(facts.identity(opcode, t), t)]
    (so_far,) = blocks.scanned([x], neutral)
    others = tuple(d for d in range(x.shape.rank) if d != dim)
    first = p.add("broadcast", [start.value], so_far.shape, dimensions=others)
    (output,) = blocks.combined([first, so_far])
    every = p.all_gather(blocks.totals([x], neutral)[0], dim, axes[dim])
    (total,) = blocks.reduced([every], neutral)
    (last,) = blocks.combined([start.value, total])
    return [Part(output, x.shape, x.sharding), Part(last, start.shape, carry)]


def is_blockwise(i: Instruction, scan: Scan) -> bool:
    """Whether a reduce-window that is a scan can be done in blocks.

    It has one result an element, and a combiner that arrays have too.
    """
    return scan.source == scan.results and scan.delay <= 1 and is_elementwise(i.to_apply)


@dataclass(frozen=True)
class Blocks:
    """A scan along a split dimension, done in the blocks that devices have.

    Attributes:
        p: the partitioner.
        like: the op that is partitioned.
        combiner: the scalar computation that combines, in the new program.
        scan: the form of the scan.
    """

    p: Partitioner
    like: Instruction
    combiner: Computation
    scan: Scan

    def scanned(self, arrays: Sequence[Part], neutral: Sequence[Instruction]) -> list[Instruction]:
        """The scanned shares. Scalars in `neutral` change nothing when combined."""
        axes = arrays[0].sharding.dims[self.scan.dimension]
        values = self._clean(arrays, neutral)
        local = self._alone(values, neutral)
        if not axes:
            return local
        self.p.decide(True, f"a scan in blocks along {self.p.mesh.text(axes)}: totals of blocks are gathered")
        before = self._before(self._last(values, local, neutral), axes, neutral)
        kept = tuple(d for d in range(local[0].shape.rank) if d != self.scan.dimension)
        spread = [self.p.add("broadcast", [b], x.shape, dimensions=kept) for b, x in zip(before, local, strict=True)]
        return self.combined([*local, *spread] if self.scan.reverse else [*spread, *local])

    def totals(self, arrays: Sequence[Part], neutral: Sequence[Instruction]) -> list[Instruction]:
        """All elements of each share combined; the dimension has one element."""
        whole = replace(self, scan=replace(self.scan, reverse=True))  # rubbish counts for nothing
        dim = self.scan.dimension
        made = self.reduced(whole._clean(arrays, neutral), neutral)
        return [self._with_one(x, dim) for x in made]

    def combined(self, arrays: Sequence[Instruction]) -> list[Instruction]:
        """Whole arrays combined element by element: left ones, then right ones."""
        return apply_to_arrays(self.p.frame.computation, self.combiner, arrays, like=self.like)

    def reduced(self, values: Sequence[Instruction], neutral: Sequence[Instruction]) -> list[Instruction]:
        """The arrays reduced along the dimension, which is gone."""
        made = self.p.add("reduce", [*values, *neutral], dimensions=(self.scan.dimension,), to_apply=self.combiner)
        return self._elements(made, len(values))

    def _clean(self, arrays: Sequence[Part], neutral: Sequence[Instruction]) -> list[Instruction]:
        """The shares; forward, no share with elements follows one with rubbish."""
        if not self.scan.reverse:
            return [part.value for part in arrays]
        return [self.p.masked(part, (self.scan.dimension,), n) for part, n in zip(arrays, neutral, strict=True)]

    def _alone(self, values: Sequence[Instruction], neutral: Sequence[Instruction]) -> list[Instruction]:
        """Each share scanned by itself."""
        dim, rank = self.scan.dimension, values[0].shape.rank
        size = values[0].shape.dims[dim]
        pads = size - 1 + self.scan.delay, -self.scan.delay
        low, high = reversed(pads) if self.scan.reverse else pads
        window = tuple(WindowDim(size, pad_low=low, pad_high=high) if d == dim else WindowDim(1) for d in range(rank))
        made = self.p.add("reduce-window", [*values, *neutral], window=window, to_apply=self.combiner)
        return self._elements(made, len(values))

    def _last(
        self, values: Sequence[Instruction], local: Sequence[Instruction], neutral: Sequence[Instruction]
    ) -> list[Instruction]:
        """All of each share combined, which is the last result of an inclusive scan."""
        dim, size = self.scan.dimension, values[0].shape.dims[self.scan.dimension]
        if self.scan.delay:
            return [self._with_one(x, dim) for x in self.reduced(values, neutral)]
        last = 0 if self.scan.reverse else size - 1
        return [self.p.slice(x, dim, last, last + 1) for x in local]

    def _before(self, totals: Sequence[Instruction], axes: Axes, neutral: Sequence[Instruction]) -> list[Instruction]:
        """The combination of the shares before this one; without the dimension."""
        p, dim, taken = self.p, self.scan.dimension, list[Instruction]()
        for total, n in zip(totals, neutral, strict=True):
            every = p.all_gather(total, dim, axes)
            dims = every.shape.dims
            earlier = p.compare("GT" if self.scan.reverse else "LT", p.iota(dims, dim), p.index(axes))
            taken.append(p.add("select", [earlier, every, p.full(n, every.shape.element_type, dims)]))
        return self.reduced(taken, neutral)

    def _with_one(self, x: Instruction, dim: int) -> Instruction:
        dims = x.shape.dims
        return self.p.reshape(x, (*dims[:dim], 1, *dims[dim:]))

    def _elements(self, made: Instruction, count: int) -> list[Instruction]:
        """The elements of a tuple; an array itself."""
        if not made.shape.is_tuple:
            return [made]
        return [self.p.add("get-tuple-element", [made], made.shape.at((n,)), index=n) for n in range(count)]
