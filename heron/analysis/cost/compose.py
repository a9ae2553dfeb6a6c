"""Cost of a kernel that recomputes an input in place of reading it, from the works of both alone.

A `Work` knows for each input how often a run reads its elements. Put into its reader, a producer's reads are scaled by
how often the reader asks for its elements; so the cost of a fusion follows from the costs of its two parts.
"""

from __future__ import annotations

from typing import TypeAlias

from heron.analysis.cost.estimate import Clock
from heron.analysis.cost.kernel import items_of, used_part
from heron.analysis.cost.reuse import HOISTED, reads
from heron.analysis.cost.traffic import bytes_written
from heron.analysis.cost.work import element_flops, first_array
from heron.hlo.facts import is_view, updated_operands
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import C128, F64
from heron.records import dataclass

#: elements read in step with the kernel's own (all readers that do so share them), elements read otherwise, the part of
#: each memory transaction that is wanted, and the seconds it takes
Reading: TypeAlias = tuple[float, float, float, float]


@dataclass(slots=True)
class Work:
    """One run of a kernel with one root of ``size`` elements, on the machine of ``clock``.

    ``items`` of them are done side by side; ``most``: bytes a second that so many can ask for; ``memory``: seconds for
    all bytes.
    """

    clock: Clock
    flops: float
    size: float
    items: float
    most: float
    memory: float
    double: bool
    reads: dict[Instruction, Reading]

    @property
    def seconds(self) -> float:
        """The time it takes if nothing else runs."""
        return self._seconds(self.flops, self.memory, self.double)

    def _seconds(self, flops: float, memory: float, double: bool) -> float:
        clock = self.clock
        return clock.launch + max(memory, clock.compute(flops, self.items, double))

    def times_computed(self, x: Instruction) -> float:
        """The number of elements of its input `x` that the kernel would compute if it were fused."""
        own, asked, _, _ = self.reads[x]
        return own + asked if x.shape.num_elements != 1 else min(own + asked, HOISTED)

    def slower_by(self, x: Instruction, producer: Work) -> float:
        """Seconds it takes more when it computes its input `x` itself, as `producer` does."""
        reads, memory = self.reads, self.memory - self.reads[x][3]
        for y, reading in self._readings(x, producer):
            memory += reading[3] - reads[y][3] if y in reads else reading[3]
        flops = self.flops + producer.flops * self.times_computed(x) / (producer.size or 1.0)
        return self._seconds(flops, memory, self.double or producer.double) - self.seconds

    def take(self, x: Instruction, producer: Work) -> None:
        """Compute the input `x` as `producer` does."""
        found = self._readings(x, producer)
        self.flops += producer.flops * self.times_computed(x) / (producer.size or 1.0)
        self.double = self.double or producer.double
        self.drop(x)
        for y, reading in found:
            self.memory += reading[3] - self.reads[y][3] if y in self.reads else reading[3]
            self.reads[y] = reading

    def drop(self, x: Instruction) -> None:
        """Read `x` no more."""
        self.memory -= self.reads.pop(x)[3]

    def _readings(self, x: Instruction, producer: Work) -> list[tuple[Instruction, Reading]]:
        """The reads of the inputs of `producer` if it is computed in place of reading `x`."""
        own, asked, used, _ = self.reads[x]
        scale = self.times_computed(x) / ((own + asked) * producer.size) if producer.size and own + asked else 0.0
        found: list[tuple[Instruction, Reading]] = []
        for y, (y_own, y_asked, y_used, _) in producer.reads.items():
            in_step = own * y_own * scale
            otherwise = (own * y_asked + asked * (y_own + y_asked)) * scale
            part = min(y_used, used) if asked else y_used
            known = self.reads.get(y)
            if known is not None:
                in_step, otherwise, part = max(known[0], in_step), known[1] + otherwise, min(known[2], part)
            found.append((y, self.reading(y, in_step, otherwise, part)))
        return found

    def reading(self, x: Instruction, own: float, asked: float, used: float) -> Reading:
        """A reading with its time."""
        size = x.shape.byte_size
        total = (own + asked) * size / (x.shape.num_elements or 1)
        return own, asked, used, self.clock.read(min(size, total), total, used, self.most)


def work_of(i: Instruction, clock: Clock, in_place: bool = True) -> Work:
    """The work of an op that runs as a kernel of its own; without `in_place` updates write the whole array."""
    shape = first_array(i)
    size = float(shape.num_elements)
    items, written = (items_of(i), float(bytes_written(i))) if in_place else (size, float(i.shape.byte_size))
    most = clock.most(items)
    double = any(s.element_type in (F64, C128) for o in (i, *i.operands) for s in (o.shape.tuple_shapes or (o.shape,)))
    work = Work(clock, element_flops(i) * size, size, items, most, clock.write(written, most), double, {})
    overwritten = len(updated_operands(i)) if in_place else 0
    for k, x in enumerate(i.operands):
        if k < overwritten or not x.shape.is_array:
            continue
        own, asked = _asked(i, k, size)
        before = work.reads.get(x)
        if before is not None:
            work.drop(x)
            own, asked = max(before[0], own), before[1] + asked
        reading = work.reading(x, own, asked, used_part(i, x))
        work.reads[x] = reading
        work.memory += reading[3]
    return work


def _asked(i: Instruction, k: int, size: float) -> tuple[float, float]:
    """The number of elements of operand `k` read in step with the result, and otherwise."""
    opcode, count = i.opcode, float(i.operands[k].shape.num_elements)
    if i.op.is_elementwise:
        return (size, 0.0) if count == size else (0.0, size)
    if is_view(i) or opcode == "reduce" or opcode == "dynamic-update-slice":
        return (count, 0.0) if count > 1 or size == 1 else (0.0, 1.0)
    # of a broadcast each thread asks for its elements
    return 0.0, size if opcode == "broadcast" else size * reads(i, k)
