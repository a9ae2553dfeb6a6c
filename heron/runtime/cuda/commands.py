"""The command of one thunk: on a stream, as a node of a graph, and as that node with other addresses.

Arguments lie in memory that the driver reads, written once; a call with other arrays writes the addresses that differ.
"""

from __future__ import annotations

import contextlib
import ctypes
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from typing import Any

from heron.buffers.assignment import Slice
from heron.runtime.cuda.driver import CallFailed, Driver
from heron.runtime.cuda.program import Dims
from heron.targets import libcuda

#: addresses of allocations, by their number
Bases = Sequence[int]


class Command(ABC):
    """One thing to do on a device. ``slices``: the memory it names; `point` gives their addresses before it is used."""

    def __init__(self, driver: Driver, slices: Sequence[Slice]) -> None:
        self.driver, self.slices = driver, tuple(slices)

    @abstractmethod
    def point(self, bases: Bases) -> None:
        """Use these addresses from now on."""

    @abstractmethod
    def enqueue(self, stream: int) -> None:
        """Do it on a stream."""

    @abstractmethod
    def add(self, graph: int, after: Any, count: int) -> int:
        """Become a node of a graph, behind the `count` nodes of the array `after`."""

    @abstractmethod
    def update(self, execution: int, node: int) -> None:
        """Change the node of a graph that is ready to run to the present addresses."""


class Kernel(Command):
    """A launch: pointers to slices, then numbers."""

    def __init__(
        self,
        driver: Driver,
        function: int,
        grid: Dims,
        block: Dims,
        slices: Sequence[Slice],
        numbers: Sequence[int] = (),
        shared: int = 0,
    ) -> None:
        super().__init__(driver, slices)
        count = len(slices) + len(numbers)
        self.function = function
        self.values = (ctypes.c_uint64 * max(1, count))(*[0] * len(slices), *numbers)
        first = ctypes.addressof(self.values)
        self.pointers = (ctypes.c_void_p * max(1, count))(*[first + 8 * n for n in range(count)])
        self.params = ctypes.addressof(self.pointers)
        self.config = libcuda.LaunchConfig(grid, block, shared, None, None, 0)  # type: ignore[arg-type]
        self.node = libcuda.KernelNode(function, grid, block, shared, self.params, None, None, None)  # type: ignore[arg-type]
        self._config, self._node = ctypes.addressof(self.config), ctypes.addressof(self.node)

    def point(self, bases: Bases) -> None:
        values = self.values
        for n, s in enumerate(self.slices):
            values[n] = bases[s.allocation] + s.offset

    def enqueue(self, stream: int) -> None:
        self.config.stream = stream
        self.driver.cuLaunchKernelEx(self._config, self.function, self.params, None)

    def add(self, graph: int, after: Any, count: int) -> int:
        return self.driver.handle(self.driver.cuGraphAddKernelNode_v2, graph, after, count, self._node)

    def update(self, execution: int, node: int) -> None:
        self.driver.cuGraphExecKernelNodeSetParams_v2(execution, node, self._node)


class Copy(Command):
    """Bytes from one slice to another. ``on_host``: the allocations in pinned memory of the host."""

    def __init__(
        self, driver: Driver, origin: Slice, target: Slice, context: int, on_host: Collection[int] = ()
    ) -> None:
        super().__init__(driver, (origin, target))
        self.context, self.size = context, target.size
        self.from_host, self.to_host = (s.allocation in on_host for s in (origin, target))
        source, there = (libcuda.HOST if h else libcuda.DEVICE for h in (self.from_host, self.to_host))
        self.node = libcuda.CopyNode(source_type=source, target_type=there, width=self.size, height=1, depth=1)
        self._node = ctypes.addressof(self.node)

    def point(self, bases: Bases) -> None:
        origin, target = self.slices
        self.source, self.target = bases[origin.allocation] + origin.offset, bases[target.allocation] + target.offset
        if self.from_host:
            self.node.source_host = self.source
        else:
            self.node.source_device = self.source
        if self.to_host:
            self.node.target_host = self.target
        else:
            self.node.target_device = self.target

    def enqueue(self, stream: int) -> None:
        if self.from_host or self.to_host:  # addresses of pinned memory are the device's, too
            self.driver.cuMemcpyAsync(self.target, self.source, self.size, stream)
        else:
            self.driver.cuMemcpyDtoDAsync_v2(self.target, self.source, self.size, stream)

    def add(self, graph: int, after: Any, count: int) -> int:
        add = self.driver.cuGraphAddMemcpyNode
        return self.driver.handle(add, graph, after, count, self._node, self.context)

    def update(self, execution: int, node: int) -> None:
        self.driver.cuGraphExecMemcpyNodeSetParams(execution, node, self._node, self.context)


class Captured(Command):
    """A library's call. In a graph it is a graph of its own: what the call enqueues on a stream, captured.

    ``call`` takes a stream and the addresses of the slices.
    """

    def __init__(
        self, driver: Driver, slices: Sequence[Slice], call: Callable[[int, Sequence[int]], None], stream: int
    ) -> None:
        super().__init__(driver, slices)
        self.call, self.stream = call, stream
        self.addresses: list[int] = []

    def point(self, bases: Bases) -> None:
        self.addresses = [bases[s.allocation] + s.offset for s in self.slices]

    def enqueue(self, stream: int) -> None:
        self.call(stream, self.addresses)

    def add(self, graph: int, after: Any, count: int) -> int:
        child = self._capture()
        try:  # the node has a copy
            return self.driver.handle(self.driver.cuGraphAddChildGraphNode, graph, after, count, child)
        finally:
            self.driver.cuGraphDestroy(child)

    def update(self, execution: int, node: int) -> None:
        child = self._capture()
        try:
            self.driver.cuGraphExecChildGraphNodeSetParams(execution, node, child)
        finally:
            self.driver.cuGraphDestroy(child)

    def _capture(self) -> int:
        d = self.driver
        d.cuStreamBeginCapture_v2(self.stream, libcuda.CAPTURE_THREAD_LOCAL)
        graph = ctypes.c_void_p()
        try:
            self.call(self.stream, self.addresses)
        except BaseException:  # the stream is of no use before its capture ends, which may fail then
            with contextlib.suppress(CallFailed):
                d.cuStreamEndCapture(self.stream, ctypes.byref(graph))
                if graph.value:
                    d.cuGraphDestroy(graph.value)
            raise
        d.cuStreamEndCapture(self.stream, ctypes.byref(graph))
        return graph.value or 0
