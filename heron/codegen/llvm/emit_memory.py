"""Rules for xDSL's llvm dialect: addresses, loads, stores, globals, calls, plain instructions.

Integers that do not fill a byte (pred, s4, …) are one byte in memory; LLVM would call other contents undefined and
would not vectorise them, so they are loaded as i8 and truncated, and zero-extended before a store.
"""

from __future__ import annotations

from typing import Any

from xdsl.dialects import llvm
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerAttr, IntegerType, StringAttr
from xdsl.ir import Attribute, Operation

from heron.codegen.ir.dialects.xla_gpu import LLVMAtomicLoadOp, LLVMAtomicRMWOp, LLVMAtomicStoreOp, LLVMCmpXchgOp
from heron.codegen.llvm.emit import Emitter, is_set, rule
from heron.codegen.llvm.types import constant_text

_SUB_BYTE = {"i1", "i2", "i4"}
_ORDERINGS = {0: "", 2: "monotonic", 4: "acquire", 5: "release", 6: "acq_rel", 7: "seq_cst"}
_BINARY: dict[type, str] = {
    llvm.AddOp: "add", llvm.SubOp: "sub", llvm.MulOp: "mul", llvm.UDivOp: "udiv", llvm.SDivOp: "sdiv",
    llvm.URemOp: "urem", llvm.SRemOp: "srem", llvm.AndOp: "and", llvm.OrOp: "or", llvm.XOrOp: "xor",
    llvm.ShlOp: "shl", llvm.LShrOp: "lshr", llvm.AShrOp: "ashr", llvm.FAddOp: "fadd", llvm.FSubOp: "fsub",
    llvm.FMulOp: "fmul", llvm.FDivOp: "fdiv", llvm.FRemOp: "frem",
}  # fmt: skip
_CAST: dict[type, str] = {
    llvm.TruncOp: "trunc", llvm.ZExtOp: "zext", llvm.SExtOp: "sext", llvm.BitcastOp: "bitcast",
    llvm.SIToFPOp: "sitofp", llvm.FPExtOp: "fpext", llvm.FPTruncOp: "fptrunc", llvm.IntToPtrOp: "inttoptr",
    llvm.PtrToIntOp: "ptrtoint",
}  # fmt: skip
_ICMP = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")


def memory_type(text: str) -> str:
    """The type a value of that LLVM type has in memory."""
    return "i8" if text in _SUB_BYTE else text


@rule(llvm.GEPOp)
def _address(e: Emitter, op: llvm.GEPOp) -> None:
    base, *dynamic = op.operands
    element = memory_type(e.type(op.properties["elem_type"]))
    flags = " inbounds" if op.properties.get("inbounds") is not None else ""
    position, indices = 0, []
    for index in op.properties["rawConstantIndices"].get_values():  # type: ignore[attr-defined]
        if index == llvm.GEP_USE_SSA_VAL:
            indices.append(e.typed(dynamic[position]))
            position += 1
        else:
            indices.append(f"i32 {index}")
    operands = ", ".join([element, e.typed(base), *indices])
    e.out.append(f"  {e.define(op.results[0])} = getelementptr{flags} {operands}")


def _suffix(e: Emitter, op: Operation) -> str:
    """Alignment and the metadata asked for by ``heron.invariant`` / ``heron.nontemporal`` attributes."""
    text = ""
    alignment = op.properties.get("alignment")
    if isinstance(alignment, IntegerAttr):
        text += f", align {alignment.value.data}"
    if is_set(op, "heron.invariant"):
        text += f", !invariant.load {e.metadata_node('')}"
    if is_set(op, "heron.nontemporal") or op.properties.get("nontemporal") is not None:
        text += f", !nontemporal {e.metadata_node('i32 1')}"
    return text


def _ordering(op: Operation) -> str:
    found = op.properties.get("ordering")
    return _ORDERINGS.get(found.value.data, "seq_cst") if isinstance(found, IntegerAttr) else ""


@rule(llvm.LoadOp)
def _load(e: Emitter, op: llvm.LoadOp) -> None:
    pointer, result = op.operands[0], op.results[0]
    text, ordering = e.type(result.type), _ordering(op)
    atomic, after = (" atomic", f" {ordering}") if ordering else ("", "")
    stored = memory_type(text)
    name = e.fresh()
    e.out.append(f"  {name} = load{atomic} {stored}, {e.typed(pointer)}{after}{_suffix(e, op)}")
    if stored == text:
        e.names[result] = name
    elif text == "i1":
        e.out.append(f"  {e.define(result)} = icmp ne i8 {name}, 0")
    else:
        e.out.append(f"  {e.define(result)} = trunc i8 {name} to {text}")


@rule(llvm.StoreOp)
def _store(e: Emitter, op: llvm.StoreOp) -> None:
    value, pointer = op.operands
    text, name, ordering = e.type(value.type), e.names[value], _ordering(op)
    atomic, after = (" atomic", f" {ordering}") if ordering else ("", "")
    if op.properties.get("volatile_") is not None:
        atomic += " volatile"
    if text in _SUB_BYTE:
        wide = e.fresh()
        e.out.append(f"  {wide} = zext {text} {name} to i8")
        text, name = "i8", wide
    e.out.append(f"  store{atomic} {text} {name}, {e.typed(pointer)}{after}{_suffix(e, op)}")


@rule(llvm.GlobalOp)
def _global(e: Emitter, op: llvm.GlobalOp) -> None:
    """A module global. Dense data becomes a byte string: with opaque pointers only its bytes and alignment matter."""
    space_attr = op.properties["addr_space"]
    space = space_attr.value.data if isinstance(space_attr, IntegerAttr) else 0
    linkage = op.linkage.linkage.data
    kind = "constant" if op.properties.get("constant") is not None else "global"
    type_text = e.type(op.properties["global_type"])
    value = op.properties.get("value")
    if value is None:
        initial = "undef" if space == 3 else "zeroinitializer"
    else:
        type_text, initial = _initial_value(value, op.properties["global_type"], type_text)
    alignment = op.properties.get("alignment")
    align = f", align {alignment.value.data}" if isinstance(alignment, IntegerAttr) else ""
    where = f" addrspace({space})" if space else ""
    linkage = "" if linkage == "external" else f" {linkage}"
    e.out.append(f"@{op.sym_name.data} ={linkage}{where} {kind} {type_text} {initial}{align}")


def _initial_value(value: Attribute, type_: Attribute, type_text: str) -> tuple[str, str]:
    if isinstance(value, StringAttr):
        return byte_string(value.data.encode())
    if isinstance(value, DenseIntOrFPElementsAttr):
        data = value.data.data
        count = 1
        for extent in value.type.get_shape():
            count *= extent
        if len(value) == 1 and count > 1:
            data = data * count
        return byte_string(data)
    return type_text, constant_text(value, type_)


def byte_string(data: bytes) -> tuple[str, str]:
    """(type, initialiser) of a global holding those bytes."""
    text = f"[{len(data)} x i8]"
    if not any(data):
        return text, "zeroinitializer"
    return text, 'c"' + "".join(f"\\{byte:02X}" for byte in data) + '"'


@rule(llvm.AddressOfOp)
def _address_of(e: Emitter, op: llvm.AddressOfOp) -> None:
    e.names[op.results[0]] = f"@{op.global_name.root_reference.data}"


@rule(llvm.ConstantOp)
def _constant(e: Emitter, op: llvm.ConstantOp) -> None:
    e.names[op.results[0]] = constant_text(op.properties["value"], op.results[0].type, e.bf16)


@rule(llvm.UndefOp)
def _undef(e: Emitter, op: Operation) -> None:
    e.names[op.results[0]] = "poison"


@rule(llvm.ZeroOp)
def _zero(e: Emitter, op: Operation) -> None:
    text = e.type(op.results[0].type)
    e.names[op.results[0]] = "null" if text == "ptr" else "zeroinitializer"


@rule(*_BINARY)
def _binary(e: Emitter, op: Operation) -> None:
    a, b = op.operands
    e.out.append(f"  {e.define(op.results[0])} = {_BINARY[type(op)]} {e.typed(a)}, {e.names[b]}")


@rule(*_CAST)
def _cast(e: Emitter, op: Operation) -> None:
    operand, result = op.operands[0], op.results[0]
    text = e.typed(operand)
    e.out.append(f"  {e.define(result)} = {_CAST[type(op)]} {text} to {e.type(result.type)}")


@rule(llvm.ICmpOp)
def _compare(e: Emitter, op: Any) -> None:
    a, b = op.operands
    predicate = _ICMP[op.predicate.value.data]
    e.out.append(f"  {e.define(op.results[0])} = icmp {predicate} {e.typed(a)}, {e.names[b]}")


@rule(llvm.SelectOp)
def _select(e: Emitter, op: Operation) -> None:
    text = ", ".join(e.typed(v) for v in op.operands)
    e.out.append(f"  {e.define(op.results[0])} = select {text}")


@rule(llvm.ExtractValueOp)
def _extract_value(e: Emitter, op: Any) -> None:
    path = ", ".join(str(i) for i in op.position.get_values())
    text = e.typed(op.operands[0])
    e.out.append(f"  {e.define(op.results[0])} = extractvalue {text}, {path}")


@rule(llvm.InsertValueOp)
def _insert_value(e: Emitter, op: Any) -> None:
    path = ", ".join(str(i) for i in op.position.get_values())
    container, value = e.typed(op.container), e.typed(op.value)
    e.out.append(f"  {e.define(op.results[0])} = insertvalue {container}, {value}, {path}")


@rule(llvm.ShuffleVectorOp)
def _shuffle(e: Emitter, op: llvm.ShuffleVectorOp) -> None:
    a, b = (e.typed(v) for v in op.operands)
    lanes = [f"i32 {lane}" for lane in op.mask.get_values()]
    e.out.append(f"  {e.define(op.results[0])} = shufflevector {a}, {b}, <{len(lanes)} x i32> <{', '.join(lanes)}>")


@rule(llvm.AllocaOp)
def _alloca(e: Emitter, op: llvm.AllocaOp) -> None:
    element, size = e.type(op.properties["elem_type"]), e.typed(op.operands[0])
    e.out.append(f"  {e.define(op.results[0])} = alloca {element}, {size}{_suffix(e, op)}")


@rule(llvm.CallIntrinsicOp)
def _call_intrinsic(e: Emitter, op: llvm.CallIntrinsicOp) -> None:
    _call(e, op, op.intrin.data, list(op.args))


@rule(llvm.CallOp)
def _call_function(e: Emitter, op: llvm.CallOp) -> None:
    if op.callee is not None:
        _call(e, op, op.callee.root_reference.data, list(op.args))
        return
    pointer, *arguments = op.args
    result = e.type(op.results[0].type) if op.results else "void"
    text = ", ".join(e.typed(v) for v in arguments)
    bind = f"{e.define(op.results[0])} = " if op.results else ""
    e.out.append(f"  {bind}call {result} {e.names[pointer]}({text})")


def _call(e: Emitter, op: Operation, name: str, arguments: list) -> None:
    result = e.type(op.results[0].type) if op.results else "void"
    operands = [(e.type(v.type), e.names[v]) for v in arguments]
    if name in e.defined:
        text = ", ".join(f"{t} {v}" for t, v in operands)
        bind = f"{e.define(op.results[0])} = " if op.results else ""
        e.out.append(f"  {bind}call {result} @{name}({text})")
        return
    caller = e.library if name.startswith("heron.") else e.call
    found = caller(name, result, operands)
    if op.results:
        e.names[op.results[0]] = found


@rule(llvm.UnreachableOp)
def _unreachable(e: Emitter, op: Operation) -> None:
    e.out.append("  unreachable")


def _scope(op: Operation) -> str:
    scope = op.properties["syncscope"].data  # type: ignore[attr-defined]
    return f' syncscope("{scope}")' if scope else ""


@rule(LLVMAtomicRMWOp)
def _atomic(e: Emitter, op: LLVMAtomicRMWOp) -> None:
    pointer, value = op.operands
    operands = f"{e.typed(pointer)}, {e.typed(value)}{_scope(op)} {op.ordering.data}"
    e.out.append(f"  {e.define(op.results[0])} = atomicrmw {op.bin_op.data} {operands}")


@rule(LLVMCmpXchgOp)
def _compare_exchange(e: Emitter, op: LLVMCmpXchgOp) -> None:
    pair, old, success = e.fresh(), *op.results
    text = e.type(old.type)
    operands = ", ".join(e.typed(v) for v in op.operands)
    ordering = op.ordering.data
    failure = "monotonic" if ordering == "release" else "acquire" if ordering == "acq_rel" else ordering
    e.out.append(f"  {pair} = cmpxchg {operands}{_scope(op)} {ordering} {failure}")
    e.out.append(f"  {e.define(old)} = extractvalue {{ {text}, i1 }} {pair}, 0")
    e.out.append(f"  {e.define(success)} = extractvalue {{ {text}, i1 }} {pair}, 1")


@rule(LLVMAtomicLoadOp)
def _load_atomic(e: Emitter, op: LLVMAtomicLoadOp) -> None:
    order = f"{_scope(op)} {op.ordering.data}, align {_bytes(op.res.type)}"
    e.out.append(f"  {e.define(op.res)} = load atomic {e.type(op.res.type)}, {e.typed(op.ptr)}{order}")


@rule(LLVMAtomicStoreOp)
def _store_atomic(e: Emitter, op: LLVMAtomicStoreOp) -> None:
    order = f"{_scope(op)} {op.ordering.data}, align {_bytes(op.value.type)}"
    e.out.append(f"  store atomic {e.typed(op.value)}, {e.typed(op.ptr)}{order}")


def _bytes(type_: Attribute) -> int:
    assert isinstance(type_, IntegerType)
    return type_.width.data // 8
