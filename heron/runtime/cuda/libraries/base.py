"""What the CUDA runtime sees of a library: descriptors of calls as plain data, and `Library.call`.

A descriptor is made at compile time, with no library and no GPU there. It says all about one call but where its arrays
are: the runtime hands these over as device addresses, in the order of `Descriptor.arrays`.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from heron.errors import HeronError
from heron.hlo.ir.types import ElementType

#: (stream, bytes) → address of so much scratch memory on the device, which work on that stream may use one call after
#: the other; a runtime keeps one block a stream
Workspace = Callable[[int, int], int]


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


@dataclass(frozen=True, slots=True)
class Proposal:
    """One of a library's algorithms for a call: its number there, and the bytes of scratch memory it wants."""

    number: int
    workspace: int


class Library(ABC):
    """An open library, for one device. Its calls are enqueued on a stream and return at once.

    Plans and handles are made at the first call of a descriptor and kept, so that later calls, and calls while a stream
    is captured, only enqueue. `prepare` does that ahead of time.
    """

    name: ClassVar[str]

    def __init__(self, workspace: Workspace | None = None) -> None:
        self._workspace = workspace

    @abstractmethod
    def prepare(self, descriptor: Descriptor) -> int:
        """Make and keep what calls of this descriptor need; the bytes of scratch memory that they take.

        Raises RUN091 when the library does not do that.
        """

    @abstractmethod
    def call(self, stream: int, buffers: Sequence[int], descriptor: Descriptor) -> None:
        """Enqueue the call on a stream (a CUstream) with the addresses of the arrays.

        Raises RUN091 with the library's own status when it refuses.
        """

    def proposals(self, descriptor: Descriptor, most: int) -> list[Proposal]:
        """At most so many algorithms for a call that keep to its limit of scratch memory and give the same bits each
        time, those the library thinks best first; none where there is nothing to choose."""
        return []

    @abstractmethod
    def close(self) -> None:
        """Give back handles and plans."""

    def scratch(self, stream: int, size: int) -> int:
        """Scratch memory for a call; 0, no address, for no bytes. Raises RUN092 where the runtime gave none."""
        if not size:
            return 0
        if self._workspace is None:
            raise HeronError("RUN092", f"{self.name} needs {size} bytes of scratch memory", why="it was given none")
        return self._workspace(stream, size)
