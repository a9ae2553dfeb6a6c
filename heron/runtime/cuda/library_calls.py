"""Calls of libraries on a device: which slices they take, and what enqueues them on a stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from heron.buffers.assignment import Slice
from heron.errors import HeronError
from heron.runtime.thunks import LibraryThunk, kind_of

if TYPE_CHECKING:
    from heron.runtime.cuda.device import Device
    from heron.runtime.cuda.libraries.base import Library, Proposal

Call = Callable[[int, Sequence[int]], None]


class Calls:
    """Makes calls of thunks, by libraries that are opened when first wanted.

    ``keep`` gives device memory that stays as long as the program is loaded. Calls work in one block of it, one at a
    time: plans see to that.
    """

    def __init__(self, device: Device, keep: Callable[[int], int]) -> None:
        self.device, self.keep = device, keep
        self._libraries: dict[str, Library] = {}
        self._scratch = (0, 0)  # address, bytes
        #: a driver that rehearses brings libraries of its own
        self._instead: Callable[..., None] | None = getattr(device.driver.library, "library_call", None)

    def of(self, thunk: Any) -> tuple[tuple[Slice, ...], Call]:
        """The slices of a call, and the call on a stream with their addresses.

        Raises RUN048 for a thunk that no library here does, and what opening a library raises.
        """
        if not isinstance(thunk, LibraryThunk):
            raise HeronError(
                "RUN048",
                f"no library on {self.device.name} does this {kind_of(thunk)}",
                where=thunk.source,
                hint="sim:sm_90 runs the program on the CPU",
            )
        if self._instead is not None:
            perform = self._instead
            return thunk.args, lambda stream, addresses: perform(stream, thunk, addresses)
        library, descriptor = self._library(thunk.call.library), thunk.call
        self._need(library.prepare(descriptor))  # ahead of captures, in which nothing may be allocated
        return thunk.args, lambda stream, addresses: library.call(stream, addresses, descriptor)

    def proposals(self, thunk: LibraryThunk, most: int) -> list[Proposal]:
        """The library's algorithms for a call; raises what opening a library raises."""
        rehearse = getattr(self.device.driver.library, "library_proposals", None)
        if rehearse is not None:
            return rehearse(thunk, most)
        return self._library(thunk.call.library).proposals(thunk.call, most)

    def _library(self, name: str) -> Library:
        from heron.runtime.cuda.libraries.registry import open_library

        found = self._libraries.get(name)
        if found is None:
            found = self._libraries[name] = open_library(name, self._workspace)
        return found

    def _need(self, size: int) -> None:
        if size > self._scratch[1]:
            self._scratch = (self.keep(size), size)

    def _workspace(self, stream: int, size: int) -> int:
        self._need(size)
        return self._scratch[0]

    def close(self) -> None:
        """Give the libraries' handles back."""
        for library in self._libraries.values():
            library.close()
        self._libraries.clear()
