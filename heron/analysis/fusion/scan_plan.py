"""The plan of a GPU scan of long rows in one pass: tiles, groups of tiles, and the words between blocks."""

from __future__ import annotations

from heron.analysis.fusion.prefix_scan import Scan, scan_of
from heron.hlo.facts import is_given
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape
from heron.records import dataclass

THREADS = 256
#: tiles of a group: a lane of a warp for each
GROUP = 32
#: the word where flags begin; the first word of all counts tickets
FIRST_FLAG = 32
#: rows from which on there is enough to do without cutting them, and elements of those that are not cut
ENOUGH_ROWS, SHORT_ROW = 256, 2048
#: bytes of elements a thread takes
_BYTES = 64


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """``rows`` scans of ``length`` elements of ``size`` bytes; a partial result has ``words`` words of 32 bits."""

    rows: int
    length: int
    size: int
    words: int

    @property
    def elements(self) -> int:
        """Neighbouring elements a thread takes: a power of two."""
        return 1 << (max(1, min(16, _BYTES // self.size)).bit_length() - 1)

    @property
    def tile(self) -> int:
        return self.elements * THREADS

    @property
    def tiles(self) -> int:
        """Tiles of a row."""
        return -(-self.length // self.tile)

    @property
    def groups(self) -> int:
        """Groups of a row."""
        return -(-self.tiles // GROUP)

    @property
    def flags(self) -> int:
        """Words that say what is known: tickets, a flag for each tile, a flag for each group."""
        return FIRST_FLAG + self.rows * (self.tiles + self.groups)

    @property
    def results(self) -> int:
        """Partial results: of each tile, each group, and of all up to the end of each group."""
        return self.rows * (self.tiles + 2 * self.groups)


def single_pass(i: Instruction) -> tuple[ScanPlan | None, str]:
    """The plan for `i` as a scan of few long rows in one pass, or None and why not."""
    scan = scan_of(i)
    if scan is None:
        return None, "it is no scan"
    if scan.dimension != i.operands[0].shape.rank - 1:
        return None, "the rows are not the last dimension"
    if scan.source != scan.results or scan.delay > 1:
        return None, "it has more or fewer results than elements"
    rows = i.operands[0].shape.num_elements // max(1, scan.source)
    if rows >= ENOUGH_ROWS or scan.source <= SHORT_ROW:
        return None, f"{rows} rows of {scan.source} elements: blocks need not share one"
    return _plan(i, scan, rows)


def _plan(i: Instruction, scan: Scan, rows: int) -> tuple[ScanPlan | None, str]:
    values = [o.shape for o in i.operands[: len(i.operands) // 2]]
    if any(s.element_type.is_complex for s in values):
        return None, "its elements are complex"
    if not all(o.op.is_elementwise or (is_given(o) or o.opcode == "tuple") for o in i.to_apply.instructions):
        return None, "its combiner is not elementwise"
    words = sum(_words(s) for s in values)
    return ScanPlan(rows, scan.source - scan.delay, sum(s.element_type.byte_size for s in values), words), ""


def _words(s: Shape) -> int:
    """Of a partial result: small floats are f32 until they are stored."""
    return max(1, s.element_type.bits // 32)
