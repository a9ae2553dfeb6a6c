"""Long scans on the GPU in one pass over memory: each element is read once, each result written once.

A block takes a tile of a row, scans it, and makes known what the tile comes to. The total before the tile is put
together by its first warp from the totals that others made known: a group is 32 tiles; a group's tiles before this one
are scanned across the lanes of the warp, which gives the group's total in its last tile; and the total before the group
is that of the nearest group before it that knows of all up to its end, joined by the totals of the groups in between,
one after the other.

Floats come out the same whatever block is faster: the total of a group is always the same tree over its tiles, and what
comes before a group is always the totals of the groups before it joined from the left, whether another block did that
already or this one does it again.

Blocks take tiles in the order in which they start (a ticket), so that a block waits only for blocks that run. A partial
result is written first, then its flag by a store with release; who reads the flag by a load with acquire sees both.

Source: Merrill and Garland, "Single-pass parallel prefix scan with decoupled look-back" (2016); the order of joining is
heron's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith, math, scf
from xdsl.dialects.builtin import IntegerType, TensorType
from xdsl.ir import Attribute, Block, Region, SSAValue

from heron.analysis.fusion.fusion import Fusion, Output, outputs_of
from heron.analysis.fusion.partition import partition
from heron.analysis.fusion.prefix_scan import scan_of
from heron.analysis.fusion.scan_plan import FIRST_FLAG, GROUP, THREADS, ScanPlan
from heron.analysis.indexing.expr import Const, Expr
from heron.analysis.indexing.hlo_maps import Index
from heron.analysis.indexing.map import Constraint
from heron.codegen.emitters.base import Frame
from heron.codegen.emitters.control_words import add, control_shape
from heron.codegen.emitters.loops import at_most, for_
from heron.codegen.emitters.scan.form import ScanForm
from heron.codegen.ir.dialects.xla_gpu import (
    AllocateSharedOp,
    AtomicLoadOp,
    AtomicStoreOp,
    BallotOp,
    ShuffleFromOp,
    ShuffleUpOp,
    SyncThreadsOp,
)
from heron.codegen.ir.types import I32, I64, INDEX
from heron.codegen.kernel import Kernel, Launch
from heron.hlo.ir.computation import Computation
from heron.targets import WARP, Target

WARPS = THREADS // WARP
#: the state of a group: its total is known, or the total up to its end
TOTAL, ALL = 1, 2


def emit(body: Computation, plan: ScanPlan, name: str, target: Target) -> Kernel:
    """The kernel of the scan `body` ends in. Arguments: its parameters, its results, flags and partial results; the
    flags are 0 before.
    """
    i = body.root
    words = [control_shape(plan.flags), control_shape(plan.results * plan.words)]
    outputs = (*outputs_of(i), *(Output(i, None, s) for s in words))
    fusion = Fusion(body, tuple(body.parameters), outputs)
    frame = Frame.of(fusion, partition(list(dict.fromkeys(i.operands)), provided=[i]), name, target)
    scan = scan_of(i)
    assert scan is not None
    _Single(frame, ScanForm(frame, i, scan), plan).emit()
    notes = {"form": "one pass", "elements": str(plan.elements)}
    shared = 4 * (1 + plan.words * (WARPS + 1))
    return frame.finish(Launch((plan.rows * plan.tiles, 1, 1), (THREADS, 1, 1), shared), "scan", notes)


class _Single:
    """A kernel while it is made."""

    def __init__(self, frame: Frame, form: ScanForm, plan: ScanPlan) -> None:
        self.frame, self.form, self.plan, self.e, self.b = frame, form, plan, frame.e, frame.e.b
        self.thread = self.e.variable(frame.thread_id(), 0, THREADS - 1)
        self.warp, self.lane = self.e.simplify((self.thread // WARP, self.thread % WARP))
        *self.outputs, self.flags, self.known = frame.outputs

    def emit(self) -> None:
        form, plan, e = self.form, self.plan, self.e
        start = form.start()
        self.types = [v.type for v in start]
        self.tile = self._ticket()
        row, part = e.simplify((self.tile // plan.tiles, self.tile % plan.tiles))
        self.row, self.part = row, part
        self.group, self.member = e.simplify((part // GROUP, part % GROUP))
        places, sums = self._elements(row, part)
        inclusive = self._scan_warp(sums[-1])
        below = list(self.b.add(ShuffleUpOp(inclusive, 1)).results)
        before_warp, total = self._warps(inclusive)
        prefix = self._prefix(start, total)
        mine = self._where((self.warp, 1, WARPS - 1), prefix, lambda: form.join(prefix, before_warp))
        mine = self._where((self.lane, 1, WARP - 1), mine, lambda: form.join(mine, below))
        if form.before:
            first = [(part, 0, 0), (self.thread, 0, 0)]
            self.outputs = e.loop([], self.outputs, lambda _, t: form.store(start, t, Const(0), row), lambda _: first)
        self._store(mine, sums, places)
        self.frame.outputs[:] = [*self.outputs, self.flags, self.known]

    # -- a tile --------------------------------------------------------------------------------------------------------
    def _ticket(self) -> Expr:
        """The tile this block does: the next one."""
        e, ticket = self.e, self._shared(I32, 1)

        def take(_: Index, carried: Sequence[SSAValue]) -> list[SSAValue]:
            old, flags = add(e, self._word(1), carried[0], (Const(0),))
            return [flags, e.insert(old, carried[1], (Const(0),))]

        self.flags, ticket = e.loop([], [self.flags, ticket], take, lambda _: [(self.thread, 0, 0)])
        (ticket,) = self.b.add(SyncThreadsOp([ticket])).results
        return self._index(e.read(ticket, (Const(0),)), self.plan.rows * self.plan.tiles)

    def _elements(self, row: Expr, part: Expr) -> tuple[list[Expr], list[list[SSAValue]]]:
        """The places of this thread's elements, and what they come to one after another.

        Past the end the last elements stand in: what comes of them is stored nowhere, and nothing comes after.
        """
        form, plan, e = self.form, self.plan, self.e
        count, unit = plan.elements, part * THREADS + self.thread
        places = [unit * count + k for k in range(count)]
        if plan.length % count == 0:
            inside = at_most(e, unit, plan.length // count - 1)
            given = [inside * count + k for k in range(count)]
        else:
            given = [at_most(e, place, plan.length - 1) for place in places]
        elements = [form.read(place + form.before, row) for place in given]
        sums = [elements[0]]
        for element in elements[1:]:
            sums.append(form.join(sums[-1], element))
        return places, sums

    def _scan_warp(self, values: Sequence[SSAValue]) -> list[SSAValue]:
        """The inclusive scan over the lanes."""
        found, distance = list(values), 1
        while distance < WARP:
            below = list(self.b.add(ShuffleUpOp(found, distance)).results)
            at = (self.lane, distance, WARP - 1)
            found = self._where(at, found, lambda b=below, f=found: self.form.join(b, f))
            distance *= 2
        return found

    def _warps(self, inclusive: Sequence[SSAValue]) -> tuple[list[SSAValue], list[SSAValue]]:
        """The value before this warp (undefined for the first warp), and that of the whole tile."""
        e, form = self.e, self.form
        shared = [self._shared(t, WARPS) for t in self.types]

        def save(_: Index, tensors: Sequence[SSAValue]) -> list[SSAValue]:
            return self._put(inclusive, tensors, self.warp)

        shared = e.loop([], shared, save, lambda _: [(self.lane, WARP - 1, WARP - 1)])
        shared = list(self.b.add(SyncThreadsOp(shared)).results)
        total = self._get(shared, Const(0))
        before = total
        for w in range(1, WARPS):
            total = form.join(total, self._get(shared, Const(w)))
            if w < WARPS - 1:
                before = self._where((self.warp, w + 1, WARPS - 1), before, lambda t=total: t)
        return before, total

    def _store(self, mine: Sequence[SSAValue], sums: Sequence[Sequence[SSAValue]], places: Sequence[Expr]) -> None:
        form, plan, e = self.form, self.plan, self.e

        def store(_: Index, tensors: Sequence[SSAValue], numbers: Sequence[int]) -> list[SSAValue]:
            tensors = list(tensors)
            for n in numbers:
                tensors = form.store(form.join(mine, sums[n]), tensors, places[n] + form.before, self.row)
            return list(tensors)

        step = plan.elements if plan.length % plan.elements == 0 else 1
        for first in range(0, plan.elements, step):
            numbers = range(first, first + step)
            exists = [(places[first], 0, plan.length - step)]
            self.outputs = e.loop([], self.outputs, lambda v, t, n=numbers: store(v, t, n), lambda _, x=exists: x)

    # -- what comes before a tile --------------------------------------------------------------------------------------
    def _prefix(self, start: Sequence[SSAValue], total: Sequence[SSAValue]) -> list[SSAValue]:
        """The value before the tile; the tile's total is published on the way."""
        e = self.e
        shared = [self._shared(t, 1) for t in self.types]

        def ask(_: Index, carried: Sequence[SSAValue]) -> list[SSAValue]:
            self.flags, self.known, *tensors = carried
            found = self._before(start, total)
            tensors = e.loop([], tensors, lambda _, t: self._put(found, t, Const(0)), lambda _: [(self.lane, 0, 0)])
            return [self.flags, self.known, *tensors]

        carried = [self.flags, self.known, *shared]
        self.flags, self.known, *shared = e.loop([], carried, ask, lambda _: [(self.warp, 0, 0)])
        shared = list(self.b.add(SyncThreadsOp(shared)).results)
        return self._get(shared, Const(0))

    def _before(self, start: Sequence[SSAValue], total: Sequence[SSAValue]) -> list[SSAValue]:
        """The value before the tile, in the first warp."""
        form, plan, member = self.form, self.plan, self.member
        self._tell(total, self.tile, FIRST_FLAG + self.tile, TOTAL, [(self.lane, 0, 0)])
        words = self._words(total)
        if plan.tiles > 1:
            words = self._where(
                (self.lane - member, -GROUP, -1), words, lambda: self._wait(self.tile - member + self.lane)
            )
        scanned = self._words(self._scan_warp(self._values(words)))
        number = self._as_word(member)
        in_group = self._values(self._from(scanned, self._less(number)))
        group_total = self._values(self._from(scanned, number))
        before = list(start)
        if plan.groups > 1:
            place = self.row * plan.groups + self.group
            groups, tiles = plan.rows * plan.groups, plan.rows * plan.tiles
            ends = [(member, GROUP - 1, GROUP - 1), (self.group, 0, plan.groups - 2), (self.lane, 0, 0)]
            flag = FIRST_FLAG + tiles + place
            self._tell(group_total, tiles + place, flag, TOTAL, ends)
            before = self._where((self.group, 1, plan.groups - 1), before, lambda: self._groups_before(place))
            self._tell(form.join(before, group_total), tiles + groups + place, flag, ALL, ends)
        return self._where((member, 1, GROUP - 1), before, lambda: form.join(before, in_group))

    def _wait(self, tile: Expr) -> list[SSAValue]:
        """The words of that tile's total, once they are there."""
        e, b = self.e, self.b
        (at,) = e.simplify((tile,))
        at = e.variable(e.index_value(at), 0, self.plan.rows * self.plan.tiles - 1)
        test, step = Block(arg_types=[I32]), Block(arg_types=[I32])
        with e.region(test):
            flag = self._load("acquire", self.flags, FIRST_FLAG + at)
            b.terminate(scf.ConditionOp, [b.cmpi("eq", flag, self._word(0)), flag])
        with e.region(step):
            b.terminate(scf.YieldOp, step.args)
        b.add(scf.WhileOp.create(operands=[self._word(0)], result_types=[I32], regions=[Region(test), Region(step)]))
        return self._load_words(at)

    def _groups_before(self, place: Expr) -> list[SSAValue]:
        """The value before group number `place`, which is not a row's first."""
        e, b, plan = self.e, self.b, self.plan
        groups, tiles = plan.rows * plan.groups, plan.rows * plan.tiles
        # lane 0 looks at the group before, lane 1 at the one before that; beyond the row's first there is none
        (mine,) = e.simplify((place - self.lane - 1,))
        mine = e.variable(b.op(arith.MaxSIOp, e.index_value(mine), b.integer(0)), 0, groups - 1)
        exists = e.holds([(self.group - self.lane, 1, plan.groups)])
        types: list[Attribute] = [I32, I32]
        test, step = Block(arg_types=types), Block(arg_types=types)
        with e.region(test):
            flag = self._load("acquire", self.flags, FIRST_FLAG + tiles + mine)
            if exists is not None:
                flag = b.select(exists, flag, self._word(0))
            has_all = self._ballot(b.cmpi("eq", flag, self._word(ALL)))
            has_some = self._ballot(b.cmpi("ne", flag, self._word(0)))
            # of lanes below the first that knows all, none may be without a total
            missing = b.op(arith.AndIOp, self._below_lowest(has_all), b.op(arith.XOrIOp, has_some, self._word(-1)))
            none = b.cmpi("eq", has_all, self._word(0))
            again = b.op(arith.OrIOp, none, b.cmpi("ne", missing, self._word(0)))
            b.terminate(scf.ConditionOp, [again, flag, has_all])
        with e.region(step):
            b.terminate(scf.YieldOp, step.args)
        zero = self._word(0)
        loop = scf.WhileOp.create(operands=[zero, zero], result_types=types, regions=[Region(test), Region(step)])
        flag, has_all = b.add(loop).results
        first = b.op(math.CountTrailingZerosOp, has_all)
        knows_all = b.cmpi("eq", flag, self._word(ALL))
        total_at, all_at = e.index_values(e.simplify((tiles + mine, tiles + groups + mine)))
        at = e.variable(b.select(knows_all, all_at, total_at), 0, plan.results - 1)
        asked = b.cmpi("ule", self._as_word(self.lane), first)
        words = e.guarded(asked, [zero] * plan.words, lambda: self._load_words(at))

        def join(n: SSAValue, found: Sequence[SSAValue]) -> list[SSAValue]:
            nearer = b.op(arith.SubiOp, self._less(first), b.op(arith.IndexCastOp, n, type=I32))
            return self.form.join(found, self._values(self._from(words, nearer)))

        hi = b.op(arith.IndexCastOp, first, type=INDEX)
        return for_(self.frame, b.integer(0), hi, self._values(self._from(words, first)), join)

    def _tell(self, values: Sequence[SSAValue], at: Expr, flag_at: Expr, flag: int, where: list[Constraint]) -> None:
        """Make a partial result known, where the constraints hold: first the words, then the flag."""
        e, b = self.e, self.b
        words = self._words(values)

        def tell(_: Index, carried: Sequence[SSAValue]) -> list[SSAValue]:
            flags, known = carried
            for n, word in enumerate(words):
                place = e.index_values(e.simplify((at * self.plan.words + n,)))
                known = b.add(AtomicStoreOp("monotonic", word, known, place)).results[0]
            place = e.index_values(e.simplify((flag_at,)))
            return [b.add(AtomicStoreOp("release", self._word(flag), flags, place)).results[0], known]

        self.flags, self.known = e.loop([], [self.flags, self.known], tell, lambda _: where)

    # -- pieces --------------------------------------------------------------------------------------------------------
    def _where(
        self, where: Constraint, otherwise: Sequence[SSAValue], values: Callable[[], Sequence[SSAValue]]
    ) -> list[SSAValue]:
        return self.e.guarded(self.e.holds([where]), list(otherwise), values)

    def _get(self, tensors: Sequence[SSAValue], at: Expr) -> list[SSAValue]:
        return [self.frame.e.read(t, (at,)) for t in tensors]

    def _put(self, values: Sequence[SSAValue], tensors: Sequence[SSAValue], at: Expr) -> list[SSAValue]:
        return [self.frame.e.write(v, t, (at,)) for v, t in zip(values, tensors, strict=True)]

    def _load(self, ordering: str, tensor: SSAValue, at: Expr) -> SSAValue:
        place = self.e.index_values(self.e.simplify((at,)))
        return self.b.add(AtomicLoadOp(ordering, tensor, place)).results[0]

    def _load_words(self, at: Expr) -> list[SSAValue]:
        return [self._load("monotonic", self.known, at * self.plan.words + n) for n in range(self.plan.words)]

    def _words(self, values: Sequence[SSAValue]) -> list[SSAValue]:
        """Values as words of 32 bits."""
        b, words = self.b, []
        for value in values:
            type_ = value.type
            bits = type_.width.data if isinstance(type_, IntegerType) else type_.bitwidth  # type: ignore[attr-defined]
            if not isinstance(type_, IntegerType):
                value = b.op(arith.BitcastOp, value, type=IntegerType(bits))
            if bits < 32:
                words.append(b.op(arith.ExtUIOp, value, type=I32))
            elif bits == 32:
                words.append(value)
            else:
                words.append(b.op(arith.TruncIOp, value, type=I32))
                upper = b.op(arith.ShRUIOp, value, b.integer(32, I64))
                words.append(b.op(arith.TruncIOp, upper, type=I32))
        return words

    def _values(self, words: Sequence[SSAValue]) -> list[SSAValue]:
        """The inverse of `_words`."""
        b, rest, values = self.b, list(words), []
        for type_ in self.types:
            bits = type_.width.data if isinstance(type_, IntegerType) else type_.bitwidth  # type: ignore[attr-defined]
            value = rest.pop(0)
            if bits < 32:
                value = b.op(arith.TruncIOp, value, type=IntegerType(bits))
            elif bits > 32:
                upper = b.op(arith.ShLIOp, b.op(arith.ExtUIOp, rest.pop(0), type=I64), b.integer(32, I64))
                value = b.op(arith.OrIOp, upper, b.op(arith.ExtUIOp, value, type=I64))
            values.append(value if value.type == type_ else b.op(arith.BitcastOp, value, type=type_))
        return values

    def _from(self, words: Sequence[SSAValue], lane: SSAValue) -> list[SSAValue]:
        """The words of that lane."""
        return [self.b.add(ShuffleFromOp(word, lane)).results[0] for word in words]

    def _ballot(self, condition: SSAValue) -> SSAValue:
        return self.b.add(BallotOp(condition)).results[0]

    def _below_lowest(self, mask: SSAValue) -> SSAValue:
        """The bits below the lowest one that is set."""
        return self.b.op(arith.AndIOp, self._less(mask), self.b.op(arith.XOrIOp, mask, self._word(-1)))

    def _less(self, word: SSAValue) -> SSAValue:
        return self.b.op(arith.SubiOp, word, self._word(1))

    def _as_word(self, index: Expr) -> SSAValue:
        return self.b.op(arith.IndexCastOp, self.e.index_value(self.e.simplify((index,))[0]), type=I32)

    def _word(self, value: int) -> SSAValue:
        return self.b.integer(value, I32)

    def _index(self, word: SSAValue, size: int) -> Expr:
        return self.e.variable(self.b.op(arith.IndexCastOp, word, type=INDEX), 0, size - 1)

    def _shared(self, element: Attribute, *sizes: int) -> SSAValue:
        return self.b.op(AllocateSharedOp, type=TensorType(element, list(sizes)))  # type: ignore[type-var]
