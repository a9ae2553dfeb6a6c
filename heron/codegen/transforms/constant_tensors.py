"""Constant tensors in a kernel: a splat is its one value, anything else a constant global of the module."""

from __future__ import annotations

from typing import TypeAlias

from xdsl.dialects import arith, complex, llvm
from xdsl.dialects.builtin import (
    ArrayAttr,
    ComplexType,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    TensorType,
    i8,
)
from xdsl.ir import Attribute, Operation

from heron.codegen.transforms.buffers import byte_size, storage_type

Scalar: TypeAlias = int | float | tuple[float, float]


def splat_value(value: DenseIntOrFPElementsAttr) -> Scalar | None:
    """The one value all elements have (bit for bit), or None."""
    data = value.data.data
    size = value.get_element_type().compile_time_size  # pyright: ignore[reportAttributeAccessIssue]
    if not data or data != data[:size] * (len(data) // size):
        return None
    return value.get_element_type().unpack(data[:size], 1)[0]  # pyright: ignore


def scalar_constant(value: Scalar, type_: Attribute) -> Operation:
    """A constant op for one element."""
    if isinstance(type_, ComplexType):
        assert isinstance(value, tuple)
        parts = ArrayAttr([FloatAttr(v, type_.element_type) for v in value])  # pyright: ignore
        return complex.ConstantOp.create(result_types=(type_,), properties={"value": parts})
    attr = IntegerAttr(value, type_) if isinstance(value, int) else FloatAttr(value, type_)  # pyright: ignore
    return arith.ConstantOp.create(result_types=(type_,), properties={"value": attr})


def constant_global(module: ModuleOp, value: DenseIntOrFPElementsAttr) -> str:
    """The name of a global with these elements in memory form, shared by equal constants of the module."""
    element = value.get_element_type()
    if isinstance(element, IntegerType) and element.width.data < 8:  # one value a byte
        values = [int(v) for v in value.get_values()]  # pyright: ignore[reportArgumentType]
        if element.width.data == 1:
            values = [v & 1 for v in values]
        shape = TensorType(i8, value.get_shape())
        value = DenseIntOrFPElementsAttr.from_list(shape, values)
    taken = 0
    for op in module.ops:
        if isinstance(op, llvm.GlobalOp):
            taken += 1
            if op.properties.get("value") == value:
                return op.sym_name.data
    name = f"constant_{taken}"
    stored = storage_type(value.get_element_type())
    count = len(value.data.data) // byte_size(value.get_element_type())
    op = llvm.GlobalOp(llvm.LLVMArrayType(count, stored), name, "internal", constant=True, value=value, alignment=16)
    first = module.body.block.first_op
    assert first is not None
    module.body.block.insert_op_before(op, first)
    return name
