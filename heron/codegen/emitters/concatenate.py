"""The concatenate emitter: the outputs are cut where the operands meet, and each piece reads its operand alone.

What is computed from the concatenation is computed in the same loops. Code for a piece knows between which bounds its
index lies, so other concatenations along the same dimension need no branch there either.
"""

from __future__ import annotations

from itertools import pairwise

from heron.analysis.fusion.analysis import FusionAnalysis
from heron.analysis.fusion.cuts import Cuts
from heron.analysis.fusion.fusion import Fusion
from heron.analysis.fusion.output_boxes import Piece
from heron.analysis.fusion.partition import partition
from heron.codegen.emitters.base import entry, hero
from heron.codegen.emitters.output_boxes import emit_pieces
from heron.codegen.kernel import Kernel
from heron.hlo.ir.shape import array
from heron.targets import Target


@hero("concatenate")
class ConcatenateEmitter:
    """See the module."""

    def emit(self, analysis: FusionAnalysis, name: str, target: Target) -> Kernel:
        fusion, cuts = analysis.fusion, analysis.form
        assert isinstance(cuts, Cuts)
        frame = entry(fusion, partition(fusion.roots), name, target, any_layout=True)
        pieces = _pieces(fusion, cuts)
        return emit_pieces(frame, pieces, "concatenate", {"pieces": str(len(pieces))})


def _pieces(fusion: Fusion, cuts: Cuts) -> list[Piece]:
    whole, d = fusion.outputs[0].shape, cuts.dimension
    members = tuple(range(len(fusion.outputs)))
    pieces: list[Piece] = []
    for begin, end in pairwise(cuts.borders):
        dims = tuple(end - begin if k == d else n for k, n in enumerate(whole.dims))
        start = tuple(begin if k == d else 0 for k in range(whole.rank))
        if whole.num_elements:
            pieces.append(Piece(array(whole.element_type, dims, whole.layout), members, whole, start))
    return pieces
