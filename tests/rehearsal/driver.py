"""`Recorder`: libcuda's functions in Python, called through the C interface that the real ones have."""

from __future__ import annotations

import ctypes
import itertools
import threading
import traceback
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from heron.runtime.cuda.libraries.base import Proposal
from heron.targets import libcuda
from tests.rehearsal.code import Function, Known, functions, helpers
from tests.rehearsal.libraries import perform
from tests.rehearsal.memory import DeviceMemory, Fault, raw
from tests.rehearsal.work import Event, Graph, GraphNode, Stream

#: what the driver says of the device: an H200's, but for its memory
_ATTRIBUTES = {
    "threads_per_block": 1024, "block_x": 1024, "block_y": 1024, "block_z": 64, "grid_x": 2147483647, "grid_y": 65535,
    "grid_z": 65535, "static_shared_bytes": 49152, "clock_khz": 1980000, "cores": 132, "memory_clock_khz": 3201000,
    "bus_bits": 6144, "l2_bytes": 62914560, "threads_per_core": 2048, "shared_bytes_per_core": 233472,
    "registers_per_core": 65536, "shared_bytes_per_block": 232448, "blocks_per_core": 32, "memory_pools": 1,
}  # fmt: skip
_NEED_NO_CONTEXT = frozenset(
    "cuInit cuDriverGetVersion cuGetErrorName cuDeviceGetCount cuDeviceGet cuDeviceGetName cuDeviceGetAttribute "
    "cuDeviceTotalMem_v2 cuDevicePrimaryCtxRetain cuDevicePrimaryCtxReset_v2 cuCtxSetCurrent".split()
)
#: what a thread may not do while it captures a stream
_NOT_IN_CAPTURE = frozenset("cuMemAlloc_v2 cuMemFree_v2 cuMemHostAlloc cuMemFreeHost cuCtxSynchronize".split())
_INVALID, _NO_MEMORY, _NOT_READY = 1, 2, 600
_ILLEGAL_STATE, _NOT_SUPPORTED, _IN_CAPTURE, _SPOILED = 401, 801, 900, 901
_SHARED_UNASKED = _ATTRIBUTES["static_shared_bytes"]  # bytes of shared memory for which a kernel need not ask
_SHARED_MOST = _ATTRIBUTES["shared_bytes_per_block"]
_LAUNCH = 1e-5  # seconds of a kernel that nobody gave a time
Answer = int | None


class Recorder:
    """A driver with devices that are not there.

    Args:
        capability: compute capability of its devices; ``devices``: how many; ``memory``: bytes each has.
        version: what the driver calls itself, 13000 for CUDA 13.0.
        lacks: functions it has not.
        lasting: whether a fault lasts as long as the process, whatever is reset.

    ``calls`` has the name of every call; ``fail`` says what to answer instead of doing something: function → (result,
    how many calls before that are fine). ``faults``: kernels that fault when they run; ``durations``: seconds that
    kernels with such names, and libraries' calls with such texts, take by the device's ``clock``. ``proposals``: the
    algorithms its libraries have for any call. ``problems``: what went wrong in
    ways a driver need not notice (freed memory used, handles mixed up): a test ends with it empty.
    """

    def __init__(
        self,
        capability: tuple[int, int] = (9, 0),
        devices: int = 1,
        memory: int = 1 << 30,
        version: int = 13000,
        lacks: Collection[str] = (),
        name: str = "NVIDIA H200 (rehearsed)",
        lasting: bool = False,
    ) -> None:
        self.lasting = lasting
        self.capability, self.device_count, self.version, self.device_name = capability, devices, version, name
        self.memory = DeviceMemory(memory)
        self.calls: list[str] = []
        self.fail: dict[str, tuple[int, int]] = {}
        self.faults: set[str] = set()
        self.problems: list[str] = []
        self.launched: list[str] = []
        self.clock = 0.0
        self.durations: dict[str, float] = {}
        self.proposals: list[Proposal] = []
        self.known = Known()
        self._called: set[object] = set()  # the library calls that were made
        self.conditions: dict[int, int] = {}
        self._helpers = helpers(self.memory, self.conditions, self._is_pinned)
        self._handles: dict[int, object] = {}
        self._owners: dict[int, int] = {}  # handle → the device it was made on
        self._numbers = itertools.count(0x10000, 16)
        self._pinned: dict[int, Any] = {}
        self._keep: list[Any] = []
        self._contexts: dict[int, int] = {}  # of each device that has one
        self._broken: dict[int, int] = {}
        self._thread = threading.local()
        self._kernels = threading.Lock()  # one kernel runs at a time
        for name_, arguments in libcuda.FUNCTIONS.items():
            if name_ in lacks:
                continue
            native = ctypes.CFUNCTYPE(ctypes.c_int, *arguments)(self._entry(name_))
            setattr(self, name_, native)

    def count(self, name: str) -> int:
        """How often a function was called."""
        return self.calls.count(name)

    def enqueue(self, stream: int, work: Callable[[], None]) -> None:
        """Have a stream, or the graph that is captured from it, do something."""
        self._enqueue(stream, GraphNode("nccl", (work,), ()))

    def has_graph(self, of: Callable[[Any], bool]) -> bool:
        """Whether there is a graph, to run or to be made one, with such work of `enqueue`."""
        things = list(self._handles.values())
        graphs = [t.graph if isinstance(t, _Ready) else t for t in things if isinstance(t, (_Ready, Graph))]
        return any(n.kind == "nccl" and of(n.data[0]) for g in graphs for n in g.all())

    def library_call(self, stream: int, thunk: Any, addresses: Sequence[int]) -> None:
        """A library's call enqueued on a stream. In a capture it must be one that may be captured, and not the first:
        libraries load code and allocate in a first call."""
        self.calls.append("library")
        if self._get(stream, Stream).capture is None:
            self._called.add(thunk.call)
        elif not thunk.call.is_capturable:
            self.problems.append(f"{thunk.call} is captured")
        elif thunk.call not in self._called:
            self.problems.append(f"the first call of {thunk.call} is captured")
        self._enqueue(stream, GraphNode("library", (thunk, tuple(addresses)), ()))

    def library_proposals(self, thunk: Any, most: int) -> list[Proposal]:
        """What a library proposes for a call."""
        self.calls.append("proposals")
        return self.proposals[:most]

    @property
    def device(self) -> int:
        """The device to which calls of this thread go; -1 before one was chosen, or when its context is gone."""
        context = getattr(self._thread, "context", 0)
        return next((n for n, c in self._contexts.items() if c == context), -1)

    # -- every call --------------------------------------------------------------------------------------------------
    def _entry(self, name: str) -> Callable[..., int]:
        do = getattr(self, f"_{name}")

        def call(*arguments: Any) -> int:
            self.calls.append(name)
            planned = self.fail.get(name)
            if planned is not None:
                result, left = planned
                if left == 0:
                    del self.fail[name]
                    return result
                self.fail[name] = (result, left - 1)
            here = self.device
            if name in _NOT_IN_CAPTURE and self._spoil_capture():
                self.problems.append(f"{name} in a capture")
                return _IN_CAPTURE
            if here in self._broken and name not in _NEED_NO_CONTEXT:
                return self._broken[here]
            if here < 0 and name not in _NEED_NO_CONTEXT:
                self.problems.append(f"{name} with no current context")
                return 201
            try:
                return do(*arguments) or 0
            except Fault as fault:
                self._broken[here] = fault.result
                return fault.result
            except _Bad as bad:
                self.problems.append(f"{name}: {bad}")
                return bad.result
            except Exception:  # must not cross the native frame
                self.problems.append(f"{name}: {traceback.format_exc()}")
                return 999

        return call

    def _new(self, thing: object) -> int:
        handle = next(self._numbers)
        self._handles[handle] = thing
        self._owners[handle] = self.device
        return handle

    def _get(self, handle: int | None, kind: type) -> Any:
        thing = self._handles.get(handle or 0)
        if not isinstance(thing, kind):
            raise _Bad(f"{handle!r} is {type(thing).__name__}, no {kind.__name__}")
        if thing != "context" and self._owners[handle or 0] not in (self.device, -1):
            raise _Bad(f"a {kind.__name__} of device {self._owners[handle or 0]} used on device {self.device}")
        return thing

    def _drop(self, handle: int, kind: type) -> None:
        self._get(handle, kind)
        del self._handles[handle]

    # -- devices and contexts ----------------------------------------------------------------------------------------
    def _cuInit(self, flags: int) -> Answer:
        return 100 if not self.device_count else 0

    def _cuDriverGetVersion(self, out: int) -> Answer:
        _put(out, ctypes.c_int, self.version)

    def _cuGetErrorName(self, error: int, out: int) -> Answer:
        return _INVALID

    def _cuDeviceGetCount(self, out: int) -> Answer:
        _put(out, ctypes.c_int, self.device_count)

    def _cuDeviceGet(self, out: int, ordinal: int) -> Answer:
        _put(out, ctypes.c_int, ordinal)
        return self._ordinal(ordinal)

    def _ordinal(self, ordinal: int) -> int:
        return 0 if 0 <= ordinal < self.device_count else 101

    def _cuDeviceGetName(self, out: int, size: int, ordinal: int) -> Answer:
        data = self.device_name.encode()[: size - 1] + b"\0"
        ctypes.memmove(out, data, len(data))
        return self._ordinal(ordinal)

    def _cuDeviceGetAttribute(self, out: int, attribute: int, ordinal: int) -> Answer:
        name = next(n for n, number in libcuda.ATTRIBUTES.items() if number == attribute)
        own = {"major": self.capability[0], "minor": self.capability[1]}
        _put(out, ctypes.c_int, own.get(name, _ATTRIBUTES.get(name, 0)))
        return self._ordinal(ordinal)

    def _cuDeviceTotalMem_v2(self, out: int, ordinal: int) -> Answer:
        _put(out, ctypes.c_size_t, self.memory.total)
        return self._ordinal(ordinal)

    def _cuDeviceGetUuid_v2(self, out: int, ordinal: int) -> Answer:
        ctypes.memmove(out, ordinal.to_bytes(16, "little"), 16)
        return self._ordinal(ordinal)

    def _cuDevicePrimaryCtxRetain(self, out: int, ordinal: int) -> Answer:
        if ordinal not in self._contexts:
            context = self._contexts[ordinal] = self._new("context")
            self._owners[context] = ordinal  # whatever is current in this thread
        _put(out, ctypes.c_void_p, self._contexts[ordinal])
        return self._ordinal(ordinal)

    def _cuDevicePrimaryCtxReset_v2(self, ordinal: int) -> Answer:
        if not self.lasting:
            self._broken.pop(ordinal, None)
        for handle in [h for h, owner in self._owners.items() if owner == ordinal]:
            self._handles.pop(handle, None)
        self._handles.pop(self._contexts.pop(ordinal, 0), None)
        self.memory.forget(ordinal)
        return self._ordinal(ordinal)

    def _cuCtxSetCurrent(self, context: int) -> Answer:
        self._get(context, str)
        self._thread.context = context

    def _cuCtxSynchronize(self) -> Answer:
        for handle, thing in list(self._handles.items()):
            if isinstance(thing, Stream) and self._owners[handle] == self.device:
                thing.run()

    # -- streams and events ------------------------------------------------------------------------------------------
    def _cuStreamCreate(self, out: int, flags: int) -> Answer:
        _put(out, ctypes.c_void_p, self._new(Stream()))

    def _cuStreamSynchronize(self, stream: int) -> Answer:
        self._free_stream(stream).run()

    def _cuStreamWaitEvent(self, stream: int, event: int, flags: int) -> Answer:
        self._free_stream(stream).wait_for(self._get(event, Event))

    def _cuStreamBeginCapture_v2(self, stream: int, mode: int) -> Answer:
        s = self._get(stream, Stream)
        if s.capture is not None:
            return _ILLEGAL_STATE
        s.capture, s.captured_by, s.spoiled = Graph(), threading.get_ident(), False

    def _cuStreamEndCapture(self, stream: int, out: int) -> Answer:
        s = self._get(stream, Stream)
        graph, s.capture = s.capture, None
        if graph is None or s.spoiled:
            return _SPOILED
        _put(out, ctypes.c_void_p, self._new(graph))

    def _spoil_capture(self) -> bool:
        """Whether this thread captures a stream of its device; no such capture comes to an end."""
        mine = [t for h, t in list(self._handles.items()) if isinstance(t, Stream) and self._owners[h] == self.device]
        mine = [s for s in mine if s.capture is not None and s.captured_by == threading.get_ident()]
        for s in mine:
            s.spoiled = True
        return bool(mine)

    def _free_stream(self, stream: int) -> Stream:
        """A stream that is not captured. Raises `_Bad` for one that is, whose capture comes to no end."""
        s = self._get(stream, Stream)
        if s.capture is not None:
            s.spoiled = True
            raise _Bad("in a capture of the stream", _IN_CAPTURE)
        return s

    def _cuEventCreate(self, out: int, flags: int) -> Answer:
        _put(out, ctypes.c_void_p, self._new(Event()))

    def _cuEventRecord(self, event: int, stream: int) -> Answer:
        e, s = self._get(event, Event), self._free_stream(stream)

        def work() -> None:
            e.time = self.clock

        s.push(work)
        e.stream, e.position = s, s.position

    def _cuEventSynchronize(self, event: int) -> Answer:
        e = self._get(event, Event)
        if e.stream is not None:
            e.stream.run(e.position)

    def _cuEventQuery(self, event: int) -> Answer:
        e = self._get(event, Event)
        return _NOT_READY if e.stream is not None and e.stream.begun < e.position else 0

    def _cuEventElapsedTime(self, out: int, start: int, end: int) -> Answer:
        first, last = self._get(start, Event), self._get(end, Event)
        if any(e.stream is None or e.stream.begun < e.position for e in (first, last)):
            return _NOT_READY
        _put(out, ctypes.c_float, 1e3 * (last.time - first.time))

    def _cuEventDestroy_v2(self, event: int) -> Answer:
        self._drop(event, Event)

    # -- code --------------------------------------------------------------------------------------------------------
    def _cuModuleLoadDataEx(self, out: int, image: int, count: int, options: int, values: int) -> Answer:
        data = _image(image)
        found = functions(data, self.known, self._helpers)
        if found is None:
            log = ctypes.cast(values, ctypes.POINTER(ctypes.c_void_p))[0]
            if log:
                ctypes.memmove(log, b"neither machine code nor PTX\0", 29)
            return 200
        if b"cudaGraphSetConditional" in data and self.version < 12040:
            return 218
        _put(out, ctypes.c_void_p, self._new(found))

    def _cuModuleUnload(self, module: int) -> Answer:
        gone = {id(f) for f in self._get(module, dict).values()}
        self._drop(module, dict)
        for handle in [h for h, thing in list(self._handles.items()) if id(thing) in gone]:
            del self._handles[handle]

    def _cuModuleGetFunction(self, out: int, module: int, name: bytes) -> Answer:
        found = self._get(module, dict).get(name.decode())
        if found is None:
            return 500
        _put(out, ctypes.c_void_p, self._new(found))

    def _cuFuncSetAttribute(self, function: int, attribute: int, value: int) -> Answer:
        f = self._get(function, Function)
        if attribute == libcuda.MAX_DYNAMIC_SHARED:
            if value + f.declared.shared > _SHARED_MOST:
                return _INVALID
            f.opted = value

    def _cuFuncGetAttribute(self, out: int, attribute: int, function: int) -> Answer:
        self._get(function, Function)
        _put(out, ctypes.c_int, 0)

    def _cuLaunchKernelEx(self, config: int, function: int, params: int, extra: int) -> Answer:
        c = libcuda.LaunchConfig.from_address(config)
        self._enqueue(c.stream, self._kernel(function, c.grid, c.block, c.shared_bytes, params, ()))

    def _kernel(
        self, function: int, grid: Any, block: Any, shared: int, params: int, after: tuple[int, ...]
    ) -> GraphNode:
        f = self._get(function, Function)
        facts = f.declared
        if not all(grid) or not all(block) or block[0] * block[1] * block[2] > 1024:
            raise _Bad(f"{f.name} with grid {list(grid)}, block {list(block)}", _INVALID)
        if facts.block is not None and tuple(block) != facts.block:
            raise _Bad(f"{f.name} is for blocks of {facts.block}, not {tuple(block)}", _INVALID)
        if shared > max(f.opted, _SHARED_UNASKED - facts.shared):
            raise _Bad(f"{f.name} with {shared} bytes of shared memory, {f.opted} asked for", _INVALID)
        if len(facts.sizes) < f.pointers:
            raise _Bad(f"{f.name} has {len(facts.sizes)} parameters, not {f.pointers}", _INVALID)
        pointers = ctypes.cast(params, ctypes.POINTER(ctypes.c_void_p))
        values = [
            int.from_bytes(ctypes.string_at(pointers[n] or 0, size), "little") for n, size in enumerate(facts.sizes)
        ]
        for n, (value, aligned) in enumerate(zip(values, facts.alignments, strict=True)):
            if value % aligned:
                raise _Bad(f"parameter {n} of {f.name}: {value:#x} is no multiple of {aligned}", _INVALID)
        return GraphNode("kernel", (f, values, tuple(grid), tuple(block)), after)

    # -- memory ------------------------------------------------------------------------------------------------------
    def _cuMemGetInfo_v2(self, free: int, total: int) -> Answer:
        _put(free, ctypes.c_size_t, self.memory.total - self.memory.used)
        _put(total, ctypes.c_size_t, self.memory.total)

    def _cuMemAlloc_v2(self, out: int, size: int) -> Answer:
        address = self.memory.allocate(size, self.device)
        if address is None:
            return _NO_MEMORY
        _put(out, ctypes.c_uint64, address)

    def _cuMemFree_v2(self, address: int) -> Answer:
        self._cuCtxSynchronize()
        if not self.memory.free(address):
            raise _Bad(f"{address:#x} is no allocation")

    def _cuMemAllocAsync(self, out: int, size: int, stream: int) -> Answer:
        s = self._get(stream, Stream)
        if s.capture is not None:
            s.capture.nodes[next(self._numbers)] = GraphNode("memory", (size,), ())
        return self._cuMemAlloc_v2(out, size)

    def _cuMemFreeAsync(self, address: int, stream: int) -> Answer:
        memory = self.memory
        self._get(stream, Stream).push(lambda: None if memory.free(address) else self.problems.append("freed twice"))

    def _cuDeviceGetDefaultMemPool(self, out: int, ordinal: int) -> Answer:
        _put(out, ctypes.c_void_p, self._new("pool"))

    def _cuMemPoolSetAttribute(self, pool: int, attribute: int, value: int) -> Answer:
        self._get(pool, str)

    def _cuMemPoolGetAttribute(self, pool: int, attribute: int, value: int) -> Answer:
        _put(value, ctypes.c_uint64, self.memory.used)

    def _cuMemHostAlloc(self, out: int, size: int, flags: int) -> Answer:
        block = (ctypes.c_uint8 * size)()
        self._pinned[ctypes.addressof(block)] = block
        _put(out, ctypes.c_void_p, ctypes.addressof(block))

    def _cuMemFreeHost(self, address: int) -> Answer:
        del self._pinned[address]

    def _is_pinned(self, address: int) -> bool:
        return self._pinned_room(address) > 0

    def _cuMemcpyHtoDAsync_v2(self, target: int, origin: int, size: int, stream: int) -> Answer:
        data = raw(origin, size)
        if not self._is_pinned(origin):
            raise _Bad("a copy from memory that is not pinned: when it is read is not documented")

        def work() -> None:
            self.memory.view(target, size, "copy to the device")[:] = data

        self._free_stream(stream).push(work)

    def _cuMemcpyDtoHAsync_v2(self, target: int, origin: int, size: int, stream: int) -> Answer:
        def work() -> None:
            raw(target, size)[:] = self.memory.view(origin, size, "copy to the host")

        if not self._is_pinned(target):
            raise _Bad("a copy to memory that is not pinned: when it is written is not documented")
        self._free_stream(stream).push(work)

    def _cuMemsetD8Async(self, target: int, value: int, size: int, stream: int) -> Answer:
        self._enqueue(stream, GraphNode("set", (target, value, size), ()))

    def _cuMemcpyDtoDAsync_v2(self, target: int, origin: int, size: int, stream: int) -> Answer:
        self._enqueue(stream, GraphNode("copy", (target, origin, size, False, False), ()))

    def _cuMemcpyAsync(self, target: int, origin: int, size: int, stream: int) -> Answer:
        data = (target, origin, size, self._is_pinned(target), self._is_pinned(origin))
        self._enqueue(stream, GraphNode("copy", data, ()))

    # -- graphs ------------------------------------------------------------------------------------------------------
    def _cuGraphCreate(self, out: int, flags: int) -> Answer:
        _put(out, ctypes.c_void_p, self._new(Graph()))

    def _cuGraphDestroy(self, graph: int) -> Answer:
        self._drop(graph, Graph)

    def _add(self, out: int, graph: int, after: int, count: int, make: Callable[[tuple[int, ...]], GraphNode]) -> int:
        """A node in a graph; its handle."""
        g = self._get(graph, Graph)
        behind = tuple((ctypes.c_void_p * count).from_address(after)) if count else ()
        for handle in behind:
            if handle not in g.nodes:
                raise _Bad(f"it waits for {handle}, which is no node of the graph")
        node = next(self._numbers)
        g.nodes[node] = make(behind)  # type: ignore[arg-type]
        _put(out, ctypes.c_void_p, node)
        return node

    def _cuGraphAddKernelNode_v2(self, out: int, graph: int, after: int, count: int, params: int) -> Answer:
        k = libcuda.KernelNode.from_address(params)

        def make(behind: tuple[int, ...]) -> GraphNode:
            return self._kernel(k.function, k.grid, k.block, k.shared_bytes, k.params, behind)

        self._add(out, graph, after, count, make)

    def _cuGraphAddMemcpyNode(self, out: int, graph: int, after: int, count: int, params: int, ctx: int) -> Answer:
        self._get(ctx, str)
        self._add(out, graph, after, count, lambda behind: GraphNode("copy", _copy(params), behind))

    def _cuGraphAddChildGraphNode(self, out: int, graph: int, after: int, count: int, child: int) -> Answer:
        inner = self._get(child, Graph).copied()
        if any(n.kind == "memory" for n in inner.all()):
            self.problems.append("a child graph that allocates memory")
            return _NOT_SUPPORTED
        self._add(out, graph, after, count, lambda behind: GraphNode("child", (), behind, inner))

    def _cuGraphAddNode_v2(self, out: int, graph: int, after: int, data: int, count: int, params: int) -> Answer:
        node = libcuda.Node.from_address(params)
        c = node.of.conditional
        if node.type != libcuda.NODE_CONDITIONAL or c.size != 1 or c.handle not in self.conditions:
            return _INVALID
        kind = {libcuda.IF: "if", libcuda.WHILE: "while"}[c.type]
        inner = Graph()
        self._add(out, graph, after, count, lambda behind: GraphNode(kind, (c.handle,), behind, inner))
        bodies = (ctypes.c_void_p * 1)(self._new(inner))
        self._keep.append(bodies)
        c.bodies = ctypes.addressof(bodies)

    def _cuGraphConditionalHandleCreate(self, out: int, graph: int, ctx: int, default: int, flags: int) -> Answer:
        self._get(graph, Graph)
        handle = next(self._numbers)
        self.conditions[handle] = default
        _put(out, ctypes.c_uint64, handle)

    def _cuGraphInstantiateWithFlags(self, out: int, graph: int, flags: int) -> Answer:
        _put(out, ctypes.c_void_p, self._new(_Ready(self._get(graph, Graph).copied())))

    def _cuGraphExecDestroy(self, execution: int) -> Answer:
        self._drop(execution, _Ready)

    def _change(self, execution: int, node: int, kind: str, data: tuple[object, ...]) -> Answer:
        found = self._get(execution, _Ready).graph.find(node)
        if found is None or found.kind != kind:
            raise _Bad(f"{node} is no {kind} node of the graph")
        found.data = data

    def _cuGraphExecKernelNodeSetParams_v2(self, execution: int, node: int, params: int) -> Answer:
        k = libcuda.KernelNode.from_address(params)
        self._change(
            execution, node, "kernel", self._kernel(k.function, k.grid, k.block, k.shared_bytes, k.params, ()).data
        )

    def _cuGraphExecMemcpyNodeSetParams(self, execution: int, node: int, params: int, ctx: int) -> Answer:
        self._change(execution, node, "copy", _copy(params))

    def _cuGraphExecChildGraphNodeSetParams(self, execution: int, node: int, child: int) -> Answer:
        self._change(execution, node, "child", ())
        found = self._get(execution, _Ready).graph.find(node)
        found.inner = self._get(child, Graph).copied()

    def _cuGraphLaunch(self, execution: int, stream: int) -> Answer:
        ready = self._get(execution, _Ready)
        now = ready.graph.copied()  # as it is at the launch
        self._free_stream(stream).push(lambda: now.run(self._do))

    # -- work --------------------------------------------------------------------------------------------------------
    def _enqueue(self, stream: int | None, node: GraphNode) -> None:
        s = self._get(stream, Stream)
        if s.capture is not None:
            s.capture.nodes[next(self._numbers)] = GraphNode(node.kind, node.data, tuple(s.capture.nodes)[-1:])
        else:
            s.push(lambda: self._do(node))

    def _do(self, node: GraphNode) -> None:
        match node.kind:
            case "kernel":
                self._launch(*node.data)  # type: ignore[arg-type]
            case "copy":
                target, origin, size, to_host, from_host = node.data
                self.clock += _LAUNCH
                self._view(target, size, to_host)[:] = self._view(origin, size, from_host)
            case "set":
                target, value, size = node.data
                self.memory.view(target, size, "set")[:] = value  # type: ignore[arg-type]
            case "nccl":
                (perform_group,) = node.data
                perform_group()  # type: ignore[operator]
            case "library":
                self.launched.append("library")
                self.clock += self._duration(str(node.data[0].call))  # type: ignore[attr-defined]
                perform(self.memory, *node.data)  # type: ignore[arg-type]
            case "child":
                assert node.inner is not None
                node.inner.run(self._do)
            case "if" | "while":
                assert node.inner is not None
                handle: Any = node.data[0]
                while self.conditions[handle]:
                    node.inner.run(self._do)
                    if node.kind == "if":
                        break

    def _view(self, address: Any, size: Any, on_host: Any) -> Any:
        """The bytes that a copy reads or writes. Raises `Fault` unless they are in that memory."""
        if not on_host:
            return self.memory.view(address, size, "copy")
        if self._pinned_room(address) < size:
            raise Fault(700, f"copy: {size} bytes at {address:#x} are not all pinned memory of the host")
        return raw(address, size)

    def room(self, address: int) -> int:
        """Bytes from an address to the end of what a kernel may reach there: memory of a device, or pinned memory."""
        return self.memory.room(address) or self._pinned_room(address)

    def _pinned_room(self, address: int) -> int:
        blocks = list(self._pinned.items())  # other threads allocate meanwhile
        ends = [start + len(block) for start, block in blocks if start <= address < start + len(block)]
        return ends[0] - address if ends else 0

    def _duration(self, name: str) -> float:
        return next((t for part, t in self.durations.items() if part in name), _LAUNCH)

    def _launch(self, f: Function, values: list[int], grid: tuple[int, ...], block: tuple[int, ...]) -> None:
        self.launched.append(f.name)
        self.clock += self._duration(f.name)
        if f.name in self.faults:
            raise Fault(700, f"{f.name} faults, as asked for")
        for n, address in enumerate(values[: f.pointers]):
            if not self.memory.is_known(address) and not self._is_pinned(address):
                self.problems.append(f"parameter {n} of {f.name}: {address:#x} is in no allocation")
                raise Fault(700, f"parameter {n} of {f.name} is in no allocation")
        if f.run is not None:
            with self._kernels:
                try:
                    f.run(values)
                except Fault as fault:
                    self.problems.append(f"{f.name}: {fault}")
                    raise


class _Bad(Exception):
    """A handle or argument no driver takes; ``result``: its answer."""

    def __init__(self, why: str, result: int = 400) -> None:
        super().__init__(why)
        self.result = result


class _Ready:
    """A graph ready to run."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph


def _put(address: int, kind: Any, value: float) -> None:
    kind.from_address(address).value = value


def _copy(params: int) -> tuple[int, int, int, bool, bool]:
    """What a node copies: to where, from where, bytes, and which end is on the host."""
    c = libcuda.CopyNode.from_address(params)
    kinds = (libcuda.HOST, libcuda.DEVICE)
    if c.source_type not in kinds or c.target_type not in kinds or (c.height, c.depth) != (1, 1):
        raise _Bad("a copy that is not of a row of bytes")
    to_host, from_host = c.target_type == libcuda.HOST, c.source_type == libcuda.HOST
    target, source = c.target_host if to_host else c.target_device, c.source_host if from_host else c.source_device
    return target or 0, source or 0, c.width, to_host, from_host


def _image(address: int) -> bytes:
    """A module's bytes: machine code, as long as its ELF header says, or text up to its zero."""
    head = ctypes.string_at(address, 64)
    if not head.startswith(b"\x7fELF"):
        return ctypes.string_at(address)
    table = int.from_bytes(head[40:48], "little")
    entry, count = (int.from_bytes(head[n : n + 2], "little") for n in (58, 60))
    return _whole(address, table + entry * count)


def _whole(address: int, size: int) -> bytes:
    """All of an ELF file whose section table ends at `size`; program headers and sections may lie behind it."""
    data = ctypes.string_at(address, size)
    table = int.from_bytes(data[40:48], "little")
    entry, count = (int.from_bytes(data[n : n + 2], "little") for n in (58, 60))
    ends: Iterable[int] = (
        _end(data, table + n * entry)
        for n in range(count)
        if int.from_bytes(data[table + n * entry + 4 :][:4], "little") != 8
    )
    return ctypes.string_at(address, max([size, _program_headers(data), *ends]))


def _end(data: bytes, header: int) -> int:
    at = int.from_bytes(data[header + 24 : header + 32], "little")
    return at + int.from_bytes(data[header + 32 : header + 40], "little")


def _program_headers(data: bytes) -> int:
    start = int.from_bytes(data[32:40], "little")
    entry, count = (int.from_bytes(data[n : n + 2], "little") for n in (54, 56))
    return start + entry * count
