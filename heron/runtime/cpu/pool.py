"""The thread pool compiled CPU programs share: operating-system threads that run native code only.

`pool(threads)` gives the process's pool of that many threads, the caller counted, or None when there is nothing to
share. Threads start with the first program that needs them, keep to the process's CPUs, block signals (Python's main
thread gets those), are left behind by `os.fork` (the child starts its own when it needs them) and end with the
interpreter.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import platform
import signal
import threading
import time

from heron.errors import HeronError
from heron.once import once
from heron.runtime import compiled

#: the native helper, and its functions: a fork, and what a worker runs
HELPER = "thread pool"
PARALLEL_FOR, WORKER = "heron_parallel_for", "heron_worker"
#: pointers a kernel has at most for which the pool has a function that calls it
MOST_POINTERS = 16

#: Linux's numbers of the futex system call and of its operations, of memory that one process has
FUTEX = {"x86_64": 202, "aarch64": 98}
FUTEX_WAIT, FUTEX_WAKE = 128, 129

_MOST_THREADS = 1024
_POOLS: dict[int, Pool] = {}
_LOCK = threading.Lock()
_ENDING = False
#: seconds the interpreter's exit waits for a worker that is in the middle of a job
_PATIENCE = 1.0
#: raised by an instruction of the thread itself: to block them would hide where a crash came from
OWN_SIGNALS = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP}


class State(ctypes.Structure):
    """A pool as its native code sees it, its parts on cache lines of their own.

    ``ticket``: of the job under way (`codegen/native/pool_code.py`). ``sleepers``: workers that sleep.
    ``under_way``: ranges taken and not done. ``caller_sleeps``: 1 while the caller waits for them asleep.
    ``in_use``: 1 during a job. ``function``, ``args``, ``items``, ``size``: the job, and the items of a range.
    ``float_mode``: the caller's, in which the job is done.
    """

    _fields_ = [
        ("ticket", ctypes.c_int64),
        ("sleepers", ctypes.c_int32),
        ("_line0", ctypes.c_int32 * 13),
        ("under_way", ctypes.c_int32),
        ("caller_sleeps", ctypes.c_int32),
        ("_line1", ctypes.c_int32 * 14),
        ("workers", ctypes.c_int32),
        ("stop", ctypes.c_int32),
        ("_line2", ctypes.c_int32 * 14),
        ("in_use", ctypes.c_int32),
        ("_line3", ctypes.c_int32 * 15),
        ("function", ctypes.c_void_p),
        ("args", ctypes.c_void_p),
        ("items", ctypes.c_int64),
        ("size", ctypes.c_int64),
        ("float_mode", ctypes.c_int64),
    ]


#: the byte of the word workers sleep on: the ticket's high half on a little-endian machine
SLEEP_WORD = 4


def supported() -> bool:
    """Whether this machine can have a pool: Linux on x86-64 or AArch64."""
    return platform.system() == "Linux" and platform.machine() in FUTEX


def usable_cpus() -> int:
    """CPUs this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


def thread_count(wanted: int) -> int:
    """The number of threads of a program that asks for `wanted` (0: one for each usable CPU); 1 without a pool."""
    if not supported():
        return 1
    return min(wanted or usable_cpus(), _MOST_THREADS)


def pool(wanted: int) -> Pool | None:
    """The pool for `Options.threads`; None when that comes to one thread."""
    threads = thread_count(wanted)
    if threads < 2:
        return None
    with _LOCK:
        found = _POOLS.get(threads)
        if found is None:
            found = _POOLS[threads] = Pool(threads)
        return found


def range_name(pointers: int) -> str:
    """The name of the pool's function that calls kernels of so many pointers."""
    return f"heron_range_{pointers}"


def _address(function: str) -> int:
    code = compiled.functions(HELPER)
    assert code is not None, "no compiler is loaded: import heron.codegen.native.helpers"
    return code[function]


@once
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None)
    libc.pthread_create.argtypes = [ctypes.c_void_p] * 4
    libc.pthread_tryjoin_np.argtypes = [ctypes.c_ulong, ctypes.c_void_p]
    return libc


class Pool:
    """``threads - 1`` workers and whoever calls `parallel_for`. `address` is what compiled code passes to it."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._memory = ctypes.create_string_buffer(ctypes.sizeof(State) + 64)
        self.address = -(-ctypes.addressof(self._memory) // 64) * 64
        self._state = State.from_address(self.address)
        self._workers: list[int] = []
        #: whether workers were started in this process; a plain attribute, since every call of a program looks
        self.started = False

    @property
    def parallel_for(self) -> int:
        """Address of ``void (ptr pool, ptr fn, ptr args, i64 items, i64 grain)``."""
        return _address(PARALLEL_FOR)

    def range_of(self, pointers: int) -> int:
        """Address of ``void (ptr args, i64 lo, i64 hi)``, which calls a kernel: `args` are so many pointers for it, and
        itself."""
        return _address(range_name(pointers))

    def start(self) -> None:
        """Start the workers unless they run. Fewer than wanted is no error: the caller does what nobody else does."""
        with _LOCK:
            if self.started or _ENDING:
                return
            libc = _libc()
            worker = _address(WORKER)
            self._state.stop = 0
            before = signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals) - OWN_SIGNALS)
            try:
                for _ in range(self.threads - 1):
                    thread = ctypes.c_ulong()
                    if libc.pthread_create(ctypes.byref(thread), None, worker, self.address):
                        break
                    self._workers.append(thread.value)
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
            self._state.workers = len(self._workers)
            self.started = True

    def stop(self) -> None:
        """End the workers; those in the middle of a job end after it. Programs that still run go on without them."""
        with _LOCK:
            self._state.workers = 0
            self._state.stop = 1
            libc, deadline = _libc(), time.monotonic() + _PATIENCE
            while self._workers and time.monotonic() < deadline:
                # again and again: a worker may look at the stop word just before it falls asleep
                libc.syscall(
                    ctypes.c_long(FUTEX[platform.machine()]),
                    ctypes.c_void_p(self.address + SLEEP_WORD),
                    FUTEX_WAKE,
                    _MOST_THREADS,
                    None,
                    None,
                    0,
                )
                self._workers = [t for t in self._workers if libc.pthread_tryjoin_np(t, None)]
                if self._workers:
                    time.sleep(0.0002)
            self._workers.clear()
            self.started = False

    def run(self, function: int, args: int, items: int, grain: int = 1) -> None:
        """Call the native ``void (ptr args, i64 lo, i64 hi)`` at `function` on ranges of [0, items). Raises RUN031.

        `grain`: ranges begin at its multiples.
        """
        if items < 0 or grain < 1:
            raise HeronError("RUN031", f"no parallel loop over {items} items in grains of {grain}")
        if not self.started:
            self.start()
        native = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 2)(self.parallel_for)
        native(self.address, function, args, items, grain)

    def _forget(self) -> None:
        """In a forked child: no worker came along, and no job is under way."""
        ctypes.memset(self.address, 0, ctypes.sizeof(State))
        self._workers.clear()
        self.started = False


def _end() -> None:
    global _ENDING
    _ENDING = True
    for each in list(_POOLS.values()):
        each.stop()


def _after_fork() -> None:
    global _LOCK
    _LOCK = threading.Lock()  # another thread of the parent may have held it
    for each in _POOLS.values():
        each._forget()


atexit.register(_end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
