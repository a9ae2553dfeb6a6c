"""The concatenate emitter: the outputs are cut where the operands meet, and each piece reads its operand alone.

What is computed from the concatenation is computed in the same loops. Code for a piece knows between which bounds its
index lies, so other concatenations along the same dimension need no branch there either.
"""

from __future__ import annotations

from itertools import pairwise

from heron.codegen.heroes.base import Fusion, entry, hero
from heron.codegen.heroes.pieces import Piece, emit_pieces
from heron.codegen.kernel import Kernel
from heron.codegen.partition import partition
from heron.hlo.instruction import Instruction
from heron.hlo.shape import array
from heron.targets import Target

#: pieces, and instructions in all of them together, that are worth their code
MAX_PIECES = 64
MAX_INSTRUCTIONS = 1 << 11


@hero("concatenate")
class ConcatenateEmitter:
    """See the module."""

    def emit(self, fusion: Fusion, name: str, target: Target) -> Kernel:
        found = concatenations(fusion)
        frame = entry(fusion, partition(fusion.roots), name, target, any_layout=True)
        pieces = _pieces(fusion, found)
        return emit_pieces(frame, pieces, "concatenate", {"pieces": str(len(pieces))})


def concatenations(fusion: Fusion) -> list[Instruction]:
    """The concatenations along one dimension that all outputs are computed from element by element, if there are any.

    Empty when outputs differ in their dimensions, or where pieces would be too many.
    """
    dims = fusion.outputs[0].shape.dims if fusion.outputs else ()
    if not all(o.part is None and o.shape.dims == dims for o in fusion.outputs):
        return []
    found: list[Instruction] = []
    seen: set[Instruction] = set()
    stack = list(reversed(fusion.roots))
    while stack:
        i = stack.pop()
        if i in seen or i.shape.dims != dims:
            continue
        seen.add(i)
        if i.opcode == "concatenate":
            if not found or i.dimensions == found[0].dimensions:
                found.append(i)
        elif i.op.is_elementwise:
            stack.extend(reversed(i.operands))
    pieces = len(_borders(found)) - 1
    if not 1 < pieces <= MAX_PIECES or pieces * len(fusion.computation) > MAX_INSTRUCTIONS:
        return []
    return found


def _borders(found: list[Instruction]) -> list[int]:
    """Where operands begin and end along the concatenated dimension."""
    borders: set[int] = set()
    for i in found:
        at = 0
        borders.add(0)
        for operand in i.operands:
            at += operand.shape.dims[i.dimensions[0]]
            borders.add(at)
    return sorted(borders)


def _pieces(fusion: Fusion, found: list[Instruction]) -> list[Piece]:
    whole, (d,) = fusion.outputs[0].shape, found[0].dimensions
    members = tuple(range(len(fusion.outputs)))
    pieces: list[Piece] = []
    for begin, end in pairwise(_borders(found)):
        dims = tuple(end - begin if k == d else n for k, n in enumerate(whole.dims))
        start = tuple(begin if k == d else 0 for k in range(whole.rank))
        if whole.num_elements:
            pieces.append(Piece(array(whole.element_type, dims, whole.layout), members, whole, start))
    return pieces
