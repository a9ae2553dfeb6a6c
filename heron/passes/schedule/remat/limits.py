"""A program brought within a limit of its memory."""

from __future__ import annotations

from heron.errors import HeronError
from heron.hlo.ir.module import Module
from heron.options import MemoryLimit
from heron.passes.framework.context import PassContext
from heron.passes.schedule.remat.fit import Fit, Fitter
from heron.passes.schedule.remat.held import Held
from heron.passes.schedule.remat.refusal import explain, unmet
from heron.passes.schedule.remat.search import Choice
from heron.targets import Target

#: what each search for the least memory is to save of what is left
STEP = 0.05


def bring_within(text: str, module: Module, target: Target, block: int, ctx: PassContext) -> bool:
    """Compute values again, or only later, until the limit that is written as `text` is kept; tell whether any was.

    Raises PASS005 for what is no limit, PASS022 where it cannot be met.
    """
    assert module.schedule is not None
    fitter = Fitter(target, block)
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
