"""rematerialization: less memory for more work, down to a limit."""

from __future__ import annotations

from dataclasses import dataclass

from heron import targets
from heron.errors import HeronError
from heron.hlo.ir.module import Module
from heron.options import MemoryLimit
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.schedule.remat.fit import BLOCK, Fit, Fitter
from heron.passes.schedule.remat.held import Held
from heron.passes.schedule.remat.refusal import explain, unmet
from heron.passes.schedule.remat.search import Choice
from heron.targets import Target

#: what each search for the least memory is to save of what is left
STEP = 0.05


@register
@dataclass(frozen=True)
class Rematerialization(Pass):
    """Computes values again shortly before they are needed, instead of holding them, until the program fits its limit.

    The limit is the option memory_limit, or without it ``limit``: "machine" for the memory of the target, "least" for
    as little as can be had. Bytes limit all that a run needs (arguments, outputs, constants and temp); percents limit
    temp, which is all that this pass can change. Values go that give the most bytes, over the time they are not
    needed, for the least time to have them again; what they are computed from is computed again too where it is gone,
    up to ``block`` instructions at a time. What nobody reads before is only computed later. Instructions with effects,
    random state, updates in place, loops and collectives are never run twice.

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
        fitter = Fitter(target, self.block)
        # one that came with a program may also order what is applied to elements, which holds no memory
        module.schedule = {c: module.schedule[c] for c in module.non_fusion_computations() if c in module.schedule}
        before = _named(module)
        found = _least(module, fitter) if text == "least" else _within(text, module, fitter, ctx)
        for c in found.choices:
            _decide(c, ctx)
        after = _named(module)
        if found.choices or after == before:
            return bool(found.choices)
        if {name: set(order) for name, order in after.items()} != {name: set(order) for name, order in before.items()}:
            return True  # values that nothing reads are gone
        return _keeps_order(module, before, fitter)


def _decide(c: Choice, ctx: PassContext) -> None:
    how = f"computed again by {c.steps} instruction{'s' * (c.steps != 1)}" if c.seconds else "computed only then"
    ctx.decide(
        True,
        f"{how}: {c.bytes} B not held until then, {c.seconds * 1e6:.1f} µs more",
        subject=", ".join(v.name for v in c.values),
        object=c.reader.name,
        cost_before=c.peak_before,
        cost_after=c.peak_after,
    )


def _keeps_order(module: Module, before: dict[str, list[str]], fitter: Fitter) -> bool:
    """Keep the new order of a module where it takes less memory than the order `before`, which it gets back else."""
    moved, temp = module.schedule, fitter.sizes(module)["temp"]
    assert moved is not None
    instructions = {i.name: i for i in module.instructions()}
    module.schedule = {c: [instructions[name] for name in before[c.name]] for c in moved}
    if temp < fitter.sizes(module)["temp"]:
        module.schedule = moved
    return module.schedule is moved


def _named(module: Module) -> dict[str, list[str]]:
    """The schedule by names, which stay the same where a search is undone."""
    return {c.name: [i.name for i in order] for c, order in (module.schedule or {}).items()}


def _least(module: Module, fitter: Fitter) -> Fit:
    """As little temp as can be had, little by little: each time what costs least is given up."""
    whole = Fit(True, 0, 0)
    while True:
        sizes = fitter.sizes(module)
        found = fitter.fit(module, int(sizes["temp"] * (1 - STEP)), sizes)
        whole.choices += found.choices
        if not found.met or not found.temp:
            return whole


def _within(text: str, module: Module, fitter: Fitter, ctx: PassContext) -> Fit:
    """Within a limit as it is written. Raises PASS005 for what is none, PASS022 where it cannot be met."""
    asked = MemoryLimit(fitter.target.memory_bytes) if text == "machine" else MemoryLimit.parse(text)
    if asked is None:
        raise HeronError("PASS005", f"'{text}' is not a memory limit", why=MemoryLimit.RULE)
    sizes = fitter.sizes(module)
    fixed = sizes["peak"] - sizes["temp"]
    limit = int(sizes["temp"] * asked.percent / 100) if asked.percent else asked.bytes - fixed
    found = fitter.fit(module, max(limit, 0), sizes)
    if not found.met or limit < 0:
        held = Held(module)
        explain(held, fitter.target, ctx)
        error = unmet(held, found, asked, fixed)
        if text != "machine":
            raise error
        ctx.note(f"{error.what}: {error.why}")
    return found


def _at_most(module: Module) -> int:
    """Bytes that are never exceeded: everything the program computes, held all at once."""
    assert module.schedule is not None
    shapes = (s for order in module.schedule.values() for i in order for _, s in i.shape.leaves())
    return sum(s.byte_size for s in shapes if s.is_array)
