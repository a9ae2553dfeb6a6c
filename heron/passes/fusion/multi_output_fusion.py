"""multi-output-fusion: kernels that walk the same elements become one with several outputs."""

from __future__ import annotations

from collections.abc import Container, Hashable
from dataclasses import dataclass

from heron.analysis.sharing import used_in_step
from heron.hlo.computation import Computation
from heron.hlo.instruction import Instruction
from heron.hlo.module import Module
from heron.passes.base import Pass
from heron.passes.context import PassContext
from heron.passes.fusion.cluster import Cluster, Clusters, source, uses
from heron.passes.fusion.join import join_kernels
from heron.passes.fusion.kinds import is_emitted
from heron.passes.registry import register


@register
@dataclass(frozen=True)
class MultiOutputFusion(Pass):
    """Joins a producer with a consumer that reads it element by element, and kernels that read the same array.

    The joined kernel has an output for each value still read elsewhere; shared operands are read once and the
    intermediate not at all. Joined are loops over equal dimensions and, with ``reduces``, reductions of equal arrays
    over the same dimensions; never so that a cycle would arise, nor, for memory's sake, kernels whose places in the
    longest chain of kernels differ by more than ``max_distance``. Every pair leaves a decision with the bytes before
    and after.

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
        keys = {i: key for i in order if (key := _walk(i, self.reduces)) is not None}
        if len(keys) < 2:
            return False
        clusters = Clusters(c, keys)
        depth = _depths(order, keys)
        for i in keys:
            for user in uses(i):
                if keys.get(user) == keys[i] and keys[i][0] == "loop" and _reads_in_step(user, i):
                    self._try(clusters, i, user, "reads it element by element", ctx)
        for value in order:
            if value.shape.is_array and value.shape.num_elements > 1:
                readers: dict[Hashable, Instruction] = {}
                for user in value.users:
                    if user in keys:
                        first = readers.setdefault(keys[user], user)
                        if first is not user and abs(depth[first] - depth[user]) <= self.max_distance:
                            self._try(clusters, first, user, f"both read '{value.name}'", ctx)
        position = {i: n for n, i in enumerate(order)}
        changed = False
        for cluster in clusters.clusters():
            if len(cluster.nodes) > 1:
                join_kernels(sorted(cluster.nodes, key=position.__getitem__))
                changed = True
        return changed

    def _try(self, clusters: Clusters, a: Instruction, b: Instruction, why: str, ctx: PassContext) -> None:
        one, two = clusters.of[a], clusters.of[b]
        if one is two:
            return
        shared = one.inputs.keys() & two.inputs.keys()
        saved = sum(s.byte_size for o in shared for _, s in o.shape.leaves())
        before = sum(_bytes(x.inputs) + _bytes(x.nodes) for x in (one, two))
        inputs = len(one.inputs.keys() | two.inputs.keys()) + len(one.nodes) + len(two.nodes)
        again = _computed_again(one, two)
        if again is not None:
            ok, why = False, f"'{again.name}' would be computed again for each element that reads it"
        elif inputs > self.max_inputs:
            ok, why = False, f"the kernel would have {inputs} inputs and outputs, more than {self.max_inputs}"
        elif one.instructions + two.instructions > self.max_instructions:
            ok, why = False, f"the kernel would have more than {self.max_instructions} instructions"
        elif clusters.makes_cycle(a, b):
            ok, why = False, "what lies between them would need a part of the kernel before it has run"
        else:
            ok = True
            clusters.join(a, b)
        ctx.decide(ok, why, subject=a.name, object=b.name, cost_before=before, cost_after=before - saved * ok)


def _walk(i: Instruction, reduces: bool) -> tuple[str, Hashable] | None:
    """What a kernel runs over: equal for kernels that can be one; None for what is no kernel or stays alone."""
    if not uses(i) and not i.is_root:
        return None  # dead
    if i.control_predecessors or i.control_successors or not (i.opcode == "fusion" or is_emitted(i)):
        return None
    root = i.fused_root if i.opcode == "fusion" else i
    roots = root.operands if root.opcode == "tuple" else [root]
    if any(r.opcode in ("scatter", "dynamic-update-slice", "reduce-window") or not r.shape.is_array for r in roots):
        return None
    dims = {r.shape.dims for r in roots}
    if all(r.opcode == "reduce" for r in roots):
        over = {(r.operands[0].shape.dims, tuple(sorted(r.attrs["dimensions"]))) for r in roots}
        return ("reduce", next(iter(over))) if reduces and len(over) == 1 else None
    if len(dims) > 1 or any(r.opcode == "reduce" for r in roots):
        return None
    return "loop", next(iter(dims))


def _depths(order: list[Instruction], kernels: Container[Instruction]) -> dict[Instruction, int]:
    """For each instruction the number of kernels on the longest way to it."""
    depth: dict[Instruction, int] = {}
    for i in order:
        above = max((depth[o] for o in i.walk_operands()), default=0)
        depth[i] = above + (i in kernels or i.opcode == "dot")
    return depth


def _computed_again(one: Cluster, two: Cluster) -> Instruction | None:
    """A kernel of one cluster that the other reads otherwise than element by element."""
    for readers, read in ((one.nodes, two.nodes), (two.nodes, one.nodes)):
        for reader in readers:
            for o in reader.operands:
                if source(o) in read and (_is_reduction(reader) or not _reads_in_step(reader, source(o))):
                    return source(o)
    return None


def _is_reduction(i: Instruction) -> bool:
    root = i.fused_root if i.opcode == "fusion" else i
    return any(r.opcode == "reduce" for r in (root.operands if root.opcode == "tuple" else [root]))


def _reads_in_step(user: Instruction, i: Instruction) -> bool:
    """Whether `user` reads the elements of `i` (or its parts) only at the index it computes."""
    for n, operand in enumerate(user.operands):
        if source(operand) is not i:
            continue
        if user.opcode != "fusion":
            if not user.op.is_elementwise or operand.shape.dims != user.shape.dims:
                return False
        elif not used_in_step(user.attrs["calls"].parameters[n], user.shape):
            return False
    return True


def _bytes(instructions) -> int:  # noqa: ANN001
    return sum(s.byte_size for i in instructions for _, s in i.shape.leaves())
