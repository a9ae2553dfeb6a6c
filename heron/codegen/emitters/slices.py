"""The slices emitter: many slices of what the fusion computes, of different shapes, in one kernel.

That is what small kernels put side by side by horizontal fusion look like: their results are concatenated, and each
output is a slice of that. Every slice is a piece of its own, and within its piece a concatenation is just the operand
that lies there.
"""

from __future__ import annotations

from heron.codegen.emitters.base import Fusion, entry, hero
from heron.codegen.emitters.output_boxes import emit_pieces, piece_of
from heron.codegen.kernel import Kernel
from heron.codegen.partition import partition
from heron.hlo.ir.instruction import Instruction
from heron.targets import Target

_VIEWS = frozenset({"bitcast", "reshape", "copy"})


@hero("slices")
class SlicesEmitter:
    """See the module."""

    def emit(self, fusion: Fusion, name: str, target: Target) -> Kernel:
        frame = entry(fusion, partition(fusion.roots), name, target, any_layout=True)
        pieces = [piece_of(fusion, [n]) for n, o in enumerate(fusion.outputs) if o.shape.num_elements]
        return emit_pieces(frame, pieces, "slices")


def are_slices(fusion: Fusion) -> bool:
    """Whether the fusion has several outputs and all of them are slices, or views of such."""
    return len(fusion.outputs) > 1 and all(_is_slice(o.instruction) for o in fusion.outputs)


def _is_slice(i: Instruction) -> bool:
    while i.opcode in _VIEWS:
        i = i.operands[0]
    return i.opcode == "slice"
