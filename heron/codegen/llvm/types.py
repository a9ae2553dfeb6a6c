"""xDSL types and constants as LLVM text.

Floats that LLVM has no type for (the f8, f6 and f4 family) travel as integers of one byte; conversions to and from them
are inline library functions. On targets without bf16 (``bf16="i16"``) bf16 travels as i16 too: LLVM would otherwise
call a conversion routine for something as small as a select. A complex value is a literal struct of two floats.
"""

from __future__ import annotations

import math
import struct

import ml_dtypes
import numpy as np
from xdsl.dialects import builtin, llvm
from xdsl.dialects.builtin import (
    BFloat16Type,
    ComplexType,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    IntegerType,
    VectorType,
)
from xdsl.ir import Attribute

from heron.errors import HeronError

#: floats stored in one byte: xDSL name -> (short name used by the inline library, NumPy type)
SMALL_FLOATS: dict[str, tuple[str, type]] = {
    "f8E5M2": ("f8e5m2", ml_dtypes.float8_e5m2),
    "f8E4M3": ("f8e4m3", ml_dtypes.float8_e4m3),
    "f8E4M3FN": ("f8e4m3fn", ml_dtypes.float8_e4m3fn),
    "f8E5M2FNUZ": ("f8e5m2fnuz", ml_dtypes.float8_e5m2fnuz),
    "f8E4M3FNUZ": ("f8e4m3fnuz", ml_dtypes.float8_e4m3fnuz),
    "f8E4M3B11FNUZ": ("f8e4m3b11fnuz", ml_dtypes.float8_e4m3b11fnuz),
    "f8E3M4": ("f8e3m4", ml_dtypes.float8_e3m4),
    "f8E8M0FNU": ("f8e8m0fnu", ml_dtypes.float8_e8m0fnu),
    "f6E2M3FN": ("f6e2m3fn", ml_dtypes.float6_e2m3fn),
    "f6E3M2FN": ("f6e3m2fn", ml_dtypes.float6_e3m2fn),
    "f4E2M1FN": ("f4e2m1fn", ml_dtypes.float4_e2m1fn),
}

_SIMPLE: dict[type, str] = {
    Float32Type: "float",
    Float64Type: "double",
    Float16Type: "half",
    BFloat16Type: "bfloat",
    llvm.LLVMVoidType: "void",
}
_SHORT: dict[type, str] = {
    Float32Type: "f32",
    Float64Type: "f64",
    Float16Type: "f16",
    BFloat16Type: "bf16",
}


def is_float(type_: Attribute) -> bool:
    """True for every floating-point scalar type, small ones included."""
    return type(type_) in _SHORT or type_.name in SMALL_FLOATS


def short_name(type_: Attribute) -> str:
    """The name used in library function names: ``f32``, ``bf16``, ``f8e4m3fn``, ``i32`` …"""
    found = _SHORT.get(type(type_))
    if found is not None:
        return found
    if isinstance(type_, IntegerType):
        return f"i{type_.width.data}"
    if type_.name in SMALL_FLOATS:
        return SMALL_FLOATS[type_.name][0]
    raise HeronError("LLVM001", f"type '{type_}' has no name in the inline library")


def text_of(type_: Attribute, index_bits: int = 64, bf16: str = "bfloat") -> str:
    """`type_` as LLVM text. Raises LLVM001 for a type with no LLVM form (tensor, memref, …)."""
    simple = _SIMPLE.get(type(type_))
    if simple is not None:
        return bf16 if simple == "bfloat" else simple
    if isinstance(type_, IntegerType):
        return f"i{type_.width.data}"
    if isinstance(type_, IndexType):
        return f"i{index_bits}"
    if isinstance(type_, llvm.LLVMPointerType):
        space = type_.addr_space
        number = space.value.data if isinstance(space, IntegerAttr) else getattr(space, "data", 0)
        return f"ptr addrspace({number})" if number else "ptr"
    if isinstance(type_, VectorType):
        (lanes,) = type_.get_shape() or (1,)
        return f"<{lanes} x {text_of(type_.element_type, index_bits, bf16)}>"
    if isinstance(type_, ComplexType):
        part = text_of(type_.element_type, index_bits, bf16)
        return f"{{ {part}, {part} }}"
    if isinstance(type_, llvm.LLVMArrayType):
        return f"[{type_.size.data} x {text_of(type_.type, index_bits, bf16)}]"
    if isinstance(type_, llvm.LLVMStructType):
        return "{ " + ", ".join(text_of(t, index_bits, bf16) for t in type_.types.data) + " }"
    if type_.name in SMALL_FLOATS:
        return "i8"
    raise HeronError(
        "LLVM001",
        f"type '{type_}' has no LLVM form",
        hint="lower tensors to pointers (lower-tensors) before translating to LLVM",
    )


def function_result(type_: FunctionType, index_bits: int = 64, bf16: str = "bfloat") -> str:
    """The LLVM return type: void, the one type, or a struct of several."""
    outputs = [text_of(t, index_bits, bf16) for t in type_.outputs.data]
    if not outputs:
        return "void"
    return outputs[0] if len(outputs) == 1 else "{ " + ", ".join(outputs) + " }"


def float_text(value: float, type_: Attribute, bf16: str = "bfloat") -> str:
    """A float constant, exact: LLVM wants the bits of the *double* for ``float`` and ``double``."""
    kind = type(type_)
    if kind is Float64Type:
        return "0x" + struct.pack(">d", value).hex().upper()
    if kind is Float32Type:
        return "0x" + struct.pack(">d", _round_to_f32(value)).hex().upper()
    if kind is Float16Type:
        return f"0xH{_bits(value, np.float16):04X}"
    if kind is BFloat16Type:
        bits = _bits(value, ml_dtypes.bfloat16)
        return f"0xR{bits:04X}" if bf16 == "bfloat" else str(bits)
    if type_.name in SMALL_FLOATS:
        return str(_bits(value, SMALL_FLOATS[type_.name][1]))
    raise HeronError("LLVM001", f"float type '{type_}' has no LLVM constants")


def _round_to_f32(value: float) -> float:
    if not math.isfinite(value):
        return value
    try:
        return struct.unpack(">f", struct.pack(">f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def _bits(value: float, dtype: type) -> int:
    with np.errstate(over="ignore", invalid="ignore"):
        array = np.array(value).astype(dtype)
    return int(array.view(f"u{array.dtype.itemsize}"))


def constant_text(value: Attribute, type_: Attribute, bf16: str = "bfloat") -> str:
    """A constant attribute of that type as an LLVM operand (without the type)."""
    if isinstance(value, FloatAttr):
        return float_text(value.value.data, type_, bf16)
    if isinstance(value, IntegerAttr):
        number = value.value.data
        if type_ == builtin.i1:
            return "true" if number & 1 else "false"
        return str(number)
    if isinstance(value, builtin.DenseIntOrFPElementsAttr) and isinstance(type_, VectorType):
        element = type_.element_type
        items = [constant_text(item, element, bf16) for item in value.get_attrs()]
        if len(items) == 1:
            (lanes,) = type_.get_shape()
            items *= lanes
        text = text_of(element, bf16=bf16)
        return "<" + ", ".join(f"{text} {item}" for item in items) + ">"
    raise HeronError("LLVM001", f"constant '{value}' has no LLVM form")
