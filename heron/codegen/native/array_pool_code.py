"""Native code of `heron.runtime.array_pool`: the allocator NumPy calls for large arrays."""

from __future__ import annotations

import os
from collections.abc import Mapping

from heron.codegen.llvm.declarations import declared
from heron.codegen.native.common_code import for_good
from heron.runtime.array_pool import BLOCKS, LARGE

#: the part of the machine's memory that freed blocks may take
_SHARE = 8

_HUGE_PAGE = 1 << 21
_MADV_FREE, _MADV_HUGEPAGE = 8, 14


def make() -> Mapping[str, int]:
    """The addresses of the allocator's functions."""
    limit = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // _SHARE
    return for_good("recycle", text(limit))


_EXTERNALS = declared(
    "i32 @posix_memalign(ptr, i64, i64)",
    "ptr @calloc(i64, i64)",
    "ptr @realloc(ptr, i64)",
    "void @free(ptr)",
    "i32 @madvise(ptr, i64, i32)",
)


def text(limit: int) -> str:
    """LLVM text of the allocator. Whoever finds the table in use goes without it, so nobody ever waits."""
    return f"""
%State = type {{ i64, i64, i64, [{BLOCKS} x %Block] }}
%Block = type {{ ptr, i64 }}

{_EXTERNALS}

define ptr @heron_mem_new(ptr %state, i64 %size) nounwind {{
entry:
  %place = alloca ptr
  %kept_at = getelementptr %State, ptr %state, i32 0, i32 1
  %exchange = cmpxchg ptr %state, i64 0, i64 1 acquire monotonic
  %mine = extractvalue {{ i64, i1 }} %exchange, 1
  br i1 %mine, label %look, label %fresh

look:
  %n = phi i64 [ 0, %entry ], [ %next, %other ]
  %address_at = getelementptr %State, ptr %state, i32 0, i32 3, i64 %n
  %size_at = getelementptr %Block, ptr %address_at, i32 0, i32 1
  %address = load ptr, ptr %address_at
  %bytes = load i64, ptr %size_at
  %there = icmp ne ptr %address, null
  %fits = icmp eq i64 %bytes, %size
  %good = and i1 %there, %fits
  br i1 %good, label %take, label %other

other:
  %next = add i64 %n, 1
  %end = icmp eq i64 %next, {BLOCKS}
  br i1 %end, label %none, label %look

take:
  store ptr null, ptr %address_at
  store i64 0, ptr %size_at
  %kept = load i64, ptr %kept_at
  %less = sub i64 %kept, %size
  store i64 %less, ptr %kept_at
  store atomic i64 0, ptr %state release, align 8
  ret ptr %address

none:
  store atomic i64 0, ptr %state release, align 8
  br label %fresh

fresh:
  %large = icmp uge i64 %size, {2 * _HUGE_PAGE}
  %alignment = select i1 %large, i64 {_HUGE_PAGE}, i64 64
  %failed = call i32 @posix_memalign(ptr %place, i64 %alignment, i64 %size)
  %no = icmp ne i32 %failed, 0
  br i1 %no, label %short, label %got

short:
  ret ptr null

got:
  %made = load ptr, ptr %place
  br i1 %large, label %advise, label %done

advise:
  %pages = and i64 %size, {-_HUGE_PAGE}
  call i32 @madvise(ptr %made, i64 %pages, i32 {_MADV_HUGEPAGE})
  br label %done

done:
  ret ptr %made
}}

define void @heron_mem_free(ptr %state, ptr %block, i64 %size) nounwind {{
entry:
  %kept_at = getelementptr %State, ptr %state, i32 0, i32 1
  %turn_at = getelementptr %State, ptr %state, i32 0, i32 2
  %small = icmp ult i64 %size, {LARGE}
  br i1 %small, label %away, label %try

try:
  %exchange = cmpxchg ptr %state, i64 0, i64 1 acquire monotonic
  %mine = extractvalue {{ i64, i1 }} %exchange, 1
  br i1 %mine, label %keep, label %away

keep: ; a ring: the block takes the place of the one kept longest, and others go until the rest is not too much
  %turn0 = load i64, ptr %turn_at
  %whole = and i64 %size, {-_HUGE_PAGE}
  %large = icmp uge i64 %size, {2 * _HUGE_PAGE}
  br i1 %large, label %offer, label %place

offer:
  call i32 @madvise(ptr %block, i64 %whole, i32 {_MADV_FREE})
  br label %place

place:
  br label %put

put:
  %turn = phi i64 [ %turn0, %place ], [ %next, %put ]
  %new = phi ptr [ %block, %place ], [ null, %put ]
  %new_size = phi i64 [ %size, %place ], [ 0, %put ]
  %address_at = getelementptr %State, ptr %state, i32 0, i32 3, i64 %turn
  %size_at = getelementptr %Block, ptr %address_at, i32 0, i32 1
  %old = load ptr, ptr %address_at
  %old_size = load i64, ptr %size_at
  store i64 %new_size, ptr %size_at
  store ptr %new, ptr %address_at
  call void @free(ptr %old)
  %kept0 = load i64, ptr %kept_at
  %kept1 = add i64 %kept0, %new_size
  %kept = sub i64 %kept1, %old_size
  store i64 %kept, ptr %kept_at
  %up = add i64 %turn, 1
  %next = urem i64 %up, {BLOCKS}
  %full = icmp ugt i64 %kept, {limit}
  br i1 %full, label %put, label %done

done:
  store i64 %next, ptr %turn_at
  store atomic i64 0, ptr %state release, align 8
  ret void

away:
  call void @free(ptr %block)
  ret void
}}

define ptr @heron_mem_new_zero(ptr %state, i64 %count, i64 %size) nounwind {{
  %made = call ptr @calloc(i64 %count, i64 %size)
  ret ptr %made
}}

define ptr @heron_mem_resize(ptr %state, ptr %block, i64 %size) nounwind {{
  %made = call ptr @realloc(ptr %block, i64 %size)
  ret ptr %made
}}
"""
