"""Values of functions in LLVM text (`text.py`): operators, variables, and fields of structures in memory."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Self, cast

if TYPE_CHECKING:
    from heron.codegen.llvm.text import Function

#: LLVM's types of the fields of structures
_TYPES: dict[Any, str] = {
    ctypes.c_bool: "i8", ctypes.c_int8: "i8", ctypes.c_uint8: "i8", ctypes.c_int32: "i32", ctypes.c_uint32: "i32",
    ctypes.c_int64: "i64", ctypes.c_uint64: "i64", ctypes.c_void_p: "ptr",
}  # fmt: skip


class Value(str):
    """The name of a value of a function, or a constant, and its type. Operators write instructions.

    Comparisons are methods: `eq`, `ne`, `less` (signed), `below` and `reaches` (unsigned ``<`` and ``>=``).
    """

    type: str
    function: Any

    def __new__(cls, text: str, type_: str, function: Any) -> Self:
        made = super().__new__(cls, text)
        made.type, made.function = type_, function
        return made

    def _two(self, op: str, a: Any, b: Any, type_: str = "") -> Self:
        return cast(Self, self.function.op(f"{op} {self.type} {a}, {b}", type_ or self.type))

    def __add__(self, other: Any) -> Self:
        return self._two("add", self, other)

    def __sub__(self, other: Any) -> Self:
        return self._two("sub", self, other)

    def __rsub__(self, other: Any) -> Self:
        return self._two("sub", other, self)

    def __mul__(self, other: Any) -> Self:
        return self._two("mul", self, other)

    def __floordiv__(self, other: Any) -> Self:
        """Unsigned."""
        return self._two("udiv", self, other)

    def __mod__(self, other: Any) -> Self:
        """Unsigned."""
        return self._two("urem", self, other)

    def __and__(self, other: Any) -> Self:
        return self._two("and", self, other)

    def __or__(self, other: Any) -> Self:
        return self._two("or", self, other)

    def __xor__(self, other: Any) -> Self:
        return self._two("xor", self, other)

    def __lshift__(self, other: Any) -> Self:
        return self._two("shl", self, other)

    def __rlshift__(self, other: Any) -> Self:
        return self._two("shl", other, self)

    def __rshift__(self, other: Any) -> Self:
        """Logical."""
        return self._two("lshr", self, other)

    def __invert__(self) -> Self:
        return self._two("xor", self, "true" if self.type == "i1" else -1)

    def eq(self, other: Any) -> Self:
        return self._two("icmp eq", self, other, "i1")

    def ne(self, other: Any) -> Self:
        return self._two("icmp ne", self, other, "i1")

    def less(self, other: Any) -> Self:
        return self._two("icmp slt", self, other, "i1")

    def below(self, other: Any) -> Self:
        return self._two("icmp ult", self, other, "i1")

    def reaches(self, other: Any) -> Self:
        return self._two("icmp uge", self, other, "i1")

    def is_null(self) -> Self:
        return self.eq("null")

    def cast(self, kind: str, type_: str) -> Self:
        """``zext``, ``sext``, ``trunc``, ``bitcast``, … to another type."""
        return cast(Self, self.function.op(f"{kind} {self.type} {self} to {type_}", type_))


class Variable:
    """A number or a pointer that changes."""

    def __init__(self, function: Function, type_: str) -> None:
        self.function, self.type, self.slot = function, type_, function.slot(type_)

    def get(self) -> Value:
        return self.function.load(self.type, self.slot)

    def set(self, value: Any) -> None:
        self.function.line(f"store {self.type} {value}, ptr {self.slot}")


class View:
    """A structure in memory: ``view["name"]`` loads a field, ``view["name"] = value`` stores one; ``view["name", n]``
    is element `n` of a field that is an array."""

    def __init__(self, function: Function, address: str, owner: type[ctypes.Structure]) -> None:
        self.function, self.address, self.owner = function, address, owner
        self._kinds: dict[str, Any] = {name: kind for name, kind, *_ in owner._fields_}

    def at(self, name: str, n: Any = None) -> Value:
        """The address of a field, or of an element of it."""
        f, offset = self.function, getattr(self.owner, name).offset
        place = f.at(self.address, offset, "i8") if offset else Value(str(self.address), "ptr", f)
        return place if n is None else f.at(place, n, self._type(name), getattr(n, "type", "i64"))

    def _type(self, name: str) -> str:
        kind = self._kinds[name]
        return _TYPES.get(getattr(kind, "_type_", kind)) or _TYPES[kind]

    def __getitem__(self, name: str | tuple[str, Any]) -> Value:
        field, n = (name, None) if isinstance(name, str) else name
        return self.function.load(self._type(field), self.at(field, n))

    def __setitem__(self, name: str | tuple[str, Any], value: Any) -> None:
        field, n = (name, None) if isinstance(name, str) else name
        self.function.store(self._type(field), value, self.at(field, n))

    def pointer(self, name: str) -> Value:
        """A field that is declared as a number, as the address it is."""
        return self.function.load("ptr", self.at(name))

    def set_pointer(self, name: str, value: Any) -> None:
        self.function.store("ptr", value, self.at(name))
