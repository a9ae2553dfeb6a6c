"""Access checks of the simulated GPU, as LLVM text.

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

import ctypes

from heron.codegen.llvm.declarations import declared
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

_ROW = ctypes.sizeof(Row)
_SITE = ctypes.sizeof(Site)


def _field(result: str, owner: type[ctypes.Structure], base: str, name: str, kind: str = "i64") -> str:
    offset = getattr(owner, name).offset
    return f"  {result}.at = getelementptr i8, ptr {base}, i64 {offset}\n  {result} = load {kind}, ptr {result}.at"


_CONFLICT = f"""
; is the remembered access unordered with one of thread %t now? Accesses older than %floor are of no interest
define internal i1 @sim.conflict(ptr %sim.state, i64 %slot, i32 %t, i32 %floor) alwaysinline nounwind {{
entry:
  %tick = trunc i64 %slot to i32
  %recent = icmp uge i32 %tick, %floor
  %begin = get i32 block_tick
  %elsewhere = icmp ult i32 %tick, %begin
  %barrier = get i32 barrier_tick
  %unsynced = icmp uge i32 %tick, %barrier
  %who0 = lshr i64 %slot, 32
  %who1 = trunc i64 %who0 to i32
  %who = and i32 %who1, 1023
  %different = icmp ne i32 %who, %t
  %my_warp = lshr i32 %t, 5
  %its_warp = lshr i32 %who, 5
  %one_warp = icmp eq i32 %my_warp, %its_warp
  %row = mul i32 %t, {LANES}
  %lane = and i32 %who, 31
  %place = add i32 %row, %lane
  %k = get i32 known[%place]
  %before = icmp ult i32 %tick, %k
  %met = and i1 %one_warp, %before
  %unmet = xor i1 %met, true
  %inside0 = and i1 %unsynced, %different
  %inside = and i1 %inside0, %unmet
  %free = or i1 %elsewhere, %inside
  %yes = and i1 %recent, %free
  ret i1 %yes
}}

; one granule, one access: the access it races with, or 0; remembers it
define internal i64 @sim.remember(ptr %sim.state, ptr %cell, i64 %kind, i64 %me, i32 %t, i32 %floor) nounwind {{
entry:
  %write = load i64, ptr %cell
  %first.at = getelementptr i64, ptr %cell, i64 1
  %first = load i64, ptr %first.at
  %last.at = getelementptr i64, ptr %cell, i64 2
  %last = load i64, ptr %last.at
  %lane.at = getelementptr i64, ptr %cell, i64 3
  %lane = load i64, ptr %lane.at
  %far.at = getelementptr i64, ptr %cell, i64 4
  %far = load i64, ptr %far.at
  %is_write = icmp eq i64 %kind, {WRITE}
  ; mostly nobody was here since the launch began
  %write_tick = trunc i64 %write to i32
  %last_tick = trunc i64 %last to i32
  %newest = call i32 @llvm.umax.i32(i32 %write_tick, i32 %last_tick)
  %untouched = icmp ult i32 %newest, %floor
  br i1 %untouched, label %fresh, label %look
fresh:
  br i1 %is_write, label %fresh_write, label %fresh_read
fresh_write:
  store i64 %me, ptr %cell
  ret i64 0
fresh_read:
  store i64 %me, ptr %first.at
  store i64 %me, ptr %last.at
  store i64 0, ptr %lane.at
  store i64 0, ptr %far.at
  ret i64 0
look:
  %on_write = call i1 @sim.conflict(ptr %sim.state, i64 %write, i32 %t, i32 %floor)
  %with_write = select i1 %on_write, i64 %write, i64 0
  br i1 %is_write, label %writes, label %reads
writes:
  %on_last = call i1 @sim.conflict(ptr %sim.state, i64 %last, i32 %t, i32 %floor)
  %on_lane = call i1 @sim.conflict(ptr %sim.state, i64 %lane, i32 %t, i32 %floor)
  %on_far = call i1 @sim.conflict(ptr %sim.state, i64 %far, i32 %t, i32 %floor)
  %on_first = call i1 @sim.conflict(ptr %sim.state, i64 %first, i32 %t, i32 %floor)
  %r1 = select i1 %on_first, i64 %first, i64 0
  %r2 = select i1 %on_far, i64 %far, i64 %r1
  %r3 = select i1 %on_lane, i64 %lane, i64 %r2
  %r4 = select i1 %on_last, i64 %last, i64 %r3
  %r5 = select i1 %on_write, i64 %write, i64 %r4
  store i64 %me, ptr %cell
  ret i64 %r5
reads:
  %first_tick = trunc i64 %first to i32
  %old_first = icmp ult i32 %first_tick, %floor
  %first1 = select i1 %old_first, i64 %me, i64 %first
  store i64 %first1, ptr %first.at
  %old_last = icmp ult i32 %last_tick, %floor
  br i1 %old_last, label %alone, label %joins
alone:
  store i64 %me, ptr %last.at
  store i64 0, ptr %lane.at
  store i64 0, ptr %far.at
  ret i64 %with_write
joins:
  store i64 %me, ptr %last.at
  %begin = get i32 block_tick
  %here = icmp uge i32 %last_tick, %begin
  %who0 = lshr i64 %last, 32
  %who1 = trunc i64 %who0 to i32
  %who = and i32 %who1, 1023
  %mine = icmp eq i32 %who, %t
  %same = and i1 %mine, %here
  br i1 %same, label %done, label %another
another:
  %w1 = lshr i32 %who, 5
  %w2 = lshr i32 %t, 5
  %one_warp = icmp eq i32 %w1, %w2
  %near = and i1 %one_warp, %here
  %lane1 = select i1 %near, i64 %last, i64 0
  %far1 = select i1 %near, i64 %far, i64 %last
  store i64 %lane1, ptr %lane.at
  store i64 %far1, ptr %far.at
  ret i64 %with_write
done:
  ret i64 %with_write
}}
"""

_CELLS = f"""
{declared("ptr @memchr(ptr, i32, i64)")}

; the granules of an access: races, and shared memory read before it is written
define internal void @sim.cells(ptr %sim.state, ptr %row, i64 %offset, i64 %size, i64 %kind, i32 %t, i64 %number,
    i32 %site) nounwind {{
entry:
{_field("%cells", Row, "%row", "cells", "ptr")}
{_field("%granule", Row, "%row", "granule")}
{_field("%shared", Row, "%row", "shared")}
  %is_shared = icmp ne i64 %shared, 0
  %launch = get i32 launch_tick
  %begin = get i32 block_tick
  %floor = select i1 %is_shared, i32 %begin, i32 %launch
  %tick = get i32 tick
  %tick64 = zext i32 %tick to i64
  %t64 = zext i32 %t to i64
  %t_up = shl i64 %t64, 32
  %site64 = zext i32 %site to i64
  %site_up = shl i64 %site64, 42
  %me0 = or i64 %tick64, %t_up
  %me = or i64 %me0, %site_up
  %checks = get i32 checks
  %race_bit = and i32 %checks, {CHECKS["races"]}
  %races = icmp ne i32 %race_bit, 0
  %uninit_bit = and i32 %checks, {CHECKS["uninit"]}
  %uninit0 = icmp ne i32 %uninit_bit, 0
  %not_write = icmp ne i64 %kind, {WRITE}
  %uninit1 = and i1 %uninit0, %not_write
  %uninit = and i1 %uninit1, %is_shared
  %number0 = udiv i64 %offset, %granule
  %end = add i64 %offset, %size
  %last = sub i64 %end, 1
  %number1 = udiv i64 %last, %granule
  br label %each
each:
  %i = phi i64 [ %number0, %entry ], [ %i1, %next ]
  %cell = getelementptr [{CELL} x i64], ptr %cells, i64 %i
  %write = load i64, ptr %cell
  %write_tick = trunc i64 %write to i32
  %never = icmp ult i32 %write_tick, %floor
  %bare = and i1 %never, %uninit
  br i1 %bare, label %empty, label %check
empty:
  call void @sim.finding(ptr %sim.state, i64 {UNINITIALISED}, i32 %t, i64 %number, i64 %offset, i64 %size, i64 0,
    i32 %site)
  ret void
check:
  %other = call i64 @sim.remember(ptr %sim.state, ptr %cell, i64 %kind, i64 %me, i32 %t, i32 %floor)
  %hit0 = icmp ne i64 %other, 0
  %hit = and i1 %hit0, %races
  br i1 %hit, label %race, label %next
race:
  call void @sim.finding(ptr %sim.state, i64 {RACE}, i32 %t, i64 %number, i64 %offset, i64 %size, i64 %other, i32 %site)
  ret void
next:
  %i1 = add i64 %i, 1
  %more = icmp ule i64 %i1, %number1
  br i1 %more, label %each, label %done
done:
  ret void
}}

; bytes of a buffer: a read wants them written, a write (or atomic) makes them so; true when one is not
define internal i1 @sim.valid(ptr %valid, i64 %offset, i64 %size, i64 %kind) nounwind {{
entry:
  %first = getelementptr i8, ptr %valid, i64 %offset
  %plain = icmp eq i64 %kind, {WRITE}
  %atomic = icmp eq i64 %kind, {ATOMIC_WRITE}
  %is_write = or i1 %plain, %atomic
  br i1 %is_write, label %set, label %test
set:
  call void @llvm.memset.p0.i64(ptr %first, i8 1, i64 %size, i1 false)
  ret i1 false
test:
  %zero = call ptr @memchr(ptr %first, i32 0, i64 %size)
  %unset = icmp ne ptr %zero, null
  %is_read = icmp eq i64 %kind, {READ}
  br i1 %is_read, label %done, label %update
update:
  call void @llvm.memset.p0.i64(ptr %first, i8 1, i64 %size, i1 false)
  br label %done
done:
  ret i1 %unset
}}
"""

_ACCESS = f"""
; the row a pointer of unknown origin lies in, or -1
define internal i64 @sim.find(ptr %sim.state, i64 %address, i64 %size) nounwind {{
entry:
  %rows = get ptr rows
  %n = get i64 rows_count
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k1, %test ]
  %more = icmp ult i64 %k, %n
  br i1 %more, label %test, label %none
test:
  %row.of = mul i64 %k, {_ROW}
  %row = getelementptr i8, ptr %rows, i64 %row.of
{_field("%base", Row, "%row", "base")}
{_field("%length", Row, "%row", "length")}
  %offset = sub i64 %address, %base
  %end = add i64 %offset, %size
  %low = icmp sge i64 %offset, 0
  %high = icmp sle i64 %end, %length
  %fine = and i1 %low, %high
  %k1 = add i64 %k, 1
  br i1 %fine, label %good, label %next
good:
  ret i64 %k
none:
  ret i64 -1
}}

define ptr @sim.access(ptr %sim.state, ptr %p, i32 %site) nounwind {{
entry:
  %sites = get ptr sites
  %wide = zext i32 %site to i64
  %site.of = mul i64 %wide, {_SITE}
  %record = getelementptr i8, ptr %sites, i64 %site.of
{_field("%size", Site, "%record", "size")}
{_field("%kind", Site, "%record", "kind")}
{_field("%align", Site, "%record", "align")}
{_field("%named", Site, "%record", "row")}
  %t = get i32 current
  %address = ptrtoint ptr %p to i64
  %unknown = icmp slt i64 %named, 0
  br i1 %unknown, label %search, label %known
search:
  %found = call i64 @sim.find(ptr %sim.state, i64 %address, i64 %size)
  %nowhere = icmp slt i64 %found, 0
  br i1 %nowhere, label %lost, label %known
lost:
  call void @sim.finding(ptr %sim.state, i64 {OUT_OF_BOUNDS}, i32 %t, i64 -1, i64 %address, i64 %size, i64 0, i32 %site)
  %scratch1 = at i64 scratch
  ret ptr %scratch1
known:
  %number = phi i64 [ %named, %entry ], [ %found, %search ]
  %rows = get ptr rows
  %row.of = mul i64 %number, {_ROW}
  %row = getelementptr i8, ptr %rows, i64 %row.of
{_field("%base", Row, "%row", "base")}
{_field("%length", Row, "%row", "length")}
  %offset = sub i64 %address, %base
  %end = add i64 %offset, %size
  %low = icmp sge i64 %offset, 0
  %high = icmp sle i64 %end, %length
  %fine = and i1 %low, %high
  br i1 %fine, label %inside, label %outside
outside:
  call void @sim.finding(ptr %sim.state, i64 {OUT_OF_BOUNDS}, i32 %t, i64 %number, i64 %offset, i64 %size, i64 0,
    i32 %site)
  %scratch2 = at i64 scratch
  ret ptr %scratch2
inside:
  %below = sub i64 %align, 1
  %rest = and i64 %offset, %below
  %aligned = icmp eq i64 %rest, 0
  br i1 %aligned, label %straight, label %askew
askew:
  call void @sim.finding(ptr %sim.state, i64 {MISALIGNED}, i32 %t, i64 %number, i64 %offset, i64 %size, i64 %align,
    i32 %site)
  br label %straight
straight:
{_field("%valid", Row, "%row", "valid", "ptr")}
  %no_valid = icmp eq ptr %valid, null
  br i1 %no_valid, label %shadow, label %written
written:
  %bare = call i1 @sim.valid(ptr %valid, i64 %offset, i64 %size, i64 %kind)
  br i1 %bare, label %empty, label %shadow
empty:
  call void @sim.finding(ptr %sim.state, i64 {UNINITIALISED}, i32 %t, i64 %number, i64 %offset, i64 %size, i64 0,
    i32 %site)
  br label %shadow
shadow:
{_field("%cells", Row, "%row", "cells", "ptr")}
  %no_cells = icmp eq ptr %cells, null
  br i1 %no_cells, label %done, label %look
look:
  call void @sim.cells(ptr %sim.state, ptr %row, i64 %offset, i64 %size, i64 %kind, i32 %t, i64 %number, i32 %site)
  br label %done
done:
  ret ptr %p
}}
"""

TEXT = _CONFLICT + _CELLS + _ACCESS
