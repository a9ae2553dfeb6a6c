"""parallel-task-assigner: which kernels of a CPU program are worth several threads, and in what portions.

By a cost estimate only, so that the same program is shared out alike on every machine; how many threads take part is
known when it runs. Results do not depend on it: a work item is done by one thread, from start to end, in the same way.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable

from heron.analysis.cost import bytes_read, bytes_written, flops
from heron.analysis.cost.kernel import kernel_cost
from heron.backends.lower import KernelUse
from heron.codegen.kernel import Kernel
from heron.hlo.facts import having
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import Trait
from heron.trace import Decision, Trace

#: seconds of work below which a kernel is not shared: waking a sleeping worker costs about 10 µs, an awake one 1 µs
WORTH = 20e-6
#: seconds a thread should be busy with what it takes at a time
PORTION = 4e-6
#: what one thread does a second at least
BYTES_PER_SECOND = 10e9
FLOPS_PER_SECOND = 8e9
#: how many times as fast vectors and caches make most kernels: of 374 without anything special half run 13 times as
#: fast as those rates, of 67 with exponentials half 3.6 times. Those that take one element after the other do not
USUALLY = 3.0

#: loops over elements, where a work item is an element, are cut where the vectors of such a loop end
_VECTORS = 256
#: elements that a loop over vectors takes at a time, at most: four vectors of 16
_STEP = 64
_ELEMENTS = 4096
_ONE_BY_ONE = having(Trait.ONE_BY_ONE) | having(Trait.INDIRECT)


def seconds(i: Instruction) -> float:
    """Estimated time of an instruction run as one kernel by one thread."""
    found = _time(bytes_read(i) + bytes_written(i), flops(i))
    if i.opcode != "sort" and (i.opcode != "fusion" or found < WORTH):
        return found
    cost = kernel_cost(i)  # a fusion may need few elements of what it reads and computes, or some of them often
    return _time(cost.distinct, cost.flops)


def seconds_of(use: KernelUse) -> float:
    """Estimated time of a kernel run by one thread; it is computed once."""
    if use.seconds is None:
        use.seconds = seconds(use.instruction)
    return use.seconds


def _time(moved: float, work: float) -> float:
    return max(moved / BYTES_PER_SECOND, work / FLOPS_PER_SECOND)


def _is_slow(i: Instruction) -> bool:
    """Whether a kernel takes one element after the other, as one does that looks up each."""
    inside = i.attrs["calls"].instructions if i.opcode == "fusion" else [i]
    return any(x.opcode in _ONE_BY_ONE for x in inside)


def grain(items: int, cost: float) -> int:
    """The least number of work items for a thread; every share is a multiple of it."""
    least = max(1, round(items * PORTION / cost))
    return -(-least // _VECTORS) * _VECTORS if items >= _ELEMENTS else least


def step(kernel: Kernel) -> int:
    """A power of two that both ends of every thread's share are multiples of, as far as that helps vectors."""
    launch = kernel.launch
    return math.gcd(launch.work_items, launch.grain, _STEP) if launch.grain and not kernel.parts else 1


def decide(use: KernelUse) -> tuple[Decision, int]:
    """Whether to share a kernel out, and its grain (0: no)."""
    kernel = use.kernel
    items, cost = kernel.launch.work_items, seconds_of(use) / (1.0 if _is_slow(use.instruction) else USUALLY)

    def no(reason: str) -> tuple[Decision, int]:
        return Decision(False, reason, "parallel-task-assigner", kernel.name, "", cost * 1e6, None), 0

    if cost < WORTH:
        return no(f"about {cost * 1e6:.3g} µs of work, and waking threads costs as much")
    if items < 2:
        return no("a single work item")
    portion = grain(items, cost)
    if portion >= items:
        return no(f"{items} work items are one portion")
    reason = f"{items} work items in portions of {portion} or more"
    return Decision(True, reason, "parallel-task-assigner", kernel.name, "", cost * 1e6, None), portion


def assign(uses: Iterable[KernelUse], trace: Trace) -> None:
    """Decide for every kernel; the answer goes into its launch, its notes and the trace."""
    for use in uses:
        kernel = use.kernel
        if kernel.parts:  # whoever calls it on parts shares them out
            continue
        decision, portion = decide(use)
        trace.decide(decision)
        kernel.notes["threads"] = decision.reason if decision else f"one: {decision.reason}"
        if decision:
            kernel.launch = dataclasses.replace(kernel.launch, grain=portion)
