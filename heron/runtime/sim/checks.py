"""Access checks of the simulated GPU, as LLVM IR.

Every hook returns the pointer to use: the one given, or scratch memory after a finding, so that a wrong kernel is
reported and never takes the process down.

Race detection keeps, for each granule of shared memory, who last wrote and read it and in which epoch. A block barrier
starts a new epoch; a warp synchronisation orders threads of that warp. Two accesses by different threads in one epoch,
at least one a write, not so ordered, are a race.
"""

from __future__ import annotations

from heron.runtime.sim.scheduler import OUT_OF_BOUNDS, RACE_READ, RACE_WRITE, SHARED_BOUNDS

GLOBAL_CHECK = f"""
@sim.table = internal global ptr null
@sim.buffers = internal global i64 0
@sim.scratch = internal global [256 x i8] zeroinitializer, align 64

; an access through argument %k must stay in that argument's buffer
define internal ptr @sim.check.argument(ptr %p, i64 %size, i64 %k, i64 %site) nounwind {{
entry:
  %table = load ptr, ptr @sim.table
  %row = getelementptr [2 x i64], ptr %table, i64 %k
  %base = load i64, ptr %row
  %pl = getelementptr i64, ptr %row, i64 1
  %length = load i64, ptr %pl
  %address = ptrtoint ptr %p to i64
  %offset = sub i64 %address, %base
  %end = add i64 %offset, %size
  %low = icmp sge i64 %offset, 0
  %high = icmp sle i64 %end, %length
  %fine = and i1 %low, %high
  br i1 %fine, label %good, label %bad
good:
  ret ptr %p
bad:
  %t32 = load i32, ptr @sim.current
  %t = zext i32 %t32 to i64
  call void @sim.finding(i64 {OUT_OF_BOUNDS}, i64 %t, i64 %k, i64 %offset, i64 %size, i64 %length, i64 %site)
  ret ptr @sim.scratch
}}

; a pointer whose argument is not known must be in some buffer
define internal ptr @sim.check.any(ptr %p, i64 %size, i64 %site) nounwind {{
entry:
  %table = load ptr, ptr @sim.table
  %n = load i64, ptr @sim.buffers
  %address = ptrtoint ptr %p to i64
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k1, %test ]
  %more = icmp ult i64 %k, %n
  br i1 %more, label %test, label %bad
test:
  %row = getelementptr [2 x i64], ptr %table, i64 %k
  %base = load i64, ptr %row
  %pl = getelementptr i64, ptr %row, i64 1
  %length = load i64, ptr %pl
  %offset = sub i64 %address, %base
  %end = add i64 %offset, %size
  %low = icmp sge i64 %offset, 0
  %high = icmp sle i64 %end, %length
  %fine = and i1 %low, %high
  %k1 = add i64 %k, 1
  br i1 %fine, label %good, label %next
good:
  ret ptr %p
bad:
  %t32 = load i32, ptr @sim.current
  %t = zext i32 %t32 to i64
  call void @sim.finding(i64 {OUT_OF_BOUNDS}, i64 %t, i64 -1, i64 %address, i64 %size, i64 0, i64 %site)
  ret ptr @sim.scratch
}}
"""


def shared_check(cells: int, granule: int) -> str:
    """The hook for shared memory: ``cells`` granules of ``granule`` bytes in all objects together."""
    return f"""
; per granule: epoch and thread of the last write, its warp's epoch; epoch and thread(s) of reads, warp epoch
@sim.shadow = internal global [{max(cells, 1)} x [6 x i32]] zeroinitializer

; are thread %a's last synchronisation epoch %e and the current thread in one warp with a warp sync in between?
define internal i1 @sim.ordered(i32 %warp, i32 %e, i32 %t) alwaysinline nounwind {{
entry:
  %mine = lshr i32 %t, 5
  %same = icmp eq i32 %warp, %mine
  %p = getelementptr i32, ptr @sim.warp_epochs, i32 %mine
  %now = load i32, ptr %p
  %later = icmp ne i32 %now, %e
  %yes = and i1 %same, %later
  ret i1 %yes
}}

; mode: 0 read, 1 write, 2 atomic. %object names it, %first is its first granule, %length its bytes
define internal ptr @sim.check.shared(ptr %p, i64 %size, ptr %base, i64 %length, i64 %object, i64 %first, i32 %mode,
    i64 %site) nounwind {{
entry:
  %t = load i32, ptr @sim.current
  %t64 = zext i32 %t to i64
  %a = ptrtoint ptr %p to i64
  %b = ptrtoint ptr %base to i64
  %offset = sub i64 %a, %b
  %end = add i64 %offset, %size
  %low = icmp sge i64 %offset, 0
  %high = icmp sle i64 %end, %length
  %fine = and i1 %low, %high
  br i1 %fine, label %inside, label %outside
outside:
  call void @sim.finding(i64 {SHARED_BOUNDS}, i64 %t64, i64 %object, i64 %offset, i64 %size, i64 %length, i64 %site)
  ret ptr @sim.scratch
inside:
  %epoch = load i32, ptr @sim.epoch
  %warp = lshr i32 %t, 5
  %pwe = getelementptr i32, ptr @sim.warp_epochs, i32 %warp
  %we = load i32, ptr %pwe
  %own_warp = sub i32 -2, %warp
  %is_read = icmp eq i32 %mode, 0
  %is_atomic = icmp eq i32 %mode, 2
  %cell0 = udiv i64 %offset, {granule}
  %cell_first = add i64 %cell0, %first
  %count = udiv i64 %size, {granule}
  br i1 %is_atomic, label %done, label %cell
cell:
  %i = phi i64 [ 0, %inside ], [ %i1, %next ]
  %index = add i64 %cell_first, %i
  %c = getelementptr [6 x i32], ptr @sim.shadow, i64 %index
  %c1 = getelementptr i32, ptr %c, i64 1
  %c2 = getelementptr i32, ptr %c, i64 2
  %c3 = getelementptr i32, ptr %c, i64 3
  %c4 = getelementptr i32, ptr %c, i64 4
  %c5 = getelementptr i32, ptr %c, i64 5
  %w_epoch = load i32, ptr %c
  %w_thread = load i32, ptr %c1
  %w_sync = load i32, ptr %c2
  %r_epoch = load i32, ptr %c3
  %r_thread = load i32, ptr %c4
  %r_sync = load i32, ptr %c5
  ; against the last write
  %w_now = icmp eq i32 %w_epoch, %epoch
  %w_other = icmp ne i32 %w_thread, %t
  %w_conflict = and i1 %w_now, %w_other
  %w_warp = lshr i32 %w_thread, 5
  %w_ordered = call i1 @sim.ordered(i32 %w_warp, i32 %w_sync, i32 %t)
  %w_free = xor i1 %w_ordered, true
  %w_race = and i1 %w_conflict, %w_free
  br i1 %w_race, label %report_w, label %against_reads
report_w:
  %w_kind = select i1 %is_read, i64 {RACE_READ}, i64 {RACE_WRITE}
  %w_t64 = sext i32 %w_thread to i64
  call void @sim.finding(i64 %w_kind, i64 %t64, i64 %object, i64 %offset, i64 %size, i64 %w_t64, i64 %site)
  br label %done
against_reads:
  ; a reader is a thread, or -2-w for several threads of warp w, or -1 for threads of several warps
  %r_now = icmp eq i32 %r_epoch, %epoch
  %r_other = icmp ne i32 %r_thread, %t
  %r_several = icmp slt i32 %r_thread, 0
  %r_one_warp = lshr i32 %r_thread, 5
  %r_many_warp = sub i32 -2, %r_thread
  %r_warp = select i1 %r_several, i32 %r_many_warp, i32 %r_one_warp
  br i1 %is_read, label %note_read, label %note_write
note_read:
  %r_same_warp = icmp eq i32 %r_warp, %warp
  %joined = select i1 %r_same_warp, i32 %own_warp, i32 -1
  %kept = select i1 %r_other, i32 %joined, i32 %t
  %new_reader = select i1 %r_now, i32 %kept, i32 %t
  store i32 %epoch, ptr %c3
  store i32 %new_reader, ptr %c4
  store i32 %we, ptr %c5
  br label %next
note_write:
  %r_ordered = call i1 @sim.ordered(i32 %r_warp, i32 %r_sync, i32 %t)
  %r_free = xor i1 %r_ordered, true
  %r_conflict = and i1 %r_now, %r_other
  %r_race = and i1 %r_conflict, %r_free
  br i1 %r_race, label %report_r, label %write
report_r:
  %r_t64 = sext i32 %r_thread to i64
  call void @sim.finding(i64 {RACE_READ}, i64 %t64, i64 %object, i64 %offset, i64 %size, i64 %r_t64, i64 %site)
  br label %done
write:
  store i32 %epoch, ptr %c
  store i32 %t, ptr %c1
  store i32 %we, ptr %c2
  br label %next
next:
  %i1 = add i64 %i, 1
  %more = icmp ult i64 %i1, %count
  br i1 %more, label %cell, label %done
done:
  ret ptr %p
}}
"""
