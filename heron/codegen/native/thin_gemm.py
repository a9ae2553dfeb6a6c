"""Products of f32 and f64 matrices of which one has few rows or columns: each reads the other one once.

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

#: rows or columns that are vectors, at most. With 32 registers of 512 bits: where a register goes along a line; where
#: it goes across lines; and where neighbouring vectors lie side by side, too, which other code would have to rearrange:
#: also where very many elements are summed
_MOST, _MOST_ALONG, _MOST_ACROSS, _MOST_BOTH, _MOST_LONG, _LONG = 3, 8, 10, 16, 24, 2048
#: the same with 16 registers: along a line, across lines, and where neighbouring vectors lie side by side, too
_MOST_OF_16 = 6, 5, 8
#: elements along a line for each vector but two that are worth the adding up of registers in the end
_EACH = 32
#: multiplications from which on threads share a product, and those a thread takes at a time
_SHARED, _PORTION = 1 << 19, 1 << 17


def thin_form(t: GemmThunk) -> ThinForm | None:
    """The code for a product; None where there is none."""
    if t.element_type not in (F32, F64) or t.operand_type is not t.element_type or t.adds or not t.k:
        return None
    few, by_rows = min(t.m, t.n), t.m <= t.n
    # whether the elements of a line, of a vector, lie side by side
    along = t.rhs_transposed if by_rows else not t.lhs_transposed
    in_vectors = not t.lhs_transposed if by_rows else t.rhs_transposed
    if few > _most(along, in_vectors, t.k):
        return None
    is_packed = along and few > 1 and not in_vectors
    if is_packed and t.k > PACKED:
        return None
    width = host().width // t.element_type.bits
    return ThinForm(t.element_type, width, few, along, is_packed, interleaved=not by_rows and few > 1)


def _most(along: bool, in_vectors: bool, k: int) -> int:
    """The most vectors, by whether the elements of a line, and of a vector, lie side by side."""
    if host().width < 512:
        most_along, most_across, most_both = _MOST_OF_16
        return min(most_along, max(_MOST, 2 + k // _EACH)) if along else most_across if in_vectors else most_both
    if along:
        return min(_MOST_ALONG, max(_MOST, 2 + k // _EACH))
    return _MOST_ACROSS if in_vectors else _MOST_LONG if k >= _LONG else _MOST_BOTH


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
    items, work = t.batch * blocks, t.batch * lines * t.k * -(-f.vectors // 4)
    grain = items if work < _SHARED else max(1, _PORTION * items // work)
    write_range(w, f.name, [*map(w.pointer, places), symbol], items, grain)
