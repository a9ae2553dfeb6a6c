"""The memory of one run of a program, by kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING

from heron.records import dataclass

if TYPE_CHECKING:
    from heron.buffers.assignment import BufferAssignment


@dataclass(frozen=True)
class Memory(Mapping[str, int]):
    """Bytes of one run. Fields are stable, and also keys: ``memory.temp == memory["temp"]``.

    ``arguments`` and ``outputs`` are the caller's arrays; ``aliased`` of the outputs lie in donated arguments.
    ``constants`` are made once, ``temp`` is scratch, that which kernels take from the heap included. ``peak``: all of
    them together, what lies twice counted once.
    """

    arguments: int
    outputs: int
    aliased: int
    constants: int
    temp: int
    peak: int

    @staticmethod
    def of(a: BufferAssignment, heap_bytes: int = 0) -> Memory:
        """The totals of a buffer assignment whose kernels take up to so many bytes more at a time."""
        temp = a.temp_bytes + heap_bytes
        aliased = sum(x.size for x in a.allocations if x.kind == "parameter" and x.output >= 0)
        peak = a.argument_bytes + a.output_bytes - aliased + a.constant_bytes + temp
        return Memory(a.argument_bytes, a.output_bytes, aliased, a.constant_bytes, temp, peak)

    def __getitem__(self, key: str) -> int:
        if key not in (f.name for f in fields(self)):
            raise KeyError(key)
        return getattr(self, key)

    def __iter__(self) -> Iterator[str]:
        return (f.name for f in fields(self))

    def __len__(self) -> int:
        return len(fields(self))
