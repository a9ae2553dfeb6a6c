"""The transpose emitter: loops that read some operand across memory, tiled so that every access runs along it.

See `transpose_form` for what is staged. A fusion in which nothing needs staging goes to the loop emitter.
"""

from __future__ import annotations

from heron.codegen.emitters import select
from heron.codegen.emitters.base import Fusion, entry, hero
from heron.codegen.emitters.output_boxes import groups_of
from heron.codegen.emitters.transpose import cpu, gpu
from heron.codegen.kernel import Kernel
from heron.codegen.partition import partition
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
        kernel = select.emitter(other).emit(fusion, name, target)
        kernel.notes["reason"] = f"{found}; {other.reason}"
        return kernel
