"""The resources that a program has on a device, and how they are given back."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import field
from typing import Any

from heron.errors import HeronError
from heron.records import dataclass
from heron.runtime.cuda import streams
from heron.runtime.cuda.device import Device
from heron.runtime.cuda.driver import CallFailed
from heron.runtime.cuda.graph import Graph

#: reasons for no graph that are no failures
NO_GRAPHS, ONE_NODE = "graphs=off", "one node"
_PLANNED = (NO_GRAPHS, ONE_NODE)


@dataclass(slots=True)
class Slot:
    """The state of a section: allocations whose address may change in the next call, and graphs by addresses.

    ``refused``: why there are no graphs; ``cold``: it calls libraries, and has not run yet; ``rebuilt``: graphs that
    were made again, because the driver did not change them to other addresses.
    """

    moving: tuple[int, ...]
    graphs: OrderedDict[tuple[int, ...], Graph] = field(default_factory=OrderedDict)
    refused: str = ""
    cold: bool = False
    rebuilt: int = 0
    turns: list[streams.Turn] | None = None
    events: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class Held:
    """The resources of a program on a device: memory, modules, graphs."""

    device: Device
    epoch: int
    memory: list[tuple[int, int]] = field(default_factory=list)
    modules: list[int] = field(default_factory=list)
    slots: dict[int, Slot] = field(default_factory=dict)
    pinned: list[int] = field(default_factory=list)

    def keep(self, size: int) -> int:
        """The address of so many bytes that stay with the program."""
        address = self.device.memory.allocate(size)
        self.memory.append((address, size))
        return address

    def keep_on_host(self, size: int) -> int:
        """The address of so many bytes of pinned memory of the host. Raises RUN043 when there are none."""
        driver = self.device.driver
        try:
            self.pinned.append(driver.handle(driver.cuMemHostAlloc, max(1, size), 0))
        except CallFailed as error:
            raise HeronError(
                "RUN043",
                f"no pinned memory of the host for {size:,} bytes",
                why=error.why,
                hint="the program sends arrays to the host's memory: send fewer, or raise the limit of locked memory",
            ) from error
        return self.pinned[-1]

    def load(self, image: bytes, name: str) -> int:
        """A module that stays with the program."""
        self.modules.append(self.device.load(image, name))
        return self.modules[-1]

    def facts(self) -> dict[str, Any]:
        """The graphs there are, how many were made again for other addresses, and why sections have none."""
        slots = list(self.slots.values())
        return {
            "graphs": sum(len(s.graphs) for s in slots),
            "rebuilt": sum(s.rebuilt for s in slots),
            "refused": [s.refused for s in slots if s.refused and s.refused not in _PLANNED],
        }

    def drop_graphs(self) -> None:
        """Give all graphs back."""
        for slot in self.slots.values():
            for graph in slot.graphs.values():
                graph.close()
            slot.graphs.clear()

    def give_back(self) -> None:
        """Give it all back. Nothing of the program runs any more."""
        if self.epoch != self.device.epoch:
            return
        driver = self.device.driver
        self.drop_graphs()
        for slot in self.slots.values():
            for event in slot.events.values():
                driver.cuEventDestroy_v2(event)
        for module in self.modules:
            driver.cuModuleUnload(module)
        for address, size in self.memory:
            self.device.memory.free(address, size)
        for address in self.pinned:
            driver.cuMemFreeHost(address)
        self.slots.clear()
        self.modules.clear()
        self.memory.clear()
        self.pinned.clear()
