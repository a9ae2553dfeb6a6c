"""The transpose emitter: loops that read some operand across memory, tiled so that every access runs along it.

See `transpose_form` for what is staged. A fusion in which nothing needs staging goes to the loop emitter.
"""

from __future__ import annotations

from heron.codegen.heroes import transpose_cpu, transpose_gpu
from heron.codegen.heroes.base import Fusion, entry, hero, load
from heron.codegen.heroes.loop import groups_of
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
        kernel = load()["loop"].emit(fusion, name, target)
        kernel.notes["reason"] = found
        return kernel
