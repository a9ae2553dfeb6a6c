"""The loop emitter: every element of every output computed by itself, whatever the fusion holds.

Outputs of equal dimensions share a loop, and with it all common subexpressions; other outputs have loops of their own,
on a GPU by blocks of their own.
"""

from __future__ import annotations

from heron.codegen.heroes.base import Fusion, entry, hero
from heron.codegen.heroes.pieces import emit_pieces, whole_pieces
from heron.codegen.kernel import Kernel
from heron.codegen.partition import partition
from heron.targets import Target


@hero("loop")
class LoopEmitter:
    """See the module."""

    def emit(self, fusion: Fusion, name: str, target: Target) -> Kernel:
        frame = entry(fusion, partition(fusion.roots), name, target, any_layout=True)
        return emit_pieces(frame, whole_pieces(fusion), "loop")
