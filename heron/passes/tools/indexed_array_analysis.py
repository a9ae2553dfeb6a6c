"""indexed-array-analysis: says which arrays are slices of others picked by indices."""

from __future__ import annotations

from heron.analysis.values.indexed_arrays import indexed_arrays
from heron.hlo.ir.module import Module
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.records import dataclass


@register
@dataclass(frozen=True)
class IndexedArrayAnalysis(Pass):
    """Notes every array that is another one's slices picked by indices, and changes nothing.

    Gathers of gathers are seen as one with gathered indices, elementwise work on picked slices as work on what they are
    picked from. The notes say ``%g = (scalar-indexed %x %k 0->[0])``: dimension 0 of x, indexed by k, is dimension 0 of
    g. `heron opt` prints them.

    g = f32[5,3] gather(f32[8,3] x, s32[5] k), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0},
      index_vector_dim=1, slice_sizes={1,3}
    ROOT n = f32[5,3] negate(g)
    ->
    ROOT n = f32[5,3] negate(g)
    """

    name = "indexed-array-analysis"

    def run(self, module: Module, ctx: PassContext) -> bool:
        for i, form in indexed_arrays(module).items():
            ctx.note(f"%{i.name} = {form}")
        return False
