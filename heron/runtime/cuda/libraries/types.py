"""NVIDIA's numbers for element types, shared by its libraries (cudaDataType_t).

Source: library_types.h of CUDA 13.
"""

from __future__ import annotations

from heron.hlo.ir import types as t
from heron.hlo.ir.types import ElementType

DATA_TYPES: dict[ElementType, int] = {
    t.F32: 0, t.F64: 1, t.F16: 2, t.S8: 3, t.C64: 4, t.C128: 5, t.U8: 8, t.S32: 10, t.U32: 12, t.BF16: 14,
    t.S64: 24, t.U64: 26, t.F8E4M3FN: 28, t.F8E5M2: 29,
}  # fmt: skip
