"""Native code of what lanes of a warp compute together: shuffles, votes, matches, reductions.

Every lane leaves its value and waits; after the meeting each computes its result from a snapshot of all values.
"""

from __future__ import annotations

from collections.abc import Callable

from heron.codegen.llvm.text import Function, Module
from heron.codegen.llvm.values import Value
from heron.codegen.sim.threads import FINDING, launch_of
from heron.codegen.sim.warps import MEMBER
from heron.runtime.sim.state import ABSENT_LANE, CHECKS, LANES, OWN_LANE

SHUFFLES = {"down": 0, "up": 1, "bfly": 2, "idx": 3}
_LOW = 0xFFFFFFFF

#: one step of a fold over lanes: of what was folded before, a lane's value and its bit, and the lane's own value
Step = Callable[[Function, Value, Value, Value, Value], Value]


def write(module: Module) -> None:
    """The functions of all collectives."""
    _write_shuffle(module)
    _write_meet(module)
    _write_fold(module, "ballot", 0, lambda f, total, v, bit, _: f.select(v.ne(0), total | bit, total, "i64"))
    _write_fold(module, "members", 0, lambda f, total, v, bit, _: total | bit)
    _write_fold(module, "match", 0, lambda f, total, v, bit, own: f.select(v.eq(own), total | bit, total, "i64"))
    _write_fold(module, "match_all", 0, lambda f, total, v, _, own: f.select(v.ne(own), 1, total, "i64"), _all_same)
    for name, (start, step) in REDUCTIONS.items():
        _write_fold(module, f"redux.{name}", start, step)


def _write_shuffle(module: Module) -> None:
    """Write the function that finds the lane a shuffle reads (PTX ISA, shfl.sync): mode 0 down, 1 up, 2 bfly, 3 idx;
    bit 32 of the result: in range."""
    head = "i64 @sim.shuffle(ptr %sim.state, i32 %mode, i32 %t, i32 %mask, i32 %b0, i32 %c, i32 %site) nounwind"
    with module.function(head) as f:
        state, mode, thread, mask, b, c, site = f.arguments
        launch, lane, b = launch_of(f), thread & 31, b & 31
        segment = (c >> 8) & 31
        rest = segment ^ 31
        low = lane & segment
        high = low | (c & 31 & rest)
        is_up = mode.eq(SHUFFLES["up"])
        wanted = f.select(is_up, lane - b, lane + b, "i32")
        wanted = f.select(mode.eq(SHUFFLES["bfly"]), lane ^ b, wanted, "i32")
        wanted = f.select(mode.eq(SHUFFLES["idx"]), low | (b & rest), wanted, "i32")
        in_range = f.select(is_up, ~wanted.less(high), wanted.less(high + 1), "i1")
        read = f.select(in_range, wanted, lane, "i32")
        source = (thread & -LANES) + read
        exists = source.below(launch["threads"])
        bit = f.select(in_range, 1 << 32, 0, "i64")
        with f.when((mask >> read).cast("trunc", "i1") & exists):
            f.ret(launch["snapshot", source] & _LOW | bit)
        # the value is undefined: with checks on all bits are set, so that who uses it is seen to be wrong
        checks = launch["checks"]
        value = f.select(checks.ne(0), _LOW, launch["snapshot", thread] & _LOW, "i64")
        with f.when((checks & CHECKS["divergence"]).ne(0) & exists):
            f.call(FINDING, state, ABSENT_LANE, thread, -1, -1, 0, source.cast("zext", "i64"), site)
        f.ret(value | bit)


def _write_meet(module: Module) -> None:
    """Before lanes meet: the mask must name the lane that waits."""
    with module.function("void @sim.meet(ptr %sim.state, i32 %t, i32 %mask, i32 %site) nounwind") as f:
        state, thread, mask, site = f.arguments
        is_named = (mask >> (thread & 31)).cast("trunc", "i1")
        with f.unless(is_named | (launch_of(f)["checks"] & CHECKS["divergence"]).eq(0)):
            f.call(FINDING, state, OWN_LANE, thread, -1, mask.cast("zext", "i64"), 0, -1, site)


def _write_fold(
    module: Module, name: str, start: int, step: Step, end: Callable[[Function, Value, Value], Value] | None = None
) -> None:
    """A function that folds the snapshots of a mask's lanes; ``end`` makes the result of the fold and the mask."""
    with module.function(f"i64 @sim.{name}(ptr %sim.state, i32 %t, i32 %mask, i64 %own) nounwind") as f:
        state, thread, mask, own = f.arguments
        launch, base, total = launch_of(f), thread & -LANES, f.variable("i64", start)
        with f.loop(0, LANES, type_="i32") as n, f.when(f.call(MEMBER, state, mask, base, n)):
            bit = 1 << n.cast("zext", "i64")
            total.set(step(f, total.get(), launch["snapshot", base + n], bit, own))
        f.ret(total.get() if end is None else end(f, total.get(), mask))


def _all_same(f: Function, different: Value, mask: Value) -> Value:
    return f.select(different.ne(0), 0, mask.cast("zext", "i64"), "i64")


def _pick(compare: str) -> Step:
    """The smaller or larger of two."""
    return lambda f, total, v, _, __: f.select(f.op(f"icmp {compare} i64 {v}, {total}", "i1"), v, total, "i64")


#: name -> (identity, step): values are i32, kept sign-extended in i64
REDUCTIONS: dict[str, tuple[int, Step]] = {
    "add": (0, lambda f, total, v, _, __: total + v),
    "and": (-1, lambda f, total, v, _, __: total & v),
    "or": (0, lambda f, total, v, _, __: total | v),
    "xor": (0, lambda f, total, v, _, __: total ^ v),
    "min": (2**31 - 1, _pick("slt")),
    "max": (-(2**31), _pick("sgt")),
    "umin": (-1, _pick("ult")),
    "umax": (0, _pick("ugt")),
}
