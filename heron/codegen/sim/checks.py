"""Native code of the access checks of the simulated GPU.

`sim.access` returns the pointer to use: the one given, or scratch memory after a finding, so that a wrong kernel is
reported and never takes the process down.

Race detection keeps, for each granule of memory, the last write and up to four reads: the launch's first, the last, the
last by another lane of that warp, the last by another warp or block. (An atomic counts as a read: only plain writes
conflict with it.) An access is one word: tick, thread, site. Blocks run one after the other, so an access of another
block is one from before this block's first tick, and it is never ordered. Within a block an access is done for a thread
when it came before the last barrier, or before a meeting of its warp that the thread knows of (`known`).

Shared memory that nobody of the block wrote is uninitialised; a buffer has a byte for each byte that says so.
"""

from __future__ import annotations

from heron.codegen.llvm.text import Function, Module
from heron.codegen.llvm.values import Value, View
from heron.codegen.sim.threads import FINDING, launch_of
from heron.runtime.sim.state import (
    ATOMIC_WRITE,
    CELL,
    CHECKS,
    LANES,
    MISALIGNED,
    OUT_OF_BOUNDS,
    RACE,
    READ,
    UNINITIALISED,
    WRITE,
    Row,
    Site,
)

_CONFLICT = "i1 @sim.conflict(ptr, i64, i32, i32)"
_REMEMBER = "i64 @sim.remember(ptr, ptr, i64, i64, i32, i32)"
_CELLS = "void @sim.cells(ptr, ptr, i64, i64, i64, i32, i64, i32)"
_VALID = "i1 @sim.valid(ptr, i64, i64, i64)"
_FIND = "i64 @sim.find(ptr, i64, i64)"


def write(module: Module) -> None:
    """The functions of checks."""
    _write_conflict(module)
    _write_remember(module)
    _write_cells(module)
    _write_valid(module)
    _write_find(module)
    _write_access(module)


def _thread_of(slot: Value) -> Value:
    """The thread of a remembered access."""
    return (slot >> 32).cast("trunc", "i32") & 1023


def _tick_of(slot: Value) -> Value:
    return slot.cast("trunc", "i32")


def _write_conflict(module: Module) -> None:
    """Is the remembered access unordered with one of the thread now? Those older than `floor` are of no interest."""
    with module.function(
        "internal i1 @sim.conflict(ptr %sim.state, i64 %slot, i32 %t, i32 %floor) alwaysinline nounwind"
    ) as f:
        launch, slot, thread, floor = launch_of(f), *f.arguments[1:]
        tick, other = _tick_of(slot), _thread_of(slot)
        is_elsewhere = tick.below(launch["block_tick"])
        one_warp = (thread >> 5).eq(other >> 5)
        met = one_warp & tick.below(launch["known", thread * LANES + (other & 31)])
        inside = tick.reaches(launch["barrier_tick"]) & other.ne(thread) & ~met
        f.ret(tick.reaches(floor) & (is_elsewhere | inside))


def _write_remember(module: Module) -> None:
    """One granule, one access: the access it races with, or 0; remembers it."""
    head = "internal i64 @sim.remember(ptr %sim.state, ptr %cell, i64 %kind, i64 %me, i32 %t, i32 %floor) nounwind"
    with module.function(head) as f:
        state, cell, kind, access, thread, floor = f.arguments
        places = [cell, *(f.at(cell, n, "i64") for n in range(1, CELL))]
        write, first, last, lane, far = slots = [f.load("i64", place) for place in places]
        is_write = kind.eq(WRITE)
        newest = f.call("i32 @llvm.umax.i32(i32, i32)", _tick_of(write), _tick_of(last))
        with f.when(newest.below(floor)):  # mostly nobody was here since the launch began
            with f.when(is_write):
                f.store("i64", access, cell)
                f.ret(0)
            for place, value in zip(places[1:], (access, access, 0, 0), strict=True):
                f.store("i64", value, place)
            f.ret(0)

        def conflict(slot: Value) -> Value:
            return f.call(_CONFLICT, state, slot, thread, floor)

        with f.when(is_write):
            found: Value | int = 0
            for slot in (first, far, lane, last, write):
                found = f.select(conflict(slot), slot, found, "i64")
            f.store("i64", access, cell)
            f.ret(found)
        with_write = f.select(conflict(write), write, 0, "i64")
        f.store("i64", f.select(_tick_of(first).below(floor), access, first, "i64"), places[1])
        f.store("i64", access, places[2])
        with f.when(_tick_of(last).below(floor)):
            f.store("i64", 0, places[3])
            f.store("i64", 0, places[4])
            f.ret(with_write)
        is_here = _tick_of(last).reaches(launch_of(f)["block_tick"])
        with f.unless(_thread_of(last).eq(thread) & is_here):
            is_near = (_thread_of(last) >> 5).eq(thread >> 5) & is_here
            f.store("i64", f.select(is_near, last, 0, "i64"), places[3])
            f.store("i64", f.select(is_near, slots[4], last, "i64"), places[4])
        f.ret(with_write)


def _write_cells(module: Module) -> None:
    """The granules of an access: races, and shared memory read before it is written."""
    arguments = "ptr %row, i64 %offset, i64 %size, i64 %kind, i32 %t, i64 %number, i32 %site"
    with module.function(f"internal void @sim.cells(ptr %sim.state, {arguments}) nounwind") as f:
        state, place, offset, size, kind, thread, number, site = f.arguments
        launch, row = launch_of(f), f.view(place, Row)
        cells, granule, is_shared = row["cells"], row["granule"], row["shared"].ne(0)
        floor = f.select(is_shared, launch["block_tick"], launch["launch_tick"], "i32")
        checks = launch["checks"]
        races = (checks & CHECKS["races"]).ne(0)
        uninit = (checks & CHECKS["uninit"]).ne(0) & kind.ne(WRITE) & is_shared
        with f.loop(offset // granule, (offset + size - 1) // granule + 1) as n:
            cell = f.at(cells, n, f"[{CELL} x i64]")
            with f.when(_tick_of(f.load("i64", cell)).below(floor) & uninit):
                f.call(FINDING, state, UNINITIALISED, thread, number, offset, size, 0, site)
                f.ret()
            access = _word(launch, thread, site)
            other = f.call(_REMEMBER, state, cell, kind, access, thread, floor)
            with f.when(other.ne(0) & races):
                f.call(FINDING, state, RACE, thread, number, offset, size, other, site)
                f.ret()


def _word(launch: View, thread: Value, site: Value) -> Value:
    """An access as it is remembered: tick, thread, site."""
    tick, thread64, site64 = (v.cast("zext", "i64") for v in (launch["tick"], thread, site))
    return tick | (thread64 << 32) | (site64 << 42)


def _write_valid(module: Module) -> None:
    """Bytes of a buffer: a read wants them written, a write (or atomic) makes them so; true when one is not."""
    with module.function("internal i1 @sim.valid(ptr %valid, i64 %offset, i64 %size, i64 %kind) nounwind") as f:
        valid, offset, size, kind = f.arguments
        first = f.at(valid, offset, "i8")
        with f.when(kind.eq(WRITE) | kind.eq(ATOMIC_WRITE)):
            f.fill(first, 1, size)
            f.ret("false", "i1")
        unset = f.call("ptr @memchr(ptr, i32, i64)", first, 0, size).ne("null")
        with f.when(kind.ne(READ)):
            f.fill(first, 1, size)
        f.ret(unset)


def _is_inside(f: Function, row: View, address: Value, size: Value) -> tuple[Value, Value]:
    """The offset of an access in a row of memory, and whether all of it lies there."""
    offset = address - row["base"]
    inside = ~offset.less(0) & (offset + size).less(row["length"] + 1)
    return offset, inside


def _write_find(module: Module) -> None:
    """The row a pointer of unknown origin lies in, or -1."""
    with module.function("internal i64 @sim.find(ptr %sim.state, i64 %address, i64 %size) nounwind") as f:
        launch, address, size = launch_of(f), *f.arguments[1:]
        rows = launch["rows"]
        with f.loop(0, launch["rows_count"]) as n:
            with f.when(_is_inside(f, f.view(rows, Row, n), address, size)[1]):
                f.ret(n)
        f.ret(-1)


def _write_access(module: Module) -> None:
    """The pointer to use for an access: the one given, or scratch memory where it lies outside."""
    with module.function("ptr @sim.access(ptr %sim.state, ptr %p, i32 %site) nounwind") as f:
        state, pointer, site = f.arguments
        launch = launch_of(f)
        record = f.view(launch["sites"], Site, site.cast("zext", "i64"))
        size, kind, align = record["size"], record["kind"], record["align"]
        thread, address = launch["current"], pointer.cast("ptrtoint", "i64")
        number = f.variable("i64", record["row"])
        with f.when(number.get().less(0)):
            number.set(f.call(_FIND, state, address, size))
            with f.when(number.get().less(0)):
                f.call(FINDING, state, OUT_OF_BOUNDS, thread, -1, address, size, 0, site)
                f.ret(launch.at("scratch"))
        n = number.get()
        row = f.view(launch["rows"], Row, n)
        offset, inside = _is_inside(f, row, address, size)
        with f.unless(inside):
            f.call(FINDING, state, OUT_OF_BOUNDS, thread, n, offset, size, 0, site)
            f.ret(launch.at("scratch"))
        with f.when((offset & (align - 1)).ne(0)):
            f.call(FINDING, state, MISALIGNED, thread, n, offset, size, align, site)
        with f.when(row["valid"].ne("null")), f.when(f.call(_VALID, row["valid"], offset, size, kind)):
            f.call(FINDING, state, UNINITIALISED, thread, n, offset, size, 0, site)
        with f.when(row["cells"].ne("null")):
            f.call(_CELLS, state, row.address, offset, size, kind, thread, n, site)
        f.ret(pointer)
