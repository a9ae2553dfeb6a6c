"""fusion-hints: instructions that the program wants in one kernel are in one."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from heron.analysis.cost.code_size import code_limit
from heron.analysis.fusion.iteration_space import joinable_outputs
from heron.analysis.fusion.roles import is_view, stays_alone
from heron.analysis.graph.reachability import Reachability
from heron.errors import HeronError
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.fusion.model.cluster import Clusters
from heron.passes.fusion.model.hints import group_of
from heron.passes.fusion.model.join import join_kernels
from heron.records import dataclass


@register
@dataclass(frozen=True)
class FusionHints(Pass):
    """Joins the kernels that compute instructions with the same `fuse="NAME"` among their frontend attributes.

    Whatever that costs; an error (PASS024) names two instructions that cannot be in one kernel: one is done by a
    library or is a kernel's only output by nature, one between them is to be alone (`nofuse="true"`), or has to run
    after the one and before the other. That `nofuse` is heeded is up to the passes that fuse.

    a = f32[8] negate(f32[8] x), frontend_attributes={fuse="ours"}
    b = f32[8] sine(f32[8] y), frontend_attributes={fuse="ours"}
    ROOT t = (f32[8], f32[8]) tuple(a, b)
    ->
    body {
      p = f32[8] parameter(0)
      q = f32[8] parameter(1)
      n = f32[8] negate(p), frontend_attributes={fuse="ours"}
      s = f32[8] sine(q), frontend_attributes={fuse="ours"}
      ROOT r = (f32[8], f32[8]) tuple(n, s)
    }
    f = (f32[8], f32[8]) fusion(x, y), kind=kLoop, calls=body
    a = f32[8] get-tuple-element(f), index=0
    b = f32[8] get-tuple-element(f), index=1
    ROOT t = (f32[8], f32[8]) tuple(a, b)
    """

    name = "fusion-hints"
    constraints = (
        Constraint("instruction-fusion", "fusion-hints", "kernels are joined, not ops"),
        Constraint("priority-fusion", "fusion-hints", "kernels are joined, not ops"),
        Constraint("fusion-hints", "multi-output-fusion", "what is asked for comes first"),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.non_fusion_computations():
            for name in _groups(c):
                changed |= _join(c, name, ctx)
        return changed


def _groups(c: Computation) -> dict[str, None]:
    """The names of the groups asked for in a computation."""
    found: dict[str, None] = {}
    for i in c.instructions:
        for inner in i.attrs["calls"].instructions if i.opcode == "fusion" else (i,):
            if inner.extras and (name := group_of(inner)):
                if stays_alone(inner):
                    raise _error(inner, inner, "it says nofuse itself")
                found[name] = None
    return found


def _join(c: Computation, name: str, ctx: PassContext) -> bool:
    """Make one kernel of those that compute the group; whether there were several."""
    order = c.post_order()
    members = {i: inner for i in order if (inner := _member(i, name)) is not None and not is_view(i)}
    if len(members) < 2:
        return False
    clusters = Clusters(c, [i for i in order if i in members], code_limit(ctx.target))
    for first, second in pairwise(members):
        for i in (first, second):
            if not joinable_outputs(i):
                why = f"'{i.name}' ({_what(i)}) cannot have other outputs"
                raise _error(members[first], members[second], why, ctx.trace.became)
        if clusters.makes_cycle(first, second):
            why = _between(order, first, second, clusters.reach)
            raise _error(members[first], members[second], why, ctx.trace.became)
        clusters.join(first, second)
    names = ", ".join(i.name for i in members)
    made = join_kernels(list(members))
    ctx.trace.became.update(dict.fromkeys((i.name for i in members), made.name))
    ctx.decide(True, f'asked for by fuse="{name}"', subject=made.name, object=names)
    return True


def _member(i: Instruction, name: str) -> Instruction | None:
    """The computation of the group that a kernel holds."""
    inside = i.attrs["calls"].instructions if i.opcode == "fusion" else (i,)
    return next((x for x in inside if x.extras and group_of(x) == name), None)


def _what(i: Instruction) -> str:
    return i.fused_root.opcode if i.opcode == "fusion" else i.opcode


def _between(order: list[Instruction], first: Instruction, second: Instruction, reach: Reachability) -> str:
    """Why two kernels that would need each other cannot be one."""
    path = [i for i in order if i not in (first, second) and reach.reaches(first, i) and reach.reaches(i, second)]
    alone = next((i for i in path if stays_alone(i.fused_root if i.opcode == "fusion" else i)), None)
    if alone is not None:
        return f"'{alone.name}', which is to be alone by nofuse, comes after the one and before the other"
    through = path[0].name if path else first.name
    return f"'{through}' has to run after the one and before the other"


def _error(one: Instruction, two: Instruction, why: str, became: Mapping[str, str] | None = None) -> HeronError:
    before = {kernel: name for name, kernel in (became or {}).items()}

    def name(i: Instruction) -> str:
        """The program's name of the root of a kernel."""
        at = next((f for f in _fusions_of(i) if f.fused_root is i), None)
        return before.get(at.name, i.name) if at is not None else i.name

    what = f"'{name(one)}'" if one is two else f"'{name(one)}' and '{name(two)}'"
    return HeronError(
        "PASS024",
        f"{what} cannot be fused as the program asks",
        where=str(two),
        why=why,
        hint=f'take fuse="{group_of(one)}" off one of them',
    )


def _fusions_of(i: Instruction) -> list[Instruction]:
    """The fusions that call the computation `i` stands in."""
    c = i.parent
    return [] if c is None or c.module is None else c.module.callers().get(c, [])
