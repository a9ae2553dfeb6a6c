"""The reduction emitter: reduces with everything computed before and after them in one kernel.

All reduces of the fusion ("heroes") reduce the same dimensions of equally shaped arrays. Around them may stand: what
computes their operands (evaluated element by element where it is needed), an epilogue on their results (elementwise,
reshapes), and further outputs of the operands' shape, stored on the way. A fusion of any other form goes to the loop
emitter. Results do not depend on the order threads run in: there are no atomics.
"""

from __future__ import annotations

from heron.codegen.heroes import reduction_cpu, reduction_gpu
from heron.codegen.heroes.base import Fusion, entry, hero, load
from heron.codegen.heroes.reduction_form import analyse, axes
from heron.codegen.heroes.space import contiguous_runs
from heron.codegen.kernel import Kernel
from heron.codegen.partition import partition
from heron.targets import Target


@hero("reduce")
class ReductionEmitter:
    """See the module."""

    def emit(self, fusion: Fusion, name: str, target: Target) -> Kernel:
        reduction = analyse(fusion)
        if reduction is None:
            kernel = load()["loop"].emit(fusion, name, target)
            kernel.notes["reason"] = "its reduces do not share one shape and one set of reduced dimensions"
            return kernel
        heroes = [r.hero for r in reduction.reducers]
        operands = [o for h in heroes for o in h.operands]
        roots = list(
            dict.fromkeys([*operands, *(o.instruction for o in fusion.outputs if o.instruction not in heroes)])
        )
        cut = partition(roots, provided=heroes)
        frame = entry(fusion, cut, name, target)
        sources = [a for r in reduction.reducers for a in r.arrays]
        sources += [fusion.outputs[n].instruction for n in reduction.side]
        runs = contiguous_runs(sources, reduction.sizes, cut)
        emit = reduction_gpu.emit if frame.is_gpu else reduction_cpu.emit
        return emit(frame, reduction, axes(runs, reduction))
