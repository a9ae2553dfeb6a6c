"""Ops of the `xla_gpu` dialect by which blocks of a launch speak to each other, and lanes of a warp find their likes.

A thread that reads a word another block is still to write reads it by `atomic_load`, in a loop; the other writes it by
`atomic_store`. The writes of a thread before a `release` store are visible to a thread that reads that store by an
`acquire` load.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType, IntegerType, StringAttr, TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, result_def, var_operand_def
from xdsl.utils.exceptions import VerifyException

_LOADS, _STORES = ("monotonic", "acquire"), ("monotonic", "release")
_WORDS = (32, 64)


def _verify_access(tensor: SSAValue, indices: Sequence[SSAValue], value: SSAValue) -> None:
    type_ = tensor.type
    assert isinstance(type_, TensorType)
    if len(indices) != type_.get_num_dims() or value.type != type_.element_type:
        raise VerifyException("an atomic access has an index for each dimension and is of one element")
    if not isinstance(value.type, IntegerType) or value.type.width.data not in _WORDS:
        raise VerifyException("an atomic access is of an integer of 32 or 64 bits")


@irdl_op_definition
class AtomicLoadOp(IRDLOperation):
    """One element as it is in memory now, read at once; `ordering` is monotonic or acquire."""

    name = "xla_gpu.atomic_load"
    ordering = prop_def(StringAttr)
    tensor = operand_def(TensorType)
    indices = var_operand_def(IndexType)
    result = result_def()
    assembly_format = "$ordering $tensor `[` $indices `]` attr-dict `:` type($tensor) `->` type($result)"

    def __init__(self, ordering: str, tensor: SSAValue, indices: Sequence[SSAValue]) -> None:
        assert isinstance(tensor.type, TensorType)
        Operation.__init__(
            self,
            operands=[tensor, *indices],
            result_types=[tensor.type.element_type],
            properties={"ordering": StringAttr(ordering)},
        )

    def verify_(self) -> None:
        _verify_access(self.tensor, self.indices, self.result)
        if self.ordering.data not in _LOADS:
            raise VerifyException(f"an atomic load is {' or '.join(_LOADS)}, not {self.ordering.data}")


@irdl_op_definition
class AtomicStoreOp(IRDLOperation):
    """Writes one element at once; `ordering` is monotonic or release."""

    name = "xla_gpu.atomic_store"
    ordering = prop_def(StringAttr)
    value = operand_def(IntegerType)
    tensor = operand_def(TensorType)
    indices = var_operand_def(IndexType)
    result = result_def(TensorType)
    assembly_format = (
        "$ordering $value `,` $tensor `[` $indices `]` attr-dict `:` type($value) `,` type($tensor) `->` type($result)"
    )

    def __init__(self, ordering: str, value: SSAValue, tensor: SSAValue, indices: Sequence[SSAValue]) -> None:
        Operation.__init__(
            self,
            operands=[value, tensor, *indices],
            result_types=[tensor.type],
            properties={"ordering": StringAttr(ordering)},
        )

    def verify_(self) -> None:
        _verify_access(self.tensor, self.indices, self.value)
        if self.ordering.data not in _STORES:
            raise VerifyException(f"an atomic store is {' or '.join(_STORES)}, not {self.ordering.data}")


@irdl_op_definition
class FetchAddOp(IRDLOperation):
    """Adds to one element at once; results: what it was before, and the tensor."""

    name = "xla_gpu.fetch_add"
    value = operand_def(IntegerType)
    tensor = operand_def(TensorType)
    indices = var_operand_def(IndexType)
    old = result_def(IntegerType)
    result = result_def(TensorType)
    assembly_format = (
        "$value `,` $tensor `[` $indices `]` attr-dict `:` type($value) `,` type($tensor) `->` "
        "type($old) `,` type($result)"
    )

    def __init__(self, value: SSAValue, tensor: SSAValue, indices: Sequence[SSAValue]) -> None:
        Operation.__init__(self, operands=[value, tensor, *indices], result_types=[value.type, tensor.type])

    def verify_(self) -> None:
        _verify_access(self.tensor, self.indices, self.value)
        if self.old.type != self.value.type:
            raise VerifyException("fetch_add returns the old element")


@irdl_op_definition
class MatchAnyOp(IRDLOperation):
    """A bit for each lane of the warp that has the same value. All lanes must come."""

    name = "xla_gpu.match_any"
    value = operand_def(IntegerType(32))
    result = result_def(IntegerType(32))
    assembly_format = "$value attr-dict"

    def __init__(self, value: SSAValue) -> None:
        Operation.__init__(self, operands=[value], result_types=[value.type])


@irdl_op_definition
class BallotOp(IRDLOperation):
    """A bit for each lane of the warp for which the condition holds. All lanes must come."""

    name = "xla_gpu.ballot"
    condition = operand_def(IntegerType(1))
    result = result_def(IntegerType(32))
    assembly_format = "$condition attr-dict"

    def __init__(self, condition: SSAValue) -> None:
        Operation.__init__(self, operands=[condition], result_types=[IntegerType(32)])


@irdl_op_definition
class ShuffleFromOp(IRDLOperation):
    """The value of the lane whose number each lane says. All lanes must come."""

    name = "xla_gpu.shuffle_from"
    value = operand_def(IntegerType(32))
    lane = operand_def(IntegerType(32))
    result = result_def(IntegerType(32))
    assembly_format = "$value `,` $lane attr-dict"

    def __init__(self, value: SSAValue, lane: SSAValue) -> None:
        Operation.__init__(self, operands=[value, lane], result_types=[value.type])
