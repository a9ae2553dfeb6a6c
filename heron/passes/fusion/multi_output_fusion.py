"""multi-output-fusion: kernels that visit the same elements become one with several outputs."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import field
from math import prod

from heron.analysis.cost.code_size import code_limit
from heron.analysis.fusion.cuts import joined_at
from heron.analysis.fusion.iteration_space import (
    IterationSpace,
    joinable_outputs,
    reads_at_own_index,
    source,
    space_of,
    sums_inside,
    together,
    uses,
)
from heron.analysis.fusion.reduction import arrays_of
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import Shape
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.fusion.model.cluster import Cluster, Clusters, bytes_of, computed_again
from heron.passes.fusion.model.join import join_kernels
from heron.records import dataclass


@register
@dataclass(frozen=True)
class MultiOutputFusion(Pass):
    """Joins a producer with a consumer that reads it element by element, and kernels that read the same array.

    The joined kernel has an output for each value still read elsewhere; shared operands are read once and the
    intermediate not at all. Joined are loops over equal dimensions and, with ``reduces``, reductions of equal arrays
    over the same dimensions, also with loops over the reduced arrays or over the results; never so that a cycle would
    arise, nor, for memory's sake, kernels whose places in the longest chain of kernels differ by more than
    ``max_distance``. Without ``joins_pieces`` reductions are not joined with concatenations, whose kernels have a loop
    for each operand: in one shaped after a reduction every element would ask which operand it is of. Reductions along
    the dimension in which operands meet have such loops, too, and are joined where the loops are equal. Every pair
    leaves a decision with the bytes before and after.

    a = f32[8] exponential(f32[8] x)
    b = f32[8] negate(x)
    ROOT t = (f32[8], f32[8]) tuple(a, b)
    ->
    body {
      p = f32[8] parameter(0)
      e = f32[8] exponential(p)
      n = f32[8] negate(p)
      ROOT r = (f32[8], f32[8]) tuple(e, n)
    }
    f = (f32[8], f32[8]) fusion(x), kind=kLoop, calls=body
    a = f32[8] get-tuple-element(f), index=0
    b = f32[8] get-tuple-element(f), index=1
    ROOT t = (f32[8], f32[8]) tuple(a, b)
    """

    name = "multi-output-fusion"
    reduces: bool = True
    joins_pieces: bool = True
    max_distance: int = 4
    max_inputs: int = 48
    max_instructions: int = 1500

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.non_fusion_computations():
            changed |= self._run(c, ctx)
        return changed

    def _run(self, c: Computation, ctx: PassContext) -> bool:
        order = c.post_order()
        spaces = {i: space for i in order if (space := space_of(i)) is not None}
        if not self.reduces:
            spaces = {i: space for i, space in spaces.items() if not space.reduced}
        if len(spaces) < 2:
            return False
        joiner = _Joiner(Clusters(c, spaces, code_limit(ctx.target)), spaces, self, ctx)
        depth = _depths(order, spaces)
        for i in spaces:
            for user in uses(i):
                if user in spaces and reads_at_own_index(user, i):
                    joiner.consider(i, user, "reads it element by element")
        for value in order:
            if value.shape.is_array and value.shape.num_elements > 1:
                joiner.consider_readers(value, depth)
        position = {i: n for n, i in enumerate(order)}
        changed = False
        for cluster in joiner.clusters.clusters():
            if len(cluster.nodes) > 1:
                if not ctx.may_fire("join", "multi_output_fusion.py", cluster.nodes[0]):
                    return changed
                names = [i.name for i in cluster.nodes]
                made = join_kernels(sorted(cluster.nodes, key=position.__getitem__))
                ctx.trace.became.update(dict.fromkeys(names, made.name))
                changed = True
        return changed


@dataclass(slots=True)
class _Joiner:
    """Joins pairs of kernels where it is allowed, and tells."""

    clusters: Clusters
    spaces: dict[Instruction, IterationSpace]
    limits: MultiOutputFusion
    ctx: PassContext
    #: pairs of clusters that are not joined as they are, with the kernels in each: where many kernels read the same
    #: arrays, most pairs come again
    refused: set[tuple[Cluster, int, Cluster, int]] = field(default_factory=set)

    def consider_readers(self, value: Instruction, depth: Mapping[Instruction, int]) -> None:
        """Join kernels that read a value, each with one of the 16 before it, unless they run far apart (`depth`)."""
        readers = [user for user in value.users if user in self.spaces]
        for n, user in enumerate(readers):
            for first in readers[max(0, n - 16) : n]:
                if abs(depth[first] - depth[user]) <= self.limits.max_distance:
                    if self.consider(first, user, f"both read '{value.name}'"):
                        break

    def consider(self, a: Instruction, b: Instruction, why: str) -> bool:
        """Join the clusters of `a` and `b` if nothing is against it; whether they are one then. Kernels that run over
        different things are passed by in silence."""
        one, two = self.clusters.of[a], self.clusters.of[b]
        if one is two:
            return True
        pair = one, len(one.nodes), two, len(two.nodes)
        if pair in self.refused:
            return False
        space = together(self.space(one), self.space(two))
        if space is None:
            return False
        before = after = one.bytes + two.bytes
        why_not = self._against(a, b, one, two, space)
        if not why_not:
            after -= bytes_of(one.inputs.keys() & two.inputs.keys())
            self.clusters.join(a, b)
        else:
            self.refused.add(pair)
        ok, why = not why_not, why_not or why
        self.ctx.decide(ok, why, subject=a.name, object=b.name, cost_before=before, cost_after=after)
        return ok

    def space(self, cluster: Cluster) -> IterationSpace:
        """The iteration space of a cluster: that of its reductions if it has any."""
        if len(cluster.nodes) == 1:
            return self.spaces[cluster.nodes[0]]
        spaces = [self.spaces[i] for i in cluster.nodes]
        return next((w for w in spaces if w.reduced), spaces[0])

    def _against(self, a: Instruction, b: Instruction, one: Cluster, two: Cluster, space: IterationSpace) -> str:
        """The obstacle to fusing the pair; empty if there is none."""
        inputs = len(one.inputs) + len(two.inputs) + len(one.nodes) + len(two.nodes)
        if inputs > self.limits.max_inputs:  # unless both read the same
            inputs -= len(one.inputs.keys() & two.inputs.keys())
        if inputs > self.limits.max_inputs:
            return f"the kernel would have {inputs} inputs and outputs, more than {self.limits.max_inputs}"
        again = computed_again(one, two, self.spaces)
        if again is not None:
            return f"'{again.name}' would be computed again for each element that reads it"
        if space.reduced and not self.limits.joins_pieces and any(map(_concatenates, (*one.nodes, *two.nodes))):
            if not self._have_equal_loops(one, two):
                return "a concatenation has a loop for each operand, a reduction has one"
        if space.reduced and not self._has_form(one, two, space):
            return "the reductions and the loops do not fit into one walk"
        if one.instructions + two.instructions > self.limits.max_instructions:
            return f"the kernel would have more than {self.limits.max_instructions} instructions"
        if one.code + two.code > self.clusters.limit.most:
            return f"the kernel would become more than {self.clusters.limit.most:.0f} LLVM instructions"
        if self.clusters.makes_cycle(a, b):
            return "what lies between them would need a part of the kernel before it has run"
        return ""

    def _have_equal_loops(self, one: Cluster, two: Cluster) -> bool:
        """Whether both are reductions with a loop for each operand of a concatenation, and the same loops."""
        reduces = [_reduces(cluster) for cluster in (one, two)]
        if not all(reduces):
            return False
        found = [[a for i in some for a in arrays_of(i)] for some in reduces]
        dims = found[0][0].shape.dims
        first, second = (joined_at(arrays, dims, self.clusters.limit) for arrays in found)
        return first == second and first[0] in reduces[0][0].dimensions

    def _has_form(self, one: Cluster, two: Cluster, space: IterationSpace) -> bool:
        """Whether loops over the reduced arrays depend on no result, and the others run over the results."""
        nodes = {*one.nodes, *two.nodes}
        for i in nodes:
            mine = self.spaces[i]
            if mine.reduced:
                if mine != space:
                    return False
            elif sums_inside(i):  # each kernel is shaped after all its reductions
                return False
            elif prod(mine.dims) != space.results:
                if prod(mine.dims) != prod(space.dims) or any(source(o) in nodes for o in i.operands):
                    return False
                if mine.dims != space.dims and not all(_is_row_major(s) for _, s in i.shape.leaves()):
                    return False
        return True


def _reduces(cluster: Cluster) -> list[Instruction]:
    """The reduces that a cluster's outputs are; none where there are other outputs."""
    roots = [r for i in cluster.nodes for r in joinable_outputs(i)]
    return roots if all(r.opcode == "reduce" for r in roots) else []


def _concatenates(i: Instruction) -> bool:
    inside = i.attrs["calls"].instructions if i.opcode == "fusion" else [i]
    return any(x.opcode == "concatenate" for x in inside)


def _depths(order: list[Instruction], kernels: Container[Instruction]) -> dict[Instruction, int]:
    """For each instruction the number of kernels on the longest way to it."""
    depth: dict[Instruction, int] = {}
    for i in order:
        above = max((depth[o] for o in i.walk_operands()), default=0)
        depth[i] = above + (i in kernels or i.opcode == "dot")
    return depth


def _is_row_major(shape: Shape) -> bool:
    return shape.layout is None or shape.layout.is_default
