"""The thread pool's native half, as LLVM text: a fork needs no Python and, while workers are awake, no system call.

``void heron_parallel_for(ptr pool, ptr fn, ptr args, i64 items, i64 grain)`` calls ``fn(args, lo, hi)`` on disjoint
ranges that cover ``[0, items)``, cut at multiples of ``grain``, on the calling thread and the pool's workers, and
returns when all are done. A caller that finds the pool in use (a fork inside a fork, a second Python thread) works
alone.

One 64-bit word, the ticket, holds a job's number (high half), its first range that nobody has taken and how many such
ranges there are (16 bits each). A range is taken by a compare-and-swap of the ticket: the caller takes the first one,
workers the last one, so that from job to job a thread meets data that is in its caches. The job's fields are read
before; if the swap succeeds they were that job's, since they change only when no range is left and then the job's
number is another one. So a worker that comes late finds nothing to do, and nobody waits for workers, only for ranges
that were taken.

Idle workers look at the ticket for a few microseconds, then sleep on its high half (Linux: futex), so they are out of
the way of other threads, a BLAS library's for example.

Workers take over the floating-point mode of the thread whose job they do.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping

from heron.codegen.llvm.text import Function, Module
from heron.codegen.llvm.values import Value
from heron.codegen.native import float_mode
from heron.codegen.native.common_code import for_good
from heron.runtime.cpu.pool import (
    FUTEX,
    FUTEX_WAIT,
    FUTEX_WAKE,
    MOST_POINTERS,
    PARALLEL_FOR,
    SLEEP_WORD,
    WORKER,
    State,
    range_name,
    supported,
)

#: ranges per thread, so that a thread that is held up does not hold up the others
_RANGES = 4
#: looks at the ticket before a worker sleeps, and at the ranges under way before the caller does (about 50 ns each)
_WORKER_LOOKS = 120
_CALLER_LOOKS = 1000

#: tells the processor that a thread looks at memory again and again
_PAUSE = {"x86_64": "call void @llvm.x86.sse2.pause()", "aarch64": "call void @llvm.aarch64.hint(i32 1)"}

#: of a ticket: a range fewer, and one more that is gone at the start
_FEWER, _NEXT = -1, 65535
_JOB = 1 << 32

_SYSCALL = "i64 @syscall(i64, ...)"
_RANGE = "(ptr, i64, i64)"


def make() -> Mapping[str, int] | None:
    """The addresses of the pool's functions; None where there can be no pool."""
    return for_good("pool", text()) if supported() else None


def text() -> str:
    """LLVM text of ``heron_parallel_for``, ``heron_worker`` and ``heron_range_N`` for this machine."""
    module = Module()
    float_mode.write(module)
    _write_work(module)
    _write_worker(module)
    _write_fork(module)
    return module.text() + "".join(map(_range, range(1, MOST_POINTERS + 1)))


def _wait(f: Function, word: Value, seen: Value) -> None:
    """Sleep while a word is what was seen of it."""
    f.call(_SYSCALL, FUTEX[platform.machine()], word, f"i32 {FUTEX_WAIT}", seen, "ptr null", "ptr null", "i32 0")


def _wake(f: Function, word: Value, threads: str) -> None:
    f.call(_SYSCALL, FUTEX[platform.machine()], word, f"i32 {FUTEX_WAKE}", threads, "ptr null", "ptr null", "i32 0")


def _left(f: Function, pool: Value, order: str) -> tuple[Value, Value]:
    """The ticket, and how many ranges nobody has taken."""
    ticket = f.load("i64", pool, order=order, align=64)
    return ticket, ticket & 65535


def _write_work(module: Module) -> None:
    """Take ranges and do them until none is left: the caller from the start, workers from the end."""
    with module.function("internal void @work(ptr %pool, i1 %from_end) nounwind") as f:
        pool, from_end = f.arguments
        state = f.view(pool, State)
        step = f.select(from_end, _FEWER, _NEXT, "i64")
        fields = [
            (kind, state.at(n))
            for kind, n in (
                ("ptr", "function"), ("ptr", "args"), ("i64", "items"), ("i64", "size"), ("i64", "float_mode"),
            )
        ]  # fmt: skip
        under_way = state.at("under_way")
        with f.repeat() as each:
            ticket, left = _left(f, pool, "acquire")
            with f.when(left.eq(0)):
                f.ret()
            function, args, items, size, mode = (f.load(kind, at, order="monotonic") for kind, at in fields)
            with f.unless(f.swap("i64", pool, ticket, ticket + step, "acq_rel monotonic, align 64")):
                each.again()
            first = (ticket >> 16) & 65535
            lo = f.select(from_end, first + left - 1, first, "i64") * size
            with f.when(from_end):
                f.call(float_mode.WRITE, mode)
            f.call(f"void {function}{_RANGE}", args, lo, f.least(lo + size, items))
            with f.when(f.change("sub", "i32", under_way, 1, "seq_cst, align 64").ne(1)):
                each.again()
            with f.when(f.load("i32", state.at("caller_sleeps"), order="seq_cst").ne(0)):
                _wake(f, under_way, "i32 1")


def _write_worker(module: Module) -> None:
    """Look at the ticket for a while, then sleep until there is another one."""
    with module.function(f"ptr @{WORKER}(ptr %pool) nounwind") as f:
        pool = f.arguments[0]
        state = f.view(pool, State)
        looks = f.variable("i32", 0)
        with f.repeat() as each:
            with f.when(f.load("i32", state.at("stop"), order="monotonic").ne(0)):
                f.ret("null", "ptr")
            with f.when(_left(f, pool, "acquire")[1].ne(0)):
                f.call("void @work(ptr, i1)", pool, "true")
                looks.set(0)
                each.again()
            f.line(_PAUSE[platform.machine()])
            looks.set(looks.get() + 1)
            with f.when(looks.get().ne(_WORKER_LOOKS)):
                each.again()
            sleepers = state.at("sleepers")
            f.change("add", "i32", sleepers, 1, "seq_cst, align 8")
            ticket, left = _left(f, pool, "seq_cst")
            with f.when(left.eq(0)):
                _wait(f, f.at(pool, SLEEP_WORD, "i8"), (ticket >> 32).cast("trunc", "i32"))
            f.change("sub", "i32", sleepers, 1, "seq_cst, align 8")
            looks.set(0)


def _up(f: Function, number: Value, part: Value) -> Value:
    """The number of parts of that size, the last one maybe smaller."""
    return (number + part - 1) // part


def _write_fork(module: Module) -> None:
    """Cut the items into ranges, publish the job, work, and wait for the ranges that others took."""
    head = f"void @{PARALLEL_FOR}(ptr %pool, ptr %fn, ptr %args, i64 %items, i64 %grain) nounwind"
    with module.function(head) as f:
        pool, fn, args, items, grain = f.arguments
        state = f.view(pool, State)
        workers = f.load("i32", state.at("workers"), order="monotonic", align=64)
        wanted = ((workers + 1) * _RANGES).cast("zext", "i64")
        grains = _up(f, items, grain)
        each = f.call("i64 @llvm.umax.i64(i64, i64)", _up(f, grains, wanted), 1)
        ranges = _up(f, grains, each)
        in_use = state.at("in_use")
        with f.when(workers.eq(0) | ranges.below(2)):
            f.call(f"void {fn}{_RANGE}", args, 0, items)
            f.ret()
        with f.unless(f.swap("i32", in_use, 0, 1, "acquire monotonic, align 64")):
            f.call(f"void {fn}{_RANGE}", args, 0, items)
            f.ret()
        for kind, name, value in (
            ("ptr", "function", fn), ("ptr", "args", args), ("i64", "items", items), ("i64", "size", each * grain),
            ("i64", "float_mode", f.call(float_mode.READ)),
        ):  # fmt: skip
            f.store(kind, value, state.at(name), order="monotonic")
        _publish(f, pool, ranges.cast("trunc", "i32"), ranges)
        f.call("void @work(ptr, i1)", pool, "false")
        _finish(f, pool)
        f.store("i32", 0, in_use, order="release", align=64)


def _publish(f: Function, pool: Value, count: Value, ranges: Value) -> None:
    """A ticket with the next job's number and all of its ranges; whoever sleeps wakes up."""
    state = f.view(pool, State)
    f.store("i32", 0, state.at("caller_sleeps"), order="monotonic")
    f.store("i32", count, state.at("under_way"), order="monotonic", align=64)
    number = (f.load("i64", pool, order="monotonic", align=64) + _JOB) & -_JOB
    f.store("i64", number | ranges, pool, order="seq_cst", align=64)
    with f.when(f.load("i32", state.at("sleepers"), order="seq_cst", align=8).ne(0)):
        _wake(f, f.at(pool, SLEEP_WORD, "i8"), count - 1)


def _finish(f: Function, pool: Value) -> None:
    """Wait until no range is under way, awake for a while."""
    state = f.view(pool, State)
    under_way, looks = state.at("under_way"), f.variable("i32", 0)
    with f.repeat() as each:
        with f.when(f.load("i32", under_way, order="seq_cst", align=64).eq(0)):
            each.leave()
        with f.when(looks.get().below(_CALLER_LOOKS)):
            f.line(_PAUSE[platform.machine()])
            looks.set(looks.get() + 1)
            each.again()
        f.store("i32", 1, state.at("caller_sleeps"), order="seq_cst")
        still = f.load("i32", under_way, order="seq_cst", align=64)
        with f.when(still.ne(0)):
            _wait(f, under_way, still)


def _range(pointers: int) -> str:
    """Call a kernel of so many pointers, which follows them, on a range of its work items."""
    lines = [f"define void @{range_name(pointers)}(ptr %args, i64 %lo, i64 %hi) nounwind {{"]
    for n in range(pointers + 1):
        lines.append(f"  %at{n} = getelementptr ptr, ptr %args, i64 {n}")
        lines.append(f"  %p{n} = load ptr, ptr %at{n}")
    given = "".join(f"ptr %p{n}, " for n in range(pointers))
    return "\n".join([*lines, f"  call void %p{pointers}({given}i64 %lo, i64 %hi)", "  ret void", "}", ""])
