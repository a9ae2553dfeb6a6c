"""Matrix products of native programs: which there are, and how they are called."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from heron.codegen.native import float_gemm, int_gemm
from heron.codegen.native.blas_gemm import write_blas_gemm
from heron.codegen.native.thin_gemm import thin_form, write_thin_gemm
from heron.errors import HeronError
from heron.hlo.ir.types import ElementType
from heron.runtime.cpu import blas

if TYPE_CHECKING:
    from heron.codegen.native.program import ProgramWriter
    from heron.runtime.thunks import GemmThunk


def multiplies(operands: ElementType, result: ElementType) -> bool:
    """Whether code of our own, or BLAS, multiplies matrices of these types."""
    if int_gemm.multiplies(operands, result) or float_gemm.multiplies(operands, result):
        return True
    if operands is not result or operands not in blas.PREFIX:
        return False
    if float_gemm.form(operands) is not None:  # BLAS is slow to load: only what is done by it asks for it
        return True
    return not blas.why_not()


def write_gemm(w: ProgramWriter, t: GemmThunk) -> None:
    """Call code of our own, or BLAS. Raises RUN021 for sizes that BLAS cannot count."""
    if max(t.m, t.n, t.k) > blas.LIMIT:
        raise HeronError("RUN021", f"matrix product too large for BLAS: {t.m}x{t.n}x{t.k}", where=t.source)
    if prod((t.batch, t.m, t.n)) == 0:
        return
    thin = thin_form(t)
    if thin is not None:
        write_thin_gemm(w, t, thin)
        return
    form = float_gemm.form_for(t)
    if form is not None:
        float_gemm.write_float_gemm(w, t, form)
        return
    if t.operand_type in int_gemm.OPERANDS:
        int_gemm.write_int_gemm(w, t)
        return
    write_blas_gemm(w, t)
