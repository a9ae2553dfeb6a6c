"""The transpose emitter: loops that read some operand across memory, tiled so that every access runs along it.

`analysis.fusion.transpose` chooses the operands that are staged; a fusion without any gets the loop emitter.
"""

from __future__ import annotations

from heron.analysis.fusion.analysis import FusionAnalysis
from heron.analysis.fusion.transpose import TransposeForm
from heron.codegen.emitters.base import Emitter, Frame
from heron.codegen.emitters.transpose import cpu, gpu
from heron.codegen.kernel import Kernel
from heron.targets import Target


class TransposeEmitter(Emitter[TransposeForm]):
    """Tiles of the operands that are read across memory."""

    kind = "transpose"

    def frame(self, analysis: FusionAnalysis, name: str, target: Target) -> Frame:
        assert isinstance(analysis.form, TransposeForm)
        return Frame.of(analysis.fusion, analysis.form.partition, name, target, any_layout=True)

    def emit_cpu(self, frame: Frame, form: TransposeForm) -> list[Kernel]:
        return [cpu.emit(frame, form)]

    def emit_gpu(self, frame: Frame, form: TransposeForm) -> list[Kernel]:
        return [gpu.emit(frame, form)]
