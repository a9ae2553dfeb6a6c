"""rematerialization: less memory for more work, down to a limit."""

from __future__ import annotations

from heron import targets
from heron.hlo.ir.module import Module
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.records import dataclass
from heron.targets import Target

#: instructions that may be computed again for one value
BLOCK = 20


@register
@dataclass(frozen=True)
class Rematerialization(Pass):
    """Computes values again shortly before they are needed, instead of holding them, until the program fits its limit.

    The limit is the option memory_limit, or without it ``limit``: "machine" for the memory of the target, "least" for
    as little as can be had. Bytes limit all that a run needs (arguments, outputs, constants and temp); percents limit
    temp, which is all that this pass can change. Values go that give the most bytes, over the time they are not needed,
    for the least time to have them again; what they are computed from is computed again too where it is gone, up to
    ``block`` instructions at a time. A value that nothing reads before is only computed later. Instructions with
    effects, random state, updates in place, loops and collectives are never run twice.

    Raises PASS022 when a limit that was asked for cannot be met, with what is held at the least peak found; where only
    the machine's memory is too small, that is a note.

    HloModule example, is_scheduled=true

    a = f32[8] negate(f32[8] x)
    b = f32[8] reverse(a), dimensions={0}
    c = f32[8] reverse(b), dimensions={0}
    d = f32[8] add(b, c)
    ROOT r = f32[8] add(d, a)
    ->
    HloModule example, is_scheduled=true

    a = f32[8] negate(x)
    b = f32[8] reverse(a), dimensions={0}
    c = f32[8] reverse(b), dimensions={0}
    d = f32[8] add(b, c)
    a.remat = f32[8] negate(x)
    ROOT r = f32[8] add(d, a.remat)
    """

    name = "rematerialization"
    limit: str = "least"
    block: int = BLOCK
    constraints = (
        Constraint("memory-scheduler", "rematerialization", "what is held when is known of a program with an order"),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        if module.schedule is None:
            ctx.decide(False, "the module has no schedule: nobody knows what is held when", subject=module.name)
            return False
        target = ctx.target if isinstance(ctx.target, Target) else targets.get("cpu")
        text = ctx.options.memory_limit or self.limit
        if text == "machine" and (not target.memory_bytes or _at_most(module) <= target.memory_bytes):
            return False
        from heron.passes.schedule.remat.limits import bring_within  # a search that few programs need

        return bring_within(text, module, target, self.block, ctx)


def _at_most(module: Module) -> int:
    """Bytes that are never exceeded: everything the program computes, held all at once."""
    assert module.schedule is not None
    shapes = (s for order in module.schedule.values() for i in order for _, s in i.shape.leaves())
    return sum(s.byte_size for s in shapes if s.is_array)
