"""The transpose emitter: loops that read some operand across memory, tiled so that every access runs along it.

See `analysis.fusion.transpose` for what is staged. A fusion in which nothing needs staging goes to the loop emitter.
"""

from __future__ import annotations

from heron.analysis.fusion import select
from heron.analysis.fusion.fusion import Fusion
from heron.analysis.fusion.output_boxes import groups_of
from heron.analysis.fusion.partition import partition
from heron.codegen.emitters.base import entry, hero, load
from heron.codegen.emitters.transpose import cpu, gpu
from heron.codegen.kernel import Kernel
from heron.targets import Target


@hero("transpose")
class TransposeEmitter:
    """See the module."""

    def emit(self, fusion: Fusion, name: str, target: Target) -> Kernel:
        frame = entry(fusion, partition(fusion.roots), name, target, any_layout=True)
        emit = gpu.emit if frame.is_gpu else cpu.emit
        found = emit(frame, groups_of(fusion))
        if isinstance(found, Kernel):
            return found
        other = select.elementwise(fusion)
        kernel = load()[other.emitter].emit(fusion, name, target)
        kernel.notes["reason"] = f"{found}; {other.reason}"
        return kernel
