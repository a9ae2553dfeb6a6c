"""``python -m benchmarks.pool [NAME…]``: what a fork of the thread pool costs, and what threads gain on programs.

Best times of many repeats: a busy machine makes everything slower, but nothing faster than it is.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable

import click

import heron
from benchmarks import programs
from heron import Options
from heron.cli import values
from heron.codegen.llvm.jit import Jit
from heron.compiling import compile
from heron.runtime.cpu.pool import PARALLEL_FOR, Pool, thread_count

PROGRAMS = ("gelu_f32", "softmax", "layernorm")

_CODE = """
declare void @heron_parallel_for(ptr, ptr, ptr, i64, i64)

; 100 multiplications for each item, each waiting for the one before
define void @busy(ptr %a, i64 %lo, i64 %hi) {
entry:
  %items = sub i64 %hi, %lo
  %n = mul i64 %items, 100
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
  %x = phi double [ 1.0, %entry ], [ %y, %loop ]
  %y = fmul double %x, 0x3FF0000001000000
  %j = add i64 %i, 1
  %more = icmp ult i64 %j, %n
  br i1 %more, label %loop, label %done
done:
  %never = fcmp oeq double %y, 0.0
  br i1 %never, label %keep, label %end
keep:
  store double %y, ptr %a
  br label %end
end:
  ret void
}

define void @forks(ptr %pool, i64 %items, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
  call void @heron_parallel_for(ptr %pool, ptr @busy, ptr null, i64 %items, i64 1)
  %j = add i64 %i, 1
  %more = icmp ult i64 %j, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""


def best(action: Callable[[], object], seconds: float) -> float:
    """The shortest time of `action`, repeated for about so many seconds."""
    found, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        action()
        found = min(found, time.perf_counter() - start)
    return found


def latency(pool: Pool, seconds: float) -> None:
    """Print what a fork and join adds to the work's share of each thread."""
    jit = Jit(level=1, symbols={PARALLEL_FOR: pool.parallel_for})
    jit.add(_CODE, "pool_benchmark")
    forks = ctypes.CFUNCTYPE(None, ctypes.c_void_p, *[ctypes.c_int64] * 2)(jit.address("forks"))
    for items in (pool.threads, 16 * pool.threads, 256 * pool.threads):
        pool.stop()
        alone = best(lambda items=items: forks(pool.address, items, 500), seconds / 4) / 500
        pool.start()
        warm = best(lambda items=items: forks(pool.address, items, 500), seconds / 4) / 500

        def after_a_rest(items: int = items) -> float:
            time.sleep(0.001)
            start = time.perf_counter()
            forks(pool.address, items, 1)
            return time.perf_counter() - start

        cold = min(after_a_rest() for _ in range(int(seconds * 300)))
        share = alone / pool.threads
        click.echo(
            f"{alone * 1e6:8.2f} µs of work by {pool.threads} threads: {warm * 1e6:8.2f} µs in a row"
            f" (fork and join {(warm - share) * 1e6:5.2f}), {cold * 1e6:8.2f} µs with sleeping workers"
            f" (fork and join {(cold - share) * 1e6:5.2f})"
        )


def speedup(name: str, threads: int, small: bool, seconds: float) -> None:
    """Print a program's times by one and by `threads` threads, in turn."""
    module = heron.parse(programs.path(name, small).read_text())
    inputs = values.random(module, 0)
    one, many = (compile(module, "cpu", Options(threads=n)) for n in (1, threads))
    times = {1: float("inf"), threads: float("inf")}
    for _ in range(3):
        for n, program in ((1, one), (threads, many)):
            times[n] = min(times[n], best(lambda program=program: program.run(inputs), seconds / 6))
    shared = sum(bool(d) for d in many.trace.decisions if d.rule == "parallel-task-assigner")
    click.echo(
        f"{name:24} {times[1] * 1e3:9.3f} ms by one thread, {times[threads] * 1e3:9.3f} ms by {threads}:"
        f" {times[1] / times[threads]:.2f} x ({shared} of {len(many.kernels)} kernels shared)"
    )


@click.command()
@click.argument("names", nargs=-1)
@click.option("--threads", type=click.IntRange(min=2), help="Threads (default: the machine's, 2 at least).")
@click.option("--small", is_flag=True, help="The scaled-down programs.")
@click.option("--seconds", default=2.0, show_default=True, help="Time for each measurement.")
def main(names: tuple[str, ...], threads: int | None, small: bool, seconds: float) -> None:
    """Measure the thread pool, then NAMES (default: three programs without reductions to one value)."""
    threads = threads or max(2, thread_count(0))
    pool = Pool(threads)
    latency(pool, seconds)
    pool.stop()
    for name in names or PROGRAMS:
        speedup(name, threads, small, seconds)


if __name__ == "__main__":
    main()
