"""Native code of the simulated GPU's warps: lanes that meet, and those that are found active."""

from __future__ import annotations

from heron.codegen.llvm.text import Module
from heron.codegen.llvm.values import Value, View
from heron.codegen.sim.threads import launch_of, tick
from heron.runtime.sim.state import ACTIVE_WAIT, LANES, READY, WARP_WAIT

MEMBER = "i1 @sim.member(ptr, i32, i32, i32)"
RELEASE, ACTIVATE = "i1 @sim.release(ptr, i32)", "i1 @sim.activate(ptr)"
_WAKE = "void @sim.wake(ptr, i32, i32)"
_TICKS = f"<{LANES} x i32>"


def write(module: Module) -> None:
    """The functions of warps."""
    with module.function(
        "internal i1 @sim.member(ptr %sim.state, i32 %mask, i32 %base, i32 %i) alwaysinline nounwind"
    ) as f:
        # does lane i of the warp belong to the mask, and exist?
        launch, mask, base, lane = launch_of(f), *f.arguments[1:]
        f.ret((mask >> lane).cast("trunc", "i1") & (base + lane).below(launch["threads"]))
    _write_release(module)
    _write_wake(module)
    _write_activate(module)


def waits_alike(launch: View, lane: Value, mask: Value, site: Value) -> Value:
    """Whether a lane waits for the lanes of that mask, at that place in the code."""
    same = launch["states", lane].eq(WARP_WAIT) & launch["places", lane].eq(site)
    return same & launch["masks", lane].eq(mask)


def _write_release(module: Module) -> None:
    """A thread waits in its warp: when every lane its mask names waits alike, they all go on."""
    with module.function("internal i1 @sim.release(ptr %sim.state, i32 %t) nounwind") as f:
        state, thread = f.arguments
        launch, base = launch_of(f), thread & -LANES
        mask, site = launch["masks", thread], launch["places", thread]
        with f.loop(0, LANES, type_="i32") as n, f.when(f.call(MEMBER, state, mask, base, n)):
            with f.unless(waits_alike(launch, base + n, mask, site)):
                f.ret("false", "i1")
        f.call(_WAKE, state, base, mask)
        f.ret("true", "i1")


def _write_wake(module: Module) -> None:
    """The lanes of a mask met: they go on, see each other's values, and know what the others did before."""
    with module.function("internal void @sim.wake(ptr %sim.state, i32 %base, i32 %mask) nounwind") as f:
        state, base, mask = f.arguments
        launch = launch_of(f)
        now, known = tick(launch), f.variable(_TICKS, "zeroinitializer")
        with f.loop(0, LANES, type_="i32") as n, f.when(f.call(MEMBER, state, mask, base, n)):
            lane = base + n
            its = f.load(_TICKS, launch.at("known", lane * LANES), align=4)
            known.set(f.call(f"{_TICKS} @llvm.umax.v{LANES}i32({_TICKS}, {_TICKS})", known.get(), its))
            launch["snapshot", lane] = launch["values", lane]
        one = f.op(f"insertelement {_TICKS} poison, i32 {now}, i32 0", _TICKS)
        nows = f.op(f"shufflevector {_TICKS} {one}, {_TICKS} poison, {_TICKS} zeroinitializer", _TICKS)
        bits = mask.cast("bitcast", f"<{LANES} x i1>")
        met = f.op(f"select {bits.type} {bits}, {_TICKS} {nows}, {_TICKS} {known.get()}", _TICKS)
        with f.loop(0, LANES, type_="i32") as n, f.when(f.call(MEMBER, state, mask, base, n)):
            lane = base + n
            f.store(_TICKS, met, launch.at("known", lane * LANES), align=4)
            launch["states", lane] = READY


def _write_activate(module: Module) -> None:
    """Activate the lanes that ask at the same place while nobody else of the block can run; say if there are any."""
    with module.function("internal i1 @sim.activate(ptr %sim.state) nounwind") as f:
        launch = launch_of(f)
        threads, found = launch["threads"], f.variable("i1", "false")
        with f.loop(0, threads, type_="i32") as t, f.when(launch["states", t].eq(ACTIVE_WAIT)):
            found.set("true")
            base, site, mask = t & -LANES, launch["places", t], f.variable("i32", 0)
            with f.loop(0, LANES, type_="i32") as n:
                lane = base + n
                asks = launch["states", lane].eq(ACTIVE_WAIT) & launch["places", lane].eq(site)
                bit = f.select(asks & lane.below(threads), 1 << n, 0, "i32")
                mask.set(mask.get() | bit)
            members = mask.get()
            with f.loop(0, LANES, type_="i32") as n, f.when((members >> n).cast("trunc", "i1")):
                launch["members", base + n] = members
                launch["states", base + n] = READY
        f.ret(found.get())
