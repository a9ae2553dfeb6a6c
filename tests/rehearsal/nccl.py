"""`Nccl`: NCCL's functions in Python, called through its C interface, for the devices of a `Recorder`.

What is enqueued runs in the device's own thread when somebody waits for its stream, and waits there for the other ranks,
as a kernel of NCCL does. Ranks that come to different calls wait until they are aborted, and ``noted`` says so.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import threading
import time
import traceback
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from heron.targets import libnccl
from tests.rehearsal.compiling import rehearsed
from tests.rehearsal.driver import Recorder

#: element types by ncclDataType_t
_TYPES = [np.dtype(t) for t in "i1 u1 i4 u4 i8 u8 f2 f4 f8".split()] + [np.dtype(ml_dtypes.bfloat16)]
_OPS: list[Callable[..., Any]] = [np.add, np.multiply, np.maximum, np.minimum]
_INVALID_ARGUMENT, _INVALID_USAGE = 4, 5
#: seconds that an abort waits for graphs to go
_PATIENCE = 5.0


@dataclass(frozen=True)
class Op:
    """A call: what is sent, what is received; ``same``: what must be equal on all ranks."""

    name: str
    send: int
    receive: int
    count: int
    dtype: np.dtype
    extra: int

    @property
    def same(self) -> tuple[object, ...]:
        return self.name, self.count, self.dtype.name, self.extra


@dataclass(eq=False)
class Letter:
    same: tuple[object, ...]
    data: np.ndarray
    taken: bool = False


@dataclass(eq=False)
class Clique:
    """The ranks of one id. ``arrived``: ops of each rank, by the number of the meeting."""

    size: int
    changed: threading.Condition = field(default_factory=threading.Condition)
    ranks: dict[int, Comm] = field(default_factory=dict)
    arrived: dict[int, dict[int, Op]] = field(default_factory=lambda: defaultdict(dict))
    done: set[int] = field(default_factory=set)
    mail: dict[tuple[int, int], deque[Letter]] = field(default_factory=lambda: defaultdict(deque))
    aborted: bool = False


@dataclass(eq=False)
class Comm:
    clique: Clique
    rank: int
    device: int
    meetings: int = 0
    error: int = 0


class _Aborted(Exception):
    """A kernel that waited has been told to end."""


class _Refused(Exception):
    """A call that NCCL does not take; ``result`` is what it returns."""

    def __init__(self, result: int, why: str) -> None:
        super().__init__(why)
        self.result = result


class Nccl:
    """NCCL for rehearsed devices.

    ``calls`` has each call as (device, text), ``fail`` says what to answer instead of doing something: function →
    (result, how many calls before that are fine). ``noted``: what ranks did that a real NCCL hangs at.
    """

    def __init__(self, recorder: Recorder, version: int = 22803, lacks: tuple[str, ...] = ()) -> None:
        self.recorder, self.version = recorder, version
        self.calls: list[tuple[int, str]] = []
        self.fail: dict[str, tuple[int, int]] = {}
        self.noted: list[str] = []
        self.comms: dict[int, Comm] = {}
        self.words = "rehearsed words"
        self._cliques: dict[bytes, Clique] = {}
        self._numbers = itertools.count(0x9000, 16)
        self._thread = threading.local()
        self._lock = threading.Lock()
        self._last = ctypes.create_string_buffer(b"the last thing that went wrong")
        self._result = ctypes.create_string_buffer(self.words.encode())
        for name, arguments in libnccl.FUNCTIONS.items():
            if name in lacks:
                continue
            kind = ctypes.c_void_p if name in libnccl.STRINGS else ctypes.c_int
            setattr(self, name, ctypes.CFUNCTYPE(kind, *arguments)(self._entry(name)))

    def count(self, name: str) -> int:
        """How often a function was called, by all devices."""
        return sum(text.startswith(f"{name}(") for _, text in self.calls)

    def _entry(self, name: str) -> Callable[..., int]:
        do = getattr(self, f"_{name}")

        def call(*arguments: Any) -> int:
            if name in libnccl.STRINGS:
                return do(*arguments)
            shown = ", ".join(str(a) for a in arguments if not isinstance(a, libnccl.UniqueId))
            self.calls.append((self.recorder.device, f"{name}({shown})"))
            with self._lock:
                planned = self.fail.get(name)
                if planned is not None:
                    result, left = planned
                    if left == 0:
                        del self.fail[name]
                        if name == "ncclGroupEnd":
                            self._thread.depth = 0
                        self._thread.failed = self._depth > 0
                        return result
                    self.fail[name] = (result, left - 1)
            try:
                return do(*arguments) or 0
            except _Refused as error:
                self.recorder.problems.append(f"{name}: {error}")
                return error.result
            except Exception:  # must not cross the native frame
                self.recorder.problems.append(f"{name}: {traceback.format_exc()}")
                return 3

        return call

    # -- communicators -----------------------------------------------------------------------------------------------
    def _ncclGetVersion(self, out: int) -> None:
        ctypes.c_int.from_address(out).value = self.version

    def _ncclGetErrorString(self, result: int) -> int:
        return ctypes.addressof(self._result)

    def _ncclGetLastError(self, comm: int) -> int:
        return ctypes.addressof(self._last)

    def _ncclGetUniqueId(self, out: int) -> None:
        made = next(self._numbers).to_bytes(8, "little") * 16
        ctypes.memmove(out, made, libnccl.ID_BYTES)

    def _ncclCommInitRank(self, out: int, size: int, of: libnccl.UniqueId, rank: int) -> int | None:
        device = self.recorder.device
        if device < 0:
            raise _Refused(_INVALID_USAGE, "no device is current")
        if self._depth:
            raise _Refused(_INVALID_USAGE, "communicators and collectives in one group")
        if not 0 <= rank < size:
            raise _Refused(_INVALID_ARGUMENT, f"rank {rank} of {size}")
        with self._lock:
            clique = self._cliques.setdefault(bytes(of), Clique(size))
        comm = Comm(clique, rank, device)
        with clique.changed:
            if size != clique.size or rank in clique.ranks:
                raise _Refused(_INVALID_ARGUMENT, f"rank {rank} of {size} comes twice, or to others")
            clique.ranks[rank] = comm
            clique.changed.notify_all()
            clique.changed.wait_for(lambda: len(clique.ranks) == size or clique.aborted)
        if clique.aborted:  # at the end of the rehearsal
            return 3
        if len({c.device for c in clique.ranks.values()}) < size:
            return _INVALID_USAGE  # two ranks on one device
        handle = next(self._numbers)
        self.comms[handle] = comm
        ctypes.c_void_p.from_address(out).value = handle
        return None

    def close(self) -> None:
        """Let go who waits for ranks that never come."""
        for clique in self._cliques.values():
            with clique.changed:
                clique.aborted = True
                clique.changed.notify_all()

    def _comm(self, handle: int | None) -> Comm:
        found = self.comms.get(handle or 0)
        if found is None:
            raise _Refused(_INVALID_ARGUMENT, f"{handle} is no communicator")
        return found

    def _ncclCommDestroy(self, handle: int) -> None:
        self._end(handle)

    def _ncclCommAbort(self, handle: int) -> None:
        clique = self._comm(handle).clique
        with clique.changed:
            clique.aborted = True
            clique.changed.notify_all()
        self._end(handle)

    def _end(self, handle: int) -> None:
        """A communicator ends when no graph has calls of it."""
        comm, deadline = self._comm(handle), time.monotonic() + _PATIENCE
        while self.recorder.has_graph(lambda work: getattr(work, "args", (None,))[0] is comm):
            if time.monotonic() > deadline:
                raise _Refused(3, f"graphs of device {comm.device} still have calls of rank {comm.rank}")
            time.sleep(1e-3)
        del self.comms[handle]

    def _ncclCommGetAsyncError(self, handle: int, out: int) -> None:
        ctypes.c_int.from_address(out).value = self._comm(handle).error

    # -- calls -------------------------------------------------------------------------------------------------------
    @property
    def _depth(self) -> int:
        return getattr(self._thread, "depth", 0)

    def _ncclGroupStart(self) -> None:
        if not self._depth:
            self._thread.group = []
        self._thread.depth = self._depth + 1

    def _ncclGroupEnd(self) -> int | None:
        if not self._depth:
            raise _Refused(_INVALID_USAGE, "a group ends that has not begun")
        self._thread.depth -= 1
        if self._depth:
            return None
        if getattr(self._thread, "failed", False):  # nothing of a group with an error is done
            self._thread.failed = False
            return _INVALID_USAGE
        fused: dict[tuple[int, int], list[Op]] = {}
        for comm, stream, op in self._thread.group:
            fused.setdefault((comm, stream), []).append(op)
        if len({comm for comm, _ in fused}) < len(fused):
            raise _Refused(_INVALID_USAGE, "one communicator on two streams in a group")
        for (comm, stream), ops in fused.items():
            self.recorder.enqueue(stream, partial(self._perform, self._comm(comm), ops))
        return None

    def _enqueue(self, handle: int, stream: int, op: Op, sends: int, receives: int) -> None:
        comm, memory = self._comm(handle), self.recorder.memory
        if comm.device != self.recorder.device:
            raise _Refused(_INVALID_USAGE, f"rank {comm.rank} is called on device {self.recorder.device}")
        for what, address, count in (("sent", op.send, sends), ("received", op.receive, receives)):
            size = count * op.dtype.itemsize
            if size and (memory.room(address or 0) < size or memory.owner(address) != comm.device):
                raise _Refused(_INVALID_ARGUMENT, f"{op.name}: {size} bytes {what} are not memory of the device")
            if size and address % op.dtype.itemsize:
                raise _Refused(_INVALID_ARGUMENT, f"{op.name}: {address:#x} is not aligned for {op.dtype}")
        if self._depth:
            self._thread.group.append((handle, stream, op))
        else:
            self.recorder.enqueue(stream, partial(self._perform, comm, [op]))

    def _ncclAllReduce(self, send: int, receive: int, n: int, t: int, op: int, comm: int, stream: int) -> None:
        self._enqueue(comm, stream, Op("AllReduce", send, receive, n, _type(t), _op(op)), n, n)

    def _ncclReduceScatter(self, send: int, receive: int, n: int, t: int, op: int, comm: int, stream: int) -> None:
        whole = n * self._comm(comm).clique.size
        self._enqueue(comm, stream, Op("ReduceScatter", send, receive, n, _type(t), _op(op)), whole, n)

    def _ncclAllGather(self, send: int, receive: int, n: int, t: int, comm: int, stream: int) -> None:
        whole = n * self._comm(comm).clique.size
        self._enqueue(comm, stream, Op("AllGather", send, receive, n, _type(t), 0), n, whole)

    def _ncclBroadcast(self, send: int, receive: int, n: int, t: int, root: int, comm: int, stream: int) -> None:
        self._need_rank(comm, root)
        self._enqueue(comm, stream, Op("Broadcast", send, receive, n, _type(t), root), n, n)

    def _ncclSend(self, send: int, n: int, t: int, peer: int, comm: int, stream: int) -> None:
        self._need_rank(comm, peer)
        self._enqueue(comm, stream, Op("Send", send, 0, n, _type(t), peer), n, 0)

    def _ncclRecv(self, receive: int, n: int, t: int, peer: int, comm: int, stream: int) -> None:
        self._need_rank(comm, peer)
        self._enqueue(comm, stream, Op("Recv", 0, receive, n, _type(t), peer), 0, n)

    def _need_rank(self, handle: int, rank: int) -> None:
        if not 0 <= rank < self._comm(handle).clique.size:
            raise _Refused(_INVALID_ARGUMENT, f"there is no rank {rank}")

    # -- work --------------------------------------------------------------------------------------------------------
    def _perform(self, comm: Comm, ops: list[Op]) -> None:
        """What the kernel of a group does on one device."""
        try:
            for op in ops:
                if op.name not in ("Send", "Recv"):
                    self._meet(comm, op)
            self._exchange(comm, [op for op in ops if op.name in ("Send", "Recv")])
        except _Aborted:
            return

    def _wait(self, clique: Clique, until: Callable[[], bool]) -> None:
        clique.changed.wait_for(lambda: clique.aborted or until())
        if clique.aborted:
            raise _Aborted

    def _meet(self, comm: Comm, op: Op) -> None:
        clique, number = comm.clique, comm.meetings
        comm.meetings += 1
        with clique.changed:
            arrived = clique.arrived[number]
            arrived[comm.rank] = op
            if len(arrived) == clique.size:
                if len({o.same for o in arrived.values()}) > 1:
                    self.noted.append(f"ranks differ: {sorted(str(o.same) for o in arrived.values())}")
                else:
                    self._together([arrived[r] for r in range(clique.size)])
                    clique.done.add(number)
                    clique.changed.notify_all()
            self._wait(clique, lambda: number in clique.done)

    def _together(self, ops: list[Op]) -> None:
        """The effect of a call on the memory of all ranks."""
        first, n = ops[0], ops[0].count
        sizes = {"ReduceScatter": n * len(ops)}
        sent = [self._read(o, sizes.get(first.name, n)) for o in ops]
        if first.name in ("AllReduce", "ReduceScatter"):
            result = sent[0]
            for x in sent[1:]:
                result = _OPS[first.extra](result, x).astype(first.dtype)
            for rank, o in enumerate(ops):
                self._write(o, result[rank * n : (rank + 1) * n] if first.name == "ReduceScatter" else result)
        elif first.name == "AllGather":
            for o in ops:
                self._write(o, np.concatenate(sent))
        else:
            for o in ops:
                self._write(o, sent[first.extra])

    def _read(self, o: Op, count: int) -> np.ndarray:
        size = count * o.dtype.itemsize
        return self.recorder.memory.view(o.send, size, o.name).copy().view(o.dtype)

    def _write(self, o: Op, values: np.ndarray) -> None:
        data = np.ascontiguousarray(values).view(np.uint8)
        self.recorder.memory.view(o.receive, data.size, o.name)[:] = data

    def _exchange(self, comm: Comm, ops: list[Op]) -> None:
        """Sends and receives of a group, which go on side by side."""
        clique, letters = comm.clique, []
        with clique.changed:
            for op in ops:
                if op.name == "Send":
                    letters.append(Letter((op.count, op.dtype.name), self._read(op, op.count)))
                    clique.mail[comm.rank, op.extra].append(letters[-1])
            clique.changed.notify_all()
            for op in ops:
                if op.name == "Recv":
                    box = clique.mail[op.extra, comm.rank]
                    self._wait(clique, partial(bool, box))
                    letter = box.popleft()
                    if letter.same != (op.count, op.dtype.name):
                        self.noted.append(f"{letter.same} sent, {(op.count, op.dtype.name)} received")
                        self._wait(clique, lambda: False)
                    self._write(op, letter.data)
                    letter.taken = True
                    clique.changed.notify_all()
            self._wait(clique, lambda: all(letter.taken for letter in letters))


def _type(number: int) -> np.dtype:
    if not 0 <= number < len(_TYPES):
        raise _Refused(_INVALID_ARGUMENT, f"there is no type {number}")
    return _TYPES[number]


def _op(number: int) -> int:
    if not 0 <= number < len(_OPS):
        raise _Refused(_INVALID_ARGUMENT, f"there is no op {number}")
    return number


@contextlib.contextmanager
def rehearsed_devices(devices: int, version: int = 22803, lacks: tuple[str, ...] = (), **how: Any) -> Iterator[Nccl]:
    """Several devices and NCCL, in the place of the real ones; at the end nothing may have gone wrong unseen."""
    with rehearsed(devices=devices, **how) as recorder:
        made = Nccl(recorder, version, lacks)
        with libnccl.use(made):
            yield made
        made.close()
