"""The cost of computing values anew in the kernels that read them, in bytes of memory traffic."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import TypeAlias

from heron.analysis.cost import element_flops
from heron.analysis.cost.code_size import CodeLimit, op_code
from heron.analysis.cost.reuse import reads
from heron.analysis.fusion.prefix_scan import is_long_scan
from heron.analysis.fusion.roles import is_producer
from heron.hlo.facts import is_view, reads_part, reindexes
from heron.hlo.ir.instruction import Instruction
from heron.passes.fusion.model.group import LANES, Group
from heron.passes.fusion.model.traffic_model import Machine

Measure: TypeAlias = Callable[[Instruction], float]
Counts: TypeAlias = Sequence[tuple[Group, float]]
Readers: TypeAlias = Mapping[Group, list[Instruction]]

#: LLVM instructions of a value that a kernel computes in several places and that LLVM still copies there; a longer one
#: is a function, which loops around its calls cannot compute in vectors
_MOST_INLINE = 60

#: LLVM instructions of the copies of a function for all elements of a window that still stand side by side
_MOST_WRITTEN_OUT = 300

#: flops of an element that may be too much for several kernels
_MANY = 100

#: ops of which an element is made that are looked at for their work
_MOST_SEEN = 64

#: elements of arrays and kernels that stay in the first cache, and of those whose time is mostly that of a call; times
#: that work weighs more in them against bytes
_CACHED, _TINY = 4096, 256
_OF_CACHED, _OF_TINY = 8.0, 32.0

#: work in the time of which a computed element is read
_READ = 2.0

#: operations on positions that take no longer than a load
_SIMPLE = 6


class Recomputation:
    """Of a value, all that it is made of and the kernels that would compute it: work, code and their cost.

    ``groups``: kernels by their roots; ``inside``: those that compute a value. Both grow while a plan is made.
    Questions have ``counts``, the elements of the value that each kernel would compute, and ``readers``, the members
    of each that read it.
    """

    def __init__(
        self,
        machine: Machine,
        limit: CodeLimit,
        groups: Mapping[Instruction, Group],
        inside: Mapping[Instruction, list[Group]],
    ) -> None:
        self._machine, self._limit, self._groups, self._inside = machine, limit, groups, inside
        self._sums: dict[tuple[Instruction, Measure], float] = {}
        self._codes: dict[Instruction, float] = {}
        self._near: dict[Instruction, list[Instruction]] = {}
        self._flops: dict[Instruction, float] = {}
        self._nothing: dict[Instruction, bool] = {}

    def shared(self, i: Instruction, counts: Counts) -> float:
        """The cost, in bytes, of computing `i` and all that its elements alone are made of in each kernel but one.

        Op by op it may seem to cost less than an array: a random number does, which has some 200 of them. Vectors hold
        half as many numbers of 64 bits.
        """
        if len(counts) < 2 or not self._machine.vectors or self.is_nothing(i):
            return 0.0
        if self._flops_of(i) + self._below(i, self._flops_of) < _MANY:
            return 0.0
        work = sum(map(self._flops_of, self._only_for(i))) * max(1.0, i.shape.element_type.bits / 32)
        return (len(counts) - 1) * i.shape.num_elements * work / self._machine.flops_per_byte

    def _only_for(self, i: Instruction) -> set[Instruction]:
        """`i` and the ops that an element of it is computed from at its own index, of which nothing else reads any."""
        found, waiting, stack = {i}, dict[Instruction, int](), [i]
        while stack:
            x = stack.pop()
            for o in dict.fromkeys(self._near[x] if x in self._near else self._at_its_index(x)):
                left = waiting.get(o, len(o.users)) - 1
                waiting[o] = left
                if not left:
                    found.add(o)
                    stack.append(o)
        return found

    def slowed(self, i: Instruction, counts: Counts, readers: Readers) -> float:
        """The cost, in bytes, of computing `i` and all that its elements are made of outside of vectors.

        Op by op they may seem to cost less than an array, of which a whole function needs just one.
        """
        if not self._machine.vectors:
            return 0.0
        slower = sum([(self._slowdown(i, group, readers[group]) - 1.0) * n for group, n in counts])
        if not slower:
            return 0.0
        return slower * (self._flops_of(i) + self._below(i, self._flops_of)) / self._machine.flops_per_byte

    def _slowdown(self, i: Instruction, group: Group, readers: list[Instruction]) -> float:
        """Times that an element of `i` takes longer in a kernel than in vector loops. Two loops are none: over the
        elements of a window, if that is too much code to be written out, and one with a branch for each element."""
        window = max([_window_of(r) for r in readers], default=1)
        is_long = window > 1 and (self.code_of(i) + self.code_below(i)) * window > _MOST_WRITTEN_OUT
        return max(group.slower, 2 * LANES) if is_long or group.branches else group.slower

    def repeated(self, i: Instruction, counts: Counts, readers: Readers) -> float:
        """The cost, in bytes, of computing elements of `i` more than once, with all that they are computed from."""
        again = sum(n for _, n in counts) - i.shape.num_elements * len(counts)
        called = sum(n for group, n in counts if group.copies_of(i, readers[group]) > 1)
        if again <= 0 and not called or self.is_nothing(i):
            return 0.0
        work = self._flops_of(i) + self._below(i, self._flops_of)
        cost = max(again, 0.0) * work / self._machine.flops_per_byte
        if called and self.code_below(i) > _MOST_INLINE:
            cost += called * (LANES - 1) * work / self._machine.flops_per_byte
        return cost

    def in_cache(self, i: Instruction, counts: Counts, readers: Readers) -> float:
        """The cost, in bytes, of computing elements of a small array again in small kernels, with all that they are
        made of.

        Loops over few elements are written out, and LLVM computes once what several places of a kernel ask for. It
        does not where a gather chooses the element, nor for several kernels. Larger kernels may still be joined to one:
        of those, only the elements count that one of them computes several times.
        """
        size = i.shape.num_elements
        if not self._machine.vectors or not 1 < size <= _CACHED or reindexes(i) or reads_part(i) or self.is_nothing(i):
            return 0.0
        small = [(g, n) for g, n in counts if g.root.shape.is_array and g.root.shape.num_elements <= _CACHED]
        is_tiny = max([size, *[g.root.shape.num_elements for g, _ in small]]) <= _TINY
        if is_tiny:
            is_few = size <= self._limit.few
            again = sum([min(n, size) if is_few and not g.chooses(i, readers[g]) else n for g, n in small]) - size
        else:
            again = sum([max(0.0, n - size) for _, n in small]) if i.op.is_elementwise else 0.0
        if again <= 0:
            return 0.0
        work = self._work_for(i, {g for g, _ in small})
        work = work * _OF_TINY if is_tiny else max(0.0, work - _READ) * _OF_CACHED
        return again * work / self._machine.flops_per_byte

    def _work_for(self, i: Instruction, groups: set[Group]) -> float:
        """The work for an element of `i`, with all that it is made of and that these kernels do not compute anyhow; of
        many ops, the nearest."""
        total, seen, stack = 0.0, {i}, [(i, 1.0)]
        while stack and len(seen) < _MOST_SEEN:
            x, part = stack.pop()
            total += part * self._flops_of(x)
            for n, o in enumerate(x.operands):
                if o not in seen and is_producer(o) and not self._is_read_in(o, groups):
                    seen.add(o)
                    stack.append((o, part * reads(x, n)))
        return total

    def _is_read_in(self, i: Instruction, groups: set[Group]) -> bool:
        """Whether one of these kernels reads `i`, as far as is known; that of many readers one does is likely."""
        if len(i.users) > _MOST_SEEN:
            return True
        return any(self._groups.get(u) in groups or not groups.isdisjoint(self._inside.get(u, ())) for u in i.users)

    def code_below(self, i: Instruction) -> float:
        """LLVM instructions of what is computed for an element of `i` at its own index, `i` not included."""
        return self._below(i, self.code_of)

    def code_of(self, i: Instruction) -> float:
        code = self._codes.get(i)
        if code is None:
            code = self._codes[i] = op_code(i, self._limit)
        return code

    def _flops_of(self, i: Instruction) -> float:
        flops = self._flops.get(i)
        if flops is None:
            flops = self._flops[i] = element_flops(i)
        return flops

    def is_nothing(self, i: Instruction) -> bool:
        found = self._nothing.get(i)
        if found is None:
            found = self._nothing[i] = made_of_nothing(i)
        return found

    def is_long(self, i: Instruction) -> bool:
        """Whether an element of `i`, or of what it is a view of, takes more code than LLVM copies."""
        while is_view(i):
            i = i.operands[0]
        return self.code_of(i) + self.code_below(i) > _MOST_INLINE

    def _below(self, i: Instruction, measure: Measure) -> float:
        """The sum of ``measure`` over the ops that compute an element of `i` at its own index, `i` not included."""
        found = self._sums.get((i, measure))
        if found is None:
            found = self._sums[i, measure] = self._sum_below(i, measure)
        return found

    def _sum_below(self, i: Instruction, measure: Measure) -> float:
        total, seen, stack = 0.0, {i}, [i]
        most, known = self._limit.most, self._near
        while stack and total < most:
            x = stack.pop()
            for o in known[x] if x in known else self._at_its_index(x):
                if o not in seen:
                    seen.add(o)
                    stack.append(o)
                    total += measure(o)
        return total

    def _at_its_index(self, i: Instruction) -> list[Instruction]:
        """The operands that an element of `i` is computed from at its own index, if that is done where it is read."""
        dims = i.shape.dims
        near = [o for o in i.operands if o.op.is_elementwise and o.shape.dims == dims and is_producer(o)]
        self._near[i] = near
        return near


def made_of_nothing(i: Instruction) -> bool:
    """Whether `i` is a few simple operations on positions and constants, a mask for example: quicker than a load."""
    left, work = _SIMPLE, [i]
    while work:
        o = work.pop()
        if o.opcode == "constant" and o.shape.is_scalar or o.opcode == "iota":
            continue
        if o.opcode != "broadcast" and not (o.op.is_elementwise and element_flops(o) <= 1):
            return False
        left -= 1
        if left < 0:
            return False
        work.extend(o.operands)
    return True


def _window_of(i: Instruction) -> int:
    """The elements of a window that a kernel of `i` reads for each result, unless it is a scan."""
    if i.opcode != "reduce-window" or is_long_scan(i):
        return 1
    return prod([w.size for w in i.window or ()])
