"""Tensor values → pointers.

The entry's tensor arguments become `!llvm.ptr` arguments and it returns nothing; `tensor.extract` becomes an address
and a load, `tensor.insert` an address and a store, its result the same buffer. Loops, ifs and whiles no longer carry
tensors. Constant tensors become globals, `xla_gpu.allocate_shared` globals in shared memory, `tensor.empty` stack
memory (a large one on the CPU: heap memory). Calls take tensors as pointers.

A tensor value must not be read after an `insert` into it has been made: in memory there is only one.

    %v = tensor.extract %in[%i] : tensor<32xf32>
    ->
    %p = llvm.getelementptr inbounds %in[%i] : f32 ; %v = llvm.load %p

Entry arguments get `llvm.align`, `llvm.dereferenceable`, and `llvm.noalias`; inputs `llvm.readonly`, which makes their
loads invariant (`merge-pointers-to-same-slice` corrects arguments that share a buffer). Those of private functions get
the same where `propagate-slice-indices` has said which slice they are. Of an argument with `xla_gpu.part` only some
parts may be there: it is not dereferenceable, and aligned like an element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith, func, llvm, scf, tensor, vector
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FunctionType,
    IntAttr,
    IntegerAttr,
    ModuleOp,
    TensorType,
    UnitAttr,
)
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue
from xdsl.rewriter import Rewriter

from heron.analysis.indexing import Const, Dim, Expr
from heron.codegen.ir.builder import Builder, Constants, Key, int_attr
from heron.codegen.ir.dialects.xla_gpu import (
    AllocateSharedOp,
    ApplyIndexingOp,
    AtomicLoadOp,
    AtomicRMWOp,
    AtomicStoreOp,
    FetchAddOp,
    TransposeBlockOp,
)
from heron.codegen.ir.editing import (
    argument_attributes,
    call,
    constant_value,
    declare,
    erase,
    function_table,
    functions,
    replace,
    set_argument_attributes,
)
from heron.codegen.ir.types import I64
from heron.codegen.kernel import STACK_BYTES
from heron.codegen.transforms.lib import lower_atomics, lower_transpose, tensor_control
from heron.codegen.transforms.lib.buffers import (
    POINTER,
    Buffer,
    Buffers,
    address,
    byte_size,
    known_alignment,
    load,
    raw_load,
    raw_store,
    storage_type,
    store,
)
from heron.codegen.transforms.lib.constant_tensors import Globals, scalar_constant, splat_value
from heron.codegen.transforms.options import TransformOptions
from heron.errors import HeronError

SHARED = llvm.LLVMPointerType(IntAttr(3))
UNIT = UnitAttr()
_MEMORY = frozenset({TensorType, llvm.LLVMPointerType})


def run(module: ModuleOp, options: TransformOptions) -> None:
    """Lowers every function of the module.

    Raises:
        HeronError: GEN122 for an op on tensors that has no lowering, GEN123 for a region whose branches end with
            different buffers.
    """
    globals_, table = Globals(module), function_table(module)
    for function in functions(module):
        _Function(module, function, options, globals_, table).lower()


class _Function:
    """Lowers one function; `buffers` says what each tensor value has become."""

    def __init__(
        self,
        module: ModuleOp,
        function: func.FuncOp,
        options: TransformOptions,
        globals_: Globals,
        table: dict[str, func.FuncOp],
    ) -> None:
        self.module, self.function, self.options = module, function, options
        self.globals, self.table = globals_, table
        self.entry = function.body.block
        self.constants = Constants(self.entry)
        self.buffers = Buffers()
        self.splats: list[Operation] = []

    def lower(self) -> None:
        self._arguments()
        self._block(self.entry, {})
        for op in self.splats:
            erase(op)
        self.function.properties["function_type"] = FunctionType.from_lists(
            [a.type for a in self.entry.args],
            [t for t in self.function.function_type.outputs if not isinstance(t, TensorType)],
        )

    # -- arguments

    def _arguments(self) -> None:
        is_entry = "xla_gpu.entry" in self.function.attributes
        tensors = [(a, a.type) for a in self.entry.args if isinstance(a.type, TensorType)]
        outputs = sum(isinstance(t, TensorType) for t in self.function.function_type.outputs)
        attributes = argument_attributes(self.function)
        for position, (old, type_) in enumerate(tensors):
            is_output = position >= len(tensors) - outputs
            index = old.index
            attrs = attributes[index]
            pointer = Rewriter.replace_value_with_new_type(old, POINTER)
            alignment = attrs.get("llvm.align")
            align = alignment.value.data if isinstance(alignment, IntegerAttr) else self.options.alignment
            is_part = "xla_gpu.part" in attrs
            if is_part:  # it is where the whole array would begin
                align = byte_size(type_.element_type)
            self.buffers[pointer] = Buffer(pointer, type_, align)
            if is_entry:
                attributes[index] = attrs | _argument_attributes(type_, align, is_output)
                if is_part:
                    attributes[index].pop("llvm.dereferenceable", None)
            elif "xla_gpu.slice_index" in attrs:
                alone = sum(a.get("xla_gpu.slice_index") == attrs["xla_gpu.slice_index"] for a in attributes) == 1
                found = _argument_attributes(type_, align, "xla_gpu.invariant" not in attrs)
                attributes[index] = attrs | {k: v for k, v in found.items() if alone or k != "llvm.noalias"}
        if is_entry or self.function.arg_attrs:
            set_argument_attributes(self.function, attributes)

    # -- walk

    def _block(self, block: Block, known: dict[Key, SSAValue]) -> None:
        op = block.first_op
        while op is not None:
            following = op.next_op
            rule = _RULES.get(type(op))
            if rule is not None:
                rule(self, op, Builder(block, self.constants, before=op, known=known))
            else:
                self._other(op, known)
            op = following

    def _other(self, op: Operation, known: dict[Key, SSAValue]) -> None:
        for value in (*op.operands, *op.results):
            if type(value.type) in _MEMORY and self.buffers.has(value):
                raise HeronError("GEN122", f"'{op.name}' on a tensor cannot be lowered", where=str(op))
        for region in op.regions:
            for inner in region.blocks:
                self._block(inner, dict(known))

    # -- accesses

    def address(self, buffer: Buffer, indices: Sequence[SSAValue], builder: Builder) -> tuple[SSAValue, int]:
        """Pointer and known alignment of the element at `indices`."""
        if len(indices) != 1:
            raise HeronError(
                "GEN129",
                f"a tensor of rank {len(indices)} has no address yet",
                where=str(buffer.type),
                hint="run flatten-tensors first",
            )
        e = _expression(indices[0])
        linear = None if isinstance(e, Const) and not e.value else indices[0]
        return address(buffer, linear, builder), known_alignment(buffer, e)

    def _extract(self, op: Operation, builder: Builder) -> None:
        source = op.operands[0]
        if isinstance(source.owner, arith.ConstantOp):
            return replace(op, [self._splat(source.owner, builder)])
        buffer = self.buffers.of(source)
        pointer, alignment = self.address(buffer, op.operands[1:], builder)
        replace(op, [load(buffer, pointer, alignment, builder)])

    def _splat(self, op: arith.ConstantOp, builder: Builder) -> SSAValue:
        value = op.properties["value"]
        assert isinstance(value, DenseIntOrFPElementsAttr)
        scalar = splat_value(value)
        assert scalar is not None
        return builder.add(scalar_constant(scalar, value.get_element_type())).results[0]

    def _insert(self, op: Operation, builder: Builder) -> None:
        value, dest, *indices = op.operands
        buffer = self.buffers.of(dest)
        pointer, alignment = self.address(buffer, indices, builder)
        store(buffer, value, pointer, alignment, builder)
        replace(op, [dest])

    def _read(self, op: Operation, builder: Builder) -> None:
        buffer = self.buffers.of(op.operands[0])
        pointer, alignment = self.address(buffer, op.operands[1:2], builder)
        replace(op, [raw_load(pointer, op.results[0].type, alignment, builder)])

    def _write(self, op: Operation, builder: Builder) -> None:
        value, dest, index = op.operands
        pointer, alignment = self.address(self.buffers.of(dest), [index], builder)
        raw_store(value, pointer, alignment, builder)
        replace(op, [dest])

    def _atomic(self, op: Operation, builder: Builder) -> None:
        assert isinstance(op, AtomicRMWOp)
        buffer = self.buffers.of(op.tensor)
        pointer, alignment = self.address(buffer, op.operands[1:], builder)
        self._block(op.body.block, builder.nested_scope())
        lower_atomics.lower(op, buffer, pointer, alignment, builder, self.options)
        replace(op, [op.tensor])

    def _atomic_load(self, op: Operation, builder: Builder) -> None:
        assert isinstance(op, AtomicLoadOp)
        pointer, _ = self.address(self.buffers.of(op.tensor), op.operands[1:], builder)
        replace(op, [lower_atomics.load_word(pointer, op.result.type, op.ordering.data, builder, self.options)])

    def _atomic_store(self, op: Operation, builder: Builder) -> None:
        assert isinstance(op, AtomicStoreOp)
        pointer, _ = self.address(self.buffers.of(op.tensor), op.operands[2:], builder)
        lower_atomics.store_word(op.value, pointer, op.ordering.data, builder, self.options)
        replace(op, [op.tensor])

    def _fetch_add(self, op: Operation, builder: Builder) -> None:
        assert isinstance(op, FetchAddOp)
        pointer, _ = self.address(self.buffers.of(op.tensor), op.operands[2:], builder)
        replace(op, [lower_atomics.fetch_add(op.value, pointer, builder, self.options), op.tensor])

    def _transpose(self, op: Operation, builder: Builder) -> None:
        assert isinstance(op, TransposeBlockOp)
        buffers = self.buffers.of(op.source), self.buffers.of(op.target)
        rank = len(buffers[0].type.get_shape())
        indices = op.indices[:rank], op.indices[rank:]
        found = [self.address(b, at, builder) for b, at in zip(buffers, indices, strict=True)]
        pointers, alignments = (found[0][0], found[1][0]), (found[0][1], found[1][1])
        lower_transpose.lower(op, buffers[0].element, pointers, alignments, self.options.vector_bits, builder)
        replace(op, [op.target])

    # -- where tensors come from

    def _constant(self, op: Operation, builder: Builder) -> None:
        value = op.properties["value"]
        if not isinstance(op.results[0].type, TensorType):
            return
        assert isinstance(value, DenseIntOrFPElementsAttr)
        if splat_value(value) is not None:
            self.splats.append(op)  # its reads become scalars
            return
        if op.results[0].first_use is not None:
            self._bind(op, self._global(value, builder))
        else:
            erase(op)

    def _global(self, value: DenseIntOrFPElementsAttr, builder: Builder) -> Buffer:
        name = self.globals.constant(value)
        pointer = builder.add(llvm.AddressOfOp(name, POINTER)).results[0]
        return Buffer(pointer, value.type, 16)  # pyright: ignore[reportArgumentType]

    def _bind(self, op: Operation, buffer: Buffer) -> None:
        """The op's tensor result is `buffer` from here on; the op goes."""
        old = op.results[0]
        old.replace_all_uses_with(buffer.pointer)
        self.buffers[buffer.pointer] = buffer
        erase(op)

    def _shared(self, op: Operation, builder: Builder) -> None:
        type_ = op.results[0].type
        assert isinstance(type_, TensorType)
        name = self.globals.shared(self.function.sym_name.data, type_)
        pointer = builder.add(llvm.AddressOfOp(name, SHARED)).results[0]
        self._bind(op, Buffer(pointer, type_, 16))

    def _empty(self, op: Operation, builder: Builder) -> None:
        type_ = op.results[0].type
        assert isinstance(type_, TensorType)
        bytes_ = _count(type_) * byte_size(type_.element_type)
        if bytes_ > STACK_BYTES and not self.options.is_gpu:
            self._bind(op, Buffer(self._heap(bytes_), type_, 16))
            return
        size = self.constants.integer(max(1, _count(type_)), I64)
        properties = {"elem_type": storage_type(type_.element_type), "alignment": int_attr(16, I64)}
        alloca = llvm.AllocaOp.create(operands=(size,), result_types=(POINTER,), properties=properties)
        self.entry.insert_op_after(alloca, size.owner)  # pyright: ignore[reportArgumentType]
        self._bind(op, Buffer(alloca.results[0], type_, 16))

    def _heap(self, size: int) -> SSAValue:
        """Memory from malloc, taken when the function starts and given back when it returns."""
        last = self.entry.last_op
        bytes_ = self.constants.integer(size, I64)
        allocate = call(declare(self.module, self.table, "malloc", [I64], [POINTER]), [bytes_], [POINTER])
        self.entry.insert_op_after(allocate, bytes_.owner)  # pyright: ignore[reportArgumentType]
        free = call(declare(self.module, self.table, "free", [POINTER], []), allocate.results, [])
        assert last is not None
        self.entry.insert_op_before(free, last)
        return allocate.results[0]

    # -- calls and returns

    def _call(self, op: Operation, builder: Builder) -> None:
        if any(isinstance(r.type, TensorType) for r in op.results):
            raise HeronError("GEN122", "a called function cannot return a tensor", where=str(op))
        callee = op.properties["callee"]
        arguments = [self._argument(v, builder) if self.buffers.has(v) else v for v in op.operands]
        new = call(callee, arguments, [r.type for r in op.results])  # pyright: ignore[reportArgumentType]
        builder.add(new)
        replace(op, new.results)

    def _argument(self, value: SSAValue, builder: Builder) -> SSAValue:
        if isinstance(value.owner, arith.ConstantOp):
            attr = value.owner.properties["value"]
            assert isinstance(attr, DenseIntOrFPElementsAttr)
            return self._global(attr, builder).pointer
        return self.buffers.of(value).pointer

    def _return(self, op: Operation, builder: Builder) -> None:
        op.operands = [v for v in op.operands if not self.buffers.has(v)]


def _argument_attributes(type_: TensorType, align: int, is_written: bool) -> dict[str, Attribute]:
    attrs: dict[str, Attribute] = {"llvm.noalias": UNIT, "llvm.align": int_attr(align, I64)}
    size = _count(type_) * byte_size(type_.element_type)
    if size:
        attrs["llvm.dereferenceable"] = int_attr(size, I64)
    if not is_written:
        attrs["llvm.readonly"] = UNIT
    return attrs


def _expression(index: SSAValue) -> Expr:
    """The expression of an index: the one that computes it, or a variable."""
    known = constant_value(index)
    if known is not None:
        return Const(known)
    if isinstance(index, OpResult) and isinstance(index.op, ApplyIndexingOp):
        return index.op.map.results[index.index]
    return Dim(0)


def _count(type_: TensorType) -> int:
    count = 1
    for n in type_.get_shape():
        count *= n
    return count


def _keep(function: _Function, op: Operation, builder: Builder) -> None:
    """Left for a later transform."""


def _control(lower: tensor_control.Lowering) -> Callable[[_Function, Operation, Builder], None]:
    def rule(function: _Function, op: Operation, builder: Builder) -> None:
        lower(op, function.buffers, builder, lambda block: function._block(block, builder.nested_scope()))

    return rule


_RULES: dict[type[Operation], Callable[[_Function, Operation, Builder], None]] = {
    ApplyIndexingOp: _keep,
    scf.YieldOp: _keep,  # the op it ends drops the tensors
    scf.ConditionOp: _keep,
    tensor.ExtractOp: _Function._extract,
    tensor.InsertOp: _Function._insert,
    vector.TransferReadOp: _Function._read,
    vector.TransferWriteOp: _Function._write,
    tensor.EmptyOp: _Function._empty,
    arith.ConstantOp: _Function._constant,
    AllocateSharedOp: _Function._shared,
    AtomicRMWOp: _Function._atomic,
    AtomicLoadOp: _Function._atomic_load,
    AtomicStoreOp: _Function._atomic_store,
    FetchAddOp: _Function._fetch_add,
    TransposeBlockOp: _Function._transpose,
    scf.ForOp: _control(tensor_control.lower_for),
    scf.IfOp: _control(tensor_control.lower_if),
    scf.WhileOp: _control(tensor_control.lower_while),
    func.CallOp: _Function._call,
    func.ReturnOp: _Function._return,
}
