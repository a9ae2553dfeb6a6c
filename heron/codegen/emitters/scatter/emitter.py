"""The scatter emitter: updates combined into the operand's own buffer, which the output shares.

A window that does not lie inside the operand whole is dropped, as HLO says. See `scatter.cpu` and `scatter.gpu`.
"""

from __future__ import annotations

from dataclasses import replace

from heron.analysis.fusion.analysis import FusionAnalysis
from heron.analysis.fusion.fusion import outputs_of
from heron.analysis.fusion.partition import partition
from heron.analysis.fusion.scatter import Scatter
from heron.codegen.emitters.base import Emitter, Frame
from heron.codegen.emitters.scatter import cpu, gpu
from heron.codegen.kernel import Kernel
from heron.targets import Target


class ScatterEmitter(Emitter[Scatter]):
    """The updates, each combined where its index says."""

    kind = "scatter"

    def frame(self, analysis: FusionAnalysis, name: str, target: Target) -> Frame:
        form = analysis.form
        assert isinstance(form, Scatter)
        # where an output is a view, the kernel sees the array itself: the same bytes
        fusion = replace(analysis.fusion, outputs=tuple(outputs_of(form.i)))
        roots = list(dict.fromkeys([*form.updates, form.indices]))
        roots += [o for o in form.operands if o.opcode != "parameter"]
        frame = Frame.of(fusion, partition(roots), name, target)
        frame.aliases = analysis.updates
        return frame

    def emit_cpu(self, frame: Frame, form: Scatter) -> list[Kernel]:
        return [cpu.emit(frame, form)]

    def emit_gpu(self, frame: Frame, form: Scatter) -> list[Kernel]:
        return [gpu.emit(frame, form)]
