"""Library calls of the rehearsed device, as the simulated GPU does them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from heron.buffers.assignment import Slice
from heron.runtime.sim.executable import RandomState, Stream
from tests.rehearsal.memory import DeviceMemory


def perform(memory: DeviceMemory, thunk: Any, addresses: Sequence[int]) -> None:
    """Do what the thunk says on memory at those addresses, one for each of its slices."""
    _AtAddresses(memory, thunk, addresses).run((thunk,))


class _AtAddresses(Stream):
    """A simulated stream whose slices lie at addresses."""

    def __init__(self, memory: DeviceMemory, thunk: Any, addresses: Sequence[int]) -> None:
        super().__init__({}, [], RandomState(), None)
        self._memory, self._places = memory, dict(zip(thunk.args, addresses, strict=True))

    def bytes(self, s: Slice) -> np.ndarray:
        return self._memory.view(self._places[s], s.size, "library")
