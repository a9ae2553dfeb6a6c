"""Program data as JSON and back: thunks, slices, shapes, types, descriptors of library calls.

Dataclasses are written as ``{"is": "module:Class", field: value, …}``, so that nothing lists them; only heron's own are
read back.
"""

from __future__ import annotations

import dataclasses
import importlib
from typing import Any

import numpy as np

from heron.errors import HeronError
from heron.hlo.ir import types
from heron.hlo.ir.shape import Shape
from heron.hlo.ir.types import ElementType
from heron.hlo.text.cursor import Cursor
from heron.hlo.text.lexer import Source

_OPEN = "heron."


def encode(value: Any) -> Any:
    """A value of plain JSON types. Raises RUN052 for one that has no such form."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
        return [encode(v) for v in value]
    if isinstance(value, frozenset):
        return {"set": sorted(value)}
    if isinstance(value, dict):
        return {"map": [[encode(k), encode(v)] for k, v in value.items()]}
    if isinstance(value, ElementType):
        return {"type": value.name}
    if isinstance(value, np.dtype):
        return {"dtype": types.of_dtype(value).name}
    if isinstance(value, Shape):
        return {"shape": str(value)}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: encode(getattr(value, f.name)) for f in dataclasses.fields(value) if f.init}
        return {"is": _name(type(value)), **fields}
    if names := getattr(value, "_fields", ()):  # a named tuple
        return {"is": _name(type(value)), **{name: encode(getattr(value, name)) for name in names}}
    if callable(value) and getattr(value, "__module__", "").startswith(_OPEN):
        return {"function": _name(value)}
    what = f"the program holds a {type(value).__name__}, which has no form in a file"
    raise HeronError("RUN052", what, why=repr(value))


def _name(thing: Any) -> str:
    return f"{thing.__module__}:{thing.__qualname__}"


def decode(value: Any) -> Any:
    """The value that was encoded; sequences are tuples. Raises RUN050 for what `encode` does not write."""
    if isinstance(value, list):
        return tuple(decode(v) for v in value)
    if not isinstance(value, dict):
        return value
    if "is" in value:
        kind = _find(value["is"])
        if not (isinstance(kind, type) and (dataclasses.is_dataclass(kind) or hasattr(kind, "_fields"))):
            raise _damaged(f"{value['is']} is no kind of program data")
        try:
            return kind(**{k: decode(v) for k, v in value.items() if k != "is"})
        except TypeError as error:
            raise _damaged(str(error)) from error
    if "function" in value:
        return _find(value["function"])
    if "shape" in value:
        return Cursor(Source(value["shape"], "<saved program>")).shape()
    if "type" in value:
        return types.by_name(value["type"])
    if "dtype" in value:
        return types.by_name(value["dtype"]).dtype
    if "set" in value:
        return frozenset(value["set"])
    if "map" in value:
        return {decode(k): decode(v) for k, v in value["map"]}
    raise _damaged(f"an entry of the plan is none: {str(value)[:80]}")


def _find(name: str) -> Any:
    module, _, qualified = name.partition(":")
    if not module.startswith(_OPEN):
        raise _damaged(f"{name} is none of heron's")
    try:
        found: Any = importlib.import_module(module)
        for part in qualified.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise _damaged(f"this heron has no {name}") from error
    return found


def _damaged(why: str) -> HeronError:
    return HeronError(
        "RUN050", "the file's plan cannot be read", why=why, hint="save the program again with this version of heron"
    )
