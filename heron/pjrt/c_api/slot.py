"""Registration of the functions of `PJRT_Api` that are written in Python: `slot` files each under its name.

A slot gets its argument structure, writes results into it, and raises what goes wrong: the caller gets a PJRT_Error.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from heron.errors import HeronError
from heron.pjrt.c_api import abi, errors, handles

Slot = Callable[[Any], None]
_SLOTS: dict[str, Slot] = {}
#: slots that read their arguments themselves, from the address
_HOT: set[str] = set()


def slot(name: str) -> Callable[[Slot], Slot]:
    """Decorator: this is the function of that name."""

    def file(function: Slot) -> Slot:
        _SLOTS[name] = function
        return function

    return file


def hot_slot(name: str) -> Callable[[Callable[[int], None]], Callable[[int], None]]:
    """Decorator: this is the function of that name, and gets the bare address of its arguments."""
    _HOT.add(name)
    return slot(name)


def callable_of(name: str) -> Callable[[int], int]:
    """The function that native code calls for a slot: it takes the address of the arguments and returns 0 or the
    address of an error, negative after Ctrl-C."""

    function = _SLOTS.get(name)
    if function is None:

        def refuse(_: int) -> int:
            return errors.new(HeronError("PJRT015", f"heron has no {name} yet"))

        return refuse
    read = _reader(name) if name not in _HOT else int
    new_error = errors.new

    def call(address: int) -> int:
        try:
            function(read(address))
        except KeyboardInterrupt as error:
            return -new_error(error)
        except BaseException as error:  # nothing may cross into native code
            return new_error(error)
        return 0

    call.__name__ = name
    return call


def _reader(name: str) -> Callable[[int], Any]:
    """A function from an address to the argument structure; fields that an older caller lacks are zero."""
    kind = abi.struct(f"{name}_Args")
    size = abi.size(f"{name}_Args")

    def read(address: int) -> Any:
        args: Any = kind.from_address(address)
        return args if args.struct_size >= size else _Shorter(kind, address, args.struct_size)

    return read


class _Shorter:
    """The structure of a caller whose version ends it earlier: what lies behind its end is never touched."""

    def __init__(self, kind: Any, address: int, size: int) -> None:
        whole = kind.from_buffer_copy(ctypes.string_at(address, size).ljust(ctypes.sizeof(kind), b"\0"))
        known = {n for n, *_ in kind._fields_ if getattr(kind, n).offset + getattr(kind, n).size <= size}
        for field, value in (("_whole", whole), ("_theirs", kind.from_address(address)), ("_known", known)):
            object.__setattr__(self, field, value)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._theirs if name in self._known else self._whole, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._theirs if name in self._known else self._whole, name, value)


def named_values(values: Mapping[str, Any]) -> tuple[Any, int, int]:
    """An array of PJRT_NamedValue: what to keep alive, its address, its length."""
    kind = abi.struct("PJRT_NamedValue")
    made: list[Any] = []
    keep: list[Any] = []
    for name, value in values.items():
        entry = kind()
        entry.struct_size = ctypes.sizeof(kind)
        buffer, entry.name, entry.name_size = handles.text(name)
        keep.append(buffer)
        keep.append(_set_value(entry, value))
        made.append(entry)
    array, address = handles.array(kind, made)
    return (array, keep), address, len(made)


def _set_value(entry: Any, value: Any) -> Any:
    """Write a value into a PJRT_NamedValue; gives what to keep alive."""
    union = entry._u0
    entry.value_size = 1
    if isinstance(value, bool):
        entry.type, union.bool_value = 4, value
    elif isinstance(value, int):
        entry.type, union.int64_value = 1, value
    elif isinstance(value, float):
        entry.type, union.float_value = 3, value
    elif isinstance(value, str):
        buffer, address, size = handles.text(value)
        entry.type, union.string_value, entry.value_size = 0, address, size
        return buffer
    elif isinstance(value, Sequence):
        array, address = handles.array(ctypes.c_int64, value)
        entry.type, union.int64_array_value, entry.value_size = 2, address, len(value)
        return array
    return None


def read_named_values(address: int, count: int) -> dict[str, Any]:
    """The values an array of PJRT_NamedValue holds."""
    kind = abi.struct("PJRT_NamedValue")
    found: dict[str, Any] = {}
    for entry in (kind * count).from_address(address) if count else ():
        union, size = entry._u0, entry.value_size
        readers: tuple[Callable[[], Any], ...] = (
            lambda u=union, n=size: handles.read_text(u.string_value, n).decode(errors="replace"),
            lambda u=union: u.int64_value,
            lambda u=union, n=size: handles.read_integers(ctypes.c_int64, u.int64_array_value, n),
            lambda u=union: u.float_value,
            lambda u=union: u.bool_value,
        )
        found[handles.read_text(entry.name, entry.name_size).decode(errors="replace")] = readers[entry.type]()
    return found


def give_bytes(data: bytes) -> int:
    """Bytes in memory of C's, which whoever gets them frees with `FREE`."""
    place = errors.malloc()(len(data) + 1)
    ctypes.memmove(place, data + b"\0", len(data) + 1)
    return place


#: address of C's `free`, the deleter of what `give_bytes` made
FREE = ctypes.cast(ctypes.CDLL(None).free, ctypes.c_void_p).value or 0
