"""LLVM's atomic instructions, one to one: xDSL's `llvm` dialect has none. They belong to the `xla_gpu` dialect."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerType, StringAttr
from xdsl.dialects.llvm import LLVMPointerType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, result_def
from xdsl.utils.exceptions import VerifyException

OPERATIONS = frozenset("xchg add sub and nand or xor max min umax umin fadd fsub fmax fmin uinc_wrap udec_wrap".split())
ORDERINGS = ("monotonic", "acquire", "release", "acq_rel", "seq_cst")


def _verify_ordering(ordering: StringAttr) -> None:
    if ordering.data not in ORDERINGS:
        raise VerifyException(f"'{ordering.data}' is no memory ordering: {', '.join(ORDERINGS)}")


@irdl_op_definition
class LLVMAtomicRMWOp(IRDLOperation):
    """`atomicrmw <bin_op> ptr, value syncscope("…") <ordering>`; the result is the old value.

    `bin_op` is LLVM's keyword (add, fadd, and, or, xor, min, max, umin, umax, fmin, fmax, xchg); `ordering` LLVM's
    (monotonic); an empty `syncscope` is the system scope.
    """

    name = "xla_gpu.llvm_atomicrmw"
    ptr = operand_def(LLVMPointerType)
    value = operand_def()
    bin_op = prop_def(StringAttr)
    ordering = prop_def(StringAttr)
    syncscope = prop_def(StringAttr)
    res = result_def()
    assembly_format = (
        "$bin_op $ordering $syncscope $ptr `,` $value attr-dict `:` type($ptr) `,` type($value) `->` type($res)"
    )

    def __init__(
        self, bin_op: str, ptr: SSAValue, value: SSAValue, ordering: str = "monotonic", syncscope: str = ""
    ) -> None:
        properties: dict[str, Attribute] = {
            "bin_op": StringAttr(bin_op),
            "ordering": StringAttr(ordering),
            "syncscope": StringAttr(syncscope),
        }
        Operation.__init__(self, operands=[ptr, value], result_types=[value.type], properties=properties)

    def verify_(self) -> None:
        _verify_ordering(self.ordering)
        if self.bin_op.data not in OPERATIONS:
            raise VerifyException(f"'{self.bin_op.data}' is no atomic operation: {', '.join(sorted(OPERATIONS))}")
        if self.res.type != self.value.type:
            raise VerifyException("llvm_atomicrmw returns the old value, of the type of its operand")


@irdl_op_definition
class LLVMCmpXchgOp(IRDLOperation):
    """`cmpxchg ptr, expected, new syncscope("…") <ordering> <ordering>`; results: the old value, and i1 success."""

    name = "xla_gpu.llvm_cmpxchg"
    ptr = operand_def(LLVMPointerType)
    expected = operand_def()
    new = operand_def()
    ordering = prop_def(StringAttr)
    syncscope = prop_def(StringAttr)
    old = result_def()
    success = result_def(IntegerType(1))
    assembly_format = (
        "$ordering $syncscope $ptr `,` $expected `,` $new attr-dict `:` "
        "type($ptr) `,` type($expected) `,` type($new) `->` type($old) `,` type($success)"
    )

    def __init__(
        self,
        ptr: SSAValue,
        expected: SSAValue,
        new: SSAValue,
        ordering: str = "monotonic",
        syncscope: str = "",
    ) -> None:
        Operation.__init__(
            self,
            operands=[ptr, expected, new],
            result_types=[expected.type, IntegerType(1)],
            properties={"ordering": StringAttr(ordering), "syncscope": StringAttr(syncscope)},
        )

    def verify_(self) -> None:
        _verify_ordering(self.ordering)
        if not self.expected.type == self.new.type == self.old.type:
            raise VerifyException("llvm_cmpxchg compares, writes and returns values of one type")


@irdl_op_definition
class LLVMAtomicLoadOp(IRDLOperation):
    """`load atomic type, ptr syncscope("…") <ordering>`, aligned to its size."""

    name = "xla_gpu.llvm_load_atomic"
    ptr = operand_def(LLVMPointerType)
    ordering = prop_def(StringAttr)
    syncscope = prop_def(StringAttr)
    res = result_def(IntegerType)
    assembly_format = "$ordering $syncscope $ptr attr-dict `:` type($ptr) `->` type($res)"

    def __init__(self, ptr: SSAValue, type_: Attribute, ordering: str, syncscope: str = "") -> None:
        properties: dict[str, Attribute] = {"ordering": StringAttr(ordering), "syncscope": StringAttr(syncscope)}
        Operation.__init__(self, operands=[ptr], result_types=[type_], properties=properties)

    def verify_(self) -> None:
        _verify_ordering(self.ordering)


@irdl_op_definition
class LLVMAtomicStoreOp(IRDLOperation):
    """`store atomic value, ptr syncscope("…") <ordering>`, aligned to its size."""

    name = "xla_gpu.llvm_store_atomic"
    value = operand_def(IntegerType)
    ptr = operand_def(LLVMPointerType)
    ordering = prop_def(StringAttr)
    syncscope = prop_def(StringAttr)
    assembly_format = "$ordering $syncscope $value `,` $ptr attr-dict `:` type($value) `,` type($ptr)"

    def __init__(self, value: SSAValue, ptr: SSAValue, ordering: str, syncscope: str = "") -> None:
        properties: dict[str, Attribute] = {"ordering": StringAttr(ordering), "syncscope": StringAttr(syncscope)}
        Operation.__init__(self, operands=[value, ptr], properties=properties)

    def verify_(self) -> None:
        _verify_ordering(self.ordering)
