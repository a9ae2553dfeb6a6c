"""fusion-legalizer: fusions that came with the program and that no kernel can do become their parts."""

from __future__ import annotations

from heron import targets
from heron.analysis.blocks.config import GEMM, ROWS
from heron.analysis.fusion.in_place import updated_parameter
from heron.analysis.fusion.roles import EMITTED
from heron.analysis.indexing.hlo_maps import divides_index, divisions
from heron.hlo.facts import having, is_call, is_plain_product, keeps_order, plain_products
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.fusion.model.stated_tiles import stated_tiles
from heron.passes.fusion.model.tiled import absent
from heron.passes.rewriting.building import inline
from heron.records import dataclass

#: ops that have no kernel of their own but may stand inside one
_MAY_BE_INSIDE = (
    having(Trait.GIVEN, Trait.TUPLE, Trait.CALL, Trait.PERMUTES) | plain_products() | {"select-and-scatter"}
)
#: views that take dimensions apart that a given kernel may have one behind the other: each doubles the code of an index
_MOST_DIVISIONS = 6


@register
@dataclass(frozen=True)
class FusionLegalizer(Pass):
    """Puts the body of a fusion in its place where no kernel can do all of it. (`defuser` does it to all.)

    Programs printed by a compiler hold fusions. One kernel can do most of them; not those with a sort, a loop or a
    library's op inside, and a scatter only if nothing else comes out and what it updates comes in as it is: a kernel
    has no moment when all its threads are done with one array and have not begun the next. The parts are fused anew.
    A dot or convolution could be done inside, one element after the other, but takes a hundredth of the time alone. The
    code that finds an element doubles with every reshape that takes dimensions apart, so that a fusion has few of them
    one behind the other.

    So are those in a computation that is applied to elements, which is no kernel, and those of kind kCustom, which
    names who is to compute them: kernels of another compiler, a library. With ``blocks`` one stays whose config states
    tiles that a block kernel of the machine can have; its config is then written as heron writes them.

    add {
      a = s32[] parameter(0)
      b = s32[] parameter(1)
      ROOT r = s32[] add(a, b)
    }

    body {
      x = s32[8] parameter(0)
      n = s32[3,1] parameter(1)
      u = s32[3] parameter(2)
      y = s32[8] negate(x)
      ROOT s = s32[8] scatter(y, n, u), update_window_dims={}, inserted_window_dims={0},
        scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
    }

    ROOT f = s32[8] fusion(s32[8] x, s32[3,1] n, s32[3] u), kind=kInput, calls=body
    ->
    y = s32[8] negate(x)
    ROOT f = s32[8] scatter(y, n, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0},
      index_vector_dim=1, to_apply=add
    """

    name = "fusion-legalizer"
    looks_for = frozenset({"fusion"})
    blocks: bool = False
    constraints = (
        Constraint("fusion-legalizer", "instruction-fusion", "the parts are fused anew"),
        Constraint("fusion-legalizer", "priority-fusion", "the parts are fused anew"),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed, outside = False, set(module.non_fusion_computations())
        bodies = module.fusion_bodies()
        for c in module.post_order():  # callees first: a fusion in a fusion may make that one impossible
            seen: set[Instruction] = set()
            while found := [i for i in c.instructions if i.opcode == "fusion" and i not in seen]:
                seen.update(found)  # then those that came out of others
                for i in found:
                    changed |= self._legalize(i, c in outside, c in outside or c in bodies, ctx)
        if changed:
            module.remove_unused_computations()
        return changed

    def _legalize(self, i: Instruction, outside: bool, in_kernels: bool, ctx: PassContext) -> bool:
        """``in_kernels``: whether it is a kernel or a part of one, and not of what is applied to elements."""
        why, restated = why_no_kernel(i.calls) if in_kernels else "it is applied to elements", False
        if not why and i.kind != "kCustom":
            why = _better_alone(i.calls)
        if not why and i.kind == "kCustom" and outside:
            why, restated = self._why_no_blocks(i, ctx)
        if why:
            ctx.decide(False, why, subject=i.name)
            inline(i, i.calls, list(i.operands))
        return restated or bool(why)

    def _why_no_blocks(self, fusion: Instruction, ctx: PassContext) -> tuple[str, bool]:
        """Why a fusion of another kind than loops has no kernel of its own, and whether its config was written anew."""
        why = "such a fusion is done by its parts here" if not self.blocks else absent(ctx)
        if why:
            return why, False
        config = stated_tiles(fusion, ctx.target or targets.get("sm_90"))
        if isinstance(config, str):
            return config, False
        old, new = fusion.extras["backend_config"], config.text(GEMM if _has_dot(fusion.calls) else ROWS)
        fusion.extras["backend_config"] = new
        if old != new:
            ctx.decide(True, f"tiles of {config}", subject=fusion.name)
        return "", old != new


def _better_alone(body: Computation) -> str:
    """The reason why parts of a fusion's body are done much faster by themselves; empty when they are not."""
    found = next((i for i in body.instructions if is_plain_product(i)), None)
    if found is not None:
        return f"'{found.name}' ({found.opcode}) is computed by a library or a kernel of its own"
    few = sum(map(divides_index, body.instructions)) <= _MOST_DIVISIONS
    if few or divisions(body.root, frozenset(body.instructions)) <= _MOST_DIVISIONS:
        return ""
    return f"elements would be found through more than {_MOST_DIVISIONS} divisions of an index"


def _has_dot(c: Computation) -> bool:
    return any(i.opcode == "dot" for i in c.instructions)


def why_no_kernel(body: Computation) -> str:
    """The reason why no kernel computes a fusion's body; empty when one may."""
    for i in body.post_order():
        if i.opcode not in EMITTED and i.opcode not in _MAY_BE_INSIDE:
            return f"'{i.name}' ({i.opcode}) is not done inside kernels"
        if is_call(i):
            inner = i.called[0]
            why = why_no_kernel(inner) or ("a scatter is called inside" if _has_scatter(inner) else "")
            if why:
                return why
        if i.opcode == "scatter" and (why := _against_scatter(i, body)):
            return why
    return ""


def _has_scatter(c: Computation) -> bool:
    return any(i.opcode == "scatter" or is_call(i) and _has_scatter(i.called[0]) for i in c.instructions)


def _against_scatter(i: Instruction, body: Computation) -> str:
    roots = body.root.operands if body.root.opcode == "tuple" else [body.root]
    if len(roots) > 1 or _source(roots[0]) is not i:
        return f"the scatter '{i.name}' is not all that comes out"
    arrays = len(i.operands) // 2
    if any(updated_parameter(i, n, alone=True) is None for n in range(arrays)):
        return f"the scatter '{i.name}' updates what the kernel computes or reads elsewhere"
    return ""


def _source(i: Instruction) -> Instruction:
    """The array behind a view."""
    while keeps_order(i) and i.shape.element_type is i.operands[0].shape.element_type:
        i = i.operands[0]
    return i
