"""Calls of libraries on a device: which slices they take, and what enqueues them on a stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from heron.buffers.assignment import Slice
from heron.errors import HeronError
from heron.runtime.thunks import GemmThunk, kind_of

if TYPE_CHECKING:
    from heron.runtime.cuda.device import Device

Call = Callable[[int, Sequence[int]], None]


class Calls:
    """Makes calls of thunks. ``scratch`` gives device memory that stays as long as the program is loaded."""

    def __init__(self, device: Device, scratch: Callable[[int], int]) -> None:
        self.device, self.scratch = device, scratch
        #: a driver that rehearses brings libraries of its own
        self._instead: Callable[..., None] | None = getattr(device.driver.library, "library_call", None)

    def of(self, thunk: Any) -> tuple[tuple[Slice, ...], Call]:
        """The slices of a call, and the call on a stream with their addresses.

        Raises RUN048 for a thunk that no library here does.
        """
        slices = (thunk.lhs, thunk.rhs, thunk.out) if isinstance(thunk, GemmThunk) else thunk.args
        if self._instead is not None:
            perform = self._instead
            return slices, lambda stream, addresses: perform(stream, thunk, addresses)
        raise HeronError(
            "RUN048",
            f"no library on {self.device.name} does this {kind_of(thunk)}",
            where=thunk.source,
            why="heron has no binding for it yet",
            hint="sim:sm_90 runs the program on the CPU",
        )
