"""Calls of libraries that no program reads: before a graph is made, and after one could not be made.

First calls run once before a graph is made of them, those of branches not taken as well.

A library loads code and allocates in the first call of a kind. A stream that is captured allows neither, and the whole
section would run without a graph for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron.errors import HeronError
from heron.runtime.cuda.driver import CallFailed
from heron.runtime.cuda.plan import Section
from heron.runtime.thunks import LibraryThunk

if TYPE_CHECKING:
    from heron.runtime.cuda.loaded import Loaded

_ALIGNMENT = 256


def warm(loaded: Loaded, section: Section) -> None:
    """Make the calls of a section that has run once, and that may not have been among them: those inside loops and
    branches. They work on memory of their own, whose values nobody reads.

    A call for which there is no memory is left out, with a note: its graph may be refused then.
    """
    known = loaded.device.calls.warm
    known.update(n.thunk.call for n in section.nodes if isinstance(n.thunk, LibraryThunk))
    inside = [t for node in section.nodes for part in node.parts for t in part.thunks()]
    for thunk in inside:
        if isinstance(thunk, LibraryThunk) and thunk.call not in known:
            if _call(loaded, thunk):
                known.add(thunk.call)


def settle(loaded: Loaded, section: Section) -> None:
    """Make a call of each library of a section, on memory of its own, whose values and errors nobody reads.

    After a capture that failed, the error that it left in CUDA's runtime may be what a library says of its next call.
    """
    first = {t.call.library: t for t in section.thunks() if isinstance(t, LibraryThunk)}
    for thunk in first.values():
        try:
            _call(loaded, thunk)
        except HeronError as error:
            if isinstance(error, CallFailed) and error.is_fault:
                raise


def _call(loaded: Loaded, thunk: LibraryThunk) -> bool:
    """Enqueue a call on memory of its own, and wait for it; false if there is no memory."""
    device = loaded.device
    starts, size = [], 0
    for s in thunk.args:
        starts.append(size)
        size += -(-max(1, s.size) // _ALIGNMENT) * _ALIGNMENT
    try:
        memory = device.memory.allocate(size)
    except HeronError as error:
        loaded.notes.append(f"no first call of {thunk.call.library} for {thunk.source}: {error.what}")
        return False
    try:
        device.driver.cuMemsetD8Async(memory, 0, size, device.stream)
        _, call = device.calls.of(thunk)
        call(device.stream, [memory + start for start in starts])
        device.synchronize()
    finally:
        device.memory.free(memory, size)
    return True
