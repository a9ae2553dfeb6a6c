"""The slices emitter: many slices of what the fusion computes, of different shapes, in one kernel.

That is what small kernels put side by side by horizontal fusion look like: their results are concatenated, and each
output is a slice of that. Every slice is a separate piece, within which a concatenation is the one operand that lies
there.
"""

from __future__ import annotations

from heron.analysis.fusion.fusion import Fusion
from heron.analysis.fusion.output_boxes import Piece, piece_of
from heron.codegen.emitters import output_boxes
from heron.codegen.emitters.base import Emitter, Frame
from heron.codegen.kernel import Kernel


class SlicesEmitter(Emitter[None]):
    """A loop for each output."""

    kind = "slices"

    def emit_cpu(self, frame: Frame, form: None) -> list[Kernel]:
        return [output_boxes.emit_cpu(frame, _pieces(frame.fusion), self.kind)]

    def emit_gpu(self, frame: Frame, form: None) -> list[Kernel]:
        return [output_boxes.emit_gpu(frame, _pieces(frame.fusion), self.kind)]


def _pieces(fusion: Fusion) -> list[Piece]:
    return [piece_of(fusion, [n]) for n, o in enumerate(fusion.outputs) if o.shape.num_elements]
