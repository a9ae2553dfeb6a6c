"""xla_gpu.atomic_rmw → an atomic instruction, a compare-and-swap loop, or (on the CPU) plain load and store.

A body that is one operation LLVM has as `atomicrmw`, on the current value and one other, becomes that instruction. Any
other body runs in a loop that reads the word holding the element, computes the new word, and swaps it in if nobody
changed it in between. CPU kernels apply updates from one thread at a time, so there nothing need be atomic.
"""

from __future__ import annotations

from xdsl.dialects import arith, llvm, scf
from xdsl.dialects.builtin import (
    BFloat16Type,
    ComplexType,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerType,
    i8,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from heron.codegen.dialects.xla_gpu import AtomicRMWOp, LLVMAtomicRMWOp, LLVMCmpXchgOp, YieldOp
from heron.codegen.transforms.buffers import Buffer, byte_size, load, raw_load, storage_type, store, to_storage
from heron.codegen.transforms.build import I32, I64, NO_FLAGS, Inserter, erase, yield_
from heron.codegen.transforms.options import TransformOptions
from heron.errors import HeronError

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
    place: Inserter,
    options: TransformOptions,
) -> None:
    """Emits the update of the element at `pointer` before `op`, whose body is used up."""
    if not options.is_gpu:
        current = load(buffer, pointer, alignment, place)
        store(buffer, _inline(op, current, place), pointer, alignment, place)
        return
    scope = "device" if options.target == "gpu" else ""
    native = _native(op, buffer.element)
    if native is not None:
        name, value = native
        _move_body(op, place)
        place.insert(LLVMAtomicRMWOp(name, pointer, value, syncscope=scope))
        return
    _swap_loop(op, buffer, pointer, place, scope)


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


def _move_body(op: AtomicRMWOp, place: Inserter) -> None:
    """Moves what the operand needs out of the body; the combining op and the yield go."""
    block = op.body.block
    last = block.last_op
    assert last is not None
    result = last.operands[0]
    erase(last)
    if block.args[0].first_use is not None and isinstance(result.owner, Operation):
        erase(result.owner)
    _move(block, place)


def _move(block: Block, place: Inserter) -> None:
    op = block.first_op
    while op is not None:
        following = op.next_op
        op.detach()
        place.insert(op)
        op = following


def _inline(op: AtomicRMWOp, current: SSAValue, place: Inserter) -> SSAValue:
    """The body's ops at `place`, computed from `current`; returns the new value."""
    block = op.body.block
    block.args[0].replace_all_uses_with(current)
    last = block.last_op
    assert last is not None
    result = last.operands[0]
    erase(last)
    _move(block, place)
    return result


def _swap_loop(op: AtomicRMWOp, buffer: Buffer, pointer: SSAValue, place: Inserter, scope: str) -> None:
    bits = 8 * byte_size(buffer.element)
    if bits > 64:
        raise HeronError("GEN124", f"no atomic update of {bits}-bit elements", where=str(buffer.element))
    word_type = I64 if bits == 64 else I32
    shift: SSAValue | None = None
    if bits < 32:
        pointer, shift = _containing_word(pointer, place)
    first = raw_load(pointer, word_type, word_type.width.data // 8, place)
    before, after = Block(arg_types=[word_type]), Block(arg_types=[word_type])
    inside = Inserter(before, None, {}, place.constants)
    expected = before.args[0]
    new = _inline(op, _from_word(expected, buffer, bits, shift, inside), inside)
    word = _to_word(new, expected, buffer, bits, shift, inside)
    swap = inside.insert(LLVMCmpXchgOp(pointer, expected, word, syncscope=scope))
    again = inside.binary(arith.XOrIOp, swap.results[1], inside.const(1, IntegerType(1)))
    inside.insert(scf.ConditionOp.create(operands=(again, swap.results[0])))
    after.add_op(yield_([after.args[0]]))
    place.insert(
        scf.WhileOp.create(operands=(first,), result_types=(word_type,), regions=[Region(before), Region(after)])
    )


def _containing_word(pointer: SSAValue, place: Inserter) -> tuple[SSAValue, SSAValue]:
    """The aligned 32-bit word that holds the element, and the element's place in it in bits (little endian)."""
    number = place.unary(llvm.PtrToIntOp, pointer, I64)
    low = place.binary(arith.AndIOp, number, place.const(3, I64))
    offset = place.binary(arith.SubiOp, place.const(0, I64), low, NO_FLAGS)
    gep = llvm.GEPOp(pointer, [llvm.GEP_USE_SSA_VAL], i8, [offset], pointer.type)  # pyright: ignore
    narrow = place.unary(arith.TruncIOp, low, I32)
    return place.insert(gep).results[0], place.binary(arith.ShLIOp, narrow, place.const(3, I32), NO_FLAGS)


def _from_word(word: SSAValue, buffer: Buffer, bits: int, shift: SSAValue | None, place: Inserter) -> SSAValue:
    element = buffer.element
    if shift is not None:
        word = place.binary(arith.ShRUIOp, word, shift)
        word = place.unary(arith.TruncIOp, word, IntegerType(bits))
    if isinstance(element, ComplexType):
        raise HeronError("GEN124", "no atomic update of complex elements", where=str(element))
    if isinstance(element, IntegerType):
        narrow = element.width.data < bits
        return place.unary(arith.TruncIOp, word, element) if narrow else word
    return place.unary(arith.BitcastOp, word, storage_type(element))


def _to_word(
    value: SSAValue, old: SSAValue, buffer: Buffer, bits: int, shift: SSAValue | None, place: Inserter
) -> SSAValue:
    value = to_storage(buffer, value, place)
    if not isinstance(value.type, IntegerType):
        value = place.unary(arith.BitcastOp, value, IntegerType(bits))
    if shift is None:
        return value
    value = place.binary(arith.ShLIOp, place.unary(arith.ExtUIOp, value, I32), shift, NO_FLAGS)
    mask = place.binary(arith.ShLIOp, place.const((1 << bits) - 1, I32), shift, NO_FLAGS)
    keep = place.binary(arith.XOrIOp, mask, place.const(-1, I32))
    return place.binary(arith.OrIOp, place.binary(arith.AndIOp, old, keep), value)
