"""Descriptors of library calls as plain data, for any library of any machine.

A descriptor is made at compile time, with no library and no GPU there. It says all about one call but where its arrays
are: the runtime hands these over as device addresses, in the order of `Descriptor.arrays`.
"""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from heron.hlo.ir.types import ElementType
from heron.records import dataclass


@dataclass(frozen=True, slots=True)
class Array:
    """An array of a call as it lies in memory, slowest dimension first, without gaps."""

    element_type: ElementType
    dims: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.element_type}[{','.join(map(str, self.dims))}]"


@dataclass(frozen=True)
class Descriptor:
    """One call of a library. Subclasses add what the routine asks for; ``arrays`` are operands, then results."""

    #: the library's name in `registry.LIBRARIES`, and what the call does there
    library: ClassVar[str] = ""
    routine: ClassVar[str] = ""
    #: whether the library lets a stream be captured while it enqueues the call; routines that read on the host do not
    is_capturable: ClassVar[bool] = True

    arrays: tuple[Array, ...]

    def __str__(self) -> str:
        """``cublaslt.matmul(f32[4,8], f32[8,2], f32[4,2]; beta=1.0)``: the arrays, then what is not default."""
        given = []
        for f in dataclasses.fields(self)[1:]:
            value = getattr(self, f.name)
            if f.default is dataclasses.MISSING or value != f.default:
                given.append(f.name if value is True else f"{f.name}={_text(value)}")
        arrays = ", ".join(map(str, self.arrays))
        return f"{self.library}.{self.routine}({arrays}{'; ' if given else ''}{', '.join(given)})"


def _text(value: object) -> str:
    return "[" + ",".join(map(_text, value)) + "]" if isinstance(value, tuple) else str(value)
