"""The scan emitter: a reduce-window that is a prefix or suffix scan, in one pass along the scanned dimension.

See `scan_cpu` and `scan_gpu`. Anything else computed in the same kernel has each result done by itself.
"""

from __future__ import annotations

from heron.analysis.fusion.analysis import FusionAnalysis
from heron.analysis.fusion.partition import partition
from heron.analysis.fusion.prefix_scan import Scan
from heron.codegen.emitters.base import entry, hero
from heron.codegen.emitters.scan import cpu, gpu
from heron.codegen.emitters.scan.form import ScanForm
from heron.codegen.kernel import Kernel
from heron.targets import Target


@hero("scan")
class ScanEmitter:
    """See the module."""

    def emit(self, analysis: FusionAnalysis, name: str, target: Target) -> Kernel:
        fusion, scan = analysis.fusion, analysis.form
        assert isinstance(scan, Scan)
        i = fusion.outputs[0].instruction
        frame = entry(fusion, partition(list(dict.fromkeys(i.operands)), provided=[i]), name, target)
        form = ScanForm(frame, i, scan)
        return gpu.emit(form) if frame.is_gpu else cpu.emit(form)
