"""The concatenate emitter: the outputs are cut where the operands meet, and each piece reads its operand alone.

The same loops also compute the users of the concatenation. The code of a piece knows the bounds of its index, so that
other concatenations along the same dimension need no branch there either. Pads with room between elements are cut in
the same way: every second position, say, is a piece.

On a CPU one loop stores an element of each piece where these lie beside each other in memory, as coordinates of points
do. LLVM brings such elements together in vectors; a loop for each piece would store every third element, say. The
matrices that nested concatenations make of numbers are such rows, too. Short rows of longer pieces are one loop, which
`split-loops` cuts where operands meet: loops for each piece would go over the output again and again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from heron.analysis.cost.code_size import CPU_CODE, op_code
from heron.analysis.fusion.cuts import Cuts, above_joints
from heron.analysis.fusion.fusion import Fusion
from heron.analysis.fusion.joined_rows import JoinedRow, joined_row
from heron.analysis.fusion.output_boxes import Piece, piece_of
from heron.analysis.indexing.hlo_maps import memory_order
from heron.codegen.emitters import output_boxes
from heron.codegen.emitters.base import Emitter, Frame
from heron.codegen.kernel import Kernel
from heron.codegen.transforms.split_loops import MAX_BORDERS
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import array

#: pieces whose elements a CPU's loop stores beside each other: LLVM makes vectors of stores of up to so many
MOST_STORES = 8
#: LLVM instructions of such a loop, at most
MOST_CODE = CPU_CODE.most
#: elements of rows that are better done part by part than all rows for each part; longer parts are copied at once
MAX_ROW = 128
#: parts of such a row, at most: `split-loops` cuts a loop into no more, and to choose among others takes comparisons
#: for every element
MOST_PARTS = MAX_BORDERS + 1
#: LLVM instructions that all parts of a row together may have for what is computed of it, and not copied; none beside
#: padding, whose elements are few
MOST_COMPUTED = 48.0
#: rows that are worth code for each of their elements where pieces are longer than one
MIN_ROWS = 16


class ConcatenateEmitter(Emitter[Cuts]):
    """A loop for each operand of the concatenation."""

    kind = "concatenate"

    def emit_cpu(self, frame: Frame, form: Cuts) -> list[Kernel]:
        beside = _beside(frame.fusion, form)
        pieces = beside or _rows(frame.fusion, form) or _pieces(frame.fusion, form.boxes, form)
        emit = output_boxes.emit_beside if beside else output_boxes.emit_cpu
        return [emit(frame, pieces, self.kind, {"pieces": str(len(pieces))})]

    def emit_gpu(self, frame: Frame, form: Cuts) -> list[Kernel]:
        pieces = _pieces(frame.fusion, form.boxes, form)
        return [output_boxes.emit_gpu(frame, pieces, self.kind, {"pieces": str(len(pieces))})]


def _pieces(fusion: Fusion, boxes: Sequence[range], cuts: Cuts) -> list[Piece]:
    whole, d = fusion.outputs[0].shape, cuts.dimension
    members = tuple(range(len(fusion.outputs)))
    pieces: list[Piece] = []
    for box in boxes if whole.num_elements else ():
        dims = tuple(len(box) if k == d else n for k, n in enumerate(whole.dims))
        start = tuple(box.start if k == d else 0 for k in range(whole.rank))
        steps = tuple(box.step if k == d else 1 for k in range(whole.rank)) if box.step > 1 else ()
        is_edge = cuts.at_edges and len(box) < whole.dims[d] // 4
        pieces.append(Piece(array(whole.element_type, dims, whole.layout), members, whole, start, steps, is_edge))
    return pieces


def _rows(fusion: Fusion, cuts: Cuts) -> list[Piece]:
    """One piece, all of the outputs, where their rows are cut and short; else none, as for edges of windows, whose
    sums have a loop of their own."""
    whole = fusion.outputs[0].shape
    if any(i.opcode == "reduce-window" for i in fusion.computation.instructions):
        return []
    row = whole.dims[cuts.dimension]
    in_rows = {memory_order(o.shape)[-1] for o in fusion.outputs} == {cuts.dimension}
    if (
        len(cuts.boxes) > MOST_PARTS
        or cuts.step > 1
        or not in_rows
        or not row < whole.num_elements
        or row > MAX_ROW
        or fusion.parts
    ):
        return []
    computed = sum(op_code(i, CPU_CODE) for i in above_joints(o.instruction for o in fusion.outputs))
    most = 0.0 if cuts.at_edges else MOST_COMPUTED
    return [piece_of(fusion, range(len(fusion.outputs)))] if computed * len(cuts.boxes) <= most else []


def _beside(fusion: Fusion, cuts: Cuts) -> list[Piece]:
    """Pieces of which one element each, one beside the other in memory, are a row of few elements; else none."""
    row = joined_row(fusion)
    elements = [] if row is None or _code(fusion, row.times) > MOST_CODE else _elements(fusion, row)
    return elements or _pieces(fusion, _boxes_beside(fusion, cuts), cuts)


def _boxes_beside(fusion: Fusion, cuts: Cuts) -> Sequence[range]:
    """The same along the dimension that is cut, where it is short."""
    whole, d = fusion.outputs[0].shape, cuts.dimension
    order = memory_order(whole)
    if not whole.num_elements or any(whole.dims[k] > 1 for k in order[list(order).index(d) + 1 :]):
        return []
    boxes, size = cuts.boxes, whole.dims[d]
    by_turns = cuts.step == len(boxes) and len({len(box) for box in boxes}) == 1
    if not by_turns and size != len(boxes):
        is_row = size <= MOST_STORES and whole.num_elements >= size * MIN_ROWS
        boxes = [range(k, k + 1) for k in range(size)] if is_row else []
    times = dict.fromkeys(above_joints(o.instruction for o in fusion.outputs), len(boxes))
    return boxes if 1 < len(boxes) <= MOST_STORES and _code(fusion, times) <= MOST_CODE else []


def _elements(fusion: Fusion, row: JoinedRow) -> list[Piece]:
    """A piece for each element of a row."""
    whole, members = fusion.outputs[0].shape, tuple(range(len(fusion.outputs)))
    outer, inner = whole.dims[: row.first], whole.dims[row.first :]
    shape = array(whole.element_type, (*outer, *(1 for _ in inner)), whole.layout)
    return [Piece(shape, members, whole, (*(0 for _ in outer), *place)) for place in product(*map(range, inner))]


def _code(fusion: Fusion, times: Mapping[Instruction, int]) -> float:
    """LLVM instructions of a loop that computes some instructions several times."""
    return sum(op_code(i, CPU_CODE) * times.get(i, 1) for i in fusion.computation.instructions)
