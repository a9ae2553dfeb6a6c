"""Native code that schedules the threads of a simulated block.

Each thread is a coroutine. Before it suspends it leaves in the launch's `State` what it waits for: the block (barrier)
or lanes of its warp (shuffle, vote, warp barrier). ``sim.schedule`` resumes every thread that is ready until all are
done; when no thread can go on, threads have diverged, which is reported instead of hanging.
"""

from __future__ import annotations

from heron.codegen.llvm.text import Function, Module
from heron.codegen.llvm.values import Value, View
from heron.codegen.sim import threads, warps
from heron.codegen.sim.threads import FINDING, launch_of, tick
from heron.runtime.sim.state import (
    BARRIERS,
    BLOCK_WAIT,
    DIVERGED_BARRIER,
    DIVERGED_WARP,
    EARLY_EXIT,
    FINISHED,
    LANES,
    PART_WAIT,
    READY,
    WARP_WAIT,
)

_DIVERGED, _REPORT = "void @sim.diverged(ptr, i64, i32)", "void @sim.report(ptr, i64, i32, i32)"
_OPEN_PARTS = "i1 @sim.open_parts(ptr)"


def write(module: Module) -> None:
    """The scheduler and what it calls."""
    threads.write(module)
    warps.write(module)
    _write_schedule(module)
    _write_reports(module)
    _write_part_barriers(module)


def _write_schedule(module: Module) -> None:
    """Run the block's threads to their end; false after a divergence, which is recorded."""
    with module.function("i1 @sim.schedule(ptr %sim.state) nounwind") as f:
        state, launch = f.arguments[0], launch_of(f)
        count, moved = launch["threads"], f.variable("i1")
        with f.repeat() as rounds:
            moved.set("false")
            with f.loop(0, count, type_="i32") as t:
                status = launch["states", t]
                with f.when(status.eq(READY)):
                    _resume(f, launch, t)
                    moved.set("true")
                with f.when(status.eq(WARP_WAIT)):
                    moved.set(moved.get() | f.call(warps.RELEASE, state, t))
            with f.when(launch["stopped"].ne(0)):
                f.ret("false", "i1")
            with f.when(moved.get()):
                rounds.again()
            for unblock in (warps.ACTIVATE, _OPEN_PARTS):
                with f.when(f.call(unblock, state)):
                    rounds.again()
            _judge(f, launch, count)


def _resume(f: Function, launch: View, thread: Value) -> None:
    launch["current"] = thread
    handle = launch["handles", thread]
    f.line(f"call fastcc void {f.load('ptr', handle)}(ptr {handle})")
    f.call(threads.AFTER, launch.address, thread, handle)


def _judge(f: Function, launch: View, count: Value) -> None:
    """No thread can go on: all are done, all wait at one barrier, which opens, or they have diverged."""
    state = launch.address
    finished, waiting, warped, odd = (f.variable("i32", -1) for _ in range(4))
    with f.loop(0, count, type_="i32") as t:
        status, place = launch["states", t], launch["places", t]
        is_part = status.eq(PART_WAIT)
        at_barrier = status.eq(BLOCK_WAIT) | is_part
        for found, is_there in ((finished, status.eq(FINISHED)), (warped, status.eq(WARP_WAIT))):
            found.set(f.select(is_there, t, found.get(), "i32"))
        before = waiting.get()
        is_first = before.less(0)
        first = f.select(is_first, t, before, "i32")
        waiting.set(f.select(at_barrier & is_first, t, before, "i32"))
        differs = launch["places", first].ne(place) | is_part
        odd.set(f.select(at_barrier & differs, t, odd.get(), "i32"))
    with f.unless(warped.get().less(0)):
        f.call(_DIVERGED, state, DIVERGED_WARP, warped.get())
        f.ret("false", "i1")
    with f.when(waiting.get().less(0)):
        f.ret("true", "i1")
    for kind, other in ((EARLY_EXIT, finished), (DIVERGED_BARRIER, odd)):
        with f.unless(other.get().less(0)):
            f.call(_REPORT, state, kind, waiting.get(), other.get())
            f.ret("false", "i1")
    launch["barrier_tick"] = tick(launch)
    f.fill(launch.at("states"), 0, (count * 4).cast("zext", "i64"))


def _write_reports(module: Module) -> None:
    """``sim.diverged``: a thread, and the first lane of its mask that does not wait with it. ``sim.report`` records
    two threads and stops the launch."""
    with module.function("internal void @sim.diverged(ptr %sim.state, i64 %kind, i32 %t) noinline nounwind") as f:
        state, kind, thread = f.arguments
        launch, base = launch_of(f), thread & -LANES
        mask, site = launch["masks", thread], launch["places", thread]
        with f.loop(0, LANES, type_="i32") as n, f.when(f.call(warps.MEMBER, state, mask, base, n)):
            lane = base + n
            with f.unless(warps.waits_alike(launch, lane, mask, site)):
                f.call(_REPORT, state, kind, thread, lane)
                f.ret()
        f.call(_REPORT, state, kind, thread, base + (LANES - 1))
    head = "internal void @sim.report(ptr %sim.state, i64 %kind, i32 %t, i32 %other) noinline nounwind"
    with module.function(head) as f:
        state, kind, thread, other = f.arguments
        launch = launch_of(f)
        is_over = launch["states", other].eq(FINISHED)
        its = f.select(is_over, -1, launch["places", other], "i32").cast("sext", "i64")
        launch["stopped"] = 1
        f.call(FINDING, state, kind, thread, -1, its, 0, other.cast("sext", "i64"), launch["places", thread])


def _write_part_barriers(module: Module) -> None:
    """``sim.arrive``: a thread passed a barrier of some without waiting. ``sim.open_parts`` opens the first barrier
    that as many threads wait for (or passed) as it asks for; masks hold the barrier's number."""
    with module.function("void @sim.arrive(ptr %sim.state, i32 %barrier) nounwind") as f:
        launch, barrier = launch_of(f), f.arguments[1] & (BARRIERS - 1)
        launch["arrived", barrier] = launch["arrived", barrier] + 1
    with module.function("internal i1 @sim.open_parts(ptr %sim.state) nounwind") as f:
        launch = launch_of(f)
        count = launch["threads"]
        with f.loop(0, count, type_="i32") as t, f.when(launch["states", t].eq(PART_WAIT)):
            name = launch["masks", t]
            barrier = name & (BARRIERS - 1)
            there = f.variable("i32", launch["arrived", barrier])
            with f.loop(0, count, type_="i32") as u:
                there.set(there.get() + _waits_for(launch, u, name).cast("zext", "i32"))
            with f.when(there.get().reaches(launch["counts", t])):
                launch["barrier_tick"] = tick(launch)
                launch["arrived", barrier] = 0
                with f.loop(0, count, type_="i32") as u, f.when(_waits_for(launch, u, name)):
                    launch["states", u] = READY
                f.ret("true", "i1")
        f.ret("false", "i1")


def _waits_for(launch: View, thread: Value, barrier: Value) -> Value:
    return launch["states", thread].eq(PART_WAIT) & launch["masks", thread].eq(barrier)
