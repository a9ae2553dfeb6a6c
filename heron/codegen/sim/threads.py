"""Native code of the simulated GPU's launches, blocks and threads: where each begins, what is noted after it ran."""

from __future__ import annotations

from heron.codegen.llvm.text import Function, Module
from heron.codegen.llvm.values import Value, View
from heron.runtime.sim.state import BARRIERS, FINDING_WORDS, FINISHED, MAX_FINDINGS, STEPS, State

#: records a finding: its kind, thread, row of memory, offset, size, what the kind makes of `other`, and site
FINDING = "void @sim.finding(ptr, i64, i32, i64, i64, i64, i64, i32)"
AFTER = "void @sim.after(ptr, i32, ptr)"


def launch_of(f: Function) -> View:
    """The launch, which every function has as its first argument."""
    return f.view(f.arguments[0], State)


def tick(launch: View) -> Value:
    """The next tick, which becomes the present one."""
    launch["tick"] = now = launch["tick"] + 1
    return now


def write(module: Module) -> None:
    """The functions of launches, blocks and threads."""
    _write_findings(module)
    _write_block(module)
    _write_frames(module)
    with module.function("void @sim.started(ptr %sim.state, i32 %t, ptr %handle) nounwind") as f:
        state, thread, handle = f.arguments
        launch_of(f)["handles", thread] = handle
        f.call(AFTER, state, thread, handle)
    _write_after(module)


def _write_findings(module: Module) -> None:
    """``sim.finding`` fills a row of the findings. ``sim.exhausted``: a thread has made more steps than any kernel
    should; the launch stops."""
    arguments = "i64 %kind, i32 %thread, i64 %row, i64 %offset, i64 %size, i64 %other, i32 %site"
    with module.function(f"void @sim.finding(ptr %sim.state, {arguments}) noinline nounwind") as f:
        _, kind, thread, row, offset, size, other, site = f.arguments
        launch = launch_of(f)
        n = launch["found"]
        launch["found"] = n + 1
        with f.when(n.reaches(MAX_FINDINGS)):
            f.ret()
        found = f.at(launch.at("findings"), n * FINDING_WORDS, "i64")
        words = (kind, launch["block"], thread.cast("sext", "i64"), row, offset, size, other, site.cast("sext", "i64"))
        for k, word in enumerate(words):
            f.store("i64", word, f.at(found, k, "i64"))
    with module.function("void @sim.exhausted(ptr %sim.state, i32 %t, i32 %site) noinline nounwind") as f:
        state, thread, site = f.arguments
        launch = launch_of(f)
        already = launch["stopped"]
        launch["stopped"] = 1
        with f.when(already.eq(0)):
            f.call(FINDING, state, STEPS, thread, -1, 0, 0, -1, site)


def _write_block(module: Module) -> None:
    """A block begins: whatever came before is of another block."""
    with module.function("void @sim.block(ptr %sim.state, i64 %b) nounwind") as f:
        launch, block = launch_of(f), f.arguments[1]
        launch["block"] = block
        launch["block_tick"] = launch["barrier_tick"] = now = tick(launch)
        f.fill(launch.at("arrived"), 0, 4 * BARRIERS)
        ticks = launch["block_ticks"]
        with f.when(ticks.ne("null")):
            f.store("i32", now, f.at(ticks, block, "i32"))


def _write_frames(module: Module) -> None:
    """``sim.frame`` gives memory of a thread's coroutine frame: all frames of a launch come from one allocation, which
    ``sim.end`` frees."""
    with module.function("ptr @sim.frame(ptr %sim.state, i64 %size, i32 %t) nounwind") as f:
        launch, size, thread = launch_of(f), *f.arguments[1:]
        each = (size + 63) & -64
        with f.when(launch["arena"].is_null()):
            launch["arena"] = f.call("ptr @malloc(i64)", each * launch["threads"].cast("zext", "i64"))
        f.ret(f.at(launch["arena"], each * thread.cast("zext", "i64"), "i8"))
    with module.function("void @sim.end(ptr %sim.state) nounwind") as f:
        launch = launch_of(f)
        f.call("void @free(ptr)", launch["arena"])
        launch["arena"] = "null"


def _write_after(module: Module) -> None:
    """After a thread ran: note what it waits for. A finished coroutine has no function to resume."""
    with module.function("internal void @sim.after(ptr %sim.state, i32 %t, ptr %handle) nounwind") as f:
        launch, thread, handle = launch_of(f), *f.arguments[1:]
        with f.when(f.load("ptr", handle).is_null()):
            launch["states", thread] = FINISHED
            f.ret()
        for noted, field in (("event", "states"), ("site", "places"), ("mask", "masks"), ("count", "counts")):
            launch[field, thread] = launch[noted]
