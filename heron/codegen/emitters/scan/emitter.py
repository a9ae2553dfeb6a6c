"""The scan emitter: a reduce-window that is a prefix or suffix scan, in one pass along the scanned dimension.

See `scan.cpu` and `scan.gpu`. Anything else computed in the same kernel has each result done by itself.
"""

from __future__ import annotations

from heron.analysis.fusion.analysis import FusionAnalysis
from heron.analysis.fusion.partition import partition
from heron.analysis.fusion.prefix_scan import Scan
from heron.codegen.emitters.base import Emitter, Frame
from heron.codegen.emitters.scan import cpu, gpu
from heron.codegen.emitters.scan.form import ScanForm
from heron.codegen.kernel import Kernel
from heron.targets import Target


class ScanEmitter(Emitter[Scan]):
    """The elements along the scanned dimension, combined in order."""

    kind = "scan"

    def frame(self, analysis: FusionAnalysis, name: str, target: Target) -> Frame:
        (scan,) = analysis.fusion.roots
        cut = partition(list(dict.fromkeys(scan.operands)), provided=[scan])
        return Frame.of(analysis.fusion, cut, name, target)

    def emit_cpu(self, frame: Frame, form: Scan) -> list[Kernel]:
        return [cpu.emit(ScanForm(frame, frame.fusion.roots[0], form))]

    def emit_gpu(self, frame: Frame, form: Scan) -> list[Kernel]:
        return [gpu.emit(ScanForm(frame, frame.fusion.roots[0], form))]
