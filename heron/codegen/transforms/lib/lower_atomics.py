"""xla_gpu.atomic_rmw → an atomic instruction, a compare-and-swap loop, or (on the CPU) plain load and store.

A body that is one operation LLVM has as `atomicrmw`, on the current value and one other, becomes that instruction. Any
other body runs in a loop that reads the element, computes the new one, and swaps it in if no thread changed it since
(LLVM widens a swap of 8 bits to the 32-bit word around it). CPU kernels give no element to two threads, so there
nothing need be atomic. Loads, stores and additions by which blocks of a GPU speak to each other are instructions too.
"""

from __future__ import annotations

from xdsl.dialects import arith, complex, scf
from xdsl.dialects.builtin import (
    BFloat16Type,
    ComplexType,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerType,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from heron.codegen.ir.builder import NO_FLAGS, Builder
from heron.codegen.ir.dialects.xla_gpu import (
    AtomicRMWOp,
    LLVMAtomicLoadOp,
    LLVMAtomicRMWOp,
    LLVMAtomicStoreOp,
    LLVMCmpXchgOp,
    YieldOp,
)
from heron.codegen.ir.editing import erase, yield_
from heron.codegen.ir.types import I1
from heron.codegen.transforms.lib.buffers import Buffer, byte_size, load, raw_load, store, to_storage
from heron.codegen.transforms.options import TransformOptions
from heron.errors import HeronError

#: LLVM's name of all threads of a GPU
DEVICE = "device"
_INTEGER: dict[type[Operation], str] = {
    arith.AddiOp: "add",
    arith.AndIOp: "and",
    arith.OrIOp: "or",
    arith.XOrIOp: "xor",
    arith.MinSIOp: "min",
    arith.MaxSIOp: "max",
    arith.MinUIOp: "umin",
    arith.MaxUIOp: "umax",
}


def lower(
    op: AtomicRMWOp,
    buffer: Buffer,
    pointer: SSAValue,
    alignment: int,
    builder: Builder,
    options: TransformOptions,
) -> None:
    """Emits the update of the element at `pointer` before `op`, whose body is used up."""
    if not options.is_gpu:
        current = load(buffer, pointer, alignment, builder)
        store(buffer, _inline(op, current, builder), pointer, alignment, builder)
        return
    scope = _scope(options)
    native = _native(op, buffer.element)
    if native is not None:
        name, value = native
        _move_body(op, builder)
        builder.add(LLVMAtomicRMWOp(name, pointer, value, syncscope=scope))
        return
    _swap_loop(op, buffer, pointer, builder, scope)


def load_word(
    pointer: SSAValue, type_: Attribute, ordering: str, builder: Builder, options: TransformOptions
) -> SSAValue:
    """The word at `pointer`, as threads of other blocks leave it."""
    return builder.add(LLVMAtomicLoadOp(pointer, type_, ordering, _scope(options))).results[0]


def store_word(value: SSAValue, pointer: SSAValue, ordering: str, builder: Builder, options: TransformOptions) -> None:
    """Writes the word at `pointer` for threads of other blocks."""
    builder.add(LLVMAtomicStoreOp(value, pointer, ordering, _scope(options)))


def fetch_add(value: SSAValue, pointer: SSAValue, builder: Builder, options: TransformOptions) -> SSAValue:
    """Adds to the word at `pointer`; what was there."""
    return builder.add(LLVMAtomicRMWOp("add", pointer, value, syncscope=_scope(options))).results[0]


def _scope(options: TransformOptions) -> str:
    return DEVICE if options.target == "gpu" else ""


def _native(op: AtomicRMWOp, element: Attribute) -> tuple[str, SSAValue] | None:
    """The atomicrmw operation that does what the body does, and its operand."""
    current, last = op.body.block.args[0], op.body.block.last_op
    assert isinstance(last, YieldOp)
    result = last.operands[0]
    is_word = isinstance(element, IntegerType) and element.width.data in (32, 64)
    is_float = isinstance(element, (Float32Type, Float64Type))
    if current.first_use is None:
        return ("xchg", result) if (is_word or is_float) else None
    combine = result.owner
    if not isinstance(combine, Operation) or len(combine.operands) != 2 or not current.has_one_use():
        return None
    if current not in combine.operands:
        return None
    other = combine.operands[1 if combine.operands[0] is current else 0]
    if is_word and type(combine) in _INTEGER:
        return _INTEGER[type(combine)], other
    if isinstance(combine, arith.AddfOp) and (is_float or isinstance(element, (Float16Type, BFloat16Type))):
        return "fadd", other
    return None


def _move_body(op: AtomicRMWOp, builder: Builder) -> None:
    """Moves what the operand needs out of the body; the combining op and the yield go."""
    block = op.body.block
    last = block.last_op
    assert last is not None
    result = last.operands[0]
    erase(last)
    if block.args[0].first_use is not None and isinstance(result.owner, Operation):
        erase(result.owner)
    _move(block, builder)


def _move(block: Block, builder: Builder) -> None:
    op = block.first_op
    while op is not None:
        following = op.next_op
        op.detach()
        builder.add(op)
        op = following


def _inline(op: AtomicRMWOp, current: SSAValue, builder: Builder) -> SSAValue:
    """The body's ops at `place`, computed from `current`; returns the new value."""
    block = op.body.block
    block.args[0].replace_all_uses_with(current)
    last = block.last_op
    assert last is not None
    result = last.operands[0]
    erase(last)
    _move(block, builder)
    return result


def _swap_loop(op: AtomicRMWOp, buffer: Buffer, pointer: SSAValue, builder: Builder, scope: str) -> None:
    element = buffer.element
    bits = 8 * byte_size(element)
    if bits > 64:
        why = "no GPU swaps more than 64 bits at once"
        raise HeronError("GEN124", f"no atomic update of {bits}-bit elements", where=str(element), why=why)
    word = IntegerType(bits)
    first = raw_load(pointer, word, bits // 8, builder)
    before, after = Block(arg_types=[word]), Block(arg_types=[word])
    inside = Builder(before, builder.constants, known={})
    seen = before.args[0]
    new = _inline(op, _from_word(seen, element, inside), inside)
    swap = inside.add(LLVMCmpXchgOp(pointer, seen, _to_word(new, buffer, word, inside), syncscope=scope))
    again = inside.op(arith.XOrIOp, swap.results[1], inside.integer(1, I1))
    inside.add(scf.ConditionOp.create(operands=(again, swap.results[0])))
    after.add_op(yield_([after.args[0]]))
    loop = scf.WhileOp.create(operands=(first,), result_types=(word,), regions=[Region(before), Region(after)])
    builder.add(loop)


def _from_word(word: SSAValue, element: Attribute, builder: Builder) -> SSAValue:
    """The element whose memory form is `word`."""
    if isinstance(element, ComplexType):
        half = IntegerType(word.type.width.data // 2)  # type: ignore[attr-defined]
        upper = builder.op(arith.ShRUIOp, word, builder.integer(half.width.data, word.type))
        parts = [builder.op(arith.TruncIOp, v, type=half) for v in (word, upper)]
        parts = [builder.op(arith.BitcastOp, v, type=element.element_type) for v in parts]
        return builder.add(complex.CreateOp.create(operands=parts, result_types=(element,))).results[0]
    if not isinstance(element, IntegerType):
        return builder.op(arith.BitcastOp, word, type=element)
    return word if word.type == element else builder.op(arith.TruncIOp, word, type=element)


def _to_word(value: SSAValue, buffer: Buffer, word: IntegerType, builder: Builder) -> SSAValue:
    """The element as stored in memory, as an integer."""
    element = buffer.element
    if isinstance(element, ComplexType):
        half = IntegerType(word.width.data // 2)
        parts = [builder.op(op, value, type=element.element_type) for op in (complex.ReOp, complex.ImOp)]
        parts = [builder.op(arith.ExtUIOp, builder.op(arith.BitcastOp, v, type=half), type=word) for v in parts]
        upper = builder.op(arith.ShLIOp, parts[1], builder.integer(half.width.data, word), properties=NO_FLAGS)
        return builder.op(arith.OrIOp, parts[0], upper)
    value = to_storage(buffer, value, builder)
    return value if isinstance(value.type, IntegerType) else builder.op(arith.BitcastOp, value, type=word)
