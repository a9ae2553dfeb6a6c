"""The scatter emitter: updates combined into the operand's own buffer, which the output shares.

A window that does not lie inside the operand whole is dropped, as HLO says. See `scatter.cpu` and `scatter.gpu`.
"""

from __future__ import annotations

from dataclasses import replace

from heron.analysis.fusion.analysis import FusionAnalysis
from heron.analysis.fusion.fusion import outputs_of
from heron.analysis.fusion.partition import partition
from heron.analysis.fusion.scatter import Scatter
from heron.codegen.emitters.base import entry, hero
from heron.codegen.emitters.scatter import cpu, gpu
from heron.codegen.kernel import Kernel
from heron.targets import Target


@hero("scatter")
class ScatterEmitter:
    """See the module."""

    def emit(self, analysis: FusionAnalysis, name: str, target: Target) -> Kernel:
        found = analysis.form
        assert isinstance(found, Scatter)
        # where an output is a view, the kernel sees the array itself: the same bytes
        fusion = replace(analysis.fusion, outputs=tuple(outputs_of(found.i)))
        roots = list(dict.fromkeys([*found.updates, found.indices]))
        roots += [o for o in found.operands if o.opcode != "parameter"]
        frame = entry(fusion, partition(roots), name, target)
        frame.aliases = analysis.updates
        return gpu.emit(frame, found) if frame.is_gpu else cpu.emit(frame, found)
