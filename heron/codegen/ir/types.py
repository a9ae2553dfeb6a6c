"""HLO element types and shapes as MLIR (xDSL) types.

Integers are signless (the emitted op decides the signedness), `pred` is `i1`, tensors are row-major.
"""

from __future__ import annotations

from functools import cache, lru_cache

from xdsl.dialects import builtin
from xdsl.dialects.builtin import ComplexType, IndexType, IntegerType, TensorType
from xdsl.ir import Attribute

from heron.analysis.indexing.hlo_maps import memory_sizes
from heron.errors import HeronError
from heron.hlo.ir import types
from heron.hlo.ir.shape import Shape
from heron.hlo.ir.types import ElementType

INDEX = IndexType()
I1 = IntegerType(1)
I8, I16, I32, I64 = (IntegerType(n) for n in (8, 16, 32, 64))
F32 = builtin.f32
F64 = builtin.f64

_FLOATS: dict[ElementType, Attribute] = {
    types.F16: builtin.f16,
    types.BF16: builtin.bf16,
    types.F32: F32,
    types.F64: F64,
    types.F8E3M4: builtin.f8E3M4,
    types.F8E4M3: builtin.f8E4M3,
    types.F8E4M3FN: builtin.f8E4M3FN,
    types.F8E4M3B11FNUZ: builtin.f8E4M3B11FNUZ,
    types.F8E4M3FNUZ: builtin.f8E4M3FNUZ,
    types.F8E5M2: builtin.f8E5M2,
    types.F8E5M2FNUZ: builtin.f8E5M2FNUZ,
    types.F8E8M0FNU: builtin.f8E8M0FNU,
    types.F6E2M3FN: builtin.f6E2M3FN,
    types.F6E3M2FN: builtin.f6E3M2FN,
    types.F4E2M1FN: builtin.f4E2M1FN,
}


@cache
def scalar_type(element_type: ElementType) -> Attribute:
    """The MLIR type of one element. Raises GEN002 for token and opaque."""
    if element_type is types.PRED:
        return I1
    if element_type.is_integer:
        return IntegerType(element_type.bits)
    if element_type.is_complex:
        return ComplexType(scalar_type(element_type.component))  # type: ignore[type-var]
    found = _FLOATS.get(element_type)
    if found is None:
        raise HeronError("GEN002", f"no machine type holds elements of type '{element_type.name}'")
    return found


@lru_cache(maxsize=4096)
def tensor_type(shape: Shape) -> TensorType:
    """The tensor type of an array shape: row-major, so other layouts have their dimensions in memory order."""
    return TensorType(scalar_type(shape.element_type), memory_sizes(shape))


@cache
def compute_type(element_type: ElementType) -> ElementType:
    """The type arithmetic happens in: f32 for the small floats, the type itself otherwise."""
    return types.F32 if element_type.is_float and element_type.bits < 32 else element_type
