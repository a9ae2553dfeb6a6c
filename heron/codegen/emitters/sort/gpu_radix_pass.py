"""Sorting by keys on the GPU: stable, by the bytes of the keys, the least significant first.

`heron.analysis.fusion.radix_plan` says how many passes there are. A pass moves every element to where it belongs by one
byte of its key. A block takes a tile of a row. Each warp counts the values of its elements one after another, by which
an element learns how many equal ones its warp had before; sums over the warps, and over the values, give its place in
the tile, where it is put in shared memory. Thread `d` learns how many elements with value `d` the tiles before have: it
reads what they made known, the nearest tile first, until one says it knows of all before itself. Then the tile's
elements go from shared memory to the result, those of one value side by side.

Blocks take tiles in the order in which they start (a ticket, which also says which pass it is: passes are the same
kernel, but for a first one that makes positions instead of reading them), so that a block waits only for blocks that
run. A tile publishes one word for each value, a flag and a count, read and written at once: no order of other
memory depends on it. Every element's place follows from the keys alone, so that results never depend on timing.

Sources: Merrill and Garland, "Single-pass parallel prefix scan with decoupled look-back" (2016); Adinets and Merrill,
"Onesweep: a faster least significant digit radix sort for GPUs" (2022).
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, math, scf
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Region, SSAValue

from heron.analysis.fusion.radix_plan import FIRST_BIN, RADIX, THREADS, WARPS
from heron.analysis.indexing.expr import Const, Expr
from heron.analysis.indexing.hlo_maps import Index
from heron.analysis.indexing.map import Constraint
from heron.codegen.elemental import Value
from heron.codegen.emitters.base import Frame
from heron.codegen.emitters.control_words import add
from heron.codegen.emitters.loops import at_most
from heron.codegen.emitters.sort.gpu_radix import RadixSort, lowest_byte, value_index
from heron.codegen.ir.dialects.xla_gpu import (
    AllocateSharedOp,
    AtomicLoadOp,
    AtomicStoreOp,
    MatchAnyOp,
    ShuffleFromOp,
    ShuffleUpOp,
    SyncThreadsOp,
)
from heron.codegen.ir.types import I32, INDEX, scalar_type
from heron.codegen.kernel import Kernel, Launch
from heron.targets import WARP, Target


def emit_pass(sort: RadixSort, name: str, target: Target) -> Kernel:
    """Arguments: where elements are, where they go, and the control words, which say by which byte."""
    frame = sort.frame(name, target, sort.given, (*sort.shapes, sort.control))
    _Pass(sort, frame).emit()
    plan = sort.plan
    shared = 4 * (RADIX * (WARPS + 1) + 2 * WARPS + 1) + plan.tile * sum(plan.sizes)
    notes = {"form": f"a pass of {plan.digits} of a radix sort", "elements": str(plan.items)}
    return frame.finish(Launch((plan.rows * plan.tiles, 1, 1), (THREADS, 1, 1), shared), "sort", notes)


class _Pass:
    """A pass while it is made."""

    def __init__(self, sort: RadixSort, frame: Frame) -> None:
        self.sort, self.frame, self.plan = sort, frame, sort.plan
        self.e, self.b = frame.e, frame.e.b
        self.thread = self.e.variable(frame.thread_id(), 0, THREADS - 1)
        self.warp, self.lane = self.e.simplify((self.thread // WARP, self.thread % WARP))
        *self.targets, self.control = frame.outputs

    def emit(self) -> None:
        e, b, plan = self.e, self.b, self.plan
        counts = self._shared(I32, WARPS, RADIX)
        for w in range(WARPS):
            counts = e.insert(self._word(0), counts, (Const(w), self.thread))
        counts, ticket = self._begin(counts)
        tiles = plan.rows * plan.tiles
        #: which pass it is, and its flags, the upper bits of a word: smaller ones are of passes before
        self.number, tile = e.simplify((ticket // tiles, ticket % tiles))
        self.digit = b.op(arith.IndexCastOp, e.index_value(self.number), type=I32)
        self.partial = b.op(arith.AddiOp, b.op(arith.ShLIOp, self.digit, self._word(1)), self._word(1))
        self.complete = b.op(arith.AddiOp, self.partial, self._word(1))
        self.row, self.part, self.tile = *e.simplify((tile // plan.tiles, tile % plan.tiles)), tile
        first = self.part * plan.tile + self.warp * (WARP * plan.items) + self.lane
        places = [first + k * WARP for k in range(plan.items)]
        elements = [self._load(place) for place in places]
        digits = [self._digit(element, place) for element, place in zip(elements, places, strict=True)]
        ranks, counts = self._rank(digits, counts)
        counts, starts = self._starts(counts)
        tiles = [self._shared(scalar_type(s.element_type), plan.tile) for s in self.sort.shapes]
        for element, digit, rank in zip(elements, digits, ranks, strict=True):
            before = e.read(counts, (self.warp, value_index(e, digit)))
            place = self._index(self.b.op(arith.AddiOp, before, rank), plan.tile)
            tiles = [e.insert(v, t, (place,)) for v, t in zip(element, tiles, strict=True)]
        starts, *tiles = self.b.add(SyncThreadsOp([starts, *tiles])).results
        for k in range(plan.items):
            self._store(self.thread + k * THREADS, starts, tiles)
        self.frame.outputs[:] = [*self.targets, self.control]

    def _begin(self, counts: SSAValue) -> tuple[SSAValue, Expr]:
        """The counts, which are zero, and the number of this block: how many began before, in all passes so far."""
        e, ticket = self.e, self._shared(I32, 1)

        def take(_: Index, carried: Sequence[SSAValue]) -> list[SSAValue]:
            old, control = add(e, self._word(1), carried[0], (Const(0),))
            return [control, e.insert(old, carried[1], (Const(0),))]

        self.control, ticket = e.loop([], [self.control, ticket], take, lambda _: [(self.thread, 0, 0)])
        counts, ticket = self.b.add(SyncThreadsOp([counts, ticket])).results
        return counts, self._index(e.read(ticket, (Const(0),)), self.plan.digits * self.plan.rows * self.plan.tiles)

    def _load(self, place: Expr) -> list[Value]:
        """The element at a place of the row; past the end, the last one again."""
        index = self.sort.index(self.frame, self.row, at_most(self.e, place, self.plan.length - 1))
        return self.sort.element(self.frame, index)

    def _digit(self, element: Sequence[Value], place: Expr) -> SSAValue:
        """The value an element is sorted by; past the end of the row the largest one, so that nothing comes after."""
        digit = self._byte(element)
        exists = self.e.holds([(place, 0, self.plan.length - 1)])
        return digit if exists is None else self.b.select(exists, digit, self._word(RADIX - 1))

    def _byte(self, element: Sequence[Value]) -> SSAValue:
        """The byte of an element's keys that this pass is about."""
        b, words = self.b, self.sort.words(self.e, element)
        word, number = words[0], self.digit
        for other, first in zip(words[1:], self.sort.first_digits[1:], strict=True):
            is_other = b.cmpi("uge", self.digit, self._word(first))
            word = b.select(is_other, other, word)
            number = b.select(is_other, b.op(arith.SubiOp, self.digit, self._word(first)), number)
        return lowest_byte(self.e, word, b.op(arith.ShLIOp, number, self._word(3)))

    def _rank(self, digits: Sequence[SSAValue], counts: SSAValue) -> tuple[list[SSAValue], SSAValue]:
        """For each element how many equal ones the warp has before it, and how often the warp has each value."""
        e, b = self.e, self.b
        lane = b.op(arith.IndexCastOp, e.index_value(self.lane), type=I32)
        lower = b.op(arith.SubiOp, b.op(arith.ShLIOp, self._word(1), lane), self._word(1))
        ranks: list[SSAValue] = []
        for digit in digits:
            equal = b.add(MatchAnyOp(digit)).results[0]
            before = b.op(math.CtPopOp, b.op(arith.AndIOp, equal, lower))
            at = (self.warp, value_index(e, digit))

            def count(equal: SSAValue = equal, at: Index = at, counts: SSAValue = counts) -> list[SSAValue]:
                return list(add(e, b.op(math.CtPopOp, equal), counts, at))

            is_first = b.cmpi("eq", before, self._word(0))
            old, counts = e.guarded(is_first, [self._word(0), counts], count)
            old = b.add(ShuffleFromOp(old, b.op(math.CountTrailingZerosOp, equal))).results[0]
            ranks.append(b.op(arith.AddiOp, old, before))
        return ranks, counts

    def _starts(self, counts: SSAValue) -> tuple[SSAValue, SSAValue]:
        """The start, in the tile, of each warp's elements of each value, and the offsets to places in the row.

        Thread `d` does this for value `d`.
        """
        e, b, plan, value = self.e, self.b, self.plan, self.thread
        (counts,) = b.add(SyncThreadsOp([counts])).results
        befores, total = [], self._word(0)
        for w in range(WARPS):
            befores.append(total)
            total = b.op(arith.AddiOp, total, e.read(counts, (Const(w), value)))
        leads = e.holds([(self.part, 0, 0)])
        flag = self._flag(self.complete)
        if leads is not None:
            flag = b.select(leads, flag, self._flag(self.partial))
        self._tell(flag, total)
        at = Const(FIRST_BIN) + (self.row * plan.digits + self.number) * RADIX + value
        in_tile, in_row = self._sums_before([total, e.read(self.control, (at,))])
        before = self._word(0)
        if leads is not None:
            state = [before, self.control]
            before, self.control = e.guarded(b.negate(leads), state, lambda: self._look_back(total))
        for w, inside in enumerate(befores):
            counts = e.insert(b.op(arith.AddiOp, in_tile, inside), counts, (Const(w), value))
        shift = b.op(arith.SubiOp, b.op(arith.AddiOp, in_row, before), in_tile)
        starts = e.insert(shift, self._shared(I32, RADIX), (value,))
        counts, starts = b.add(SyncThreadsOp([counts, starts])).results
        return counts, starts

    def _look_back(self, total: SSAValue) -> list[SSAValue]:
        """The number of elements with this thread's value in the earlier tiles, once all of them have published it."""
        e, b, plan = self.e, self.b, self.plan
        bits = self._word(plan.count_bits)
        below = self._word((1 << plan.count_bits) - 1)
        types = [I32, I32]
        test, step = Block(arg_types=types), Block(arg_types=types)
        with e.region(test):
            at, found = test.args
            tile = self._index(at, plan.rows * plan.tiles)
            word = b.add(AtomicLoadOp("monotonic", self.control, e.index_values(self._state(tile)))).results[0]
            flag = b.op(arith.ShRUIOp, word, bits)
            known = b.cmpi("uge", flag, self.partial)
            more = b.op(arith.AddiOp, found, b.op(arith.AndIOp, word, below))
            back = b.op(arith.SubiOp, at, self._word(1))
            all_known = b.cmpi("eq", flag, self.complete)
            next_ = b.select(b.op(arith.XOrIOp, known, all_known), back, at)
            b.terminate(scf.ConditionOp, [b.negate(all_known), next_, b.select(known, more, found)])
        with e.region(step):
            b.terminate(scf.YieldOp, step.args)
        last = b.op(arith.SubiOp, b.op(arith.IndexCastOp, e.index_value(self.tile), type=I32), self._word(1))
        loop = scf.WhileOp.create(
            operands=[last, self._word(0)], result_types=types, regions=[Region(test), Region(step)]
        )
        before = b.add(loop).results[1]
        self._tell(self._flag(self.complete), b.op(arith.AddiOp, before, total))
        return [before, self.control]

    def _sums_before(self, values: Sequence[SSAValue]) -> list[SSAValue]:
        """For each value the sum of what the threads before this one have."""
        e, b = self.e, self.b
        sums = list(values)
        distance = 1
        while distance < WARP:
            below = b.add(ShuffleUpOp(sums, distance)).results
            has_one = e.holds([(self.lane, distance, WARP - 1)])
            assert has_one is not None
            below = [b.select(has_one, o, self._word(0)) for o in below]
            sums = [b.op(arith.AddiOp, s, o) for s, o in zip(sums, below, strict=True)]
            distance *= 2
        saved = [self._shared(I32, WARPS) for _ in sums]

        def save(_: Index, tensors: Sequence[SSAValue]) -> list[SSAValue]:
            return [e.insert(v, t, (self.warp,)) for v, t in zip(sums, tensors, strict=True)]

        saved = e.loop([], saved, save, lambda _: [(self.lane, WARP - 1, WARP - 1)])
        saved = list(b.add(SyncThreadsOp(saved)).results)
        found: list[SSAValue] = []
        for value, sum_, tensor in zip(values, sums, saved, strict=True):
            before = b.op(arith.SubiOp, sum_, value)
            for w in range(WARPS - 1):
                has_one = e.holds([(self.warp, w + 1, WARPS - 1)])
                assert has_one is not None
                other = b.select(has_one, e.read(tensor, (Const(w),)), self._word(0))
                before = b.op(arith.AddiOp, before, other)
            found.append(before)
        return found

    def _store(self, place: Expr, starts: SSAValue, tiles: Sequence[SSAValue]) -> None:
        """The element at a place of the tile goes to its place in the row, if there is one."""
        e, plan = self.e, self.plan
        element = [e.extract(t, e.simplify((place,))) for t in tiles]
        digit = self._byte(element)
        here = self.b.op(arith.IndexCastOp, e.index_value(e.simplify((place,))[0]), type=I32)
        there = self.b.op(arith.AddiOp, here, e.read(starts, (value_index(e, digit),)))
        index = self.sort.index(self.frame, self.row, self._index(there, plan.length))
        exists: list[Constraint] = [(self.part * plan.tile + place, 0, plan.length - 1)]

        def store(_: Index, tensors: Sequence[SSAValue]) -> list[SSAValue]:
            return [e.insert(v, t, index) for v, t in zip(element, tensors, strict=True)]

        self.targets = e.loop([], self.targets, store, lambda _: exists)

    # -- pieces --------------------------------------------------------------------------------------------------------
    def _tell(self, flag: SSAValue, count: SSAValue) -> None:
        """Make known what this tile knows of this thread's value."""
        word = self.b.op(arith.OrIOp, flag, count)
        at = self.e.index_values(self._state(self.tile))
        self.control = self.b.add(AtomicStoreOp("monotonic", word, self.control, at)).results[0]

    def _state(self, tile: Expr) -> Index:
        return self.e.simplify((Const(self.plan.first_state) + tile * RADIX + self.thread,))

    def _flag(self, flag: SSAValue) -> SSAValue:
        return self.b.op(arith.ShLIOp, flag, self._word(self.plan.count_bits))

    def _word(self, value: int) -> SSAValue:
        return self.b.integer(value, I32)

    def _index(self, word: SSAValue, size: int) -> Expr:
        return self.e.variable(self.b.op(arith.IndexCastOp, word, type=INDEX), 0, size - 1)

    def _shared(self, element: object, *sizes: int) -> SSAValue:
        return self.b.op(AllocateSharedOp, type=TensorType(element, list(sizes)))  # type: ignore[type-var]
