"""What lanes of a warp compute together, as LLVM text: shuffles, votes, matches, reductions.

Every lane leaves its value and waits; after the meeting each computes its result from a snapshot of all values.
"""

from __future__ import annotations

from heron.runtime.sim.state import ABSENT_LANE, CHECKS, LANES, OWN_LANE

SHUFFLES = {"down": 0, "up": 1, "bfly": 2, "idx": 3}

#: which lane a shuffle reads (PTX ISA, shfl.sync): mode 0 down, 1 up, 2 bfly, 3 idx; bit 32 of the result: in range
_SHUFFLE = f"""
define i64 @sim.shuffle(ptr %sim.state, i32 %mode, i32 %t, i32 %mask, i32 %b0, i32 %c, i32 %site) nounwind {{
entry:
  %lane = and i32 %t, 31
  %b = and i32 %b0, 31
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
  %base = and i32 %t, -{LANES}
  %source = add i32 %base, %j
  %bit = lshr i32 %mask, %j
  %named = trunc i32 %bit to i1
  %threads = get i32 threads
  %exists = icmp ult i32 %source, %threads
  %there = and i1 %named, %exists
  %range = select i1 %ok, i64 {1 << 32}, i64 0
  br i1 %there, label %read, label %absent
read:
  %v = get i64 snapshot[%source]
  %v32 = and i64 %v, {0xFFFFFFFF}
  %value = or i64 %v32, %range
  ret i64 %value
absent:
  ; the value is undefined: with checks on all bits are set, so that who uses it is seen to be wrong
  %checks = get i32 checks
  %on = icmp ne i32 %checks, 0
  %own = get i64 snapshot[%t]
  %own32 = and i64 %own, {0xFFFFFFFF}
  %bits = select i1 %on, i64 {0xFFFFFFFF}, i64 %own32
  %undefined = or i64 %bits, %range
  %wanted = and i32 %checks, {CHECKS["divergence"]}
  %tells0 = icmp ne i32 %wanted, 0
  %tells = and i1 %tells0, %exists
  br i1 %tells, label %tell, label %done
tell:
  %s64 = zext i32 %source to i64
  call void @sim.finding(ptr %sim.state, i64 {ABSENT_LANE}, i32 %t, i64 -1, i64 -1, i64 0, i64 %s64, i32 %site)
  br label %done
done:
  ret i64 %undefined
}}

; before lanes meet: the mask must name the lane that waits
define void @sim.meet(ptr %sim.state, i32 %t, i32 %mask, i32 %site) nounwind {{
entry:
  %lane = and i32 %t, 31
  %bit = lshr i32 %mask, %lane
  %named = trunc i32 %bit to i1
  %checks = get i32 checks
  %wanted = and i32 %checks, {CHECKS["divergence"]}
  %off = icmp eq i32 %wanted, 0
  %fine = or i1 %named, %off
  br i1 %fine, label %done, label %tell
tell:
  %m64 = zext i32 %mask to i64
  call void @sim.finding(ptr %sim.state, i64 {OWN_LANE}, i32 %t, i64 -1, i64 %m64, i64 0, i64 -1, i32 %site)
  br label %done
done:
  ret void
}}
"""


def _over_lanes(name: str, start: str, step: str, end: str) -> str:
    """A function that folds the snapshots of a mask's lanes: ``step`` makes %next from %v, %acc and %i."""
    return f"""
define i64 @sim.{name}(ptr %sim.state, i32 %t, i32 %mask, i64 %own) nounwind {{
entry:
  %base = and i32 %t, -{LANES}
  br label %each
each:
  %i = phi i32 [ 0, %entry ], [ %i1, %skip ]
  %acc = phi i64 [ {start}, %entry ], [ %acc1, %skip ]
  %member = call i1 @sim.member(ptr %sim.state, i32 %mask, i32 %base, i32 %i)
  br i1 %member, label %take, label %skip
take:
  %lane = add i32 %base, %i
  %v = get i64 snapshot[%lane]
  %i64 = zext i32 %i to i64
  %bit = shl i64 1, %i64
{step}
  br label %skip
skip:
  %acc1 = phi i64 [ %acc, %each ], [ %next, %take ]
  %i1 = add i32 %i, 1
  %more = icmp ult i32 %i1, {LANES}
  br i1 %more, label %each, label %done
done:
{end}
}}
"""


def _select(condition: str, yes: str, no: str) -> str:
    return f"  %c = {condition}\n  %next = select i1 %c, i64 {yes}, i64 {no}"


_RETURN = "  ret i64 %acc1"
_ALL_SAME = """  %m64 = zext i32 %mask to i64
  %different = icmp ne i64 %acc1, 0
  %result = select i1 %different, i64 0, i64 %m64
  ret i64 %result"""

#: name -> (identity, step): values are i32, kept sign-extended in i64
REDUCTIONS = {
    "add": ("0", "  %next = add i64 %acc, %v"),
    "and": ("-1", "  %next = and i64 %acc, %v"),
    "or": ("0", "  %next = or i64 %acc, %v"),
    "xor": ("0", "  %next = xor i64 %acc, %v"),
    "min": (str(2**31 - 1), _select("icmp slt i64 %v, %acc", "%v", "%acc")),
    "max": (str(-(2**31)), _select("icmp sgt i64 %v, %acc", "%v", "%acc")),
    "umin": ("-1", _select("icmp ult i64 %v, %acc", "%v", "%acc")),
    "umax": ("0", _select("icmp ugt i64 %v, %acc", "%v", "%acc")),
}

TEXT = (
    _SHUFFLE
    + _over_lanes("ballot", "0", "  %set = or i64 %acc, %bit\n" + _select("icmp ne i64 %v, 0", "%set", "%acc"), _RETURN)
    + _over_lanes("members", "0", "  %next = or i64 %acc, %bit", _RETURN)
    + _over_lanes(
        "match", "0", "  %set = or i64 %acc, %bit\n" + _select("icmp eq i64 %v, %own", "%set", "%acc"), _RETURN
    )
    + _over_lanes("match_all", "0", _select("icmp ne i64 %v, %own", "1", "%acc"), _ALL_SAME)
    + "".join(_over_lanes(f"redux.{n}", start, step, _RETURN) for n, (start, step) in REDUCTIONS.items())
)
