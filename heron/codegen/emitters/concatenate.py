"""The concatenate emitter: the outputs are cut where the operands meet, and each piece reads its operand alone.

The same loops also compute the users of the concatenation. The code of a piece knows the bounds of its index, so that
other concatenations along the same dimension need no branch there either. Pads with room between elements are cut in
the same way: every second position, say, is a piece.
"""

from __future__ import annotations

from heron.analysis.fusion.cuts import Cuts
from heron.analysis.fusion.fusion import Fusion
from heron.analysis.fusion.output_boxes import Piece
from heron.codegen.emitters import output_boxes
from heron.codegen.emitters.base import Emitter, Frame
from heron.codegen.kernel import Kernel
from heron.hlo.ir.shape import array


class ConcatenateEmitter(Emitter[Cuts]):
    """A loop for each operand of the concatenation."""

    kind = "concatenate"

    def emit_cpu(self, frame: Frame, form: Cuts) -> list[Kernel]:
        pieces = _pieces(frame.fusion, form)
        return [output_boxes.emit_cpu(frame, pieces, self.kind, {"pieces": str(len(pieces))})]

    def emit_gpu(self, frame: Frame, form: Cuts) -> list[Kernel]:
        pieces = _pieces(frame.fusion, form)
        return [output_boxes.emit_gpu(frame, pieces, self.kind, {"pieces": str(len(pieces))})]


def _pieces(fusion: Fusion, cuts: Cuts) -> list[Piece]:
    whole, d = fusion.outputs[0].shape, cuts.dimension
    members = tuple(range(len(fusion.outputs)))
    pieces: list[Piece] = []
    for box in cuts.boxes if whole.num_elements else ():
        dims = tuple(len(box) if k == d else n for k, n in enumerate(whole.dims))
        start = tuple(box.start if k == d else 0 for k in range(whole.rank))
        steps = tuple(box.step if k == d else 1 for k in range(whole.rank)) if box.step > 1 else ()
        is_edge = cuts.at_edges and len(box) < whole.dims[d] // 4
        pieces.append(Piece(array(whole.element_type, dims, whole.layout), members, whole, start, steps, is_edge))
    return pieces
