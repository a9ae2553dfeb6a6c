"""Devices and memories of a client, and the topology that describes them without one."""

from __future__ import annotations

import ctypes
import hashlib
import re
import threading
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from heron.errors import HeronError
from heron.pjrt.worker import Worker
from heron.records import dataclass

if TYPE_CHECKING:
    from heron.pjrt.client import Client
    from heron.runtime.cuda.device import Device as Gpu

#: kinds of memory of every device, the default first; all but a GPU's first are the host's memory
MEMORY_KINDS = ("device", "pinned_host", "unpinned_host")
PLATFORM = "heron"


def platform_version(target: str) -> str:
    """The identity that JAX's cache tells compilers apart by: version, target, options of the process.

    >>> platform_version("cpu").startswith("heron ")
    True
    """
    import heron
    from heron.options import Options

    options = [f"{name}={value}" for name, value in sorted(Options.from_env().changed().items())]
    return ", ".join([f"heron {heron.__version__}", target, *options])


@dataclass(eq=False, slots=True)
class Memory:
    """A memory space of a device."""

    id: int
    kind: str
    device: Device
    #: what C code knows it by; 0: nothing yet
    handle: int = 0

    @property
    def kind_id(self) -> int:
        return MEMORY_KINDS.index(self.kind)

    @property
    def gpu(self) -> Gpu | None:
        """The GPU whose own memory it is; None for memory of the host."""
        return self.device.gpu if self.kind == MEMORY_KINDS[0] else None

    def hold(self, array: Any) -> Any:
        """An array as this memory has it: on a GPU a `DeviceArray`, copied there if it is the host's."""
        if self.gpu is None or not isinstance(array, np.ndarray):
            return array
        from heron.runtime.cuda.array import put

        return put(array, self.gpu)

    def __str__(self) -> str:
        return f"{self.kind} of {self.device}"

    def __repr__(self) -> str:
        return f"HeronMemory(id={self.id}, kind={self.kind})"


class Counters(ctypes.Structure):
    """Counters of buffers that native code creates, in bytes; ``others``: bytes of all other buffers."""

    _fields_ = [(name, ctypes.c_int64) for name in ("in_use", "others", "peak", "allocs", "largest")]


class MemoryStats:
    """Bytes that buffers of a device take now, and took at most. Safe to use from several threads.

    ``counters``: the part native code writes, and nothing here but ``others``.
    """

    def __init__(self) -> None:
        self.counters = Counters()
        self._in_use = self._peak = self._allocs = self._largest = 0
        self._lock = threading.RLock()  # a buffer may die while another is counted

    @property
    def bytes_in_use(self) -> int:
        return self._in_use + self.counters.in_use

    @property
    def peak_bytes_in_use(self) -> int:
        return max(self._peak, self.counters.peak)

    @property
    def num_allocs(self) -> int:
        return self._allocs + self.counters.allocs

    @property
    def largest_alloc_size(self) -> int:
        return max(self._largest, self.counters.largest)

    def add(self, size: int) -> None:
        """A buffer came (or, negative, went)."""
        with self._lock:
            self._in_use += size
            self.counters.others = self._in_use
            if size > 0:
                self._allocs += 1
                self._peak = max(self._peak, self.bytes_in_use)
                self._largest = max(self._largest, size)

    def clear(self) -> None:
        """Begin anew with what is in use now."""
        with self._lock:
            self._peak, self._allocs, self._largest = self.bytes_in_use, -self.counters.allocs, 0
            self.counters.peak = self.counters.largest = 0


class Device:
    """One device of a client; ``id`` is its number among those of all processes.

    >>> from heron import pjrt
    >>> client = pjrt.Client("cpu", devices=2)
    >>> [str(d) for d in client.devices], client.devices[1].default_memory.kind
    (['heron:0', 'heron:1'], 'device')
    """

    def __init__(self, client: Client, number: int, kind: str, gpu: Gpu | None = None) -> None:
        self.client, self.id, self.kind, self.gpu = client, number, kind, gpu
        self.local_hardware_id = number - client.first
        self.process_index = client.process_index
        first = number * len(MEMORY_KINDS)
        self.memories = [Memory(first + n, k, self) for n, k in enumerate(MEMORY_KINDS)]
        self.memory_stats = MemoryStats()
        self.worker = Worker(f"heron-device-{number}")
        self.handle = 0  # what C code knows it by; 0: nothing yet

    @property
    def default_memory(self) -> Memory:
        return self.memories[0]

    @property
    def attributes(self) -> dict[str, str | int]:
        """Further attributes, by name."""
        return {"target": self.client.target.name}

    def __str__(self) -> str:
        return f"{self.client.platform_name}:{self.id}"

    def __repr__(self) -> str:
        return f"HeronDevice(id={self.id})"


class FarDevice:
    """A device of another process: it is known to be there, and has no memory here."""

    def __init__(self, client: Client, number: int) -> None:
        self.client, self.id, self.process_index = client, number, client.topology.process_of(number)

    @property
    def attributes(self) -> dict[str, str | int]:
        """Further attributes, by name."""
        return {"target": self.client.target.name}

    @property
    def default_memory(self) -> Memory:
        """Raises PJRT025, as does asking for its `memory_stats`."""
        raise HeronError(
            "PJRT025", f"device {self.id} belongs to process {self.process_index}: it has no memory in this process"
        )

    @property
    def memory_stats(self) -> MemoryStats:
        return self.default_memory.device.memory_stats


@dataclass(frozen=True, slots=True)
class Topology:
    """The devices and their kind: enough to compile for them. ``processes``: the number of devices of each process, if
    there are several. ``platform``: heron's name in JAX.

    >>> Topology("cpu", 2).device_ids
    (0, 1)
    >>> Topology("cpu", 1).device_kind, Topology("cpu", 1, platform="cpu").device_kind
    ('cpu', 'heron 0.1.0')
    >>> [Topology("cpu", 3, (2, 1)).process_of(n) for n in range(3)]
    [0, 0, 1]
    """

    target: str
    count: int
    processes: tuple[int, ...] = ()
    platform: str = PLATFORM

    @property
    def device_kind(self) -> str:
        """The target; where heron goes by another name, its own with its version."""
        import heron

        return self.target if self.platform == PLATFORM else f"{PLATFORM} {heron.__version__}"

    @property
    def device_ids(self) -> tuple[int, ...]:
        return tuple(range(self.count))

    def process_of(self, device: int) -> int:
        """The process a device belongs to."""
        ends = accumulate(self.processes)
        return next((process for process, end in enumerate(ends) if device < end), 0)

    def serialize(self) -> bytes:
        """Bytes `deserialize` reads."""
        words = [PLATFORM, self.target, str(self.count), ",".join(map(str, self.processes))]
        name = "" if self.platform == PLATFORM else f" as {self.platform}"
        return (" ".join(words).rstrip() + name).encode()

    @staticmethod
    def deserialize(data: bytes) -> Topology:
        """Back from the bytes. Raises PJRT002 for others."""
        form = rf"{PLATFORM} (\S+) (\d+)(?: (\d+(?:,\d+)*))?(?: as (\w+))?"
        found = re.fullmatch(form, data.decode(errors="replace"))
        if found is None:
            raise HeronError("PJRT002", "these bytes are not a topology of heron", why=f"{data[:40]!r}")
        target, count, processes, platform = found.groups()
        per_process = tuple(int(n) for n in (processes or "").split(",") if n)
        return Topology(target, int(count), per_process, platform or PLATFORM)

    @property
    def fingerprint(self) -> int:
        """The same number for the same topology, in every process."""
        return int.from_bytes(hashlib.sha256(self.serialize()).digest()[:8], "little")
