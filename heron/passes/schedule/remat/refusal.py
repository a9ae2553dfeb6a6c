"""Refusals: what is held at a peak that nothing lowers, and why it has to be."""

from __future__ import annotations

import numpy as np

from heron.analysis.graph.dataflow import Value
from heron.analysis.graph.donation import possible_donations
from heron.errors import HeronError
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.origin import origin
from heron.options import MemoryLimit
from heron.passes.framework.context import PassContext
from heron.passes.schedule.remat.fit import Fit
from heron.passes.schedule.remat.held import Held, Stay
from heron.passes.schedule.remat.offload import Offload
from heron.passes.schedule.remat.recipe import is_repeatable
from heron.records import dataclass
from heron.targets import Target


@dataclass(frozen=True, slots=True)
class Kept:
    """A value of `bytes` that is held at the peak, and why."""

    value: Value
    bytes: int
    why: str


def explain(held: Held, target: Target, ctx: PassContext) -> None:
    """Decisions about the largest values at the peak: why they stay, and what moving them elsewhere would take."""
    offload = Offload.of(target)
    for k in kept_at_peak(held)[:10]:
        away = f"; would be offloaded in {offload.seconds(k.bytes) * 1e6:.0f} µs" if offload is not None else ""
        ctx.decide(False, f"held at the peak: {k.why}{away}", subject=k.value.name, cost_before=k.bytes)


def unmet(held: Held, found: Fit, asked: MemoryLimit, fixed: int) -> HeronError:
    """The error for a limit that is not met: the numbers, what is held at the least peak, and what to change."""
    if asked.percent:
        limit = int(found.before * asked.percent / 100)
        why = f"{asked.percent:g} % of {found.before:,} B of temp are {limit:,} B"
    else:
        why = f"arguments, outputs and constants need {fixed:,} of {asked.bytes:,} B"
    why += f"; the least temp found is {found.temp:,} B"
    kept, at = kept_at_peak(held), running(held)
    if at is not None and kept:
        why += f", while '{at.name}' runs; held then: "
        why += ", ".join(f"{k.bytes:,} B {_called(k.value.instruction)} ({k.why})" for k in kept[:5])
        why += f" and {len(kept) - 5} more" if len(kept) > 5 else ""
    percent = -(-100 * found.temp // max(found.before, 1))
    hints = [f"{percent}%" if asked.percent else f"a limit of {fixed + found.temp} bytes"]
    if donations := possible_donations(held.module):
        hints.append(f"donate the {len(donations)} arguments whose places outputs could take")
    name = held.module.name
    what = f"'{name}' cannot be brought within its memory limit"
    return HeronError("PASS022", what, why=why, hint=", or ".join([*hints, "smaller inputs"]))


def _called(i: Instruction) -> str:
    """An instruction's name, with where it comes from."""
    place = origin(i)
    return f"{i.name} [{place}]" if place else i.name


def running(held: Held) -> Instruction | None:
    """The instruction that runs at the peak."""
    tick = int(np.argmax(held.used))
    return next((i for i in reversed(held.timeline.order) if held.start(i) <= tick), None)


def kept_at_peak(held: Held) -> list[Kept]:
    """The values held at the peak, the largest first."""
    tick = int(np.argmax(held.used))
    found = [
        Kept(v, held.weight[v], _why(s, tick))
        for v, stays in held.stays.items()
        for s in stays
        if s.first <= tick <= s.last and held.weight[v]
    ]
    return sorted(found, key=lambda k: -k.bytes)


def _why(s: Stay, tick: int) -> str:
    if s.value.kind != "defined":
        return "a loop's state, a branch's result or an output"
    if s.first == tick or any(u.first <= tick <= u.last for u in s.uses):
        return "in use just then"
    if not is_repeatable(s.value.instruction):
        return "must be computed only once"
    if next((u.is_result for u in s.uses if u.first > tick), True):
        return "part of the result"
    return "computing it again takes as much memory as it saves"
