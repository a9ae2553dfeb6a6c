"""The thread pool's native half, as LLVM text: a fork needs no Python and, while workers are awake, no system call.

``void heron_parallel_for(ptr pool, ptr fn, ptr args, i64 items, i64 grain)`` calls ``fn(args, lo, hi)`` on disjoint
ranges that cover ``[0, items)``, cut at multiples of ``grain``, on the calling thread and the pool's workers, and
returns when all are done. Whoever finds the pool in use (a fork inside a fork, a second Python thread) works alone.

One 64-bit word, the ticket, holds a job's number (high half), its first range that nobody has taken and how many such
ranges there are (16 bits each). A range is taken by a compare-and-swap of the ticket: the caller takes the first one,
workers the last one, so that from job to job a thread meets data that is in its caches. The job's fields are read
before; if the swap succeeds they were that job's, since they change only when no range is left and then the job's
number is another one. So a worker that comes late finds nothing to do, and nobody waits for workers, only for ranges
that were taken.

Idle workers look at the ticket for a few microseconds, then sleep on its high half (Linux: futex), so they are out of
the way of other threads, a BLAS library's for example.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping

from heron.codegen.llvm.declarations import declared
from heron.codegen.native.common_code import for_good
from heron.runtime.cpu.pool import FUTEX, FUTEX_WAIT, FUTEX_WAKE, SLEEP_WORD, supported

#: ranges per thread, so that a thread that is held up does not hold up the others
_RANGES = 4
#: looks at the ticket before a worker sleeps, and at the ranges under way before the caller does (about 50 ns each)
_WORKER_LOOKS = 120
_CALLER_LOOKS = 1000

_PAUSE = {
    "x86_64": "call void @llvm.x86.sse2.pause()",
    "aarch64": "call void @llvm.aarch64.hint(i32 1)",
}


def make() -> Mapping[str, int] | None:
    """The addresses of the pool's functions; None where there can be no pool."""
    return for_good("pool", text()) if supported() else None


def text() -> str:
    """LLVM text of ``heron_parallel_for`` and ``heron_worker`` for this machine."""
    pause = _PAUSE[platform.machine()]
    futex = FUTEX[platform.machine()]
    return f"""
; line 0: i64 ticket, i32 sleepers | line 1: i32 ranges under way, i32 whether the caller sleeps
; line 2: i32 workers, i32 stop    | line 3: i32 in use | line 4: the job
%State = type {{ i64, i32, [13 x i32], i32, i32, [14 x i32], i32, i32, [14 x i32], i32, [15 x i32], %Job }}
%Job = type {{ ptr, ptr, i64, i64 }} ; fn, args, items, items of a range

{declared("i64 @syscall(i64, ...)")}

define internal void @futex_wait(ptr %word, i32 %seen) nounwind noinline {{
  call i64 (i64, ...) @syscall(i64 {futex}, ptr %word, i32 {FUTEX_WAIT}, i32 %seen, ptr null, ptr null, i32 0)
  ret void
}}

define internal void @futex_wake(ptr %word, i32 %threads) nounwind noinline {{
  call i64 (i64, ...) @syscall(i64 {futex}, ptr %word, i32 {FUTEX_WAKE}, i32 %threads, ptr null, ptr null, i32 0)
  ret void
}}

; take ranges and do them until none is left
define internal void @work(ptr %pool, i1 %from_end) nounwind {{
entry:
  %under_way = getelementptr %State, ptr %pool, i32 0, i32 3
  %sleeps = getelementptr %State, ptr %pool, i32 0, i32 4
  %job = getelementptr %State, ptr %pool, i32 0, i32 11
  %args_at = getelementptr %Job, ptr %job, i32 0, i32 1
  %items_at = getelementptr %Job, ptr %job, i32 0, i32 2
  %size_at = getelementptr %Job, ptr %job, i32 0, i32 3
  br label %look

look:
  %ticket = load atomic i64, ptr %pool acquire, align 64
  %left = and i64 %ticket, 65535
  %none = icmp eq i64 %left, 0
  br i1 %none, label %done, label %read

read:
  %fn = load atomic ptr, ptr %job monotonic, align 8
  %args = load atomic ptr, ptr %args_at monotonic, align 8
  %items = load atomic i64, ptr %items_at monotonic, align 8
  %size = load atomic i64, ptr %size_at monotonic, align 8
  ; from the start: one more is gone there, one less is left; from the end: one less is left
  %step = select i1 %from_end, i64 -1, i64 65535
  %fewer = add i64 %ticket, %step
  %exchange = cmpxchg ptr %pool, i64 %ticket, i64 %fewer acq_rel monotonic, align 64
  %taken = extractvalue {{ i64, i1 }} %exchange, 1
  br i1 %taken, label %run, label %look

run:
  %ticket_up = lshr i64 %ticket, 16
  %first = and i64 %ticket_up, 65535
  %last_up = add i64 %first, %left
  %last0 = sub i64 %last_up, 1
  %number = select i1 %from_end, i64 %last0, i64 %first
  %lo = mul i64 %number, %size
  %end = add i64 %lo, %size
  %hi = call i64 @llvm.umin.i64(i64 %end, i64 %items)
  call void %fn(ptr %args, i64 %lo, i64 %hi)
  %before = atomicrmw sub ptr %under_way, i32 1 seq_cst, align 64
  %last = icmp eq i32 %before, 1
  br i1 %last, label %tell, label %look

tell:
  %asleep = load atomic i32, ptr %sleeps seq_cst, align 4
  %awake = icmp eq i32 %asleep, 0
  br i1 %awake, label %look, label %wake

wake:
  call void @futex_wake(ptr %under_way, i32 1)
  br label %look

done:
  ret void
}}

define ptr @heron_worker(ptr %pool) nounwind {{
entry:
  %sleepers = getelementptr %State, ptr %pool, i32 0, i32 1
  %stop_at = getelementptr %State, ptr %pool, i32 0, i32 7
  %word = getelementptr i8, ptr %pool, i64 {SLEEP_WORD}
  br label %idle

idle:
  br label %look

look:
  %looks = phi i32 [ 0, %idle ], [ %more, %pause ]
  %stop = load atomic i32, ptr %stop_at monotonic, align 4
  %stopped = icmp ne i32 %stop, 0
  br i1 %stopped, label %end, label %open

open:
  %ticket = load atomic i64, ptr %pool acquire, align 64
  %left = and i64 %ticket, 65535
  %any = icmp ne i64 %left, 0
  br i1 %any, label %busy, label %pause

pause:
  {pause}
  %more = add i32 %looks, 1
  %tired = icmp eq i32 %more, {_WORKER_LOOKS}
  br i1 %tired, label %sleep, label %look

sleep:
  atomicrmw add ptr %sleepers, i32 1 seq_cst, align 8
  %again = load atomic i64, ptr %pool seq_cst, align 64
  %again_left = and i64 %again, 65535
  %again_any = icmp ne i64 %again_left, 0
  br i1 %again_any, label %up, label %wait

wait:
  %number = lshr i64 %again, 32
  %seen = trunc i64 %number to i32
  call void @futex_wait(ptr %word, i32 %seen)
  br label %up

up:
  atomicrmw sub ptr %sleepers, i32 1 seq_cst, align 8
  br label %idle

busy:
  call void @work(ptr %pool, i1 true)
  br label %idle

end:
  ret ptr null
}}

define void @heron_parallel_for(ptr %pool, ptr %fn, ptr %args, i64 %items, i64 %grain) nounwind {{
entry:
  %sleepers_at = getelementptr %State, ptr %pool, i32 0, i32 1
  %under_way = getelementptr %State, ptr %pool, i32 0, i32 3
  %sleeps = getelementptr %State, ptr %pool, i32 0, i32 4
  %workers_at = getelementptr %State, ptr %pool, i32 0, i32 6
  %in_use = getelementptr %State, ptr %pool, i32 0, i32 9
  %job = getelementptr %State, ptr %pool, i32 0, i32 11
  %args_at = getelementptr %Job, ptr %job, i32 0, i32 1
  %items_at = getelementptr %Job, ptr %job, i32 0, i32 2
  %size_at = getelementptr %Job, ptr %job, i32 0, i32 3
  %workers = load atomic i32, ptr %workers_at monotonic, align 64
  %threads = add i32 %workers, 1
  %wanted32 = mul i32 %threads, {_RANGES}
  %wanted = zext i32 %wanted32 to i64
  ; grains, grains of a range, ranges: each rounded up
  %items_up = add i64 %items, %grain
  %items_up1 = sub i64 %items_up, 1
  %grains = udiv i64 %items_up1, %grain
  %grains_up = add i64 %grains, %wanted
  %grains_up1 = sub i64 %grains_up, 1
  %each0 = udiv i64 %grains_up1, %wanted
  %each = call i64 @llvm.umax.i64(i64 %each0, i64 1)
  %size = mul i64 %each, %grain
  %ranges_up = add i64 %grains, %each
  %ranges_up1 = sub i64 %ranges_up, 1
  %ranges = udiv i64 %ranges_up1, %each
  %alone0 = icmp eq i32 %workers, 0
  %alone1 = icmp ult i64 %ranges, 2
  %alone = or i1 %alone0, %alone1
  br i1 %alone, label %serial, label %claim

claim:
  %exchange = cmpxchg ptr %in_use, i32 0, i32 1 acquire monotonic, align 64
  %mine = extractvalue {{ i32, i1 }} %exchange, 1
  br i1 %mine, label %publish, label %serial

serial:
  call void %fn(ptr %args, i64 0, i64 %items)
  ret void

publish:
  store atomic ptr %fn, ptr %job monotonic, align 8
  store atomic ptr %args, ptr %args_at monotonic, align 8
  store atomic i64 %items, ptr %items_at monotonic, align 8
  store atomic i64 %size, ptr %size_at monotonic, align 8
  %ranges32 = trunc i64 %ranges to i32
  store atomic i32 0, ptr %sleeps monotonic, align 4
  store atomic i32 %ranges32, ptr %under_way monotonic, align 64
  %old = load atomic i64, ptr %pool monotonic, align 64
  %next = add i64 %old, 4294967296
  %number = and i64 %next, -4294967296
  %ticket = or i64 %number, %ranges
  store atomic i64 %ticket, ptr %pool seq_cst, align 64
  %sleepers = load atomic i32, ptr %sleepers_at seq_cst, align 8
  %awake = icmp eq i32 %sleepers, 0
  br i1 %awake, label %join, label %wake

wake:
  %word = getelementptr i8, ptr %pool, i64 {SLEEP_WORD}
  %others = sub i32 %ranges32, 1
  call void @futex_wake(ptr %word, i32 %others)
  br label %join

join:
  call void @work(ptr %pool, i1 false)
  br label %look

look:
  %looks = phi i32 [ 0, %join ], [ %more, %pause ]
  %left = load atomic i32, ptr %under_way seq_cst, align 64
  %finished = icmp eq i32 %left, 0
  br i1 %finished, label %release, label %pause

pause:
  {pause}
  %more = add i32 %looks, 1
  %tired = icmp uge i32 %more, {_CALLER_LOOKS}
  br i1 %tired, label %sleep, label %look

sleep:
  store atomic i32 1, ptr %sleeps seq_cst, align 4
  %still = load atomic i32, ptr %under_way seq_cst, align 64
  %now = icmp eq i32 %still, 0
  br i1 %now, label %release, label %wait

wait:
  call void @futex_wait(ptr %under_way, i32 %still)
  br label %sleep

release:
  store atomic i32 0, ptr %in_use release, align 64
  ret void
}}
"""
