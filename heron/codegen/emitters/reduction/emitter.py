"""The reduction emitter: reduces with everything computed before and after them in one kernel.

Reduces of equally shaped arrays over the same dimensions are walked together. Around them may stand: what computes
their operands (evaluated element by element where it is needed), an epilogue on their results (elementwise, reshapes,
transposes), and further outputs of the operands' shape, stored on the way. Other reductions, and outputs that are in
none, have work items or blocks of their own. The walk follows the order in which the largest array lies in memory.
Results do not depend on the order threads run in: there are no atomics.
"""

from __future__ import annotations

from heron.analysis.fusion.analysis import FusionAnalysis
from heron.analysis.fusion.output_boxes import piece_of
from heron.analysis.fusion.partition import partition
from heron.analysis.fusion.reduction import Form, along_memory, axes, runs_of
from heron.codegen.emitters.base import entry, hero
from heron.codegen.emitters.reduction import cpu, gpu
from heron.codegen.emitters.reduction.code import ReductionCode, Walk
from heron.codegen.kernel import Kernel
from heron.targets import Target


@hero("reduce")
class ReductionEmitter:
    """See the module."""

    def emit(self, analysis: FusionAnalysis, name: str, target: Target) -> Kernel:
        fusion, form = analysis.fusion, analysis.form
        assert isinstance(form, Form)
        heroes = [i for reduction in form.reductions for i in reduction.reduces]
        operands = [o for h in heroes for o in h.operands]
        others = [o.instruction for o in fusion.outputs if o.instruction not in heroes]
        cut = partition(list(dict.fromkeys([*operands, *others])), provided=heroes)
        frame = entry(fusion, cut, name, target, any_layout=True)
        walks: list[Walk] = []
        for reduction in form.reductions:
            sources = reduction.arrays
            sources += [fusion.outputs[n].instruction for n in reduction.side]
            reduction = along_memory(reduction, sources, cut)
            runs = runs_of(reduction, sources, [fusion.outputs[n].shape for n in reduction.side], cut)
            walks.append(Walk(ReductionCode.of(reduction), tuple(axes(runs, reduction))))
        pieces = [piece_of(fusion, [n]) for n in form.loose]
        emit = gpu.emit if frame.is_gpu else cpu.emit
        return emit(frame, walks, pieces)
