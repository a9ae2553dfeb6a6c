"""normalization-fusion: reductions of rows and the loop over the rows that needs them become one kernel."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import NamedTuple

from heron.analysis.cost.code_size import code_limit
from heron.analysis.fusion.iteration_space import joinable_outputs, source
from heron.analysis.fusion.reduce_order import in_any_order
from heron.hlo.facts import combiner, is_view
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.fusion.model.cluster import Clusters, bytes_of
from heron.passes.fusion.model.join import join_kernels
from heron.records import dataclass


@register
@dataclass(frozen=True)
class NormalizationFusion(Pass):
    """Joins reductions along rows with kernels that read the rows again together with the results.

    That is what softmax and the norms are: the largest element or the mean of a row, a sum that needs it, then
    every element of the row with both; their gradients are, too. One kernel does a row at a time, so that the row
    is read from memory once. Rows have from ``least`` elements up to ``most_bytes``, and there are ``rows`` at
    least: a row is done by one thread of a CPU, by a block of a GPU. The reductions are sums, products, minima,
    maxima and the like of single arrays, and of rows of up to ``positions`` elements the places of extrema, too.
    Every pair of kernels leaves a decision with the bytes before and after. XLA:GPU's pass of this kind is
    `softmax-rewriter-triton`.

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
    least: int = 2
    positions: int = 0
    most_bytes: int = 128 << 10
    rows: int = 16
    max_inputs: int = 48
    max_instructions: int = 500
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
        kernels = {i: rows for i in order if (rows := _rows_of(i, self.positions)) is not None}
        unfit = {i: self._unfit(i, rows) for i, rows in kernels.items() if rows.kept is not None}
        if all(unfit.values()):
            return False
        clusters = Clusters(c, kernels, code_limit(ctx.target))
        position = {i: n for n, i in enumerate(order)}

        def nearest(reader: Instruction) -> list[Instruction]:
            """The operands of `reader`, the last computed first: fusing one makes its own operands candidates."""
            read = dict.fromkeys(map(source, reader.operands))
            return sorted((i for i in read if i in unfit), key=position.__getitem__, reverse=True)

        found = [i for i in reversed(order) if i in kernels and self._grow(i, kernels, unfit, nearest, clusters, ctx)]
        for n, last in enumerate(found):
            if not ctx.may_fire("join", "normalization_fusion.py", last):
                return n > 0
            names = [i.name for i in clusters.of[last].nodes]
            made = join_kernels(sorted(clusters.of[last].nodes, key=position.__getitem__))
            ctx.trace.became.update(dict.fromkeys(names, made.name))
        return bool(found)

    def _unfit(self, i: Instruction, rows: _Rows) -> str:
        """Why the rows a kernel reduces are none to keep at hand; empty when they are."""
        row, count = prod(rows.dims[rows.kept :]), prod(rows.dims[: rows.kept])
        widest = max(r.operands[0].shape.element_type.byte_size for r in _reduces(i))
        if row < self.least:
            return f"rows of {row} elements are cheap to read again"
        if row * widest > self.most_bytes:
            return f"rows of {row * widest} bytes are more than stay at hand"
        if count < self.rows:
            return f"{count} rows are too few to share out"
        return ""

    def _grow(
        self,
        last: Instruction,
        kernels: dict[Instruction, _Rows],
        unfit: dict[Instruction, str],
        nearest: Callable[[Instruction], list[Instruction]],
        clusters: Clusters,
        ctx: PassContext,
    ) -> bool:
        """Join `last` with the kernels whose reduced rows it reads, and with those they read; whether there are any."""
        if len(clusters.of[last].nodes) > 1:
            return False
        work, kept = [last], kernels[last].kept
        while work:
            reader = work.pop()
            for made in nearest(reader):
                if len(clusters.of[made].nodes) > 1 or kernels[made].dims != kernels[last].dims:
                    continue
                if kept is not None and kept != kernels[made].kept:
                    continue
                why_not = unfit[made] or self._against(last, made, kernels[made], clusters)
                one, two = clusters.of[made], clusters.of[last]
                before = sum(bytes_of(x.inputs) + bytes_of(x.nodes) for x in (one, two))
                saved = bytes_of(one.inputs.keys() & two.inputs.keys()) + bytes_of([made])
                if not why_not:
                    clusters.join(made, last)
                    kept = kernels[made].kept
                    work.append(made)
                ctx.decide(
                    not why_not,
                    why_not or "they read the same rows",
                    subject=made.name,
                    object=reader.name,
                    cost_before=before,
                    cost_after=before if why_not else before - saved,
                )
        return len(clusters.of[last].nodes) > 1

    def _against(self, last: Instruction, made: Instruction, rows: _Rows, clusters: Clusters) -> str:
        readers = clusters.of[last].nodes
        reads = [(r, n) for r in readers for n, operand in enumerate(r.operands) if source(operand) is made]
        if all(r.operands[n].shape.dims == rows.dims for r, n in reads):
            return "no result of a whole row is read"
        for r, n in reads:
            fused = r.opcode == "fusion"
            start = r.attrs["calls"].parameters[n] if fused else r.operands[n]
            if not (_stays_in_row(start, rows) if fused else _next(start, r, rows)):
                return "it is read at other places than the row's own"
        one, two = clusters.of[made], clusters.of[last]
        if len(one.inputs.keys() | two.inputs.keys()) + len(one.nodes) + len(two.nodes) > self.max_inputs:
            return f"the kernel would have more than {self.max_inputs} inputs and outputs"
        if one.instructions + two.instructions > self.max_instructions:
            return f"the kernel would have more than {self.max_instructions} instructions"
        if one.code + two.code > clusters.limit.most:
            return f"the kernel would become more than {clusters.limit.most:.0f} LLVM instructions"
        if clusters.makes_cycle(made, last):
            return "what lies between them would need a part of the kernel before it has run"
        return ""


class _Rows(NamedTuple):
    """The iteration space of a kernel: arrays of ``dims``; the first ``kept`` of them index the rows that it reduces
    (None: it reduces nothing)."""

    dims: tuple[int, ...]
    kept: int | None


def _rows_of(i: Instruction, positions: int) -> _Rows | None:
    """The rows of a kernel whose outputs are stored along them or once a row; None for any other.

    ``positions``: elements of a row, at most, that may be reduced to the position of one.
    """
    roots = joinable_outputs(i)
    reduces = _reduces(i)
    if not roots or not all(r.shape.is_array or r.opcode == "reduce" for r in roots):
        return None
    made = {(r.shape.tuple_shapes or (r.shape,))[0].dims for r in roots}
    if not reduces:
        return _Rows(made.pop(), None) if len(made) == 1 else None
    dims = reduces[0].operands[0].shape.dims
    kept = len(dims) - len(reduces[0].attrs["dimensions"])
    rows = _Rows(dims, kept)
    if not made <= {dims, dims[:kept]}:
        return None
    simple = all(_reduces_row(r, rows) and _is_simple(r, prod(dims[kept:]) <= positions) for r in reduces)
    return rows if simple and (i.opcode == "reduce" or all(_stays_in_row(r, rows) for r in reduces)) else None


def _reduces(i: Instruction) -> list[Instruction]:
    """The reduces in a kernel."""
    return [r for r in (i.attrs["calls"].instructions if i.opcode == "fusion" else [i]) if r.opcode == "reduce"]


def _is_simple(i: Instruction, positions: bool) -> bool:
    """Whether a reduce is a sum, a product, an extremum, or with ``positions`` the place of one."""
    return bool(combiner(i.attrs["to_apply"])) if i.shape.is_array else positions and in_any_order(i)


def _reduces_row(i: Instruction, rows: _Rows) -> bool:
    if i.opcode != "reduce" or rows.kept is None:
        return False
    gone, arrays = tuple(sorted(i.attrs["dimensions"])), i.operands[: len(i.operands) // 2]
    return all(a.shape.dims == rows.dims for a in arrays) and gone == tuple(range(rows.kept, len(rows.dims)))


def _stays_in_row(value: Instruction, rows: _Rows) -> bool:
    """Whether all that a kernel computes from a value along rows, or once a row, is for the same place or row."""
    work, seen = [value], {value}
    while work:
        i = work.pop()
        for user in i.users:
            if user.opcode == "tuple":
                continue
            if not _next(i, user, rows):
                return False
            if user not in seen:
                seen.add(user)
                work.append(user)
    return True


def _next(i: Instruction, user: Instruction, rows: _Rows) -> bool:
    """Whether `user` reads `i` for the same place, the same row, all of the row, or spreads it over the row."""
    if user.opcode == "get-tuple-element":
        return True
    if i.shape.dims == rows.dims:
        if user.opcode == "reduce":
            return i not in user.operands[len(user.operands) // 2 :] and _reduces_row(user, rows)
        return user.op.is_elementwise and user.shape.dims == rows.dims
    if user.opcode == "broadcast" and user.shape.dims == rows.dims:
        spread = zip(user.attrs["dimensions"], i.shape.dims, strict=True)
        return [d for d, size in spread if size != 1] == [d for d in range(rows.kept or 0) if rows.dims[d] != 1]
    if not user.shape.is_array or user.shape.num_elements != i.shape.num_elements:
        return False
    return user.op.is_elementwise or is_view(user)
