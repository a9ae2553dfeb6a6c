"""The loop emitter: every element of every output computed by itself, whatever the fusion holds.

Outputs of equal dimensions share a loop, and with it all common subexpressions; other outputs have loops of their own,
on a GPU in separate blocks. A GPU kernel with one output computes it in a separate function, which the loop calls.
"""

from __future__ import annotations

from heron.analysis.fusion.analysis import FusionAnalysis
from heron.analysis.fusion.fusion import Fusion
from heron.analysis.fusion.output_boxes import whole_pieces
from heron.analysis.fusion.partition import partition
from heron.codegen.emitters import output_boxes
from heron.codegen.emitters.base import Emitter, Frame
from heron.codegen.kernel import Kernel
from heron.hlo.ir.instruction import Instruction
from heron.targets import Target


class LoopEmitter(Emitter[None]):
    """Loops over all outputs."""

    kind = "loop"

    def frame(self, analysis: FusionAnalysis, name: str, target: Target) -> Frame:
        fusion = analysis.fusion
        cut = partition(fusion.roots, boundaries=_functions(fusion, target))
        return Frame.of(fusion, cut, name, target, any_layout=True)

    def emit_cpu(self, frame: Frame, form: None) -> list[Kernel]:
        return [output_boxes.emit_cpu(frame, whole_pieces(frame.fusion), self.kind)]

    def emit_gpu(self, frame: Frame, form: None) -> list[Kernel]:
        return [output_boxes.emit_gpu(frame, whole_pieces(frame.fusion), self.kind)]


def _functions(fusion: Fusion, target: Target) -> list[Instruction]:
    """The root of a GPU kernel with one output: a function of an index, which the loop calls once an element.

    Several outputs are computed where what they share is. CPU loops know more of an index than its range (which part of
    a dimension they are in), so that what depends on it is better computed in place.
    """
    is_one = target.is_gpu and len(fusion.outputs) == 1 and fusion.outputs[0].part is None
    return fusion.roots if is_one else []
