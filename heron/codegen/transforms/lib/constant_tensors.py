"""Constant tensors in a kernel: a splat is its one value, anything else a constant global of the module."""

from __future__ import annotations

from math import prod
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

from heron.codegen.transforms.lib.buffers import byte_size, storage_type

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


class Globals:
    """The globals of a module: makes new ones, and one for equal constants."""

    def __init__(self, module: ModuleOp) -> None:
        self._module = module
        self._constants: dict[Attribute, str] = {}
        self._names: set[str] = set()
        for op in module.ops:
            if isinstance(op, llvm.GlobalOp):
                self._names.add(op.sym_name.data)
                if "value" in op.properties:
                    self._constants[op.properties["value"]] = op.sym_name.data

    def constant(self, value: DenseIntOrFPElementsAttr) -> str:
        """The name of the global with these elements in memory form."""
        value = _memory_form(value)
        found = self._constants.get(value)
        if found is None:
            element = value.get_element_type()
            count = len(value.data.data) // byte_size(element)
            type_ = llvm.LLVMArrayType(count, storage_type(element))
            found = self._constants[value] = self._free("constant")
            self._insert(llvm.GlobalOp(type_, found, "internal", constant=True, value=value, alignment=16))
        return found

    def shared(self, owner: str, type_: TensorType) -> str:
        """The name of a new uninitialised global in shared memory (address space 3)."""
        name = self._free(f"{owner}_shared")
        count = prod(type_.get_shape())
        array = llvm.LLVMArrayType(max(1, count), storage_type(type_.element_type))
        self._insert(llvm.GlobalOp(array, name, "internal", addr_space=3, alignment=16))
        return name

    def _free(self, stem: str) -> str:
        n = 0 if f"{stem}_0" not in self._names else len(self._names)
        while f"{stem}_{n}" in self._names:
            n += 1
        self._names.add(f"{stem}_{n}")
        return f"{stem}_{n}"

    def _insert(self, op: llvm.GlobalOp) -> None:
        first = self._module.body.block.first_op
        assert first is not None
        self._module.body.block.insert_op_before(op, first)


def _memory_form(value: DenseIntOrFPElementsAttr) -> DenseIntOrFPElementsAttr:
    """Integers under a byte as bytes."""
    element = value.get_element_type()
    if not isinstance(element, IntegerType) or element.width.data >= 8:
        return value
    mask = (1 << element.width.data) - 1
    values = [int(v) & mask for v in value.get_values()]  # pyright: ignore[reportArgumentType]
    return DenseIntOrFPElementsAttr.from_list(TensorType(i8, value.get_shape()), values)
