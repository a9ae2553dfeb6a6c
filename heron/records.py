"""``dataclass``: the standard library's decorator, whose methods are written when they are first called.

The standard library writes and compiles up to nine methods for a class when the class is made: half a millisecond each
time, a third of what a process spent on its first compile, mostly for methods that nobody ever called. Here `__init__`,
`__eq__` and `__hash__` of a class are compiled by their first call, and are then the same code. The rest needs none.
`dataclasses.fields`, `replace` and `asdict` take these classes, and a class of either kind may be a base of the other.
"""

from __future__ import annotations

import abc
import dataclasses
import inspect
import re
import reprlib
from collections.abc import Callable
from dataclasses import KW_ONLY, MISSING, Field, FrozenInstanceError, InitVar, field
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, ClassVar, get_origin

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls: type | None = None, /, **options: bool) -> Any:
        """As `dataclasses.dataclass`; options and annotations that heron does not use go to it."""
        return _made(cls, **options) if cls is not None else lambda cls: _made(cls, **options)


@dataclasses.dataclass(init=False, repr=False, eq=False)
class _Open:
    """Without words of its own a class gets its signature as such, and to work that out takes 5 ms."""

    kind: int


@dataclasses.dataclass(init=False, repr=False, eq=False, frozen=True)
class _Frozen:
    """As `_Open`."""


#: marks of the standard library: on a class, by whether it is frozen, and on a field
_PARAMETERS = {False: _Open.__dataclass_params__, True: _Frozen.__dataclass_params__}  # type: ignore[attr-defined]
_PLAIN: Any = _Open.__dataclass_fields__["kind"]._field_type  # type: ignore[attr-defined]
_standard = dataclasses.dataclass
_NO_KINDS = ("ClassVar", "InitVar", "KW_ONLY")
_ANNOTATION = re.compile(r"\s*(?:\w+\s*\.\s*)?(\w+)")


def _made(
    cls: type,
    *,
    init: bool = True,
    repr: bool = True,
    eq: bool = True,
    frozen: bool = False,
    slots: bool = False,
    kw_only: bool = False,
    **others: bool,
) -> type:
    own = _own_fields(cls, kw_only)
    if own is None or any(others.values()):
        return _standard(  # type: ignore[call-overload]
            cls, init=init, repr=repr, eq=eq, frozen=frozen, slots=slots, kw_only=kw_only, **others
        )
    fields: dict[str, Field[Any]] = {}
    for base in reversed(cls.__mro__[1:]):
        fields |= getattr(base, "__dataclass_fields__", {})
    for f in own:
        fields[f.name] = f
        if isinstance(cls.__dict__.get(f.name), Field):
            if f.default is MISSING:
                delattr(cls, f.name)
            else:
                setattr(cls, f.name, f.default)
    marks = {"__dataclass_fields__": fields, "__dataclass_params__": _PARAMETERS[frozen]}
    given = set(cls.__dict__)
    has_hash = cls.__dict__.get("__hash__") is not None or ("__hash__" in given and "__eq__" not in given)
    for name, value in marks.items():
        setattr(cls, name, value)
    plain = [f for f in fields.values() if f._field_type is _PLAIN]  # type: ignore[attr-defined]
    if slots:
        cls = _with_slots(cls, [f.name for f in plain])
    methods = _methods(cls, plain, init=init, repr=repr, eq=eq, frozen=frozen, slots=slots)
    if eq and not has_hash:
        methods["__hash__"] = _late("__hash__", lambda: _hash_text(plain)) if frozen else None
        given.discard("__hash__")
    for name, value in methods.items():
        if name not in given:
            setattr(cls, name, value)
    return abc.update_abstractmethods(cls)


def _own_fields(cls: type, kw_only: bool) -> list[Any] | None:
    """The fields of the class's own annotations; None where one is no field and no constant of the class."""
    own: list[Any] = []
    kinds = cls.__dict__.get("__annotations__")
    for name, kind in (inspect.get_annotations(cls) if kinds is None else kinds).items():
        word = _word(kind)
        default: Any = getattr(cls, name, MISSING)
        if word == "ClassVar" and not isinstance(default, Field):
            continue
        if word in ("ClassVar", "InitVar", "KW_ONLY"):
            return None
        if isinstance(default, MemberDescriptorType):  # a slot of a base
            default = MISSING
        found: Any = default if isinstance(default, Field) else field(default=default)
        if found.default.__class__.__hash__ is None:
            raise ValueError(
                f"mutable default {type(found.default)} for field {name} is not allowed: use default_factory"
            )
        found.name, found.type = name, kind
        found._field_type = _PLAIN
        if found.kw_only is MISSING:
            found.kw_only = kw_only
        own.append(found)
    return own


def _word(kind: Any) -> str:
    """The first word of an annotation, where it is one that makes it no field."""
    if isinstance(kind, str):
        if not any(word in kind for word in _NO_KINDS):
            return ""
        match = _ANNOTATION.match(kind)
        return match[1] if match else ""
    if kind is ClassVar or get_origin(kind) is ClassVar:
        return "ClassVar"
    return "KW_ONLY" if kind is KW_ONLY else "InitVar" if isinstance(kind, InitVar) or kind is InitVar else ""


def _with_slots(cls: type, names: list[str]) -> type:
    """The class made again, with places for these fields and no dictionary."""
    taken: set[str] = set()
    for base in cls.__mro__[1:-1]:
        there = base.__dict__.get("__slots__", ())
        taken.update((there,) if isinstance(there, str) else there)
    content = dict(cls.__dict__)
    for name in (*names, "__dict__", "__weakref__"):
        content.pop(name, None)
    content["__slots__"] = tuple(n for n in names if n not in taken)
    made = type(cls)(cls.__name__, cls.__bases__, content)
    made.__qualname__ = cls.__qualname__
    return made


def _methods(
    cls: type, fields: list[Field[Any]], *, init: bool, repr: bool, eq: bool, frozen: bool, slots: bool
) -> dict[str, Any]:
    methods: dict[str, Any] = {"__match_args__": tuple(f.name for f in fields if f.init and not f.kw_only)}
    if init:
        has_more = hasattr(cls, "__post_init__")
        methods["__init__"] = _late("__init__", lambda: _init_text(fields, frozen, slots, has_more))
    if repr:
        methods["__repr__"] = _representation([f.name for f in fields if f.repr])
    if eq:
        methods["__eq__"] = _late("__eq__", lambda: _eq_text(fields))
    if frozen:
        methods |= {"__setattr__": _refuse_set, "__delattr__": _refuse_delete}
        if slots:
            methods |= {"__getstate__": _state, "__setstate__": _restore}
    return methods


def _late(name: str, write: Callable[[], tuple[str, dict[str, Any]]]) -> Callable[..., Any]:
    """A method that takes the place of itself, with the code of `write`'s text, when it is first called."""
    made: Any = None

    def first(self: Any, *args: Any, **named: Any) -> Any:
        nonlocal made
        if made is None:
            text, names = write()
            exec(text, names)  # our own text: names of fields alone come from elsewhere
            made = names[name]
        for cls in type(self).__mro__:  # a class may be made again with what was in it
            if cls.__dict__.get(name) is first:
                setattr(cls, name, made)
        return made(self, *args, **named)

    first.__name__ = name
    return first


def _init_text(fields: list[Field[Any]], frozen: bool, slots: bool, has_more: bool) -> tuple[str, dict[str, Any]]:
    names: dict[str, Any] = {"_set": object.__setattr__, "_absent": MISSING}
    plain, named, body = [], [], []
    for f in fields:
        value, parameter = f.name, f.name
        if f.default_factory is not MISSING:
            names[f"_make_{f.name}"] = f.default_factory
            parameter = f"{f.name}=_absent"
            value = f"_make_{f.name}() if {f.name} is _absent else {f.name}" if f.init else f"_make_{f.name}()"
        elif f.default is not MISSING:
            names[f"_default_{f.name}"] = f.default
            parameter = f"{f.name}=_default_{f.name}"
            value = f.name if f.init else f"_default_{f.name}"
        if f.init:
            (named if f.kw_only else plain).append(parameter)
        elif f.default_factory is MISSING and (f.default is MISSING or not slots):
            continue
        body.append(f"_set(self, {f.name!r}, {value})" if frozen else f"self.{f.name} = {value}")
    if has_more:
        body.append("self.__post_init__()")
    parameters = ", ".join(["self", *plain, *(["*", *named] if named else [])])
    return f"def __init__({parameters}):\n " + "\n ".join(body or ["pass"]), names


def _tuple_text(owner: str, fields: list[Field[Any]]) -> str:
    return "(" + "".join(f"{owner}.{f.name}, " for f in fields) + ")"


def _eq_text(fields: list[Field[Any]]) -> tuple[str, dict[str, Any]]:
    compared = [f for f in fields if f.compare]
    equal = f"{_tuple_text('self', compared)} == {_tuple_text('other', compared)}"
    return f"def __eq__(self, other):\n return {equal} if other.__class__ is self.__class__ else NotImplemented", {}


def _hash_text(fields: list[Field[Any]]) -> tuple[str, dict[str, Any]]:
    hashed = [f for f in fields if (f.compare if f.hash is None else f.hash)]
    return f"def __hash__(self):\n return hash({_tuple_text('self', hashed)})", {}


def _representation(names: list[str]) -> Callable[[Any], str]:
    def __repr__(self: Any) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{n}={getattr(self, n)!r}' for n in names)})"

    return reprlib.recursive_repr()(__repr__)


def _refuses(self: Any, name: str) -> bool:
    cls = type(self)
    return "__dataclass_fields__" in cls.__dict__ or name in cls.__dataclass_fields__


def _refuse_set(self: Any, name: str, value: Any) -> None:
    if _refuses(self, name):
        raise FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _refuse_delete(self: Any, name: str) -> None:
    if _refuses(self, name):
        raise FrozenInstanceError(f"cannot delete field {name!r}")
    object.__delattr__(self, name)


def _state(self: Any) -> list[Any]:
    return [getattr(self, f.name) for f in dataclasses.fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    for f, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, f.name, value)
