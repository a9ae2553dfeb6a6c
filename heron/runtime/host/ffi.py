"""Handlers of XLA's FFI: C functions a program calls by name, given as addresses (`register`).

A call fills the structures of XLA's public header (xla/ffi/api/c_api.h, version 0.3) with buffers that point into the
program's memory and with attributes that were read once. The questions that handlers may ask while they run are in
`ffi_api.py`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from heron.errors import HeronError
from heron.hlo.calls.ffi_attributes import Typed
from heron.hlo.ir import types
from heron.records import dataclass
from heron.runtime.host import ffi_api

_PTR, _I64, _I32 = ctypes.c_uint64, ctypes.c_int64, ctypes.c_int32
_BUFFER, _EXECUTE = 1, 3
#: kinds of attributes
_ARRAY, _DICTIONARY, _SCALAR, _STRING = 1, 2, 3, 4

_HANDLERS: dict[str, int] = {}


def register(name: str, address: int) -> None:
    """Programs that call `name` call the handler at that address from now on."""
    _HANDLERS[name] = address


#: asked for handlers nobody has registered: gives an address or None
finders: list[Callable[[str], int | None]] = []


def find(name: str) -> int | None:
    """The address of a handler; None for a name that is not registered."""
    if name in _HANDLERS:
        return _HANDLERS[name]
    return next((a for a in (f(name) for f in finders) if a), None)


# -- structures --------------------------------------------------------------------------------------------------------


class _Struct(ctypes.Structure):
    """Begins with its own size and extensions, like all of them."""

    _fields_: list[tuple[str, Any]] = [("struct_size", _PTR), ("extension_start", _PTR)]

    def __init__(self, **values: Any) -> None:
        super().__init__(ctypes.sizeof(type(self)), 0, **values)


class _Span(ctypes.Structure):
    _fields_ = [("ptr", _PTR), ("len", _PTR)]


class _Scalar(ctypes.Structure):
    _fields_ = [("dtype", _I32), ("value", _PTR)]


class _Array(ctypes.Structure):
    _fields_ = [("dtype", _I32), ("size", _PTR), ("data", _PTR)]


class _Buffer(_Struct):
    _fields_ = [("dtype", _I32), ("data", _PTR), ("rank", _I64), ("dims", _PTR)]


class _Args(_Struct):
    _fields_ = [("size", _I64), ("types", _PTR), ("args", _PTR)]


class _Attrs(_Struct):
    _fields_ = [("size", _I64), ("types", _PTR), ("names", _PTR), ("attrs", _PTR)]


class _Frame(_Struct):
    _fields_ = [
        *(("api", _PTR), ("ctx", _PTR), ("stage", _I32)),
        *(("args", _Args), ("rets", _Args), ("attrs", _Attrs), ("future", _PTR)),
    ]


# -- attributes --------------------------------------------------------------------------------------------------------


@dataclass
class _Packed:
    """Attributes as structures, and the memory they point to."""

    attrs: _Attrs
    keep: list[Any] = field(default_factory=list)


def _pack(values: Mapping[str, Any]) -> _Packed:
    keep: list[Any] = []
    names, kinds, places = [], [], []
    for name in sorted(values):  # handlers look names up by halving
        span = _text(name, keep)
        names.append(ctypes.addressof(span))
        kind, made = _attribute(values[name], keep)
        kinds.append(kind)
        places.append(ctypes.addressof(made))
        keep += [span, made]
    lists = [(_I32 * len(kinds))(*kinds), (_PTR * len(names))(*names), (_PTR * len(places))(*places)]
    keep += lists
    at = [ctypes.addressof(x) for x in lists]
    return _Packed(_Attrs(size=len(kinds), types=at[0], names=at[1], attrs=at[2]), keep)


def _text(text: str, keep: list[Any]) -> _Span:
    data = text.encode()
    buffer = ctypes.create_string_buffer(data, len(data) + 1)
    keep.append(buffer)
    return _Span(ctypes.addressof(buffer), len(data))


def _attribute(value: Any, keep: list[Any]) -> tuple[int, Any]:
    if isinstance(value, str):
        return _STRING, _text(value, keep)
    if isinstance(value, Mapping):
        packed = _pack(value)
        keep.append(packed)
        return _DICTIONARY, packed.attrs
    if isinstance(value, bool):
        value = Typed("pred", value)
    element_type = types.by_name(value.element_type)
    array = np.array(value.value, element_type.dtype)
    keep.append(array)
    if array.ndim:
        return _ARRAY, _Array(element_type.proto_id, array.size, array.ctypes.data)
    return _SCALAR, _Scalar(element_type.proto_id, array.ctypes.data)


# -- calls -------------------------------------------------------------------------------------------------------------


class Handler:
    """A routine: calls a handler on the program's arrays, which lie row-major."""

    def __init__(self, name: str, address: int, element_types: Sequence[int], operands: int, attrs: Any) -> None:
        self.name, self.operands, self.element_types = name, operands, tuple(element_types)
        self._call = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(address)  # lets Python's lock go
        self._attrs = _pack(attrs)

    def __call__(self, *arrays: np.ndarray) -> None:
        keep: list[Any] = []
        buffers = [_buffer(a, t, keep) for a, t in zip(arrays, self.element_types, strict=True)]
        frame = _Frame(
            api=ffi_api.address(),
            stage=_EXECUTE,
            args=_list(buffers[: self.operands], keep),
            rets=_list(buffers[self.operands :], keep),
            attrs=self._attrs.attrs,
        )
        frame.struct_size = _Frame.future.offset  # as the header counts it
        with ffi_api.scratch() as frame.ctx:
            error = self._call(ctypes.addressof(frame)) or ffi_api.outcome(frame.future)
        if error:
            code, message = ffi_api.take_error(error)
            raise HeronError("RUN061", message, where=f"custom call '{self.name}'", why=f"status {code}")


def _buffer(array: np.ndarray, element_type: int, keep: list[Any]) -> _Buffer:
    dims = (_I64 * max(1, array.ndim))(*array.shape)
    made = _Buffer(dtype=element_type, data=array.ctypes.data, rank=array.ndim, dims=ctypes.addressof(dims))
    keep += [dims, made, array]
    return made


def _list(buffers: list[_Buffer], keep: list[Any]) -> _Args:
    kinds = (_I32 * max(1, len(buffers)))(*[_BUFFER] * len(buffers))
    places = (_PTR * max(1, len(buffers)))(*map(ctypes.addressof, buffers))
    keep += [kinds, places]
    return _Args(size=len(buffers), types=ctypes.addressof(kinds), args=ctypes.addressof(places))
