"""The emitter of row-wise kernels: they reduce rows, and store functions of a row and its reductions, row by row.

As kernels of their own the reductions of a softmax or a layer norm read the array from memory once each. Here a row is
read once: a CPU finds it in the cache when it needs it again, a GPU has it in the registers of the row's threads.
"""

from __future__ import annotations

from heron.analysis.fusion.analysis import FusionAnalysis
from heron.analysis.fusion.rowwise import RowwiseForm
from heron.codegen.emitters.base import Emitter, Frame
from heron.codegen.emitters.rowwise import cpu, gpu
from heron.codegen.kernel import Kernel
from heron.targets import Target


class RowwiseEmitter(Emitter[RowwiseForm]):
    """A work item, or some threads, for each row."""

    kind = "rows"

    def frame(self, analysis: FusionAnalysis, name: str, target: Target) -> Frame:
        assert isinstance(analysis.form, RowwiseForm)
        return Frame.of(analysis.fusion, analysis.form.cut, name, target)

    def emit_cpu(self, frame: Frame, form: RowwiseForm) -> list[Kernel]:
        return [cpu.emit(frame, form)]

    def emit_gpu(self, frame: Frame, form: RowwiseForm) -> list[Kernel]:
        return [gpu.emit(frame, form)]
