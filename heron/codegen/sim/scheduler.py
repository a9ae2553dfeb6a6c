"""The scheduler of simulated threads, as LLVM text.

Each thread is a coroutine. Before it suspends it leaves in the state what it waits for: the block (barrier) or lanes of
its warp (shuffle, vote, warp barrier). `sim.schedule` resumes whoever is ready until all are done; when nobody can go
on, threads have diverged, which is reported instead of hanging.
"""

from __future__ import annotations

from heron.codegen.llvm.declarations import declared
from heron.runtime.sim.state import (
    ACTIVE_WAIT,
    BARRIERS,
    BLOCK_WAIT,
    DIVERGED_BARRIER,
    DIVERGED_WARP,
    EARLY_EXIT,
    FINDING_WORDS,
    FINISHED,
    LANES,
    MAX_FINDINGS,
    PART_WAIT,
    READY,
    STEPS,
    WARP_WAIT,
)

FINDING = f"""
; one row of the findings
define void @sim.finding(ptr %sim.state, i64 %kind, i32 %thread, i64 %row, i64 %offset, i64 %size, i64 %other,
    i32 %site) noinline nounwind {{
entry:
  %n = get i64 found
  %n1 = add i64 %n, 1
  set i64 %n1, found
  %full = icmp uge i64 %n, {MAX_FINDINGS}
  br i1 %full, label %done, label %record
record:
  %block = get i64 block
  %thread64 = sext i32 %thread to i64
  %site64 = sext i32 %site to i64
  %log = at i64 findings
  %p = getelementptr [{FINDING_WORDS} x i64], ptr %log, i64 %n
  store i64 %kind, ptr %p
  %p1 = getelementptr i64, ptr %p, i64 1
  store i64 %block, ptr %p1
  %p2 = getelementptr i64, ptr %p, i64 2
  store i64 %thread64, ptr %p2
  %p3 = getelementptr i64, ptr %p, i64 3
  store i64 %row, ptr %p3
  %p4 = getelementptr i64, ptr %p, i64 4
  store i64 %offset, ptr %p4
  %p5 = getelementptr i64, ptr %p, i64 5
  store i64 %size, ptr %p5
  %p6 = getelementptr i64, ptr %p, i64 6
  store i64 %other, ptr %p6
  %p7 = getelementptr i64, ptr %p, i64 7
  store i64 %site64, ptr %p7
  br label %done
done:
  ret void
}}

; a thread has made more steps than any kernel should
define void @sim.exhausted(ptr %sim.state, i32 %t, i32 %site) noinline nounwind {{
entry:
  %already = get i32 stopped
  set i32 1, stopped
  %first = icmp eq i32 %already, 0
  br i1 %first, label %tell, label %done
tell:
  call void @sim.finding(ptr %sim.state, i64 {STEPS}, i32 %t, i64 -1, i64 0, i64 0, i64 -1, i32 %site)
  br label %done
done:
  ret void
}}
"""

BLOCK = f"""
{declared("ptr @malloc(i64)", "void @free(ptr)")}
; a block begins: whatever came before is of another block
define void @sim.block(ptr %sim.state, i64 %b) nounwind {{
entry:
  set i64 %b, block
  %tick = get i32 tick
  %now = add i32 %tick, 1
  set i32 %now, tick
  set i32 %now, block_tick
  set i32 %now, barrier_tick
  %arrived = at i32 arrived
  call void @llvm.memset.p0.i64(ptr %arrived, i8 0, i64 {4 * BARRIERS}, i1 false)
  %ticks = get ptr block_ticks
  %none = icmp eq ptr %ticks, null
  br i1 %none, label %done, label %note
note:
  %p = getelementptr i32, ptr %ticks, i64 %b
  store i32 %now, ptr %p
  br label %done
done:
  ret void
}}

; memory of thread t's coroutine frame; all frames of a launch come from one allocation
define ptr @sim.frame(ptr %sim.state, i64 %size, i32 %t) nounwind {{
entry:
  %up = add i64 %size, 63
  %each = and i64 %up, -64
  %arena = get ptr arena
  %none = icmp eq ptr %arena, null
  br i1 %none, label %allocate, label %give
allocate:
  %threads = get i32 threads
  %wide = zext i32 %threads to i64
  %total = mul i64 %each, %wide
  %new = call ptr @malloc(i64 %total)
  set ptr %new, arena
  br label %give
give:
  %base = phi ptr [ %arena, %entry ], [ %new, %allocate ]
  %t64 = zext i32 %t to i64
  %offset = mul i64 %each, %t64
  %frame = getelementptr i8, ptr %base, i64 %offset
  ret ptr %frame
}}

; the launch is over: its frames go
define void @sim.end(ptr %sim.state) nounwind {{
entry:
  %arena = get ptr arena
  call void @free(ptr %arena)
  set ptr null, arena
  ret void
}}

; thread t ran for the first time
define void @sim.started(ptr %sim.state, i32 %t, ptr %handle) nounwind {{
entry:
  set ptr %handle, handles[%t]
  call void @sim.after(ptr %sim.state, i32 %t, ptr %handle)
  ret void
}}

; after thread t ran: note what it waits for. A finished coroutine has no function to resume
define internal void @sim.after(ptr %sim.state, i32 %t, ptr %handle) nounwind {{
entry:
  %next = load ptr, ptr %handle
  %done = icmp eq ptr %next, null
  br i1 %done, label %finished, label %waits
finished:
  set i32 {FINISHED}, states[%t]
  ret void
waits:
  %event = get i32 event
  %site = get i32 site
  %mask = get i32 mask
  %count = get i32 count
  set i32 %event, states[%t]
  set i32 %site, places[%t]
  set i32 %mask, masks[%t]
  set i32 %count, counts[%t]
  ret void
}}
"""

WARP = f"""
; does lane i of the warp belong to the mask, and exist?
define internal i1 @sim.member(ptr %sim.state, i32 %mask, i32 %base, i32 %i) alwaysinline nounwind {{
entry:
  %threads = get i32 threads
  %bit = lshr i32 %mask, %i
  %named = trunc i32 %bit to i1
  %lane = add i32 %base, %i
  %exists = icmp ult i32 %lane, %threads
  %member = and i1 %named, %exists
  ret i1 %member
}}

; thread t waits in its warp: when every lane its mask names waits alike, let them all go on
define internal i1 @sim.release(ptr %sim.state, i32 %t) nounwind {{
entry:
  %base = and i32 %t, -{LANES}
  %mask = get i32 masks[%t]
  %site = get i32 places[%t]
  br label %test
test:
  %i = phi i32 [ 0, %entry ], [ %i1, %next ]
  %member = call i1 @sim.member(ptr %sim.state, i32 %mask, i32 %base, i32 %i)
  br i1 %member, label %look, label %next
look:
  %lane = add i32 %base, %i
  %s = get i32 states[%lane]
  %place = get i32 places[%lane]
  %m = get i32 masks[%lane]
  %a = icmp eq i32 %s, {WARP_WAIT}
  %b = icmp eq i32 %place, %site
  %c = icmp eq i32 %m, %mask
  %ab = and i1 %a, %b
  %abc = and i1 %ab, %c
  br i1 %abc, label %next, label %no
next:
  %i1 = add i32 %i, 1
  %more = icmp ult i32 %i1, {LANES}
  br i1 %more, label %test, label %go
no:
  ret i1 false
go:
  call void @sim.wake(ptr %sim.state, i32 %base, i32 %mask)
  ret i1 true
}}

; the lanes of a mask met: they go on, see each other's values, and know what the others did before
define internal void @sim.wake(ptr %sim.state, i32 %base, i32 %mask) nounwind {{
entry:
  %tick = get i32 tick
  %now = add i32 %tick, 1
  set i32 %now, tick
  br label %gather
gather:
  %i = phi i32 [ 0, %entry ], [ %i1, %gather_next ]
  %known = phi <{LANES} x i32> [ zeroinitializer, %entry ], [ %known1, %gather_next ]
  %member = call i1 @sim.member(ptr %sim.state, i32 %mask, i32 %base, i32 %i)
  br i1 %member, label %take, label %gather_next
take:
  %lane = add i32 %base, %i
  %row = mul i32 %lane, {LANES}
  %its = at i32 known[%row]
  %it = load <{LANES} x i32>, ptr %its, align 4
  %joined = call <{LANES} x i32> @llvm.umax.v{LANES}i32(<{LANES} x i32> %known, <{LANES} x i32> %it)
  %v = get i64 values[%lane]
  set i64 %v, snapshot[%lane]
  br label %gather_next
gather_next:
  %known1 = phi <{LANES} x i32> [ %known, %gather ], [ %joined, %take ]
  %i1 = add i32 %i, 1
  %more = icmp ult i32 %i1, {LANES}
  br i1 %more, label %gather, label %stamp
stamp:
  %bits = bitcast i32 %mask to <{LANES} x i1>
  %one = insertelement <{LANES} x i32> poison, i32 %now, i32 0
  %nows = shufflevector <{LANES} x i32> %one, <{LANES} x i32> poison, <{LANES} x i32> zeroinitializer
  %met = select <{LANES} x i1> %bits, <{LANES} x i32> %nows, <{LANES} x i32> %known1
  br label %give
give:
  %j = phi i32 [ 0, %stamp ], [ %j1, %give_next ]
  %member2 = call i1 @sim.member(ptr %sim.state, i32 %mask, i32 %base, i32 %j)
  br i1 %member2, label %wake, label %give_next
wake:
  %lane2 = add i32 %base, %j
  %row2 = mul i32 %lane2, {LANES}
  %theirs = at i32 known[%row2]
  store <{LANES} x i32> %met, ptr %theirs, align 4
  set i32 {READY}, states[%lane2]
  br label %give_next
give_next:
  %j1 = add i32 %j, 1
  %more2 = icmp ult i32 %j1, {LANES}
  br i1 %more2, label %give, label %done
done:
  ret void
}}
"""

SCHEDULE = f"""
; runs the block's threads to their end; false after a divergence, which is recorded
define i1 @sim.schedule(ptr %sim.state) nounwind {{
entry:
  %threads = get i32 threads
  br label %round
round:
  br label %each
each:
  %t = phi i32 [ 0, %round ], [ %t1, %each_next ]
  %moved = phi i1 [ false, %round ], [ %moved1, %each_next ]
  %s = get i32 states[%t]
  switch i32 %s, label %each_next [ i32 {READY}, label %resume  i32 {WARP_WAIT}, label %warp ]
resume:
  set i32 %t, current
  %h = get ptr handles[%t]
  %function = load ptr, ptr %h
  call fastcc void %function(ptr %h)
  call void @sim.after(ptr %sim.state, i32 %t, ptr %h)
  br label %each_next
warp:
  %released = call i1 @sim.release(ptr %sim.state, i32 %t)
  br label %each_next
each_next:
  %step = phi i1 [ false, %each ], [ true, %resume ], [ %released, %warp ]
  %moved1 = or i1 %moved, %step
  %t1 = add i32 %t, 1
  %more = icmp ult i32 %t1, %threads
  br i1 %more, label %each, label %stuck
stuck:
  %over = get i32 stopped
  %stop = icmp ne i32 %over, 0
  br i1 %stop, label %failed, label %on
failed:
  ret i1 false
on:
  br i1 %moved1, label %round, label %some
some:
  %active = call i1 @sim.activate(ptr %sim.state)
  br i1 %active, label %round, label %parts
parts:
  %opened = call i1 @sim.open_parts(ptr %sim.state)
  br i1 %opened, label %round, label %judge
judge:
  %u = phi i32 [ 0, %parts ], [ %u1, %judge ]
  %finished = phi i32 [ -1, %parts ], [ %finished1, %judge ]
  %waiting = phi i32 [ -1, %parts ], [ %waiting1, %judge ]
  %warped = phi i32 [ -1, %parts ], [ %warped1, %judge ]
  %odd = phi i32 [ -1, %parts ], [ %odd1, %judge ]
  %su = get i32 states[%u]
  %place = get i32 places[%u]
  %is_done = icmp eq i32 %su, {FINISHED}
  %is_barrier0 = icmp eq i32 %su, {BLOCK_WAIT}
  %is_part = icmp eq i32 %su, {PART_WAIT}
  %is_barrier = or i1 %is_barrier0, %is_part
  %is_warp = icmp eq i32 %su, {WARP_WAIT}
  %finished1 = select i1 %is_done, i32 %u, i32 %finished
  %warped1 = select i1 %is_warp, i32 %u, i32 %warped
  %first = icmp slt i32 %waiting, 0
  %take = and i1 %is_barrier, %first
  %waiting1 = select i1 %take, i32 %u, i32 %waiting
  %safe = select i1 %first, i32 %u, i32 %waiting
  %its = get i32 places[%safe]
  %other_place = icmp ne i32 %its, %place
  %odd_one = or i1 %other_place, %is_part
  %differs = and i1 %is_barrier, %odd_one
  %odd1 = select i1 %differs, i32 %u, i32 %odd
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
  call void @sim.diverged(ptr %sim.state, i64 {DIVERGED_WARP}, i32 %warped1)
  ret i1 false
bad_exit:
  call void @sim.report(ptr %sim.state, i64 {EARLY_EXIT}, i32 %waiting1, i32 %finished1)
  ret i1 false
bad_barrier:
  call void @sim.report(ptr %sim.state, i64 {DIVERGED_BARRIER}, i32 %waiting1, i32 %odd1)
  ret i1 false
open:
  %tick = get i32 tick
  %now = add i32 %tick, 1
  set i32 %now, tick
  set i32 %now, barrier_tick
  %bytes32 = mul i32 %threads, 4
  %bytes = zext i32 %bytes32 to i64
  %all = at i32 states
  call void @llvm.memset.p0.i64(ptr %all, i8 0, i64 %bytes, i1 false)
  br label %round
}}

; thread t and the first lane of its mask that does not wait with it
define internal void @sim.diverged(ptr %sim.state, i64 %kind, i32 %t) noinline nounwind {{
entry:
  %base = and i32 %t, -{LANES}
  %mask = get i32 masks[%t]
  %site = get i32 places[%t]
  br label %test
test:
  %i = phi i32 [ 0, %entry ], [ %i1, %next ]
  %lane = add i32 %base, %i
  %member = call i1 @sim.member(ptr %sim.state, i32 %mask, i32 %base, i32 %i)
  br i1 %member, label %look, label %next
look:
  %s = get i32 states[%lane]
  %place = get i32 places[%lane]
  %m = get i32 masks[%lane]
  %a = icmp ne i32 %s, {WARP_WAIT}
  %b = icmp ne i32 %place, %site
  %c = icmp ne i32 %m, %mask
  %ab = or i1 %a, %b
  %abc = or i1 %ab, %c
  br i1 %abc, label %tell, label %next
next:
  %i1 = add i32 %i, 1
  %more = icmp ult i32 %i1, {LANES}
  br i1 %more, label %test, label %tell
tell:
  call void @sim.report(ptr %sim.state, i64 %kind, i32 %t, i32 %lane)
  ret void
}}

define internal void @sim.report(ptr %sim.state, i64 %kind, i32 %t, i32 %other) noinline nounwind {{
entry:
  %site = get i32 places[%t]
  %o64 = sext i32 %other to i64
  %so = get i32 states[%other]
  %po = get i32 places[%other]
  %over = icmp eq i32 %so, {FINISHED}
  %its32 = select i1 %over, i32 -1, i32 %po
  %its = sext i32 %its32 to i64
  set i32 1, stopped
  call void @sim.finding(ptr %sim.state, i64 %kind, i32 %t, i64 -1, i64 %its, i64 0, i64 %o64, i32 %site)
  ret void
}}
"""

#: who is active: lanes that ask at the same place while nobody else of the block can run
ACTIVATE = f"""
define internal i1 @sim.activate(ptr %sim.state) nounwind {{
entry:
  %threads = get i32 threads
  br label %each
each:
  %t = phi i32 [ 0, %entry ], [ %t1, %next ]
  %any = phi i1 [ false, %entry ], [ %any1, %next ]
  %s = get i32 states[%t]
  %asks = icmp eq i32 %s, {ACTIVE_WAIT}
  br i1 %asks, label %group, label %next
group:
  %base = and i32 %t, -{LANES}
  %site = get i32 places[%t]
  br label %lanes
lanes:
  %i = phi i32 [ 0, %group ], [ %i1, %lanes ]
  %mask = phi i32 [ 0, %group ], [ %mask1, %lanes ]
  %lane = add i32 %base, %i
  %sl = get i32 states[%lane]
  %pl = get i32 places[%lane]
  %exists = icmp ult i32 %lane, %threads
  %too = icmp eq i32 %sl, {ACTIVE_WAIT}
  %here = icmp eq i32 %pl, %site
  %both = and i1 %too, %here
  %with = and i1 %both, %exists
  %bit = shl i32 1, %i
  %add = select i1 %with, i32 %bit, i32 0
  %mask1 = or i32 %mask, %add
  %i1 = add i32 %i, 1
  %more_lanes = icmp ult i32 %i1, {LANES}
  br i1 %more_lanes, label %lanes, label %tell
tell:
  %j = phi i32 [ 0, %lanes ], [ %j1, %tell_next ]
  %bit2 = lshr i32 %mask1, %j
  %in = trunc i32 %bit2 to i1
  br i1 %in, label %wake, label %tell_next
wake:
  %lane2 = add i32 %base, %j
  set i32 %mask1, members[%lane2]
  set i32 {READY}, states[%lane2]
  br label %tell_next
tell_next:
  %j1 = add i32 %j, 1
  %more_tell = icmp ult i32 %j1, {LANES}
  br i1 %more_tell, label %tell, label %next
next:
  %any1 = phi i1 [ %any, %each ], [ true, %tell_next ]
  %t1 = add i32 %t, 1
  %more = icmp ult i32 %t1, %threads
  br i1 %more, label %each, label %done
done:
  ret i1 %any1
}}

; a thread passed a barrier of some without waiting
define void @sim.arrive(ptr %sim.state, i32 %barrier) nounwind {{
entry:
  %b = and i32 %barrier, {BARRIERS - 1}
  %n = get i32 arrived[%b]
  %n1 = add i32 %n, 1
  set i32 %n1, arrived[%b]
  ret void
}}

; opens the first barrier that as many threads wait for (or passed) as it asks for; masks hold the barrier's number
define internal i1 @sim.open_parts(ptr %sim.state) nounwind {{
entry:
  %threads = get i32 threads
  br label %each
each:
  %t = phi i32 [ 0, %entry ], [ %t1, %next ]
  %s = get i32 states[%t]
  %waits = icmp eq i32 %s, {PART_WAIT}
  br i1 %waits, label %sum, label %next
sum:
  %wide = get i32 masks[%t]
  %b = and i32 %wide, {BARRIERS - 1}
  %wanted = get i32 counts[%t]
  %passed = get i32 arrived[%b]
  br label %add
add:
  %u = phi i32 [ 0, %sum ], [ %u1, %add ]
  %n = phi i32 [ %passed, %sum ], [ %n1, %add ]
  %su = get i32 states[%u]
  %bu = get i32 masks[%u]
  %too = icmp eq i32 %su, {PART_WAIT}
  %same = icmp eq i32 %bu, %wide
  %both = and i1 %too, %same
  %one = zext i1 %both to i32
  %n1 = add i32 %n, %one
  %u1 = add i32 %u, 1
  %more_u = icmp ult i32 %u1, %threads
  br i1 %more_u, label %add, label %enough
enough:
  %full = icmp uge i32 %n1, %wanted
  br i1 %full, label %open, label %next
open:
  %tick = get i32 tick
  %now = add i32 %tick, 1
  set i32 %now, tick
  set i32 %now, barrier_tick
  set i32 0, arrived[%b]
  br label %wake
wake:
  %v = phi i32 [ 0, %open ], [ %v1, %wake_next ]
  %sv = get i32 states[%v]
  %bv = get i32 masks[%v]
  %too_v = icmp eq i32 %sv, {PART_WAIT}
  %same_v = icmp eq i32 %bv, %wide
  %both_v = and i1 %too_v, %same_v
  br i1 %both_v, label %let, label %wake_next
let:
  set i32 {READY}, states[%v]
  br label %wake_next
wake_next:
  %v1 = add i32 %v, 1
  %more_v = icmp ult i32 %v1, %threads
  br i1 %more_v, label %wake, label %yes
yes:
  ret i1 true
next:
  %t1 = add i32 %t, 1
  %more = icmp ult i32 %t1, %threads
  br i1 %more, label %each, label %none
none:
  ret i1 false
}}
"""

TEXT = FINDING + BLOCK + WARP + SCHEDULE + ACTIVATE
