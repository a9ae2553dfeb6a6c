"""normalization-fusion: reductions of rows and the loop over the rows that needs them become one kernel."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from heron.hlo.computation import Computation
from heron.hlo.instruction import Instruction
from heron.hlo.module import Module
from heron.passes.base import Constraint, Pass
from heron.passes.building import combiner
from heron.passes.context import PassContext
from heron.passes.fusion.cluster import Clusters, source
from heron.passes.fusion.join import join_kernels
from heron.passes.fusion.walk import Walk, walk_of
from heron.passes.registry import register


@register
@dataclass(frozen=True)
class NormalizationFusion(Pass):
    """Joins reductions along rows with the kernel that reads each row again together with its results.

    That is what softmax and the norms are: the largest element or the mean of a row, a sum that needs it, then every
    element of the row with both. One kernel does a row at a time, so that the row is read from memory once. Rows have
    from ``least`` elements up to ``most_bytes``, and there are ``rows`` at least, since a row is done by one thread.
    The reductions are sums, products, minima, maxima and the like of single arrays.

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    total {
      p = f32[64,256] parameter(0)
      zero = f32[] constant(0)
      ROOT r = f32[64] reduce(p, zero), dimensions={1}, to_apply=sum
    }

    divide {
      p = f32[64,256] parameter(0)
      t = f32[64] parameter(1)
      b = f32[64,256] broadcast(t), dimensions={0}
      ROOT d = f32[64,256] divide(p, b)
    }

    t = f32[64] fusion(f32[64,256] x), kind=kInput, calls=total
    ROOT d = f32[64,256] fusion(x, t), kind=kLoop, calls=divide
    ->
    both {
      p = f32[64,256] parameter(0)
      zero = f32[] constant(0)
      t = f32[64] reduce(p, zero), dimensions={1}, to_apply=sum
      b = f32[64,256] broadcast(t), dimensions={0}
      ROOT r = f32[64,256] divide(p, b)
    }

    ROOT d = f32[64,256] fusion(x), kind=kLoop, calls=both
    """

    name = "normalization-fusion"
    least: int = 64
    most_bytes: int = 128 << 10
    rows: int = 16
    max_inputs: int = 48
    constraints = (
        Constraint("multi-output-fusion", "normalization-fusion", "kernels that share a row are one already"),
        Constraint("normalization-fusion", "fusion-wrapper", "wrapped ops are not fused any more"),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in list(module.non_fusion_computations()):
            changed |= self._run(c, ctx)
        return changed

    def _run(self, c: Computation, ctx: PassContext) -> bool:
        order = c.post_order()
        walks = {i: walk for i in order if (walk := walk_of(i)) is not None}
        sums = {i for i, walk in walks.items() if self._reduces_rows(i, walk)}
        if not sums:
            return False
        clusters = Clusters(c, walks)
        found: list[Instruction] = []
        for last in reversed(order):
            if last in walks and not walks[last].reduced and self._grow(last, walks, sums, clusters, ctx):
                found.append(last)
        position = {i: n for n, i in enumerate(order)}
        for last in found:
            join_kernels(sorted(clusters.of[last].nodes, key=position.__getitem__))
        return bool(found)

    def _reduces_rows(self, i: Instruction, walk: Walk) -> bool:
        kept = len(walk.dims) - len(walk.reduced)
        if not walk.reduced or walk.reduced != tuple(range(kept, len(walk.dims))):
            return False
        row = prod(walk.dims[kept:])
        if row < self.least or prod(walk.dims[:kept]) < self.rows:
            return False
        reduces = _roots(i)
        widest = max(r.operands[0].shape.element_type.byte_size for r in reduces)
        return row * widest <= self.most_bytes and all(combiner(r.attrs["to_apply"]) for r in reduces)

    def _grow(
        self,
        last: Instruction,
        walks: dict[Instruction, Walk],
        sums: set[Instruction],
        clusters: Clusters,
        ctx: PassContext,
    ) -> bool:
        """Join `last` with the reductions it needs of its rows, and with those they need; whether there are any."""
        work = [last]
        while work:
            reader = work.pop()
            for made in dict.fromkeys(map(source, reader.operands)):
                if made not in sums or len(clusters.of[made].nodes) > 1 or walks[made].dims != walks[last].dims:
                    continue
                why_not = self._against(last, reader, made, walks[made], clusters)
                ctx.decide(not why_not, why_not or "they read the same rows", subject=made.name, object=reader.name)
                if not why_not:
                    clusters.join(made, last)
                    work.append(made)
        return len(clusters.of[last].nodes) > 1

    def _against(
        self, last: Instruction, reader: Instruction, made: Instruction, walk: Walk, clusters: Clusters
    ) -> str:
        kept = len(walk.dims) - len(walk.reduced)
        for n, operand in enumerate(reader.operands):
            if source(operand) is made:
                if reader.opcode != "fusion" or not _read_by_rows(reader.attrs["calls"].parameters[n], walk.dims, kept):
                    return "it is read at other places than the row's own"
        one, two = clusters.of[made], clusters.of[last]
        if len(one.inputs.keys() | two.inputs.keys()) + len(one.nodes) + len(two.nodes) > self.max_inputs:
            return f"the kernel would have more than {self.max_inputs} inputs and outputs"
        if clusters.makes_cycle(made, last):
            return "what lies between them would need a part of the kernel before it has run"
        return ""


def _roots(i: Instruction) -> list[Instruction]:
    """The reduces a kernel of reductions consists of."""
    root = i.fused_root if i.opcode == "fusion" else i
    return list(root.operands) if root.opcode == "tuple" else [root]


def _read_by_rows(parameter: Instruction, dims: tuple[int, ...], kept: int) -> bool:
    """Whether a value a row, `parameter`, is only spread over the row it is of, in arrays of `dims`."""
    wanted = [d for d in range(kept) if dims[d] != 1]
    work, seen = [parameter], {parameter}
    while work:
        i = work.pop()
        for user in i.users:
            if user.opcode == "broadcast" and user.shape.dims == dims:
                spread = zip(user.attrs["dimensions"], i.shape.dims, strict=True)
                if [d for d, size in spread if size != 1] != wanted:
                    return False
            elif user.shape.is_array and user.shape.num_elements == i.shape.num_elements:
                if not user.op.is_elementwise and user.opcode not in ("reshape", "bitcast"):
                    return False
                if user not in seen:
                    seen.add(user)
                    work.append(user)
            else:
                return False
    return True
