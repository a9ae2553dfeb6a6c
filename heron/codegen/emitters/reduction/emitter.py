"""The reduction emitter: reduces with everything computed before and after them in one kernel.

Reduces of equally shaped arrays over the same dimensions are walked together. They may be fused with
producers of their operands (evaluated element by element), an epilogue on their results (elementwise, reshapes,
transposes), and further outputs of the operands' shape, stored on the way. Other reductions, and outputs that are in
none, have work items or blocks of their own. The walk follows the order in which the largest array lies in memory.
Results do not depend on the order threads run in: there are no atomics.
"""

from __future__ import annotations

from heron.analysis.fusion.analysis import FusionAnalysis
from heron.analysis.fusion.output_boxes import Piece, piece_of
from heron.analysis.fusion.partition import partition
from heron.analysis.fusion.reduce_order import in_any_order
from heron.analysis.fusion.reduction import ReductionForm, along_memory, axes, runs_of
from heron.codegen.emitters.base import Emitter, Frame
from heron.codegen.emitters.reduction import cpu, gpu
from heron.codegen.emitters.reduction.code import Cut, ReductionCode, Walk
from heron.codegen.kernel import Kernel
from heron.targets import Target


class ReductionEmitter(Emitter[ReductionForm]):
    """The reductions of the form, and the other outputs."""

    kind = "reduce"

    def frame(self, analysis: FusionAnalysis, name: str, target: Target) -> Frame:
        fusion, form = analysis.fusion, analysis.form
        assert isinstance(form, ReductionForm)
        reduces = [i for reduction in form.reductions for i in reduction.reduces]
        operands = [o for i in reduces for o in i.operands]
        others = [o.instruction for o in fusion.outputs if o.instruction not in reduces]
        cut = partition(list(dict.fromkeys([*operands, *others])), provided=reduces)
        return Frame.of(fusion, cut, name, target, any_layout=True)

    def emit_cpu(self, frame: Frame, form: ReductionForm) -> list[Kernel]:
        return [cpu.emit(frame, *_work(frame, form, keys=True))]

    def emit_gpu(self, frame: Frame, form: ReductionForm) -> list[Kernel]:
        return [gpu.emit(frame, *_work(frame, form, keys=False))]


def _work(frame: Frame, form: ReductionForm, keys: bool) -> tuple[list[Walk], list[Piece]]:
    """The walks over the reduced arrays, in memory order, and the outputs that are in none."""
    fusion, cut = frame.fusion, frame.kernel.partition
    walks: list[Walk] = []
    for reduction in form.reductions:
        sources = reduction.arrays
        sources += [fusion.outputs[n].instruction for n in reduction.side]
        if all(map(in_any_order, reduction.reduces)):
            reduction = along_memory(reduction, sources, cut)
        runs = runs_of(reduction, sources, [fusion.outputs[n].shape for n in reduction.side], cut)
        walked = tuple(axes(runs, reduction))
        walks.append(Walk(ReductionCode.of(reduction, keys), walked, Cut.of(reduction, walked, frame.target)))
    return walks, [piece_of(fusion, [n]) for n in form.loose]
