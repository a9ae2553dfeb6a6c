"""Calls of libraries on a device: which slices they take, and what enqueues them on a stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from heron.buffers.assignment import Slice
from heron.errors import HeronError
from heron.runtime.cuda.libraries.registry import open_library
from heron.runtime.library_call import Descriptor
from heron.runtime.thunks import LibraryThunk

if TYPE_CHECKING:
    from heron.runtime.cuda.device import Device
    from heron.runtime.cuda.libraries.base import Library, Proposal

Call = Callable[[int, Sequence[int]], None]


class Calls:
    """The libraries of a device, each opened when first wanted, for all programs there.

    A handle takes tens of MiB and a tenth of a second: programs share them. Calls work in one block of memory, one at a
    time: plans see to that within a program, and programs run one after the other on the device's main stream. A block
    that became too small stays: graphs name it.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self._libraries: dict[str, Library] = {}
        self._scratch = (0, 0)  # address, bytes
        #: calls that were made once on this device
        self.warm: set[Descriptor] = set()
        #: a driver that rehearses brings libraries of its own
        self._instead: Callable[..., None] | None = getattr(device.driver.library, "library_call", None)

    def of(self, thunk: Any) -> tuple[tuple[Slice, ...], Call]:
        """The slices of a call, and the call on a stream with their addresses.

        Raises RUN048 for a thunk that no library here does, and what opening a library raises.
        """
        if not isinstance(thunk, LibraryThunk):
            raise HeronError(
                "RUN048",
                f"no library on {self.device.name} does this {thunk.kind}",
                where=thunk.source,
                hint="sim:sm_90 runs the program on the CPU",
            )
        if self._instead is not None:
            perform = self._instead
            return thunk.args, lambda stream, addresses: perform(stream, thunk, addresses)
        library, descriptor = self._library(thunk.call.library), thunk.call
        self._need(library.prepare(descriptor))  # ahead of captures, in which nothing may be allocated
        return thunk.args, lambda stream, addresses: library.call(stream, addresses, descriptor)

    def news(self) -> list[str]:
        """The libraries' notes since they were last asked for."""
        found = [note for library in self._libraries.values() for note in library.notes]
        for library in self._libraries.values():
            library.notes.clear()
        return found

    def proposals(self, thunk: LibraryThunk, most: int) -> list[Proposal]:
        """The library's algorithms for a call; raises what opening a library raises."""
        rehearse = getattr(self.device.driver.library, "library_proposals", None)
        if rehearse is not None:
            return rehearse(thunk, most)
        return self._library(thunk.call.library).proposals(thunk.call, most)

    def _library(self, name: str) -> Library:
        found = self._libraries.get(name)
        if found is None:
            found = self._libraries[name] = open_library(name, self._workspace)
        return found

    def _need(self, size: int) -> None:
        if size > self._scratch[1]:
            size = max(size, 2 * self._scratch[1])  # few blocks, whatever comes in which order
            self._scratch = (self.device.memory.allocate(size), size)

    def _workspace(self, stream: int, size: int) -> int:
        self._need(size)
        return self._scratch[0]
