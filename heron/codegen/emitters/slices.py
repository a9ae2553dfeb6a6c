"""The slices emitter: many slices of what the fusion computes, of different shapes, in one kernel.

That is what small kernels put side by side by horizontal fusion look like: their results are concatenated, and each
output is a slice of that. Every slice is a piece of its own, and within its piece a concatenation is just the operand
that lies there.
"""

from __future__ import annotations

from heron.analysis.fusion.analysis import FusionAnalysis
from heron.analysis.fusion.output_boxes import piece_of
from heron.analysis.fusion.partition import partition
from heron.codegen.emitters.base import entry, hero
from heron.codegen.emitters.output_boxes import emit_pieces
from heron.codegen.kernel import Kernel
from heron.targets import Target


@hero("slices")
class SlicesEmitter:
    """See the module."""

    def emit(self, analysis: FusionAnalysis, name: str, target: Target) -> Kernel:
        fusion = analysis.fusion
        frame = entry(fusion, partition(fusion.roots), name, target, any_layout=True)
        pieces = [piece_of(fusion, [n]) for n, o in enumerate(fusion.outputs) if o.shape.num_elements]
        return emit_pieces(frame, pieces, "slices")
