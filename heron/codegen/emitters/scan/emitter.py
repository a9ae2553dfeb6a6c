"""The scan emitter: a reduce-window that is a prefix or suffix scan, in one pass along the scanned dimension.

See `scan_cpu` and `scan_gpu`. Anything else computed in the same kernel has each result done by itself.
"""

from __future__ import annotations

from heron.analysis.fusion.fusion import Fusion
from heron.analysis.fusion.partition import partition
from heron.analysis.fusion.prefix_scan import scan_of
from heron.codegen.emitters.base import entry, hero, load
from heron.codegen.emitters.scan import cpu, gpu
from heron.codegen.emitters.scan.form import ScanForm
from heron.codegen.kernel import Kernel
from heron.targets import Target


@hero("scan")
class ScanEmitter:
    """See the module."""

    def emit(self, fusion: Fusion, name: str, target: Target) -> Kernel:
        why_not = _refusal(fusion, target)
        if why_not:
            kernel = load()["loop"].emit(fusion, name, target)
            kernel.notes["reason"] = why_not
            return kernel
        i = fusion.outputs[0].instruction
        scan = scan_of(i)
        assert scan is not None
        frame = entry(fusion, partition(list(dict.fromkeys(i.operands)), provided=[i]), name, target)
        form = ScanForm(frame, i, scan)
        return gpu.emit(form) if frame.is_gpu else cpu.emit(form)


def _refusal(fusion: Fusion, target: Target) -> str:
    scan = scan_of(fusion.roots[0])
    if len(fusion.roots) != 1 or scan is None:
        return "more is computed than a scan"
    if target.kind == "gpu" and scan.phases[2]:
        return "results after the last element"
    return ""
