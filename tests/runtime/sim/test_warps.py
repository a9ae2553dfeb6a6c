"""What lanes of a warp do together: votes, matches, reductions, shuffles with and without a predicate, partial masks."""

from __future__ import annotations

import functools
import operator

import numpy as np
import pytest

from tests.runtime.sim.support import finding, kernel_text, launch

LANE = np.arange(32)
#: values of the lanes: few, so that some match; negative ones too
VALUE = (LANE * 7 % 5 - 2).astype(np.int64)

_VALUES = "  %m = mul i32 %t, 7\n  %r5 = urem i32 %m, 5\n  %v = sub i32 %r5, 2\n  %v64 = sext i32 %v to i64\n"
_STORE = "\n  %p = getelementptr i32, ptr %out, i32 %t\n  store i32 %r, ptr %p"


def run(body: str, threads: int = 32, mask_is: str = "-1") -> np.ndarray:
    """What each lane stores as %r; lanes outside the mask skip the body and store -7."""
    if mask_is != "-1":
        lanes = int(mask_is) & 0xFFFFFFFF
        start = (
            f"  %sh = lshr i32 {lanes}, %t\n  %in = trunc i32 %sh to i1\n  br i1 %in, label %yes, label %join\nyes:\n"
        )
        body = body.replace("%r =", "%r0 =")
        body = start + _VALUES + body + "\n  br label %join\njoin:\n  %r = phi i32 [ -7, %entry ], [ %r0, %yes ]"
    else:
        body = _VALUES + body
    out = np.zeros(threads, np.int32)
    launch(kernel_text(body + _STORE), out, block=(threads, 1, 1), checks="all")
    return out


def bits(condition: np.ndarray) -> int:
    return int(
        np.array(sum(1 << int(i) for i in np.flatnonzero(condition)), np.uint64).astype(np.uint32).view(np.int32)
    )


def wanted(name: str, lanes: np.ndarray) -> np.ndarray:
    """NumPy's answer for the lanes of a mask; the others stored -7."""
    vote = VALUE[lanes] > 0
    inside = np.isin(LANE, lanes)
    match name:
        case "vote.all":
            found = np.full(32, vote.all())
        case "vote.any":
            found = np.full(32, vote.any())
        case "vote.uni":
            found = np.full(32, vote.all() or not vote.any())
        case "vote.ballot":
            found = np.full(32, bits((VALUE > 0) & inside))
        case "match.any.i32" | "match.any.i64":
            found = np.array([bits((VALUE == v) & inside) for v in VALUE])
        case _:
            fold = {"add": operator.add, "and": operator.and_, "or": operator.or_, "xor": operator.xor}
            fold |= {"min": min, "max": max}
            unsigned = name.startswith("redux.u")
            values = [int(v) & 0xFFFFFFFF if unsigned else int(v) for v in VALUE[lanes]]
            result = functools.reduce(fold[name.removeprefix("redux.").removeprefix("u")], values)
            found = np.full(32, np.int64(result).astype(np.int32))
    return np.where(inside, found, -7)


CALLS = {
    **{
        f"vote.{kind}": f"  %c = icmp sgt i32 %v, 0\n  %q = call i1 @llvm.nvvm.vote.{kind}.sync(i32 MASK, i1 %c)\n"
        "  %r = zext i1 %q to i32"
        for kind in ("all", "any", "uni")
    },
    "vote.ballot": "  %c = icmp sgt i32 %v, 0\n  %r = call i32 @llvm.nvvm.vote.ballot.sync(i32 MASK, i1 %c)",
    "match.any.i32": "  %r = call i32 @llvm.nvvm.match.any.sync.i32(i32 MASK, i32 %v)",
    "match.any.i64": "  %r = call i32 @llvm.nvvm.match.any.sync.i64(i32 MASK, i64 %v64)",
    **{
        f"redux.{kind}": f"  %r = call i32 @llvm.nvvm.redux.sync.{kind}(i32 %v, i32 MASK)"
        for kind in ("add", "and", "or", "xor", "min", "max", "umin", "umax")
    },
}


@pytest.mark.parametrize("name", CALLS)
def test_collectives_with_full_and_partial_masks(name: str) -> None:
    for mask in (0xFFFFFFFF, 0x0F0F00F1):
        lanes = np.array([i for i in LANE if mask >> i & 1])
        signed = str(mask - (1 << 32) if mask >> 31 else mask)
        assert (run(CALLS[name].replace("MASK", signed), mask_is=signed) == wanted(name, lanes)).all(), mask


def test_match_all_tells_mask_and_predicate() -> None:
    body = """  %s = call { i32, i1 } @llvm.nvvm.match.all.sync.i32p(i32 -1, i32 VALUE)
  %a = extractvalue { i32, i1 } %s, 0
  %f = extractvalue { i32, i1 } %s, 1
  %r = select i1 %f, i32 %a, i32 5"""
    assert (run(body.replace("VALUE", "%v")) == 5).all()
    assert (run(body.replace("VALUE", "9")) == -1).all()


def test_shuffle_tells_whether_its_lane_was_in_range() -> None:
    body = """  %s = call { i32, i1 } @llvm.nvvm.shfl.sync.down.i32p(i32 -1, i32 %t, i32 3, i32 31)
  %a = extractvalue { i32, i1 } %s, 0
  %f = extractvalue { i32, i1 } %s, 1
  %r = select i1 %f, i32 %a, i32 -1"""
    assert (run(body) == np.where(LANE < 29, LANE + 3, -1)).all()


def test_64_bit_values_are_shuffled_in_halves() -> None:
    body = """  %x = mul i64 %v64, 1234567890123
  %lo = trunc i64 %x to i32
  %h = lshr i64 %x, 32
  %hi = trunc i64 %h to i32
  %lo2 = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %lo, i32 9, i32 31)
  %hi2 = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %hi, i32 9, i32 31)
  %l = zext i32 %lo2 to i64
  %g = zext i32 %hi2 to i64
  %u = shl i64 %g, 32
  %y = or i64 %l, %u
  %z = sdiv i64 %y, 1234567890123
  %r = trunc i64 %z to i32"""
    assert (run(body) == VALUE[LANE ^ 9]).all()


def test_a_block_that_is_no_whole_number_of_warps() -> None:
    """Lanes that do not exist take no part."""
    ballot = run("  %r = call i32 @llvm.nvvm.vote.ballot.sync(i32 -1, i1 true)", threads=40)
    assert (ballot[:32] == -1).all() and (ballot[32:] == 255).all()
    every = run("  %q = call i1 @llvm.nvvm.vote.all.sync(i32 -1, i1 true)\n  %r = zext i1 %q to i32", threads=40)
    assert (every == 1).all()


def test_active_lanes_are_those_that_ask_together() -> None:
    body = """  %c = icmp ult i32 %t, 12
  br i1 %c, label %low, label %high
low:
  %x = call i32 @llvm.nvvm.activemask()
  br label %join
high:
  %y = call i32 @llvm.nvvm.activemask()
  br label %join
join:
  %r = phi i32 [ %x, %low ], [ %y, %high ]"""
    assert (run(body) == np.where(LANE < 12, 0xFFF, bits(LANE >= 12))).all()


def test_a_lane_outside_its_own_mask() -> None:
    error = finding(kernel_text("  call void @llvm.nvvm.bar.warp.sync(i32 1)"), np.zeros(32, np.int32))
    assert error.code == "RUN077" and "mask 0x1, which does not name it" in error.what
    assert "thread (1, 0, 0)" in str(error.where)


def test_a_shuffle_from_a_lane_that_takes_no_part() -> None:
    body = """  %c = icmp ult i32 %t, 16
  br i1 %c, label %low, label %join
low:
  %s = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 65535, i32 %t, i32 20, i32 31)
  br label %join
join:"""
    error = finding(kernel_text(body), np.zeros(32, np.int32))
    assert error.code == "RUN077" and "thread (20, 0, 0), which does not take part" in error.what
    launch(kernel_text(body), np.zeros(32, np.int32), checks="races")  # another check


def test_what_is_not_simulated_is_named() -> None:
    error = finding(
        kernel_text("  %c = call float @llvm.nvvm.redux.sync.fmin(float 0.0, i32 -1)"), np.zeros(1, np.int32)
    )
    assert error.code == "RUN071" and "llvm.nvvm.redux.sync.fmin" in error.what
