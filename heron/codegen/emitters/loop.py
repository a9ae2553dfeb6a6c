"""The loop emitter: every element of every output computed by itself, whatever the fusion holds.

Outputs of equal dimensions share a loop, and with it all common subexpressions; other outputs have loops of their own,
on a GPU by blocks of their own. The one output of a GPU kernel is a function of its own, called in the loop.
"""

from __future__ import annotations

from heron.analysis.fusion.analysis import FusionAnalysis
from heron.analysis.fusion.fusion import Fusion
from heron.analysis.fusion.output_boxes import whole_pieces
from heron.analysis.fusion.partition import partition
from heron.codegen.emitters.base import entry, hero
from heron.codegen.emitters.output_boxes import emit_pieces
from heron.codegen.kernel import Kernel
from heron.hlo.ir.instruction import Instruction
from heron.targets import Target


@hero("loop")
class LoopEmitter:
    """See the module."""

    def emit(self, analysis: FusionAnalysis, name: str, target: Target) -> Kernel:
        fusion = analysis.fusion
        cut = partition(fusion.roots, boundaries=_functions(fusion, target))
        frame = entry(fusion, cut, name, target, any_layout=True)
        return emit_pieces(frame, whole_pieces(fusion), "loop")


def _functions(fusion: Fusion, target: Target) -> list[Instruction]:
    """The root of a GPU kernel with one output: a function of an index, which the loop calls once an element.

    Several outputs are computed where what they share is. CPU loops know more of an index than its range (which part of
    a dimension they are in), so that what depends on it is better computed in place.
    """
    is_one = target.kind == "gpu" and len(fusion.outputs) == 1 and fusion.outputs[0].part is None
    return fusion.roots if is_one else []
