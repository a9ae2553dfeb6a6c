"""Forms of custom calls: operands and results by name, each with its element type and sizes, as a line of text.

``a:T[*b,m,n], tau:T[*b,k<=n] -> q@a:T[*b,m,n], info?:s32[*b]`` reads as follows.

- ``T`` is an element type that is the same wherever it stands, ``real(T)`` and ``complex(T)`` are the types of its
  parts and of numbers made of it; ``s32`` is that type; an array without a type may have any.
- ``n`` is a size that is the same wherever it stands, ``*b`` any number of sizes, ``_`` one of any size. Other sizes
  are arithmetic on names: ``n-1``, ``min(m,n)``, ``2*c``. ``k<=n`` bounds a size, ``n|1`` is one of two.
- ``q@a``: the result ``q`` may be stored where the operand ``a`` is. ``info?``: the result may be missing.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from functools import lru_cache

from heron.hlo.ir import types
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape
from heron.hlo.ir.types import ElementType
from heron.records import dataclass

_ARRAY = re.compile(r"\s*(\w+)(?:@(\w+))?(\?)?(?::(\w+(?:\(T\))?))?\[((?:[^\[\]])*)\]\s*(?:,|$)")
_SIZE_NAME = re.compile(r"[a-z]\w*")
_COMPLEX = {types.F32: types.C64, types.F64: types.C128, types.C64: types.C64, types.C128: types.C128}

#: sizes by name; a name with a star has several
Sizes = dict[str, "int | tuple[int, ...]"]


@dataclass(frozen=True, slots=True)
class Array:
    """One operand or result of a form. ``over``: the operand it may be stored in."""

    name: str
    over: str
    is_optional: bool
    type: str
    dims: tuple[str, ...]

    def __str__(self) -> str:
        kind = f":{self.type}" if self.type else ""
        return f"{self.name}{kind}[{','.join(self.dims)}]"


@dataclass(frozen=True, slots=True)
class Form:
    """The operands and results of a call. Made by `parse`."""

    text: str
    operands: tuple[Array, ...]
    results: tuple[Array, ...]

    def misfit(self, i: Instruction) -> str:
        """Why the shapes of a call are not of this form; empty when they are."""
        results = results_of(i)
        if len(i.operands) != len(self.operands):
            return f"it has {len(i.operands)} operands; {len(self.operands)} are expected"
        least = sum(not r.is_optional for r in self.results)
        if not least <= len(results) <= len(self.results):
            return f"it has {len(results)} results; {len(self.results)} are expected"
        named = [("operand", a, o.shape) for a, o in zip(self.operands, i.operands, strict=True)]
        named += [("result", a, s) for a, s in zip(self.results, results, strict=False)]
        sizes: Sizes = {}
        kinds: dict[str, ElementType] = {}
        for role, array, shape in named:
            if not shape.is_array or not _bind(array.dims, shape, sizes):
                return f"{role} '{array.name}' is {shape.bare}; {array} is expected"
            kinds.setdefault(array.type, shape.element_type)
        for role, array, shape in named:
            if not _has_type(array.type, shape.element_type, kinds) or not _has_sizes(array.dims, shape.dims, sizes):
                return f"{role} '{array.name}' is {shape.bare}; {array} is expected{_shown(array, sizes, kinds)}"
        return self._overwritten(i)

    def _overwritten(self, i: Instruction) -> str:
        """Why a result cannot be stored where the call says; empty when it can."""
        names = [a.name for a in self.operands]
        for output, n, _ in i.attrs.get("output_to_operand_aliasing") or ():
            at = output[0] if output else 0
            if at < len(self.results) and n < len(names) and self.results[at].over != names[n]:
                return f"its result '{self.results[at].name}' cannot be stored in its operand '{names[n]}'"
        return ""


def results_of(i: Instruction) -> tuple[Shape, ...]:
    """The shapes of the results of a call: the parts of its tuple, or its one shape."""
    return i.shape.tuple_shapes if i.shape.tuple_shapes is not None else (i.shape,)


@lru_cache(maxsize=1024)
def parse(text: str) -> Form:
    """The form a text says. Raises ValueError for one that is no form: a mistake in a declaration."""
    given, arrow, made = text.partition("->")
    if not arrow:
        raise ValueError(f"a form has an arrow: {text}")
    return Form(text, _arrays(given), _arrays(made))


def _arrays(text: str) -> tuple[Array, ...]:
    found, at = [], 0
    while text[at:].strip():
        match = _ARRAY.match(text, at)
        if match is None:
            raise ValueError(f"no array of a form: {text[at:]}")
        name, over, mark, kind, dims = match.groups()
        found.append(Array(name, over or "", bool(mark), kind or "", tuple(_split(dims))))
        at = match.end()
    return tuple(found)


def _split(dims: str) -> list[str]:
    """The sizes of an array, at commas outside of parentheses."""
    found, depth = [""], 0
    for letter in dims:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and not depth:
            found.append("")
        else:
            found[-1] += letter
    return [size.strip() for size in found if size.strip()]


# -- matching ----------------------------------------------------------------------------------------------------------
def _bind(dims: tuple[str, ...], shape: Shape, sizes: Sizes) -> bool:
    """Note the sizes that have names and are not known yet; False when the rank does not fit."""
    for token, size in _pairs(dims, shape.dims):
        if size is None:
            return False
        name = re.split("<=|>=", token)[0]
        if _SIZE_NAME.fullmatch(name) or token[0] == "*":
            sizes.setdefault(name, size)
    return True


def _pairs(dims: tuple[str, ...], given: tuple[int, ...]) -> list[tuple[str, int | tuple[int, ...] | None]]:
    """Each size of a form with that of an array; None where the array has too few or too many."""
    stars = [n for n, token in enumerate(dims) if token[0] == "*"]
    extra = len(given) - len(dims)
    if not stars:
        return list(zip(dims, given, strict=True)) if not extra else [("_", None)]
    if extra < -1:
        return [("_", None)]
    at = stars[0]
    after = at + extra + 1
    return [
        *zip(dims[:at], given[:at], strict=True),
        (dims[at], given[at:after]),
        *zip(dims[at + 1 :], given[after:], strict=True),
    ]


def _has_sizes(dims: tuple[str, ...], given: tuple[int, ...], sizes: Sizes) -> bool:
    return all(_fits(token, size, sizes) for token, size in _pairs(dims, given))


def _fits(token: str, size: int | tuple[int, ...] | None, sizes: Sizes) -> bool:
    if token == "_" or token[0] == "*":
        return token == "_" or size == sizes[token]
    if "|" in token:
        return any(size == _value(part, sizes) for part in token.split("|"))
    for sign, compare in (("<=", operator.le), (">=", operator.ge)):
        if sign in token:
            name, bound = token.split(sign)
            return isinstance(size, int) and size == sizes[name] and compare(size, _value(bound, sizes))
    return size == _value(token, sizes)


_OPERATORS: dict[type, Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}
_FUNCTIONS: dict[str, Callable[..., int]] = {"min": min, "max": max}


@lru_cache(maxsize=1024)
def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _value(text: str, sizes: Sizes) -> int:
    return _evaluated(_expression(text), sizes)


def _evaluated(node: ast.expr, sizes: Sizes) -> int:
    match node:
        case ast.Constant(value=int(number)):
            return number
        case ast.Name(id=name):
            size = sizes[name]
            assert isinstance(size, int)
            return size
        case ast.BinOp(left=left, op=op, right=right):
            return _OPERATORS[type(op)](_evaluated(left, sizes), _evaluated(right, sizes))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_evaluated(operand, sizes)
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return _FUNCTIONS[name](*(_evaluated(a, sizes) for a in arguments))
    raise ValueError(f"no arithmetic of a form: {ast.unparse(node)}")


def _has_type(wanted: str, given: ElementType, kinds: dict[str, ElementType]) -> bool:
    if not wanted or kinds.get(wanted) is given and wanted.isupper():
        return True
    if wanted.isupper():
        return False
    kind, _, of = wanted.partition("(")
    if not of:
        return given.name == wanted
    base = kinds[of.rstrip(")")]
    return given is (base.component if kind == "real" else _COMPLEX.get(base))


def _shown(array: Array, sizes: Sizes, kinds: dict[str, ElementType]) -> str:
    """The sizes and types that an array's form names: `` with n=4, T=f32``."""
    text = ",".join(array.dims)
    known = [f"{name}={_plain(size)}" for name, size in sizes.items() if re.search(rf"\b{name.lstrip('*')}\b", text)]
    known += [f"{t}={kinds[t]}" for t in re.findall(r"\b[A-Z]\b", array.type) if t in kinds]
    return " with " + ", ".join(known) if known else ""


def _plain(size: int | tuple[int, ...]) -> str:
    return str(size) if isinstance(size, int) else "[" + ",".join(map(str, size)) + "]"
