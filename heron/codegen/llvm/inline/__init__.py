"""The inline library: math functions and float conversions LLVM inlines and vectorises.

``heron.NAME.TYPE`` functions: exp exp2 expm1 log log2 log10 log1p pow sin cos tan tanh sinh cosh asin acos atan atan2
asinh acosh atanh erf cbrt rsqrt for f32 and f64 (at most 2 ULP), fmod for f32 and fmod_near (exact),
``heron.convert.A.B`` between float formats and ``heron.ipow.iN``. Each is written once in Python (`builder`), and only
those a module calls are put into it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from heron.codegen.llvm.inline import (
    arctrig,
    convert,
    error,
    exp,
    hyperbolic,
    integer,
    log,
    power,
    remainder,
    roots,
    trig,
)
from heron.codegen.llvm.inline.builder import REGISTRY
from heron.errors import HeronError

FAMILIES = (
    arctrig,
    convert,
    error,
    exp,
    hyperbolic,
    integer,
    log,
    power,
    remainder,
    roots,
    trig,
)  # importing registers

#: instructions of a function; during two of them additions to a sum can wait for each other
_LONG = 16


def has(name: str) -> bool:
    """True when the library defines that function."""
    return name in REGISTRY


@cache
def is_long(name: str) -> bool:
    """True for a function of so many instructions that more than two vectors at a time gain nothing."""
    return has(name) and lines_of(name) >= _LONG


@cache
def lines_of(name: str) -> int:
    """Instructions of a function. Raises LLVM005 for an unknown name."""
    return text_of(name)[0].count("\n")


@cache
def text_of(name: str, scales: bool = False) -> tuple[str, dict[str, str]]:
    """The text of a function, and the tables it looks numbers up in; ``scales``: see `Body`. Raises LLVM005 for an
    unknown name."""
    found = REGISTRY.get(name)
    if found is None:
        raise HeronError("LLVM005", f"the inline library has no function '{name}'")
    return found.text(scales=scales)


def definitions(names: Iterable[str], scales: bool = False) -> str:
    """LLVM text of those functions; ``scales``: see `Body`. Raises LLVM005 for an unknown name."""
    texts: list[str] = []
    tables: dict[str, str] = {}
    for name in names:
        text, data = text_of(name, scales)
        texts.append(text)
        tables |= data
    return "\n".join([*tables.values(), *texts])
