"""A library as the CUDA runtime sees it: `Library.call` on the descriptor of a call (`runtime/library_call.py`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar

from heron.errors import HeronError
from heron.records import dataclass
from heron.runtime.library_call import Descriptor

#: (stream, bytes) → address of so much scratch memory on the device, which work on that stream may use one call after
#: the other; a runtime keeps one block a stream
Workspace = Callable[[int, int], int]


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
        #: what did not go as planned, for the record of a program that asked for it
        self.notes: list[str] = []

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
        """At most `most` algorithms for a call, in the order the library prefers; empty where there is no choice.

        All keep to the limit of scratch memory and give the same bits each time.
        """
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
