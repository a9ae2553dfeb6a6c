"""The scatter emitter: updates combined into the operand's own buffer, which the output shares.

A window that does not lie inside the operand whole is dropped, as HLO says. See `scatter_cpu` and `scatter_gpu`.
"""

from __future__ import annotations

from dataclasses import replace

from heron.analysis.fusion.fusion import Fusion, outputs_of
from heron.analysis.fusion.partition import partition
from heron.analysis.fusion.scatter import Scatter
from heron.codegen.emitters.base import entry, hero
from heron.codegen.emitters.scatter import cpu, gpu
from heron.codegen.kernel import Kernel
from heron.errors import HeronError
from heron.hlo.ir.instruction import Instruction
from heron.targets import Target

_VIEWS = frozenset({"bitcast", "reshape", "copy"})


@hero("scatter")
class ScatterEmitter:
    """See the module."""

    def emit(self, fusion: Fusion, name: str, target: Target) -> Kernel:
        scatter = _only_scatter(fusion)
        found = Scatter.of(scatter)
        # where an output is a view, the kernel sees the array itself: the same bytes
        fusion = replace(fusion, outputs=tuple(outputs_of(scatter)))
        roots = list(dict.fromkeys([*found.updates, found.indices]))
        roots += [o for o in found.operands if o.opcode != "parameter"]
        frame = entry(fusion, partition(roots), name, target)
        for n, operand in enumerate(found.operands):
            if operand.opcode == "parameter":
                frame.aliases[n] = operand.number
        return gpu.emit(frame, found) if frame.is_gpu else cpu.emit(frame, found)


def _only_scatter(fusion: Fusion) -> Instruction:
    """The scatter that all outputs are. Raises GEN130 when there is anything else."""
    found: list[Instruction] = []
    for output in fusion.outputs:
        i = output.instruction
        while i.opcode in _VIEWS and i.shape.element_type is i.operands[0].shape.element_type:
            i = i.operands[0]
        if i.opcode != "scatter" or (found and i is not found[0]):
            raise HeronError(
                "GEN130",
                "a kernel with a scatter has no other outputs",
                where=str(output.instruction),
                why="the scatter writes into its operand's buffer",
            )
        found.append(i)
    return found[0]
