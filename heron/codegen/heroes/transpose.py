"""The transpose emitter: loops that read some operand across memory, tiled so that every access runs along it.

See `transpose_form` for what is staged. A fusion in which nothing needs staging goes to the loop emitter.
"""

from __future__ import annotations

from heron.codegen.heroes import select, transpose_cpu, transpose_gpu
from heron.codegen.heroes.base import Fusion, entry, hero
from heron.codegen.heroes.pieces import groups_of
from heron.codegen.kernel import Kernel
from heron.codegen.partition import partition
from heron.targets import Target


@hero("transpose")
class TransposeEmitter:
    """See the module."""

    def emit(self, fusion: Fusion, name: str, target: Target) -> Kernel:
        frame = entry(fusion, partition(fusion.roots), name, target, any_layout=True)
        emit = transpose_gpu.emit if frame.is_gpu else transpose_cpu.emit
        found = emit(frame, groups_of(fusion))
        if isinstance(found, Kernel):
            return found
        other = select.elementwise(fusion)
        kernel = select.emitter(other).emit(fusion, name, target)
        kernel.notes["reason"] = f"{found}; {other.reason}"
        return kernel
