"""A lowered tensor value: a pointer, an element type and strides; loads and stores of elements.

`i1` and `i4` live one value a byte, `complex<f32>` is two floats.
"""

from __future__ import annotations

from functools import lru_cache
from math import gcd

from xdsl.dialects import arith, complex, llvm
from xdsl.dialects.builtin import (
    ArrayAttr,
    ComplexType,
    DenseArrayBase,
    FixedBitwidthType,
    IndexType,
    IntegerAttr,
    IntegerType,
    NoneAttr,
    TensorType,
    UnitAttr,
    i8,
    i32,
)
from xdsl.dialects.llvm import GEP_USE_SSA_VAL, LLVMArrayType, LLVMPointerType
from xdsl.ir import Attribute, SSAValue

from heron.analysis.indexing import Add, Const, Expr, Mul
from heron.codegen.ir.builder import Builder, int_attr
from heron.codegen.ir.types import I1, I64
from heron.errors import HeronError
from heron.records import dataclass

POINTER = LLVMPointerType()


@dataclass(frozen=True, slots=True)
class Buffer:
    """A tensor in memory.

    Args:
        pointer: where element 0 is.
        type: the tensor's type.
        alignment: bytes the pointer is known to be a multiple of.
    """

    pointer: SSAValue
    type: TensorType
    alignment: int = 16

    @property
    def element(self) -> Attribute:
        return self.type.element_type


class Buffers(dict[SSAValue, Buffer]):
    """The buffer that each tensor value of a function has become, by its pointer."""

    def of(self, value: SSAValue) -> Buffer:
        """The buffer of a tensor value; GEN122 where there is none."""
        found = self.get(value)
        if found is None:
            raise HeronError("GEN122", "tensor value has no buffer", where=str(value.owner))
        return found

    def has(self, value: SSAValue) -> bool:
        """Whether the value is a tensor, or has been one."""
        return value in self or isinstance(value.type, TensorType)


@lru_cache(maxsize=4096)
def strides(type_: TensorType) -> tuple[int, ...]:
    """Elements between neighbours in each dimension; row-major, or by the encoding (minor-to-major order).

    Raises:
        HeronError: GEN120 for an encoding that is not a list of dimensions, or a dynamic shape.
    """
    shape = type_.get_shape()
    order = range(len(shape) - 1, -1, -1)
    if not isinstance(type_.encoding, NoneAttr):
        order = _minor_to_major(type_)
    out, step = [0] * len(shape), 1
    for d in order:
        out[d] = step
        step *= shape[d]
    if any(n < 0 for n in shape):
        raise HeronError("GEN120", "a kernel contains a tensor of unknown size", where=str(type_))
    return tuple(out)


def _minor_to_major(type_: TensorType) -> list[int]:
    encoding = type_.encoding
    order: list[int] = []
    if isinstance(encoding, ArrayAttr):
        order = [a.value.data for a in encoding if isinstance(a, IntegerAttr)]
    elif isinstance(encoding, DenseArrayBase):
        order = [int(v) for v in encoding.iter_values()]
    if sorted(order) != list(range(len(type_.get_shape()))):
        raise HeronError("GEN120", "tensor encoding is not a minor-to-major order", where=str(type_))
    return order


@lru_cache(maxsize=256)
def storage_type(element: Attribute) -> Attribute:
    """The type one element has in memory: `i8` for integers under a byte, an array of two for complex."""
    if isinstance(element, IntegerType) and element.width.data < 8:
        return i8
    if isinstance(element, ComplexType):
        return LLVMArrayType(2, element.element_type)
    return I64 if isinstance(element, IndexType) else element


@lru_cache(maxsize=256)
def byte_size(element: Attribute) -> int:
    """Bytes one element takes in memory."""
    if isinstance(element, ComplexType):
        return 2 * byte_size(element.element_type)
    if isinstance(element, IndexType):
        return 8
    if isinstance(element, FixedBitwidthType):
        return (element.bitwidth + 7) // 8
    raise HeronError("GEN121", "element type cannot be stored in memory", where=str(element))


def address(buffer: Buffer, linear: SSAValue | None, builder: Builder) -> SSAValue:
    """The address of the element at the linear index (None: element 0)."""
    if linear is None:
        return buffer.pointer
    index = builder.op(arith.IndexCastOp, linear, type=I64) if isinstance(linear.type, IndexType) else linear
    element = storage_type(buffer.element)
    operands, types = (buffer.pointer, index), (buffer.pointer.type,)
    return builder.once(
        (llvm.GEPOp, *operands, element),
        lambda: llvm.GEPOp.create(
            operands=operands, result_types=types, properties=_gep_properties(element, GEP_USE_SSA_VAL)
        ),
    )


@lru_cache(maxsize=256)
def _gep_properties(element: Attribute, index: int) -> dict[str, Attribute]:
    return {
        "rawConstantIndices": DenseArrayBase.from_list(i32, [index]),
        "elem_type": element,
        "noWrapFlags": IntegerAttr(0, 32),
        "inbounds": UnitAttr(),
    }


def offset(pointer: SSAValue, element: Attribute, index: int, builder: Builder) -> SSAValue:
    """The address `index` elements of that type after `pointer`."""
    if not index:
        return pointer
    op = llvm.GEPOp.create(
        operands=(pointer, builder.integer(index, I64)),
        result_types=(pointer.type,),
        properties=_gep_properties(element, GEP_USE_SSA_VAL),
    )
    return builder.add(op).results[0]


def known_alignment(buffer: Buffer, linear: Expr) -> int:
    """Bytes the element's address is known to be a multiple of: what `linear`'s factors allow."""
    return gcd(buffer.alignment, byte_size(buffer.element) * factor(linear)) or buffer.alignment


def factor(e: Expr) -> int:
    """A number every value of the expression is known to be a multiple of; 0: it is 0."""
    if isinstance(e, Const):
        return abs(e.value)
    if isinstance(e, Add):
        return gcd(factor(e.lhs), factor(e.rhs))
    return abs(e.rhs.value) if isinstance(e, Mul) and isinstance(e.rhs, Const) else 1


@lru_cache(maxsize=64)
def _access_properties(alignment: int) -> dict[str, Attribute]:
    return {"ordering": int_attr(0, I64), "alignment": int_attr(alignment, I64)}


def raw_load(pointer: SSAValue, type_: Attribute, alignment: int, builder: Builder) -> SSAValue:
    """`llvm.load`."""
    op = llvm.LoadOp.create(operands=(pointer,), result_types=(type_,), properties=_access_properties(alignment))
    return builder.add(op).results[0]


def raw_store(value: SSAValue, pointer: SSAValue, alignment: int, builder: Builder) -> None:
    """`llvm.store`."""
    builder.add(llvm.StoreOp.create(operands=(value, pointer), properties=_access_properties(alignment)))


def load(buffer: Buffer, pointer: SSAValue, alignment: int, builder: Builder) -> SSAValue:
    """The element at `pointer`."""
    element = buffer.element
    if isinstance(element, ComplexType):
        part, second = _imaginary(element, pointer, alignment, builder)
        re = raw_load(pointer, part, alignment, builder)
        im = raw_load(second[0], part, second[1], builder)
        return builder.add(complex.CreateOp.create(operands=(re, im), result_types=(element,))).results[0]
    stored = storage_type(element)
    value = raw_load(pointer, stored, alignment, builder)
    if stored is element or stored == element:
        return value
    if element == I1:  # a byte that the host wrote may be any number: each but 0 is true
        return builder.cmpi("ne", value, builder.integer(0, stored))
    cast = arith.IndexCastOp if isinstance(element, IndexType) else arith.TruncIOp
    return builder.add(cast.create(operands=(value,), result_types=(element,))).results[0]


def store(buffer: Buffer, value: SSAValue, pointer: SSAValue, alignment: int, builder: Builder) -> None:
    """Writes the element at `pointer`."""
    element = buffer.element
    if isinstance(element, ComplexType):
        part, second = _imaginary(element, pointer, alignment, builder)
        for op, target, align in ((complex.ReOp, pointer, alignment), (complex.ImOp, *second)):
            half = builder.add(op.create(operands=(value,), result_types=(part,))).results[0]
            raw_store(half, target, align, builder)
        return
    raw_store(to_storage(buffer, value, builder), pointer, alignment, builder)


def to_storage(buffer: Buffer, value: SSAValue, builder: Builder) -> SSAValue:
    """`value` in the type it has in memory."""
    element, stored = buffer.element, storage_type(buffer.element)
    if stored == element:
        return value
    if isinstance(element, IndexType):
        cast = arith.IndexCastOp
    else:
        cast = arith.ExtUIOp  # the unused bits of a byte are zero, as in ml_dtypes arrays of s4 and u4
    return builder.add(cast.create(operands=(value,), result_types=(stored,))).results[0]


def _imaginary(
    element: ComplexType, pointer: SSAValue, alignment: int, builder: Builder
) -> tuple[Attribute, tuple[SSAValue, int]]:
    """The type of the parts, and where and how aligned the second part is."""
    part = element.element_type
    op = llvm.GEPOp.create(operands=(pointer,), result_types=(pointer.type,), properties=_gep_properties(part, 1))
    return part, (builder.add(op).results[0], gcd(alignment, byte_size(part)))
