"""Products of floats and complex numbers, and of bytes by a matrix unit, by code that the program's threads share.

A work item is a panel of columns and a block of rows of one matrix of the batch. It rearranges its columns of the right
matrix on its stack, a stretch of the summed dimension at a time, so that they lie in the order they are multiplied in;
a tile of a few rows and the panel's columns is kept in registers while a stretch goes by. Whatever shape the tile at an
edge has, its element is summed in the same order, and a sum never crosses work items: values do not depend on threads.

Operands go by in groups of 4 bytes (f64: 8) along the summed dimension: one f32, or two bf16, whose products one
instruction, ``vdpbf16ps``, adds to a sum in f32. A processor's matrix unit does it for 16 rows and columns at once
(`matrix_unit_gemm.py`).

Source: Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", ACM TOMS 34(3), 2008; Intel's
instruction reference, VDPBF16PS.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from heron.codegen.native.float_gemm_code import address
from heron.codegen.native.float_gemm_form import FIELDS, GROUPS, Form, form
from heron.codegen.native.share import write_range
from heron.hlo.ir.types import BF16, F32, ElementType
from heron.records import dataclass
from heron.runtime.cpu import blas

if TYPE_CHECKING:
    from heron.codegen.native.program import ProgramWriter
    from heron.runtime.thunks import GemmThunk

#: multiplications from which on threads share a product (20 µs: waking a thread takes 10), those a thread takes at a
#: time, and work items there should be; multiplications that are worth rearranging the same columns twice
_SHARED, _PORTION, _ITEMS, _TWICE = 1 << 20, 1 << 18, 16, 1 << 22
#: fewest rows of a block: what rearranging the columns costs is small beside their multiplications
_BLOCK = 48
#: the same where the matrix unit multiplies, some ten times as fast
_UNIT_ITEMS, _UNIT_BLOCK = 4, 192
#: rows or columns below which a product is one of vectors
_NARROW = 4
#: columns below which to rearrange a complex left matrix takes as long as to multiply it
_FEW_COLUMNS = 16


@dataclass(frozen=True, slots=True)
class Sizes:
    """A product as `FIELDS` say it, and how it is cut into work items."""

    f: Form
    batch: int
    values: tuple[int, ...]

    @staticmethod
    def of(t: GemmThunk, f: Form) -> Sizes:
        left = (1, t.m) if t.lhs_transposed else (t.k, 1)
        right = (1, t.k) if t.rhs_transposed else (t.n, 1)
        parts = 2 if f.is_complex else 1
        n, k = parts * t.n, parts * t.k
        block = block_of(f, t.batch, t.m, n, k)
        # the steps of a complex matrix along the dimensions whose parts are counted are those of half an element
        sizes = (t.m, n, k, parts * left[0], left[1], t.m * k, *right, t.k * n, n, t.m * n, block, int(t.adds))
        return Sizes(f, t.batch, sizes)

    @property
    def items(self) -> int:
        m, n = self.values[:2]
        return self.batch * -(-m // self.values[FIELDS.index("block")]) * -(-n // self.f.columns)

    @property
    def grain(self) -> int:
        """The least number of work items for a thread."""
        m, n, k = self.values[:3]
        if self.batch * m * n * k < _SHARED:
            return max(1, self.items)
        return max(1, _PORTION // max(1, self.values[FIELDS.index("block")] * k * self.f.columns))


def block_of(f: Form, batch: int, m: int, n: int, k: int) -> int:
    """Rows of a work item: all, unless there would be few work items. Items of a few threads are of about one size."""
    panels = batch * -(-n // f.columns)
    wanted = -(-(_UNIT_ITEMS if f.is_unit else _ITEMS) // panels)
    block = max(_UNIT_BLOCK if f.is_unit else _BLOCK, -(-m // wanted))
    count = -(-m // block)
    if panels == 1 and count % 2 and count < _ITEMS and not f.is_unit:
        # an odd number of items leaves one of two threads waiting
        count = count - 1 if count > 1 else 2 if m * n * k >= _TWICE and m >= 2 * f.rows else 1
    block = -(-m // max(1, count))
    return min(max(m, 1), -(-block // f.rows) * f.rows)


def multiplies(operands: ElementType, result: ElementType) -> bool:
    """Whether `write_float_gemm` can do every product of those types here."""
    return operands is BF16 and result is F32 and form(operands) is not None


def form_for(t: GemmThunk) -> Form | None:
    """The kernel for a product of a program; None if a library should do it: narrow ones only read memory."""
    found = form_of(t.operand_type, t.m, t.n)
    copies = found is not None and found.is_complex and t.lhs_transposed and t.n < _FEW_COLUMNS
    return None if copies and not blas.why_not() else found


def form_of(operands: ElementType, m: int, n: int) -> Form | None:
    """As `form_for`, for a product of so many rows and columns."""
    found = form(operands)
    is_ours = operands is BF16 or (found is not None and found.is_unit) or min(m, n) >= _NARROW
    return found if is_ours or found is None or blas.why_not() else None


def adds(t: GemmThunk) -> bool:
    """Whether a product can be added to what is there as if it were computed first: it is one stretch."""
    f = form_for(t)
    return f is not None and is_one_stretch(f, t.k, in_rows=not t.lhs_transposed)


def is_one_stretch(f: Form, k: int, in_rows: bool) -> bool:
    """Whether `k` products are summed in one stretch; ``in_rows``: those of the left matrix lie side by side."""
    is_cut = in_rows and not f.is_unit and k > f.step and k % f.step != 0
    return 0 < k <= GROUPS * f.step // (2 if f.is_complex else 1) and not is_cut


def write_float_gemm(w: ProgramWriter, t: GemmThunk, f: Form) -> None:
    """Call the product of a thunk, shared by the threads where it is large."""
    w.declare(f.name, f"void @{f.name}(ptr, i64, i64)", partial(address, f))
    sizes = Sizes.of(t, f)
    symbol = _write_fields(w, sizes.values)
    write_range(w, f.name, [*map(w.pointer, (t.lhs, t.rhs, t.out)), symbol], sizes.items, sizes.grain)


def write_sizes(w: ProgramWriter, t: GemmThunk, f: Form, m: int, n: int, out_row: int) -> str:
    """The symbol of the `FIELDS` of a part of a thunk's product, m by n, in one block; results lie in rows that are
    `out_row` elements apart."""
    values = dict(zip(FIELDS, Sizes.of(t, f).values, strict=True))
    values |= {"m": m, "n": n, "out.row": out_row, "block": m}
    return _write_fields(w, tuple(values.values()))


def _write_fields(w: ProgramWriter, values: tuple[int, ...]) -> str:
    symbol = w.name("@heron_product_")
    listed = ", ".join(f"i64 {n}" for n in values)
    return w.declared.variable(f"{symbol} = private unnamed_addr constant [{len(FIELDS)} x i64] [{listed}]")
