"""The scheduler of simulated threads, as LLVM IR: the same text for every kernel.

Each thread is a coroutine. Before it suspends it leaves in globals what it waits for: the whole block (barrier) or
lanes of its warp (shuffle, warp barrier). `sim.schedule` resumes whoever is ready until all are done; when nobody can
go on, threads have diverged, which is reported instead of hanging.

States of a thread: 0 ready, 1 at a block barrier, 2 at a warp synchronisation, 3 finished.
"""

from __future__ import annotations

MAX_THREADS = 1024
#: what `sim.finding` records: names in order of the i64 fields
FINDING_FIELDS = ("kind", "block", "thread", "buffer", "offset", "size", "other", "site")
MAX_FINDINGS = 64
#: kinds of findings
DIVERGED_BARRIER, EARLY_EXIT, DIVERGED_WARP, OUT_OF_BOUNDS, SHARED_BOUNDS, RACE_WRITE, RACE_READ = range(1, 8)

GLOBALS = f"""
; where findings go: a count, then rows of 8
@sim.event = internal global i32 0
@sim.site = internal global i32 0
@sim.mask = internal global i32 0
@sim.block = internal global i64 0
@sim.current = internal global i32 0
@sim.epoch = internal global i32 0
@sim.arena = internal global ptr null
@sim.threads = internal global i32 0
@sim.warp_epochs = internal global [32 x i32] zeroinitializer
@sim.states = internal global [{MAX_THREADS} x i32] zeroinitializer
@sim.places = internal global [{MAX_THREADS} x i32] zeroinitializer
@sim.masks = internal global [{MAX_THREADS} x i32] zeroinitializer
@sim.handles = internal global [{MAX_THREADS} x ptr] zeroinitializer
@sim.values = internal global [{MAX_THREADS} x i64] zeroinitializer
@sim.snapshot = internal global [{MAX_THREADS} x i64] zeroinitializer
@sim.findings = internal global ptr null
"""

FINDING = f"""
define internal void @sim.finding(i64 %kind, i64 %thread, i64 %buffer, i64 %offset, i64 %size, i64 %other, i64 %site)
    noinline nounwind {{
entry:
  %log = load ptr, ptr @sim.findings
  %n = load i64, ptr %log
  %n1 = add i64 %n, 1
  store i64 %n1, ptr %log
  %full = icmp uge i64 %n, {MAX_FINDINGS}
  br i1 %full, label %done, label %record
record:
  %block = load i64, ptr @sim.block
  %rows = getelementptr i64, ptr %log, i64 1
  %row = getelementptr [8 x i64], ptr %rows, i64 %n
  store i64 %kind, ptr %row
  %p1 = getelementptr i64, ptr %row, i64 1
  store i64 %block, ptr %p1
  %p2 = getelementptr i64, ptr %row, i64 2
  store i64 %thread, ptr %p2
  %p3 = getelementptr i64, ptr %row, i64 3
  store i64 %buffer, ptr %p3
  %p4 = getelementptr i64, ptr %row, i64 4
  store i64 %offset, ptr %p4
  %p5 = getelementptr i64, ptr %row, i64 5
  store i64 %size, ptr %p5
  %p6 = getelementptr i64, ptr %row, i64 6
  store i64 %other, ptr %p6
  %p7 = getelementptr i64, ptr %row, i64 7
  store i64 %site, ptr %p7
  br label %done
done:
  ret void
}}
"""

SCHEDULER = f"""
declare ptr @malloc(i64)
declare void @free(ptr)
declare void @llvm.coro.resume(ptr)
declare i1 @llvm.coro.done(ptr)

; memory of thread t's coroutine frame; all frames of a launch come from one allocation
define internal ptr @sim.frame(i64 %size, i32 %t) nounwind {{
entry:
  %up = add i64 %size, 63
  %each = and i64 %up, -64
  %arena = load ptr, ptr @sim.arena
  %none = icmp eq ptr %arena, null
  br i1 %none, label %allocate, label %give
allocate:
  %threads = load i32, ptr @sim.threads
  %wide = zext i32 %threads to i64
  %total = mul i64 %each, %wide
  %new = call ptr @malloc(i64 %total)
  store ptr %new, ptr @sim.arena
  br label %give
give:
  %base = phi ptr [ %arena, %entry ], [ %new, %allocate ]
  %t64 = zext i32 %t to i64
  %offset = mul i64 %each, %t64
  %frame = getelementptr i8, ptr %base, i64 %offset
  ret ptr %frame
}}

; after thread t ran: note what it waits for
define internal void @sim.after(i32 %t, ptr %handle) nounwind {{
entry:
  %p = getelementptr i32, ptr @sim.states, i32 %t
  %done = call i1 @llvm.coro.done(ptr %handle)
  br i1 %done, label %finished, label %waits
finished:
  store i32 3, ptr %p
  ret void
waits:
  %event = load i32, ptr @sim.event
  %site = load i32, ptr @sim.site
  %mask = load i32, ptr @sim.mask
  store i32 %event, ptr %p
  %q = getelementptr i32, ptr @sim.places, i32 %t
  store i32 %site, ptr %q
  %r = getelementptr i32, ptr @sim.masks, i32 %t
  store i32 %mask, ptr %r
  ret void
}}

; lane is in the warp's group when its bit is in the mask and the thread exists: 1 waits alike, 0 not (yet)
define internal i1 @sim.lane_waits(i32 %t, i32 %mask, i32 %site) alwaysinline nounwind {{
entry:
  %ps = getelementptr i32, ptr @sim.states, i32 %t
  %s = load i32, ptr %ps
  %pp = getelementptr i32, ptr @sim.places, i32 %t
  %place = load i32, ptr %pp
  %pm = getelementptr i32, ptr @sim.masks, i32 %t
  %m = load i32, ptr %pm
  %a = icmp eq i32 %s, 2
  %b = icmp eq i32 %place, %site
  %c = icmp eq i32 %m, %mask
  %ab = and i1 %a, %b
  %abc = and i1 %ab, %c
  ret i1 %abc
}}

; thread t waits in its warp: when every lane its mask names waits alike, let them all go on
define internal i1 @sim.release(i32 %t, i32 %threads) nounwind {{
entry:
  %base = and i32 %t, -32
  %pm = getelementptr i32, ptr @sim.masks, i32 %t
  %mask = load i32, ptr %pm
  %pp = getelementptr i32, ptr @sim.places, i32 %t
  %site = load i32, ptr %pp
  br label %test
test:
  %i = phi i32 [ 0, %entry ], [ %i1, %next ]
  %lane = add i32 %base, %i
  %bit = lshr i32 %mask, %i
  %odd = trunc i32 %bit to i1
  %exists = icmp ult i32 %lane, %threads
  %member = and i1 %odd, %exists
  br i1 %member, label %look, label %next
look:
  %waits = call i1 @sim.lane_waits(i32 %lane, i32 %mask, i32 %site)
  br i1 %waits, label %next, label %no
next:
  %i1 = add i32 %i, 1
  %more = icmp ult i32 %i1, 32
  br i1 %more, label %test, label %go
no:
  ret i1 false
go:
  %j = phi i32 [ 0, %next ], [ %j1, %after ]
  %lane2 = add i32 %base, %j
  %bit2 = lshr i32 %mask, %j
  %odd2 = trunc i32 %bit2 to i1
  %exists2 = icmp ult i32 %lane2, %threads
  %member2 = and i1 %odd2, %exists2
  br i1 %member2, label %wake, label %after
wake:
  %ps = getelementptr i32, ptr @sim.states, i32 %lane2
  store i32 0, ptr %ps
  %pv = getelementptr i64, ptr @sim.values, i32 %lane2
  %v = load i64, ptr %pv
  %pn = getelementptr i64, ptr @sim.snapshot, i32 %lane2
  store i64 %v, ptr %pn
  br label %after
after:
  %j1 = add i32 %j, 1
  %more2 = icmp ult i32 %j1, 32
  br i1 %more2, label %go, label %out
out:
  %w = lshr i32 %t, 5
  %pe = getelementptr i32, ptr @sim.warp_epochs, i32 %w
  %e = load i32, ptr %pe
  %e1 = add i32 %e, 1
  store i32 %e1, ptr %pe
  ret i1 true
}}

; runs the block's threads to their end; false after a divergence, which is recorded
define internal i1 @sim.schedule(i32 %threads) nounwind {{
entry:
  br label %round
round:
  br label %each
each:
  %t = phi i32 [ 0, %round ], [ %t1, %each_next ]
  %moved = phi i1 [ false, %round ], [ %moved1, %each_next ]
  %ps = getelementptr i32, ptr @sim.states, i32 %t
  %s = load i32, ptr %ps
  switch i32 %s, label %each_next [ i32 0, label %resume  i32 2, label %warp ]
resume:
  store i32 %t, ptr @sim.current
  %ph = getelementptr ptr, ptr @sim.handles, i32 %t
  %h = load ptr, ptr %ph
  call void @llvm.coro.resume(ptr %h)
  call void @sim.after(i32 %t, ptr %h)
  br label %each_next
warp:
  %released = call i1 @sim.release(i32 %t, i32 %threads)
  br label %each_next
each_next:
  %step = phi i1 [ false, %each ], [ true, %resume ], [ %released, %warp ]
  %moved1 = or i1 %moved, %step
  %t1 = add i32 %t, 1
  %more = icmp ult i32 %t1, %threads
  br i1 %more, label %each, label %stuck
stuck:
  br i1 %moved1, label %round, label %judge
judge:
  %u = phi i32 [ 0, %stuck ], [ %u1, %judge_next ]
  %finished = phi i32 [ -1, %stuck ], [ %finished1, %judge_next ]
  %waiting = phi i32 [ -1, %stuck ], [ %waiting1, %judge_next ]
  %warped = phi i32 [ -1, %stuck ], [ %warped1, %judge_next ]
  %odd = phi i32 [ -1, %stuck ], [ %odd1, %judge_next ]
  %pu = getelementptr i32, ptr @sim.states, i32 %u
  %su = load i32, ptr %pu
  %pp = getelementptr i32, ptr @sim.places, i32 %u
  %place = load i32, ptr %pp
  %is_done = icmp eq i32 %su, 3
  %is_barrier = icmp eq i32 %su, 1
  %is_warp = icmp eq i32 %su, 2
  %finished1 = select i1 %is_done, i32 %u, i32 %finished
  %warped1 = select i1 %is_warp, i32 %u, i32 %warped
  %first = icmp slt i32 %waiting, 0
  %take = and i1 %is_barrier, %first
  %waiting1 = select i1 %take, i32 %u, i32 %waiting
  %safe = select i1 %first, i32 %u, i32 %waiting
  %pw = getelementptr i32, ptr @sim.places, i32 %safe
  %its = load i32, ptr %pw
  %other_place = icmp ne i32 %its, %place
  %differs = and i1 %is_barrier, %other_place
  %odd1 = select i1 %differs, i32 %u, i32 %odd
  br label %judge_next
judge_next:
  %u1 = add i32 %u, 1
  %more_u = icmp ult i32 %u1, %threads
  br i1 %more_u, label %judge, label %verdict
verdict:
  %any_warp = icmp sge i32 %warped1, 0
  br i1 %any_warp, label %bad_warp, label %verdict2
verdict2:
  %any_barrier = icmp sge i32 %waiting1, 0
  br i1 %any_barrier, label %verdict3, label %all_done
all_done:
  ret i1 true
verdict3:
  %any_done = icmp sge i32 %finished1, 0
  br i1 %any_done, label %bad_exit, label %verdict4
verdict4:
  %any_odd = icmp sge i32 %odd1, 0
  br i1 %any_odd, label %bad_barrier, label %open
bad_warp:
  call void @sim.report(i64 {DIVERGED_WARP}, i32 %warped1, i32 %finished1)
  ret i1 false
bad_exit:
  call void @sim.report(i64 {EARLY_EXIT}, i32 %waiting1, i32 %finished1)
  ret i1 false
bad_barrier:
  call void @sim.report(i64 {DIVERGED_BARRIER}, i32 %waiting1, i32 %odd1)
  ret i1 false
open:
  %epoch = load i32, ptr @sim.epoch
  %epoch1 = add i32 %epoch, 1
  store i32 %epoch1, ptr @sim.epoch
  %bytes32 = mul i32 %threads, 4
  %bytes = zext i32 %bytes32 to i64
  call void @llvm.memset.p0.i64(ptr @sim.states, i8 0, i64 %bytes, i1 false)
  br label %round
}}

define internal void @sim.report(i64 %kind, i32 %t, i32 %other) noinline nounwind {{
entry:
  %pp = getelementptr i32, ptr @sim.places, i32 %t
  %site32 = load i32, ptr %pp
  %site = sext i32 %site32 to i64
  %t64 = sext i32 %t to i64
  %o64 = sext i32 %other to i64
  call void @sim.finding(i64 %kind, i64 %t64, i64 -1, i64 0, i64 0, i64 %o64, i64 %site)
  ret void
}}
"""

#: which lane a shuffle reads (PTX ISA, shfl.sync): mode 0 down, 1 up, 2 bfly, 3 idx
SHUFFLE = """
define internal i64 @sim.shuffled(i32 %mode, i32 %thread, i32 %b, i32 %c, i64 %own) alwaysinline nounwind {
entry:
  %lane = and i32 %thread, 31
  %base = and i32 %thread, -32
  %clamp = and i32 %c, 31
  %seg0 = lshr i32 %c, 8
  %seg = and i32 %seg0, 31
  %not = xor i32 %seg, 31
  %low = and i32 %lane, %seg
  %high0 = and i32 %clamp, %not
  %high = or i32 %low, %high0
  %down = add i32 %lane, %b
  %up = sub i32 %lane, %b
  %fly = xor i32 %lane, %b
  %idx0 = and i32 %b, %not
  %idx = or i32 %low, %idx0
  %is_up = icmp eq i32 %mode, 1
  %is_fly = icmp eq i32 %mode, 2
  %is_idx = icmp eq i32 %mode, 3
  %j0 = select i1 %is_up, i32 %up, i32 %down
  %j1 = select i1 %is_fly, i32 %fly, i32 %j0
  %j2 = select i1 %is_idx, i32 %idx, i32 %j1
  %le = icmp sle i32 %j2, %high
  %ge = icmp sge i32 %j2, %high
  %ok = select i1 %is_up, i1 %ge, i1 %le
  %j = select i1 %ok, i32 %j2, i32 %lane
  %source = add i32 %base, %j
  %threads = load i32, ptr @sim.threads
  %exists = icmp ult i32 %source, %threads
  %safe = select i1 %exists, i32 %source, i32 %thread
  %p = getelementptr i64, ptr @sim.snapshot, i32 %safe
  %value = load i64, ptr %p
  ret i64 %value
}
"""
