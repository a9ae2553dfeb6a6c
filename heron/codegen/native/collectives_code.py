"""Native code of collectives: devices of one process meet, and each one fetches its share from the others' arrays.

``i32 heron_collective(ptr device, ptr op, ptr arrays)`` does one collective for one device: it leaves the addresses of
its arrays (or, of small ones, their elements) in its slot, waits for the other members, computes its results from what
they left, and waits again until nobody needs its arrays any more. Small arrays take one wait. It returns 0, or 1 where
the devices are to stop.

Sums are in the order of ranks, whoever comes first: a chunk of an all-reduce is computed by one member, block by block,
and written to all of them.

A member that waits looks for the others a while, then goes on looking but gives way each time, so that they can run if
there are fewer CPUs than threads, and then sleeps (Linux: futex).
"""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Mapping

from heron.codegen.llvm.text import Function, Module
from heron.codegen.llvm.values import Value, View
from heron.codegen.native import turns_code
from heron.codegen.native.common_code import for_good
from heron.runtime.collectives.exchange import Way
from heron.runtime.collectives.state import (
    ARRAYS,
    CHUNKS,
    COLLECTIVE,
    COMPUTES,
    ENDED,
    GIVEN_UP,
    GRAIN,
    HELPER,
    LAUNCH,
    MISMATCH,
    OUTSIDE,
    SLOT,
    WAIT,
    WORKER,
    Clique,
    Device,
    Op,
    Piece,
    Place,
    Slot,
    World,
)
from heron.runtime.cpu.pool import FUTEX, FUTEX_WAIT, FUTEX_WAKE, supported

_SYSCALL = "i64 @syscall(i64, ...)"
_YIELD = "i32 @sched_yield()"
_PAUSE = {"x86_64": "call void @llvm.x86.sse2.pause()", "aarch64": "call void @llvm.aarch64.hint(i32 1)"}
_REDUCER = "(ptr, i64, i64)"

_MONOTONIC = 1
#: yields between two looks at the clock
_YIELDS = 2
#: nanoseconds after which a sleeper looks whether the devices are to stop
_SLICE = 50_000_000
#: bytes of a chunk that are combined at a time, and then copied to all members
_BLOCK = 1 << 14


def make() -> Mapping[str, int] | None:
    """The addresses of the functions; None where there are no futexes."""
    return for_good(HELPER, text()) if supported() else None


def text() -> str:
    """LLVM text of the functions for this machine."""
    module = Module()
    module.variable(f"@slice = internal constant [2 x i64] [i64 0, i64 {_SLICE}]")
    turns_code.write(module)
    _write_wait(module)
    _write_elsewhere(module)
    _write_meet(module)
    _write_fetch(module)
    _write_combine(module)
    _write_combine_all(module)
    _write_collective(module)
    _write_worker(module)
    _write_launch(module)
    return module.text()


# -- waiting -----------------------------------------------------------------------------------------------------------
def _sleep(f: Function, word: Value, seen: str, limit: str) -> None:
    f.call(_SYSCALL, FUTEX[platform.machine()], word, f"i32 {FUTEX_WAIT}", f"i32 {seen}", f"ptr {limit}", "ptr null",
           "i32 0")  # fmt: skip


def _wake(f: Function, word: Value) -> None:
    everybody = "i32 2147483647"
    f.call(_SYSCALL, FUTEX[platform.machine()], word, f"i32 {FUTEX_WAKE}", everybody, "ptr null", "ptr null", "i32 0")


def _write_wait(module: Module) -> None:
    """Come to the next meeting of a clique and wait until all members are there; 1 where the devices are to stop."""
    with module.function("internal i32 @wait(ptr %device, ptr %clique) nounwind") as f:
        device, clique = f.view(f.arguments[0], Device), f.view(f.arguments[1], Clique)
        world = f.view(device["world"], World)
        generation, sleepers, failed = clique.at("generation"), clique.at("sleepers"), world.at("failed")
        before = f.load("i32", generation, order="monotonic")
        last = f.change("add", "i32", clique.at("arrived"), 1, "acq_rel") + 1
        with f.when(last.eq(clique["local"])):
            f.store("i32", 0, clique.at("arrived"), order="monotonic")
            f.store("i32", before + 1, generation, order="seq_cst")
            with f.when(world["turns"].ne(0)):
                world["idle"] = 0
            with f.when(f.load("i32", sleepers, order="seq_cst").ne(0)):
                _wake(f, generation)
            f.ret(0, "i32")
        with f.when(world["turns"].ne(0)), f.repeat():
            _return_if_complete(f, generation, before)
            with f.when(f.load("i32", failed, order="monotonic").ne(0)):
                f.ret(1, "i32")
            f.call(turns_code.GIVE, device.address)
        dozes, awake = f.fork(device["dozes"].ne(0))
        with dozes:
            device["dozes"] = device["dozes"] - 1
        with awake:
            with f.loop(0, world["looks"], type_="i32"):
                _return_if_complete(f, generation, before)
                f.line(_PAUSE[platform.machine()])
            _write_yields(f, device, world, generation, before)
        f.change("add", "i32", sleepers, 1, "seq_cst")
        result = f.variable("i32", 0)
        with f.repeat() as each:
            with f.when(f.load("i32", generation, order="seq_cst").ne(before)):
                each.leave()
            with f.when(f.load("i32", failed, order="seq_cst").ne(0)):
                result.set(1)
                each.leave()
            _sleep(f, generation, before, "@slice")
        f.change("sub", "i32", sleepers, 1, "seq_cst")
        f.ret(result.get())


def _write_yields(f: Function, device: View, world: View, generation: Value, before: Value) -> None:
    """Give way as long as only threads of the program get the CPU: who shares it with others is not back soon, and had
    better sleep, since the system runs a sleeper at once when it is woken. It does so at the next meetings too."""
    time, patience = f.slot("[2 x i64]"), world["patience"]
    begun, last = f.variable("i64"), f.variable("i64")
    begun.set(_now(f, time))
    last.set(begun.get())
    with f.repeat() as each:
        for _ in range(_YIELDS):
            _return_if_complete(f, generation, before)
            f.call(_YIELD)
        now = _now(f, time)
        with f.when(patience.less(now - last.get())):
            device["dozes"] = world["dozes"]
        with f.when(patience.less(now - begun.get())):
            each.leave()
        last.set(now)


def _now(f: Function, place: str) -> Value:
    """Nanoseconds of the monotonic clock."""
    f.call("i32 @clock_gettime(i32, ptr)", _MONOTONIC, place)
    return f.load("i64", place) * 1_000_000_000 + f.load("i64", f.at(place, 1, "i64"))


def _return_if_complete(f: Function, generation: Value, before: Value) -> None:
    with f.when(f.load("i32", generation, order="acquire").ne(before)):
        f.ret(0, "i32")


def _slot(f: Function, row: Value, rank: Value) -> View:
    """The slot of a member in a row of slots."""
    return f.view(f.at(row, rank.cast("sext", "i64") * SLOT, "i8"), Slot)


def _order(f: Function, clique: View, rank: Value) -> Value:
    """The number of a member among those of this process."""
    return f.load("i32", f.at(clique["order"], rank, "i32", "i32"))


def _write_elsewhere(module: Module) -> None:
    """Have the first member of this process exchange something with other processes, if there are any, and wait for it;
    1 where the devices are to stop."""
    head = "internal i32 @elsewhere(ptr %device, ptr %clique, i32 %rank, ptr %op, ptr %row, i32 %what) nounwind"
    with module.function(head) as f:
        here, clique_at, rank, op_at, row, what = f.arguments
        device, clique = f.view(here, Device), f.view(clique_at, Clique)
        exchange, failed = clique["exchange"], f.view(device["world"], World).at("failed")
        with f.when(exchange.is_null()):
            f.ret(0, "i32")
        with f.when(_order(f, clique, rank).eq(0)):
            world = device["world"]
            missing = f.call(f"i32 {exchange}(ptr, ptr, ptr, ptr, i32)", clique_at, op_at, row, world, what)
            with f.when(missing.ne(0)):
                f.store("i32", GIVEN_UP, failed, order="seq_cst")
        with f.when(f.call("i32 @wait(ptr, ptr)", here, clique_at).ne(0)):
            f.ret(1, "i32")
        f.ret(f.load("i32", failed, order="seq_cst").ne(0).cast("zext", "i32"))


def _write_meet(module: Module) -> None:
    """Leave word of one's arrays and wait for the others; gives the row of their slots, null where devices stop."""
    head = "internal ptr @meet(ptr %device, ptr %clique, i32 %rank, ptr %op, ptr %arrays) nounwind"
    with module.function(head) as f:
        here, clique_at, rank, op_at, arrays = f.arguments
        device, clique, op = f.view(here, Device), f.view(clique_at, Clique), f.view(op_at, Op)
        turn = f.load("i32", clique.at("generation"), order="monotonic") & 1
        size, number = clique["size"], op["number"]
        row = f.at(clique["slots"], (turn * size).cast("sext", "i64") * SLOT, "i8")
        mine = _slot(f, row, rank)
        mine["op"] = number
        inline, there = f.fork(op["inline"].ne(0))
        with inline:
            table = f.at(mine.address, ctypes.sizeof(Slot), "i8")
            mine["arrays"] = table
            with f.loop(0, op["arrays"].cast("sext", "i64")) as n:
                piece = f.view(op["pieces"], Piece, n)
                place = f.at(table, piece["offset"], "i8")
                f.copy(place, f.load("ptr", f.at(arrays, n, "ptr")), piece["operand_bytes"])
                f.store("ptr", place, f.at(table, n, "ptr"))
        with there:
            mine["arrays"] = arrays
        f.store("i32", number, device.at("at"), order="monotonic")
        stopped = f.call("i32 @wait(ptr, ptr)", here, clique_at)
        device["steps"] = device["steps"] + 1
        with f.when(stopped.ne(0)):
            f.ret("null", "ptr")
        missing = f.call("i32 @elsewhere(ptr, ptr, i32, ptr, ptr, i32)", here, clique_at, rank, op_at, row, ARRAYS)
        with f.when(missing.ne(0)):
            f.ret("null", "ptr")
        with f.loop(0, size, type_="i32") as n, f.when(_slot(f, row, n)["op"].ne(number)):
            # they are at another collective: what they brought has another meaning
            f.store("i32", MISMATCH, f.view(device["world"], World).at("failed"), order="seq_cst")
            f.ret("null", "ptr")
        f.ret(row)


# -- results -----------------------------------------------------------------------------------------------------------
def _array(f: Function, row: Value, rank: Value, n: Value) -> Value:
    """Array `n` of a member, its operands first."""
    return f.load("ptr", f.at(_slot(f, row, rank)["arrays"], n, "ptr"))


def _write_fetch(module: Module) -> None:
    """Copy a piece of a member's operand to the place of that member in a result."""
    head = "internal void @fetch(ptr %from, ptr %to, ptr %piece, i32 %sender, i32 %receiver) nounwind"
    with module.function(head) as f:
        origin, target, piece_at, sender, receiver = f.arguments
        piece = f.view(piece_at, Piece)
        origin = f.at(origin, piece["from_rank"] * receiver.cast("sext", "i64"), "i8")
        target = f.at(target, piece["to_rank"] * sender.cast("sext", "i64"), "i8")
        size, from_row, to_row = piece["row_bytes"], piece["from_row"], piece["to_row"]
        with f.loop(0, piece["rows"]) as n:
            f.copy(f.at(target, to_row * n, "i8"), f.at(origin, from_row * n, "i8"), size)


def _write_combine(module: Module) -> None:
    """Combine the members' pieces of an operand, row by row, in the order of ranks."""
    head = (
        "internal void @combine(ptr %slots, i32 %size, i32 %rank, i64 %n, ptr %to, ptr %piece, ptr %reducer) nounwind"
    )
    with module.function(head) as f:
        row, size, rank, n, target, piece_at, reducer = f.arguments
        piece = f.view(piece_at, Piece)
        place = piece["from_rank"] * rank.cast("sext", "i64")
        args = f.op(f"alloca ptr, i32 {size + 1}, align 16", "ptr")
        with f.loop(0, piece["rows"]) as m:
            begin = place + piece["from_row"] * m
            with f.loop(0, size, type_="i32") as member:
                f.store("ptr", f.at(_array(f, row, member, n), begin, "i8"), f.at(args, member, "ptr", "i32"))
            f.store("ptr", f.at(target, piece["to_row"] * m, "i8"), f.at(args, size, "ptr", "i32"))
            f.call(f"void {reducer}{_REDUCER}", args, 0, piece["items"])


def _write_combine_all(module: Module) -> None:
    """Combine this member's chunk of an operand block by block, and write each block to the results of all members."""
    parameters = "ptr %slots, ptr %clique, i32 %rank, i64 %n, i64 %out, ptr %piece, ptr %reducer"
    with module.function(f"internal void @combine_all({parameters}) nounwind") as f:
        row, clique_at, rank, n, out, piece_at, reducer = f.arguments
        piece, clique = f.view(piece_at, Piece), f.view(clique_at, Clique)
        size, items, members = clique["size"], piece["items"], clique["size"].cast("sext", "i64")
        with f.when(items.eq(0)):
            f.ret()
        unit = piece["row_bytes"] // items
        share = (items + members - 1) // members
        chunk = (share + (GRAIN - 1)) // GRAIN * GRAIN
        number = f.load("i32", f.at(clique["chunks"], rank, "i32", "i32"))
        begin = f.least(chunk * number.cast("sext", "i64"), items)
        end = f.least(begin + chunk, items)
        block = Value(str(_BLOCK), "i64", f) // unit
        args = f.op(f"alloca ptr, i32 {size + 1}, align 16", "ptr")
        scratch = Value(f.slot(f"[{_BLOCK} x i8]"), "ptr", f)
        f.store("ptr", scratch, f.at(args, size, "ptr", "i32"))
        at = f.slot("i64")
        f.store("i64", begin, at)
        with f.while_below(at, end) as first:
            count = f.least(end - first, block)
            place, size_in_bytes = first * unit, count * unit
            with f.loop(0, size, type_="i32") as member:
                f.store("ptr", f.at(_array(f, row, member, n), place, "i8"), f.at(args, member, "ptr", "i32"))
            f.call(f"void {reducer}{_REDUCER}", args, 0, count)
            with f.loop(0, size, type_="i32") as member:
                target = _array(f, row, member, out)
                with f.unless(target.is_null()):  # it is in another process
                    f.copy(f.at(target, place, "i8"), scratch, size_in_bytes)
            f.store("i64", first + count, at)


def _write_collective(module: Module) -> None:
    """One collective, for one device."""
    with module.function(f"i32 @{COLLECTIVE}(ptr %device, ptr %op, ptr %arrays) nounwind") as f:
        here, op_at, arrays = f.arguments
        device, op = f.view(here, Device), f.view(op_at, Op)
        number, count = device["number"], op["arrays"].cast("sext", "i64")
        place = f.view(op["places"], Place, number.cast("sext", "i64"))
        with f.when(place["clique"].less(0)):
            _write_zeros(f, op, arrays, count)
            f.ret(0, "i32")
        rank = place["rank"]
        clique_at = f.load("ptr", f.at(device["cliques"], place["clique"], "ptr", "i32"))
        row = f.call("ptr @meet(ptr, ptr, i32, ptr, ptr)", here, clique_at, rank, op_at, arrays)
        with f.when(row.is_null()):
            device["failed"] = 1
            f.ret(1, "i32")
        reducers = f.at(op["reducers"], place["reducer"], "ptr", "i32")
        way, result = op["way"], _Results(f, device, op, arrays, count, row, rank, clique_at, reducers)
        for each in Way:
            with f.when(way.eq(int(each))):
                result.write(each, number)
        at = device.at("at")
        alone = f.view(clique_at, Clique)["exchange"].is_null()
        with f.when(way.eq(int(Way.ALL_REDUCE))), f.unless(alone):
            # others have summed up what this process has not, and wait for what it has
            with f.when(f.call("i32 @wait(ptr, ptr)", here, clique_at).ne(0)):
                device["failed"] = 1
                f.ret(1, "i32")
            kinds = "i32 @elsewhere(ptr, ptr, i32, ptr, ptr, i32)"
            with f.when(f.call(kinds, here, clique_at, rank, op_at, row, CHUNKS).ne(0)):
                device["failed"] = 1
                f.ret(1, "i32")
        with f.when(op["inline"].ne(0) & alone):
            f.store("i32", COMPUTES, at, order="monotonic")
            f.ret(0, "i32")
        stopped = f.call("i32 @wait(ptr, ptr)", here, clique_at)
        with f.when(stopped.eq(0)):
            f.store("i32", COMPUTES, at, order="monotonic")
        device["failed"] = stopped
        f.ret(stopped)


def _write_zeros(f: Function, op: View, arrays: Value, count: Value) -> None:
    """Results of zeros: nobody sends to this device."""
    with f.loop(0, count) as n:
        piece = f.view(op["pieces"], Piece, n)
        f.fill(f.load("ptr", f.at(arrays, count + n, "ptr")), 0, piece["operand_bytes"])


class _Results:
    """Writes the code that computes a device's results from the members' arrays."""

    def __init__(
        self,
        f: Function,
        device: View,
        op: View,
        arrays: Value,
        count: Value,
        row: Value,
        rank: Value,
        clique: Value,
        reducers: Value,
    ) -> None:
        self.f, self.device, self.op, self.arrays, self.count = f, device, op, arrays, count
        self.row, self.rank, self.clique, self.reducers = row, rank, clique, reducers
        self.size = f.view(clique, Clique)["size"]

    def write(self, way: Way, number: Value) -> None:
        match way:
            case Way.EACH:
                self.each()
            case Way.PAIRED:
                self.paired()
            case Way.FROM:
                self.from_one(number)
            case Way.REDUCE:
                self.reduce()
            case Way.ALL_REDUCE:
                self.reduce_all()
            case Way.RAGGED:
                self.ragged()

    def result(self, n: Value) -> Value:
        return self.f.load("ptr", self.f.at(self.arrays, self.count + n, "ptr"))

    def piece(self, n: Value) -> str:
        return self.f.view(self.op["pieces"], Piece, n).address

    def reducer(self, n: Value) -> Value:
        return self.f.load("ptr", self.f.at(self.reducers, n, "ptr"))

    def fetch(self, n: Value, origin: Value, target: Value, sender: Value) -> None:
        self.f.call("void @fetch(ptr, ptr, ptr, i32, i32)", origin, target, self.piece(n), sender, self.rank)

    def each(self) -> None:
        f = self.f
        with f.loop(0, self.size, type_="i32") as sender, f.loop(0, self.count) as n:
            self.fetch(n, _array(f, self.row, sender, n), self.result(n), sender)

    def paired(self) -> None:
        f = self.f
        with f.loop(0, self.size, type_="i32") as sender:
            n, mine = sender.cast("sext", "i64"), self.rank.cast("sext", "i64")
            self.fetch(n, _array(f, self.row, sender, mine), self.result(n), sender)

    def from_one(self, number: Value) -> None:
        f = self.f
        sender = f.load("i32", f.at(self.op["senders"], number, "i32", "i32"))
        nobody, somebody = f.fork(sender.less(0))
        with nobody:
            _write_zeros(f, self.op, self.arrays, self.count)
        with somebody, f.loop(0, self.count) as n:
            self.fetch(n, _array(f, self.row, sender, n), self.result(n), sender)

    def reduce(self) -> None:
        kinds = "void @combine(ptr, i32, i32, i64, ptr, ptr, ptr)"
        with self.f.loop(0, self.count) as n:
            given = self.row, self.size, self.rank, n, self.result(n), self.piece(n), self.reducer(n)
            self.f.call(kinds, *given)

    def reduce_all(self) -> None:
        kinds = "void @combine_all(ptr, ptr, i32, i64, i64, ptr, ptr)"
        with self.f.loop(0, self.count) as n:
            given = self.row, self.clique, self.rank, n, self.count + n, self.piece(n), self.reducer(n)
            self.f.call(kinds, *given)

    def ragged(self) -> None:
        """The result begins as operand 1; each sender's rows for this member go where the sender says."""
        f, zero = self.f, Value("0", "i64", self.f)
        first, output = f.view(self.piece(zero), Piece), f.view(self.piece(Value("1", "i64", f)), Piece)
        numbers = f.view(self.piece(Value("2", "i64", f)), Piece)
        result = self.result(zero)
        f.copy(result, f.load("ptr", f.at(self.arrays, 1, "ptr")), output["operand_bytes"])
        each = numbers["items"] // self.size.cast("sext", "i64")
        begin = each * self.rank.cast("sext", "i64")
        unit, width = numbers["row_bytes"] // numbers["items"], first["row_bytes"]
        with f.loop(0, self.size, type_="i32") as sender, f.loop(begin, begin + each) as n:
            start, rows, to = (_number(f, _array(f, self.row, sender, Value(k, "i64", f)), n, unit) for k in "234")
            fits = ~start.less(0) & ~rows.less(0) & ~to.less(0)
            fits = fits & ~first["rows"].less(start + rows) & ~output["rows"].less(to + rows)
            with f.unless(fits):
                self.device["failed"] = 1
                f.store("i32", OUTSIDE, f.view(self.device["world"], World).at("failed"), order="seq_cst")
                f.ret(1, "i32")
            origin = f.at(_array(f, self.row, sender, zero), start * width, "i8")
            f.copy(f.at(result, to * width, "i8"), origin, rows * width)


def _number(f: Function, array: Value, n: Value, unit: Value) -> Value:
    """Element `n` of an array of integers of 4 or 8 bytes."""
    found = f.variable("i64")
    small, large = f.fork(unit.eq(4))
    with small:
        found.set(f.load("i32", f.at(array, n, "i32")).cast("sext", "i64"))
    with large:
        found.set(f.load("i64", f.at(array, n, "i64")))
    return found.get()


# -- devices' threads --------------------------------------------------------------------------------------------------
def _write_worker(module: Module) -> None:
    """A device's thread: sleep until there is a launch, run the program, and tell when it has ended."""
    with module.function(f"ptr @{WORKER}(ptr %device) nounwind") as f:
        device = f.view(f.arguments[0], Device)
        world = f.view(device["world"], World)
        launch, done = world.at("launch"), world.at("done")
        seen = f.variable("i32", 0)
        with f.repeat():
            with f.repeat() as each:
                now = f.load("i32", launch, order="acquire")
                with f.when(now.ne(seen.get())):
                    seen.set(now)
                    each.leave()
                _sleep(f, launch, now, "null")
            with f.when(f.load("i32", world.at("stop"), order="monotonic").ne(0)):
                f.ret("null", "ptr")
            f.store("i32", COMPUTES, device.at("at"), order="monotonic")
            f.call(f"void {device['program']}(ptr)", device["buffers"])
            with f.when(device["failed"].eq(0)):  # else it stays where it failed, for the message
                f.store("i32", ENDED, device.at("at"), order="monotonic")
            ended = f.change("add", "i32", done, 1, "seq_cst") + 1
            with f.when(ended.eq(world["count"])):
                _wake(f, done)


def _write_launch(module: Module) -> None:
    """Wake all devices; and wait until all have ended, for a number of nanoseconds at most: whether they have."""
    with module.function(f"void @{LAUNCH}(ptr %world) nounwind") as f:
        world = f.view(f.arguments[0], World)
        f.store("i32", 0, world.at("done"), order="seq_cst")
        f.change("add", "i32", world.at("launch"), 1, "seq_cst")
        _wake(f, world.at("launch"))
    with module.function(f"i32 @{WAIT}(ptr %world, i64 %seconds, i64 %nanoseconds) nounwind") as f:
        world = f.view(f.arguments[0], World)
        limit = f.slot("[2 x i64]")
        f.store("i64", f.arguments[1], limit)
        f.store("i64", f.arguments[2], f.at(limit, 1, "i64"))
        done, count = world.at("done"), world["count"]
        now = f.load("i32", done, order="seq_cst")
        with f.when(now.eq(count)):
            f.ret(1, "i32")
        _sleep(f, done, now, limit)
        f.ret(f.load("i32", done, order="seq_cst").eq(count).cast("zext", "i32"))
