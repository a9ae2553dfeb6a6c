"""Copies of many short pieces into the rows of an array, as a table tells: one function that programs share.

Some rows at a time are copied piece by piece: the loop over one piece knows its size, and the rows stay in the first
cache. A piece of a few bytes is one word, or two that may overlap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron.buffers.assignment import Slice
from heron.codegen.llvm.code_cache import CodeCache
from heron.codegen.llvm.text import Function, Module
from heron.codegen.llvm.values import Value
from heron.codegen.native.common_code import address_of
from heron.codegen.native.share import write_range
from heron.codegen.native.tables import write_numbers
from heron.runtime.thunks import RowCopiesThunk

if TYPE_CHECKING:
    from heron.codegen.native.program import ProgramWriter

_NAME = "heron_copy_rows"
#: rows that are copied piece by piece
_ROWS = 64
#: pieces that are worth another thread: one takes about a nanosecond, and as long again for so many bytes
_PORTION, _BYTES = 1 << 13, 16
#: sizes up to which a piece is one word or two that may overlap, and the bits of these
_WORDS = ((1, 8, 1), (3, 16, 2), (4, 32, 1), (7, 32, 2), (8, 64, 1), (15, 64, 2), (16, 128, 1), (32, 128, 2))
#: words of the table ahead of the pieces, and for each piece
_HEAD, _PIECE = 2, 4


def write_row_copies(w: ProgramWriter, t: RowCopiesThunk) -> None:
    """Copy the pieces of every row; threads share the rows.

    The table has the number of pieces and the bytes of a row; then for each piece the number of its array, the bytes
    before it, those to its place in the next row, and its size.
    """
    w.declare(_NAME, f"void @{_NAME}(ptr, i64, i64)", _address)
    ends: dict[int, int] = {}
    for s in t.origins:
        ends[s.allocation] = max(ends.get(s.allocation, 0), s.offset + s.size)
    numbers = {allocation: n for n, allocation in enumerate(ends)}
    words = [len(t.origins), sum(t.sizes)]
    for s, step, size in zip(t.origins, t.steps, t.sizes, strict=True):
        words += numbers[s.allocation], s.offset, step, size
    table = write_numbers(w, "pieces", words)
    arrays = [w.pointer(Slice(allocation, 0, end)) for allocation, end in ends.items()]
    grain = max(1, _PORTION // (len(t.origins) + sum(t.sizes) // _BYTES))
    write_range(w, _NAME, [table, w.pointer(t.target), *arrays], t.rows, grain)


def _address(cache: CodeCache | None) -> int:
    return address_of(_NAME, _code, cache=cache)


def _code() -> str:
    module = Module()
    with module.function(f"void @{_NAME}(ptr %args, i64 %lo, i64 %hi) nounwind") as f:
        args, first, last = f.arguments
        table, target = f.load("ptr", args), f.load("ptr", f.at(args, 1, "ptr"))
        arrays = f.at(args, 2, "ptr")
        count, row = f.load("i64", table), f.load("i64", f.at(table, 1, "i64"))
        with f.loop(first, last, _ROWS) as r:
            rows = f.least(last - r, _ROWS)
            to = f.variable("ptr", f.at(target, r * row, "i8"))
            with f.loop(0, count) as n:
                piece = f.at(table, n * _PIECE + _HEAD, "i64")
                number, before, step, size = (f.load("i64", f.at(piece, k, "i64")) for k in range(_PIECE))
                array = f.load("ptr", f.at(arrays, number, "ptr"))
                _write_piece(f, f.at(array, r * step + before, "i8"), to.get(), rows, step, row, size)
                to.set(f.at(to.get(), size, "i8"))
    return module.text()


def _write_piece(f: Function, origin: Value, target: Value, rows: Value, step: Value, row: Value, size: Value) -> None:
    """Copy one piece of so many rows, by the loop for its size."""
    done = f.name("done")
    for most, bits, words in _WORDS:
        with f.when(size.below(most + 1)):
            with f.loop(0, rows) as k:
                places = [(f.at(origin, k * step, "i8"), f.at(target, k * row, "i8"))]
                if words == 2:
                    rest = size - bits // 8
                    places += [(f.at(a, rest, "i8"), f.at(b, rest, "i8")) for a, b in places]
                loaded = [f.load(f"i{bits}", a, align=1) for a, _ in places]
                for value, (_, b) in zip(loaded, places, strict=True):
                    f.store(f"i{bits}", value, b, align=1)
            f.jump(done)
    with f.loop(0, rows) as k:
        f.copy(f.at(target, k * row, "i8"), f.at(origin, k * step, "i8"), size)
    f.jump(done)
    f.start(done)
