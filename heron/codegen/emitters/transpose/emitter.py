"""The transpose emitter: loops that read some operand across memory, tiled so that every access runs along it.

See `analysis.fusion.transpose` for what is staged. A fusion in which nothing needs staging goes to the loop emitter.
"""

from __future__ import annotations

from heron.analysis.fusion.analysis import FusionAnalysis
from heron.analysis.fusion.transpose import Form
from heron.codegen.emitters.base import entry, hero
from heron.codegen.emitters.transpose import cpu, gpu
from heron.codegen.kernel import Kernel
from heron.targets import Target


@hero("transpose")
class TransposeEmitter:
    """See the module."""

    def emit(self, analysis: FusionAnalysis, name: str, target: Target) -> Kernel:
        form = analysis.form
        assert isinstance(form, Form)
        frame = entry(analysis.fusion, form.partition, name, target, any_layout=True)
        return (gpu if frame.is_gpu else cpu).emit(frame, form)
