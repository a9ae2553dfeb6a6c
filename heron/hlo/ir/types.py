"""Element types: the scalars HLO arrays are made of.

Each type is one object (compare with ``is``). Storage follows NumPy with ml_dtypes: sub-byte integers and floats take
one byte per element in host memory, `pred` is a NumPy bool.
Source: https://openxla.org/xla/shapes and xla_data.proto's PrimitiveType.
"""

from __future__ import annotations

from typing import Literal as OneOf

import ml_dtypes
import numpy as np

from heron.errors import HeronError

Kind = OneOf["pred", "signed", "unsigned", "float", "complex", "token", "opaque", "buffer"]


class ElementType:
    """A scalar type. ``dtype`` is the NumPy dtype of stored elements; ``bits`` the logical width."""

    __slots__ = ("name", "kind", "bits", "dtype", "proto_id")

    def __init__(self, name: str, kind: Kind, bits: int, dtype: object, proto_id: int) -> None:
        self.name, self.kind, self.bits, self.proto_id = name, kind, bits, proto_id
        self.dtype: np.dtype = np.dtype(dtype) if dtype is not None else np.dtype("V0")  # type: ignore[arg-type]

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[object, ...]:
        return by_name, (self.name,)

    @property
    def byte_size(self) -> int:
        """Bytes of one stored element (0 for token and opaque)."""
        return self.dtype.itemsize

    @property
    def is_integer(self) -> bool:
        return self.kind == "signed" or self.kind == "unsigned"

    @property
    def is_signed(self) -> bool:
        return self.kind == "signed"

    @property
    def is_unsigned(self) -> bool:
        return self.kind == "unsigned"

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_complex(self) -> bool:
        return self.kind == "complex"

    @property
    def component(self) -> ElementType:
        """The real type of a complex type; the type itself otherwise."""
        if self.kind != "complex":
            return self
        return F32 if self.bits == 64 else F64


PRED = ElementType("pred", "pred", 8, np.bool_, 1)
S1 = ElementType("s1", "signed", 1, ml_dtypes.int1, 30)
S2 = ElementType("s2", "signed", 2, ml_dtypes.int2, 26)
S4 = ElementType("s4", "signed", 4, ml_dtypes.int4, 21)
S8 = ElementType("s8", "signed", 8, np.int8, 2)
S16 = ElementType("s16", "signed", 16, np.int16, 3)
S32 = ElementType("s32", "signed", 32, np.int32, 4)
S64 = ElementType("s64", "signed", 64, np.int64, 5)
U1 = ElementType("u1", "unsigned", 1, ml_dtypes.uint1, 31)
U2 = ElementType("u2", "unsigned", 2, ml_dtypes.uint2, 27)
U4 = ElementType("u4", "unsigned", 4, ml_dtypes.uint4, 22)
U8 = ElementType("u8", "unsigned", 8, np.uint8, 6)
U16 = ElementType("u16", "unsigned", 16, np.uint16, 7)
U32 = ElementType("u32", "unsigned", 32, np.uint32, 8)
U64 = ElementType("u64", "unsigned", 64, np.uint64, 9)
F4E2M1FN = ElementType("f4e2m1fn", "float", 4, ml_dtypes.float4_e2m1fn, 32)
F6E2M3FN = ElementType("f6e2m3fn", "float", 6, ml_dtypes.float6_e2m3fn, 36)
F6E3M2FN = ElementType("f6e3m2fn", "float", 6, ml_dtypes.float6_e3m2fn, 35)
F8E3M4 = ElementType("f8e3m4", "float", 8, ml_dtypes.float8_e3m4, 29)
F8E4M3 = ElementType("f8e4m3", "float", 8, ml_dtypes.float8_e4m3, 28)
F8E4M3FN = ElementType("f8e4m3fn", "float", 8, ml_dtypes.float8_e4m3fn, 20)
F8E4M3B11FNUZ = ElementType("f8e4m3b11fnuz", "float", 8, ml_dtypes.float8_e4m3b11fnuz, 23)
F8E4M3FNUZ = ElementType("f8e4m3fnuz", "float", 8, ml_dtypes.float8_e4m3fnuz, 25)
F8E5M2 = ElementType("f8e5m2", "float", 8, ml_dtypes.float8_e5m2, 19)
F8E5M2FNUZ = ElementType("f8e5m2fnuz", "float", 8, ml_dtypes.float8_e5m2fnuz, 24)
F8E8M0FNU = ElementType("f8e8m0fnu", "float", 8, ml_dtypes.float8_e8m0fnu, 33)
F16 = ElementType("f16", "float", 16, np.float16, 10)
BF16 = ElementType("bf16", "float", 16, ml_dtypes.bfloat16, 16)
F32 = ElementType("f32", "float", 32, np.float32, 11)
F64 = ElementType("f64", "float", 64, np.float64, 12)
C64 = ElementType("c64", "complex", 64, np.complex64, 15)
C128 = ElementType("c128", "complex", 128, np.complex128, 18)
TOKEN = ElementType("token", "token", 0, None, 17)
OPAQUE = ElementType("opaque", "opaque", 0, None, 14)

ALL: tuple[ElementType, ...] = tuple(v for v in globals().values() if isinstance(v, ElementType))
_BY_NAME = {t.name: t for t in ALL}
_BY_DTYPE = {t.dtype: t for t in ALL if t.byte_size}


NAMES = frozenset(_BY_NAME)


def by_name(name: str) -> ElementType:
    """The type of that HLO name. Raises HLO001 for an unknown one."""
    found = _BY_NAME.get(name)
    if found is None:
        raise HeronError("HLO001", f"unknown element type '{name}'", hint="one of " + ", ".join(_BY_NAME))
    return found


def find(name: str) -> ElementType | None:
    """The type of that HLO name, or None."""
    return _BY_NAME.get(name)


def of_dtype(dtype: object) -> ElementType:
    """The element type stored as that NumPy dtype. Raises HLO002 when HLO has none."""
    found = _BY_DTYPE.get(np.dtype(dtype))  # type: ignore[arg-type]
    if found is None:
        raise HeronError("HLO002", f"no HLO element type for NumPy dtype '{dtype}'")
    return found
