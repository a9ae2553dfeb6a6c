"""Chooses the implementation of a product, convolution or factorisation: libraries at hand, and the cost of a call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heron.analysis.cost.estimate import estimate
from heron.analysis.cost.kernel import kernel_cost
from heron.hlo.ir.instruction import Instruction
from heron.options import Libraries
from heron.passes.framework.measured import CUBLASLT, OWN, TRITON
from heron.records import dataclass

if TYPE_CHECKING:
    from heron.passes.framework.context import PassContext

__all__ = ["CUBLASLT", "OWN", "TRITON", "Way", "absent", "best", "own_seconds", "weigh_convolution"]


@dataclass(frozen=True, slots=True)
class Way:
    """One way to compute an instruction: who does it, and the seconds a model says it takes. ``lead``: how many times
    quicker than others it has to be, where the model is less sure of it."""

    kind: str
    seconds: float
    lead: float = 1.0

    @property
    def weighed(self) -> float:
        return self.seconds * self.lead


def absent(library: str, ctx: PassContext) -> str:
    """Why calls of a library are not made: the options or the machine speak against it; empty when nothing does.

    A program for some GPU is compiled as if that machine had all libraries. One for the GPU of this machine, if there
    is one, asks for what is installed here.
    """
    target: Any = ctx.target
    if target is not None and not target.is_gpu:
        return f"{library} is for GPUs, the target is {target.name}"
    allowed = Libraries.parse(ctx.options.libraries or "none")
    if allowed is None or library not in allowed.names:
        return f"the option libraries={ctx.options.libraries or 'none'} leaves {library} out"
    if target is not None and target.name.startswith("cuda"):
        from heron.targets.libraries import missing

        if missing("cuda") is None and (why := missing(library)):
            return f"{library} is not installed: {why}"
    return ""


#: of the rate of plain arithmetic, what a kernel reaches that sums each element of a result by itself
_SINGLE = 0.1


def weigh_convolution(i: Instruction, ctx: PassContext) -> bool:
    """Whether cuDNN, with a transpose of the filter and of nothing else, is quicker than a kernel of our own."""
    target: Any = ctx.target
    if target is None:
        return True
    cost = kernel_cost(i)
    rate = target.flops_of("f32") * _SINGLE
    moved = cost.moved / target.memory_bandwidth
    own = target.launch_seconds + max(cost.flops / rate if rate else 0.0, moved)
    filter_bytes = 2 * i.operands[1].shape.byte_size / target.memory_bandwidth
    library = estimate(cost, target).seconds + target.launch_seconds + filter_bytes
    reason = "cuDNN, with its filter transposed, against a kernel of our own"
    return bool(
        ctx.decide(
            library < own, reason, subject=i.name, object="cudnn", cost_before=own * 1e6, cost_after=library * 1e6
        )
    )


def own_seconds(dot: Instruction, target: Any) -> float:
    """Seconds of a product by a kernel of our own, that sums element by element."""
    moved = (dot.shape.byte_size + sum(o.shape.byte_size for o in dot.operands)) / target.memory_bandwidth
    flops, rate = kernel_cost(dot).flops, target.flops_of("f32") * _SINGLE
    return target.launch_seconds + max(flops / rate if rate else 0.0, moved)


def best(ways: list[Way], ctx: PassContext, subject: str) -> Way:
    """The quickest; the first of equals. The choice is kept with the time of the runner-up."""
    order = sorted(ways, key=lambda w: w.weighed)
    first, others = order[0], order[1:]
    second = others[0] if others else None
    told = ", ".join(f"{w.kind} {w.seconds * 1e6:.2f} us" for w in order)
    ctx.decide(
        True,
        f"by model: {told}",
        rule="product",
        subject=subject,
        object=first.kind,
        cost_before=second.seconds * 1e6 if second else None,
        cost_after=first.seconds * 1e6,
    )
    return first
