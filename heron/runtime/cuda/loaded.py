"""A program in a device's memory: its code, constants and scratch there, its graphs; runs at given addresses."""

from __future__ import annotations

import contextlib
import os
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from heron.buffers.assignment import Slice
from heron.errors import HeronError
from heron.hlo.meaning.draws import FIRST_STATE
from heron.runtime.cuda import helpers, streams
from heron.runtime.cuda.commands import Bases, Captured, Command, Copy, Kernel
from heron.runtime.cuda.device import Device
from heron.runtime.cuda.driver import CallFailed
from heron.runtime.cuda.graph import Builder, Controls, Graph
from heron.runtime.cuda.held import NO_GRAPHS, ONE_NODE, Held, Slot
from heron.runtime.cuda.images import load_image
from heron.runtime.cuda.nccl.exchanges import Exchanges, Place
from heron.runtime.cuda.plan import STATE, HostBranch, HostCall, HostExchange, HostLoop, Plan, Section, StreamCall, plan
from heron.runtime.cuda.program import GpuProgram, Image
from heron.runtime.cuda.warming import settle, warm
from heron.runtime.thunks import (
    CollectiveThunk,
    ConditionalThunk,
    CopyThunk,
    DeviceNumberThunk,
    KernelThunk,
    LibraryThunk,
    RandomStateThunk,
    Thunk,
    WhileThunk,
    walk,
)
from heron.targets import libcuda

if TYPE_CHECKING:
    from heron.buffers.assignment import Allocation

#: graphs kept of one section, each for other addresses
GRAPHS_KEPT = 4
#: smaller sections are launched step by step
GRAPH_NODES = 2
_STATIC_SHARED = 48 << 10
_COUNTER = 8  # bytes of a loop's counter
_BEGUN = -1  # the event of a section's begin, among those of its nodes

#: looks at every thunk before it runs alone; for finding out which one fails
Watch = Callable[[Thunk], None]


class Loaded:
    """A program on a device. The caller holds the device's lock.

    ``notes`` collects what did not go as planned: graphs the driver refused, with its reason. ``by_steps``: whether
    whoever runs it is to wait for each step (``HERON_CUDA_STEPS=1``). ``place``: which of the program's devices it is,
    if there are several.
    """

    def __init__(
        self, device: Device, program: GpuProgram, allocations: Sequence[Allocation], place: Place | None = None
    ) -> None:
        self.device, self.program, self.driver = device, program, device.driver
        self.epoch = device.epoch
        self.allocations = allocations
        self._on_host = frozenset(a.number for a in allocations if a.is_on_host)
        self.notes: list[str] = []
        self.by_steps = os.environ.get("HERON_CUDA_STEPS") == "1"
        self._held = Held(device, device.epoch)
        #: what nobody called `close` for is given back when the device is next at work
        weakref.finalize(self, device.later.append, self._held.give_back).atexit = False
        self._commands: dict[int, Command] = {}
        self._helpers: dict[str, int] = {}
        self._slots = self._held.slots
        self._counters: dict[int, int] = {}
        self._capture_stream = 0
        self._functions = self._load(program.images)
        self._conditional = program.graphs and self.driver.has_conditional_nodes and self._can_control()
        self.plan = plan(program.thunks, program.outputs, self._conditional)
        self.fixed = self._place_fixed()
        self.builder = Builder(
            self.driver, device.context, self.command, Controls(self._start, self._go_on, self._choose)
        )
        self._scratch = (0, 0)  # address, bytes
        self._exchanges = Exchanges(self, place) if place is not None else None

    # -- loading -----------------------------------------------------------------------------------------------------
    def _load(self, images: Sequence[Image]) -> dict[str, int]:
        """Modules and the function of each kernel."""
        modules = [load_image(self._held, image, self.notes) for image in images]
        functions = {}
        for name, entry in self.program.kernels.items():
            function = self.device.function(modules[entry.image], entry.symbol or name)
            if entry.shared > _STATIC_SHARED:
                self.driver.cuFuncSetAttribute(function, libcuda.MAX_DYNAMIC_SHARED, entry.shared)
            functions[name] = function
        return functions

    def _can_control(self) -> bool:
        """Whether the kernels conditional nodes need load here."""
        if not any(isinstance(t, (WhileThunk, ConditionalThunk)) for t in walk(self.program.thunks)):
            return False
        try:
            module = self._held.load(helpers.CONDITIONS.encode(), "conditional nodes")
        except HeronError as error:
            self.notes.append(f"loops and branches are driven by the host: {error.why}")
            return False
        for name in ("heron_while", "heron_start", "heron_count", "heron_case"):
            self._helpers[name] = self.device.function(module, name)
        return True

    def _place_fixed(self) -> list[int]:
        """Addresses by allocation number: constants and scratch where they stay, 0 for what callers bring; last the
        random state."""
        bases = [0] * (len(self.allocations) + 1)
        for a in self.allocations:
            if a.kind == "constant" and a.literal is not None:
                bases[a.number] = self._held.keep(a.size)
                self.device.staging.to_device(np.ascontiguousarray(a.literal.array), bases[a.number])
            elif a.is_on_host:
                bases[a.number] = self._held.keep_on_host(a.size)
            elif a.kind == "temp":
                bases[a.number] = self._held.keep(a.size)
        loops = sum(isinstance(t, WhileThunk) for t in walk(self.program.thunks))
        bases[STATE.allocation] = self._held.keep(STATE.size + _COUNTER * loops)
        words = np.array([FIRST_STATE % (1 << 64), FIRST_STATE >> 64], np.uint64)
        self.device.staging.to_device(words, bases[STATE.allocation])
        return bases

    def keep(self, values: np.ndarray) -> int:
        """The address of values that stay with the program."""
        address = self._held.keep(values.nbytes)
        self.device.staging.to_device(values, address)
        return address

    def hold_code(self, image: bytes, name: str) -> int:
        """A module that stays with the program."""
        return self._held.load(image, name)

    def scratch(self, size: int) -> int:
        """Memory for one step of the host at a time."""
        if size > self._scratch[1]:
            self._scratch = (self._held.keep(size), size)
        return self._scratch[0]

    def facts(self) -> dict[str, Any]:
        """The state of its graphs as plain values, and what did not go as planned."""
        return {**self._held.facts(), "notes": list(self.notes)}

    def drop_graphs(self) -> None:
        """Give up all graphs, and wait for none: the communicators of their calls are going."""
        with self.device.lock:
            if self.epoch != self.device.epoch or self.device.lost:
                return
            with contextlib.suppress(CallFailed):  # of a device that has faulted
                self.device.make_current()
                self._held.drop_graphs()

    def close(self) -> None:
        """Give memory, code and graphs back; everything that was enqueued must have run."""
        self._held.give_back()

    # -- running -----------------------------------------------------------------------------------------------------
    def run(self, bases: Bases, steps: Plan | None = None, watch: Watch | None = None) -> None:
        """Enqueue the whole program, or some steps of it, on the device's stream. ``watch``: no graphs, one by one."""
        for step in self.plan if steps is None else steps:
            match step:
                case Section():
                    self._section(step, bases, watch)
                case HostCall():
                    if watch is not None:
                        watch(step.thunk)
                    self._host_call(step, bases)
                case StreamCall():
                    self._alone(step.thunk, bases, watch)
                case HostExchange():
                    if watch is not None:
                        watch(step.thunk)
                    self._exchange.ragged(step.thunk, bases)
                case HostLoop():
                    self._host_loop(step, bases, watch)
                case HostBranch():
                    self.run(bases, step.branches[self._branch(step.thunk, bases)], watch)

    def _section(self, section: Section, bases: Bases, watch: Watch | None) -> None:
        slot = self._slots.get(id(section))
        if slot is None:
            slot = self._slots[id(section)] = self._slot(section)
        if watch is not None or slot.refused:
            self._on_streams(section, slot, bases, watch)
            return
        if slot.cold:  # libraries load code, connect and set themselves up in a first call, which captures do not allow
            self._on_streams(section, slot, bases, None)
            warm(self, section)
            slot.cold = False
            return
        key = tuple([bases[n] for n in slot.moving])
        graph = slot.graphs.get(key)
        try:
            if graph is None:
                graph = self._graph(section, slot, key, bases)
            graph.launch(self.device.stream)
        except HeronError as error:  # of the driver, or of a library whose calls cannot be captured
            if isinstance(error, CallFailed) and error.is_fault:
                raise
            slot.refused = f"{error.what}: {error.why}"
            self.notes.append(f"no graph of {len(section.nodes)} nodes: {slot.refused}; run step by step instead")
            settle(self, section)
            self._on_streams(section, slot, bases, None)

    def _slot(self, section: Section) -> Slot:
        moves = {a.number for a in self.allocations if a.kind in ("parameter", "output")}
        slot = Slot(tuple(n for n in section.allocations if n in moves))
        if not self.program.graphs:
            slot.refused = NO_GRAPHS
        elif len(section.nodes) < GRAPH_NODES and not any(n.parts for n in section.nodes):
            slot.refused = ONE_NODE
        slot.cold = any(isinstance(t, (LibraryThunk, CollectiveThunk)) for t in section.thunks())
        return slot

    def _graph(self, section: Section, slot: Slot, key: tuple[int, ...], bases: Bases) -> Graph:
        """A graph at these addresses: a new one, or the one longest not used, changed."""
        if len(slot.graphs) < GRAPHS_KEPT:
            graph = self.builder.build(section, bases)
        else:
            _, graph = slot.graphs.popitem(last=False)
            try:
                graph.move(bases)
            except CallFailed as error:
                if error.is_fault:
                    raise
                slot.rebuilt += 1
                if slot.rebuilt == 1:
                    self.notes.append(
                        f"a graph of {len(section.nodes)} nodes is made again for each address: {error.why}"
                    )
                graph.close()
                graph = self.builder.build(section, bases)
        slot.graphs[key] = graph
        return graph

    def _on_streams(self, section: Section, slot: Slot, bases: Bases, watch: Watch | None) -> None:
        """Every node by a call of its own: on the main stream alone when watched, else on several."""
        if watch is not None or any(node.parts for node in section.nodes):
            self._one_by_one(section, bases, watch)
            return
        if slot.turns is None:
            slot.turns = streams.assign(section)
            slot.events = {n: self.device.event() for n in (_BEGUN, *(t.node for t in slot.turns if t.awaited))}
        d, count = self.driver, max((t.stream for t in slot.turns), default=0)
        lanes = [self.device.stream, *self.device.side_streams(count)]
        if count:
            d.cuEventRecord(slot.events[_BEGUN], lanes[0])
            for lane in lanes[1:]:
                d.cuStreamWaitEvent(lane, slot.events[_BEGUN], 0)
        for turn in slot.turns:
            for m in turn.waits:
                d.cuStreamWaitEvent(lanes[turn.stream], slot.events[m], 0)
            command = self.command(section.nodes[turn.node].thunk)
            command.point(bases)
            command.enqueue(lanes[turn.stream])
            if turn.awaited:
                d.cuEventRecord(slot.events[turn.node], lanes[turn.stream])
        for m in streams.ends(slot.turns):
            d.cuStreamWaitEvent(lanes[0], slot.events[m], 0)

    def _one_by_one(self, section: Section, bases: Bases, watch: Watch | None) -> None:
        for node in section.nodes:
            thunk = node.thunk
            match thunk:
                case WhileThunk():
                    parts = tuple((part,) if part.nodes else () for part in node.parts)
                    condition, body = ((), *parts)[-2:]
                    self._host_loop(HostLoop(thunk, condition, body), bases, watch or _unseen)
                case ConditionalThunk():
                    part = node.parts[self._branch(thunk, bases)]
                    self.run(bases, (part,) if part.nodes else (), watch or _unseen)
                case _:
                    self._alone(thunk, bases, watch)

    def _alone(self, thunk: Thunk, bases: Bases, watch: Watch | None) -> None:
        """Enqueue one thunk on the main stream."""
        if watch is not None:
            watch(thunk)
        command = self.command(thunk)
        command.point(bases)
        command.enqueue(self.device.stream)

    # -- the host's steps --------------------------------------------------------------------------------------------
    def _host_call(self, step: HostCall, bases: Bases) -> None:
        t = step.thunk
        arrays = [np.empty(dims, dtype) for dtype, dims in t.types]
        places = [bases[s.allocation] + s.offset for s in t.args]
        for array, address in zip(arrays, places, strict=True):
            self.device.staging.to_host(address, array)
        t.function(*arrays)
        first = len(arrays) - t.results  # the others are read only
        for array, address in zip(arrays[first:], places[first:], strict=True):
            self.device.staging.to_device(array, address)

    def _host_loop(self, loop: HostLoop, bases: Bases, watch: Watch | None) -> None:
        t = loop.thunk
        if t.trips is not None:
            for _ in range(t.trips):
                self.run(bases, loop.body, watch)
            return
        self.run(bases, loop.condition, watch)
        while self._read(t.predicate, np.dtype(np.uint8), bases):
            self.run(bases, loop.body, watch)
            self.run(bases, loop.condition, watch)

    def _branch(self, t: ConditionalThunk, bases: Bases) -> int:
        if t.by_predicate:
            return 0 if self._read(t.selector, np.dtype(np.uint8), bases) else 1
        n = self._read(t.selector, np.dtype(np.int32), bases)
        return n if 0 <= n < len(t.branches) else len(t.branches) - 1

    def _read(self, s: Slice, dtype: np.dtype, bases: Bases) -> int:
        """A number on the device; waits for it."""
        value = np.empty(1, dtype)
        self.device.staging.to_host(bases[s.allocation] + s.offset, value)
        return int(value[0])

    # -- commands ----------------------------------------------------------------------------------------------------
    def command(self, thunk: Thunk) -> Command:
        """The command of a thunk. Equal thunks may share theirs: arguments are copied when it is used."""
        found = self._commands.get(id(thunk))
        if found is None:
            found = self._commands[id(thunk)] = self._make(thunk)
        return found

    def _make(self, thunk: Any) -> Command:
        match thunk:
            case KernelThunk():
                k = self.program.kernels[thunk.kernel]
                function, zeros = self._functions[thunk.kernel], [0] * k.zeros
                if k.scratch:  # launches of one kernel may run side by side
                    zeros[0] = self._held.keep(k.scratch)
                return Kernel(self.driver, function, k.grid, k.block, thunk.args, zeros, k.shared)
            case CopyThunk():
                return Copy(self.driver, thunk.origin, thunk.target, self.device.context, self._on_host)
            case RandomStateThunk():
                return self._helper(self._random(), (STATE, thunk.out), (thunk.delta,))
            case DeviceNumberThunk():
                function, number = self._exchange.device_number(thunk.is_partition)
                return self._helper(function, (thunk.out,), (number,))
            case CollectiveThunk():
                return self._exchange.command(thunk, self._to_capture())
        slices, call = self.device.calls.of(thunk)
        self.notes += self.device.calls.news()
        return Captured(self.driver, slices, call, self._to_capture())

    @property
    def _exchange(self) -> Exchanges:
        assert self._exchanges is not None, "a program for several devices has a place on each"
        return self._exchanges

    def _to_capture(self) -> int:
        """The stream on which calls of libraries are captured."""
        if not self._capture_stream:
            self._capture_stream = self.device.new_stream()
        return self._capture_stream

    def _helper(self, function: int, slices: Sequence[Slice], numbers: Sequence[int]) -> Kernel:
        return Kernel(self.driver, function, (1, 1, 1), (1, 1, 1), slices, numbers)

    def _random(self) -> int:
        if "heron_random" not in self._helpers:
            module = self._held.load(helpers.RANDOM.encode(), "the random state")
            self._helpers["heron_random"] = self.device.function(module, "heron_random")
        return self._helpers["heron_random"]

    def _counter(self, loop: WhileThunk) -> Slice:
        """The counter of a loop: behind the random state."""
        number = self._counters.setdefault(id(loop), len(self._counters))
        return Slice(STATE.allocation, STATE.size + _COUNTER * number, _COUNTER)

    def _start(self, loop: WhileThunk, handle: int) -> Command:
        return self._helper(self._helpers["heron_start"], (self._counter(loop),), (handle, loop.trips or 0))

    def _go_on(self, loop: WhileThunk, handle: int) -> Command:
        if loop.trips is not None:
            return self._helper(self._helpers["heron_count"], (self._counter(loop),), (handle, loop.trips))
        return self._helper(self._helpers["heron_while"], (loop.predicate,), (handle,))

    def _choose(self, choice: ConditionalThunk, branch: int, handle: int) -> Command:
        numbers = (handle, branch, len(choice.branches), int(choice.by_predicate))
        return self._helper(self._helpers["heron_case"], (choice.selector,), numbers)


def _unseen(_: Thunk) -> None:
    """Nobody watches; the steps still run one by one."""
