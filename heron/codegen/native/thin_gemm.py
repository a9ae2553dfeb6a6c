"""Products of f32 and f64 matrices of which one has fewer than 4 rows or columns: each reads the other one once.

The few rows (or columns) are *vectors*, the rows or columns of the other matrix that they are multiplied with are
*lines*. A work item is a block of lines; how a product is cut depends on its sizes alone, so values do not depend on
threads.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from heron.codegen.llvm.jit import host
from heron.codegen.native.share import write_range
from heron.codegen.native.tables import write_numbers
from heron.codegen.native.thin_gemm_code import FIELDS, PACKED, ThinForm, address
from heron.hlo.ir.types import F32, F64

if TYPE_CHECKING:
    from heron.codegen.native.program import ProgramWriter
    from heron.runtime.thunks import GemmThunk

#: rows or columns that are vectors
_MOST_VECTORS = 3
#: multiplications from which on threads share a product, and those a thread takes at a time
_SHARED, _PORTION = 1 << 19, 1 << 17


def thin_form(t: GemmThunk) -> ThinForm | None:
    """The code for a product; None where there is none."""
    if t.element_type not in (F32, F64) or t.operand_type is not t.element_type or t.adds or not t.k:
        return None
    few = min(t.m, t.n)
    if few > _MOST_VECTORS:
        return None
    by_rows = t.m <= t.n
    # whether the elements of a line lie side by side
    along = t.rhs_transposed if by_rows else not t.lhs_transposed
    is_packed = along and few > 1 and (t.lhs_transposed if by_rows else not t.rhs_transposed)
    if is_packed and t.k > PACKED:
        return None
    width = host().width // t.element_type.bits
    return ThinForm(t.element_type, width, few, along, is_packed, interleaved=not by_rows and few > 1)


def write_thin_gemm(w: ProgramWriter, t: GemmThunk, f: ThinForm) -> None:
    """Call the product of a thunk, shared by the threads where it is large."""
    w.declare(f.name, f"void @{f.name}(ptr, i64, i64)", partial(address, f))
    if t.m <= t.n:
        places, lines = (t.lhs, t.rhs, t.out), t.n
        few, many = (1, t.m) if t.lhs_transposed else (t.k, 1), t.k if t.rhs_transposed else t.n
    else:
        places, lines = (t.rhs, t.lhs, t.out), t.m
        few, many = (t.k, 1) if t.rhs_transposed else (1, t.n), t.m if t.lhs_transposed else t.k
    blocks = -(-lines // f.block)
    values = {
        "lines": lines, "k": t.k, "blocks": blocks, "few.vector": few[0], "few.k": few[1], "many.step": many,
        "few.batch": f.vectors * t.k, "many.batch": lines * t.k, "out.batch": f.vectors * lines,
    }  # fmt: skip
    symbol = write_numbers(w, "thin", (values[name] for name in FIELDS))
    items, work = t.batch * blocks, t.batch * lines * t.k
    grain = items if work < _SHARED else max(1, _PORTION * items // work)
    write_range(w, f.name, [*map(w.pointer, places), symbol], items, grain)
