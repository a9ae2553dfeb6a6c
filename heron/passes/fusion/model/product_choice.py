"""Chooses the implementation of a product and its neighbours: a block kernel, a library, or heron's own kernels."""

from __future__ import annotations

from collections.abc import Collection

from heron.analysis.blocks.config import BlockConfig
from heron.analysis.blocks.cost import Plan, library_seconds, plans, variants
from heron.analysis.blocks.tiling import Tiling
from heron.hlo.ir.instruction import Instruction
from heron.passes.calls.model.choice import CUBLASLT, OWN, TRITON, Way, absent, best, own_seconds
from heron.passes.framework.context import PassContext
from heron.passes.framework.measured import Fragment, as_program, find, is_asked, key_of, taken
from heron.passes.fusion.model.build import outlined
from heron.passes.fusion.model.split_sum import plans_in_parts
from heron.passes.fusion.model.tiled import fitting, needed
from heron.targets import Target

#: how many times as quick a kernel of our own has to be by the model, which knows its caches and cores less well
_LEAD = 1.5
#: tiles that the model finds so many times slower than the best are not worth measuring
WORSE = 3.0


def who_computes(
    root: Instruction, members: Collection[Instruction], plan: Plan, apart: float, dot: Instruction,
    ctx: PassContext, target: Target,
) -> BlockConfig | str:  # fmt: skip
    """The tiles of a block kernel of `members`, or who else is to compute the product in it: cublaslt, own.

    Args:
        plan: the block kernel by the model; ``apart``: seconds of the same by the library and kernels around it.

    The lock file decides where it has the fragment, else the model. Raises TUNE002, TUNE003.
    """
    ways = _ways(members, plan, apart, ctx, target)
    if is_asked(ctx):
        body, _ = outlined([root], members, "main")
        key = key_of(body)
        if ctx.asks:
            ctx.asks(_fragment(key, dot.name, root, members, ways, plan, target))
        found = find(ctx, target, key, dot.name)
        if found is not None:
            taken(ctx, found, dot.name)
            return found.choice if found.choice in (CUBLASLT, OWN) else fitting(found, root.shape, members, dot.name)
    kind = best(ways, ctx, dot.name).kind
    return plan.config if kind == TRITON else kind


def _ways(
    members: Collection[Instruction], plan: Plan, apart: float, ctx: PassContext, target: Target
) -> list[Way]:  # fmt: skip
    dots = [i for i in members if i.opcode == "dot"]
    own = apart + sum(own_seconds(dot, target) - library_seconds(dot, target) for dot in dots)
    found = [] if absent(CUBLASLT, ctx) else [Way(CUBLASLT, apart)]
    return [*found, Way(TRITON, plan.seconds), Way(OWN, own, _LEAD)]


def _fragment(
    key: str, name: str, root: Instruction, members: Collection[Instruction], ways: list[Way], plan: Plan,
    target: Target,
) -> Fragment:  # fmt: skip
    """Every way to compute the members, the tiles by the model's order."""
    tiling = Tiling(root, members)
    tiles = plans(tiling, target)
    assert isinstance(tiles, list), "it was planned before"
    others = {str(p.config): p.seconds for p in tiles if p.seconds <= WORSE * tiles[0].seconds}
    others |= {str(p.config): p.seconds for p in variants(tiles[0], tiling, target)}
    others |= {str(p.config): p.seconds + target.launch_seconds for p in _in_parts(members, target)}
    model = {str(plan.config): plan.seconds} | others
    model |= {w.kind: w.seconds for w in ways if w.kind != TRITON}
    order = sorted(ways, key=lambda w: w.weighed)
    first = str(plan.config) if order[0].kind == TRITON else order[0].kind
    rest = [w.kind for w in order if w.kind != TRITON]
    named = dict.fromkeys([first, *rest, str(plan.config), *sorted(others, key=others.__getitem__)])
    return Fragment("product", key, name, as_program(outlined([root], members, "main")[0]), tuple(named), model)


def _in_parts(members: Collection[Instruction], target: Target) -> list[Plan]:
    """The ways to do the sum of the only product in parts."""
    dots = [i for i in members if i.opcode == "dot"]
    if len(dots) != 1:
        return []
    return plans_in_parts(dots[0], needed(dots[0], set(members)), target)
