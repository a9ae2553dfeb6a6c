"""A GPU: its context, its streams, the modules loaded into it, its memory."""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence

from heron.errors import HeronError
from heron.once import once
from heron.runtime import compiled
from heron.runtime.cuda.allocator import Allocator
from heron.runtime.cuda.driver import CallFailed, Driver, driver
from heron.runtime.cuda.library_calls import Calls
from heron.runtime.cuda.transfer import Staging
from heron.targets import cuda, libcuda

STEPS_HINT = "start a new process; with HERON_CUDA_STEPS=1 each step is awaited, and the one that faults is named"
_LOG_BYTES = 8192
_ELF = b"\x7fELF"
#: results for PTX that the driver cannot compile: no compiler there, or one older than the PTX
_NO_COMPILER = (221, 222)
#: results for code whose other form may do: machine code of newer tools, PTX of a newer version
_OTHER_FORM = (200, 209, 218, 221, 222)


class CodeRefused(HeronError):
    """The driver loads no such code. ``may_differ``: another form of the same kernels may be loaded all the same."""

    def __init__(self, what: str, may_differ: bool, **facts: str | None) -> None:
        super().__init__("RUN045", what, **facts)  # type: ignore[arg-type]
        self.may_differ = may_differ


class Device:
    """One GPU with its primary context, which other libraries of the process share.

    All programs run on one stream, ``stream``, so that memory freed after a step was enqueued may be given to the next
    one at once; ``side`` has streams that steps take which do not depend on each other. ``epoch`` counts resets: what
    was made in another epoch is gone. ``lost`` says why this process cannot use the device any more. ``later``: what is
    given back when the device is next at work, of programs that nobody has any more.
    """

    def __init__(self, driver_: Driver, ordinal: int) -> None:
        if not 0 <= ordinal < driver_.devices:
            raise cuda.no_such_gpu(ordinal, driver_.devices)
        self.driver, self.ordinal = driver_, ordinal
        self.name = cuda.device_name(ordinal)
        self.capability = cuda.capability(ordinal) or (0, 0)
        self.lock = threading.RLock()
        self.epoch = 0
        self.lost = ""
        self.later: deque[Callable[[], None]] = deque()
        self._last = ""
        self._open()

    def _open(self) -> None:
        d = self.driver
        self.context = d.handle(d.cuDevicePrimaryCtxRetain, self.ordinal)
        self.make_current()
        self.stream = self.new_stream()
        self.side: list[int] = []
        self.memory: Allocator = Allocator.of(self)
        self.staging: Staging = Staging(self)
        self.calls: Calls = Calls(self)

    @contextlib.contextmanager
    def at_work(self, program: str = "") -> Iterator[None]:
        """Calls of this thread go here, one thread at a time. Raises RUN044, after a reset, when a kernel has faulted:
        some call after it is told. ``program``: what is run, for that message.
        """
        with self.lock:
            self.make_current()
            self.give_back()
            self._last = program or self._last
            try:
                yield
            except CallFailed as error:
                if not error.is_fault:
                    raise
                usable = self.reset()
                last = f"; the last program run there was {self._last}" if self._last else ""
                raise HeronError(
                    "RUN044",
                    f"a kernel faulted on {self.name}" + ", which was reset" * usable,
                    why=f"{error.why}{last}" + ("" if usable else f"; {self.lost}"),
                    hint="run it on NumPy arrays to find which kernel it is" if usable else STEPS_HINT,
                ) from error

    def make_current(self) -> None:
        """Calls of this thread go to this device from now on. Raises RUN054 when it is lost to this process."""
        if self.lost:
            raise HeronError("RUN054", f"{self.name} is lost to this process", why=self.lost, hint=STEPS_HINT)
        self.driver.cuCtxSetCurrent(self.context)

    def give_back(self) -> None:
        """Do what was left for later, if something was, once everything enqueued has run."""
        if not self.later:
            return
        self.synchronize()
        while self.later:
            self.later.popleft()()

    def new_stream(self) -> int:
        """A stream that does not wait for the legacy stream."""
        return self.driver.handle(self.driver.cuStreamCreate, libcuda.STREAM_NON_BLOCKING)

    def side_streams(self, count: int) -> Sequence[int]:
        """Streams beside the main one; made when first wanted."""
        while len(self.side) < count:
            self.side.append(self.new_stream())
        return self.side[:count]

    def event(self, timed: bool = False) -> int:
        """A new event."""
        return self.driver.handle(self.driver.cuEventCreate, 0 if timed else libcuda.EVENT_DISABLE_TIMING)

    def synchronize(self) -> None:
        """Wait for all that was enqueued on the main stream. Raises RUN042 with what went wrong on the device."""
        self.driver.cuStreamSynchronize(self.stream)

    def load(self, image: bytes, name: str) -> int:
        """A module of machine code or PTX. PTX that the driver has no compiler for is assembled here, if it can be.

        Raises `CodeRefused` (RUN045) with the driver's log when it refuses the code.
        """
        log = ctypes.create_string_buffer(_LOG_BYTES)
        try:
            return self._load(image, log)
        except CallFailed as error:
            if error.result == libcuda.OUT_OF_MEMORY:
                raise
            code = self._assembled(image) if error.result in _NO_COMPILER else None
            if code is not None:
                return self._load(code, log)
            said = log.value.decode(errors="replace").strip()
            raise CodeRefused(
                f"the CUDA driver refused the code of {name}",
                error.result in _OTHER_FORM,
                where=f"{self.name}, compute capability {self.capability[0]}.{self.capability[1]}",
                why=f"{error.why}{': ' + said[:2000] if said else ''}",
                hint=error.hint or "compile on this machine, with --target cuda",
            ) from error

    def _load(self, image: bytes, log: ctypes.Array) -> int:
        options = (ctypes.c_int * 2)(libcuda.JIT_ERROR_LOG, libcuda.JIT_ERROR_LOG_BYTES)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), _LOG_BYTES)
        data = image if image.startswith(_ELF) else image + b"\0"
        return self.driver.handle(self.driver.cuModuleLoadDataEx, data, 2, options, values)

    def _assembled(self, image: bytes) -> bytes | None:
        """Machine code of PTX for this device; None of machine code, and where nothing here makes it."""
        assemble = compiled.assembler()
        if assemble is None or image.startswith(_ELF):
            return None
        with contextlib.suppress(HeronError):
            return assemble(image.decode(), f"sm_{self.capability[0]}{self.capability[1]}")
        return None

    def function(self, module: int, name: str) -> int:
        """A kernel of a module. Raises RUN045 when it has none of that name."""
        try:
            return self.driver.handle(self.driver.cuModuleGetFunction, module, name.encode())
        except CallFailed as error:
            raise HeronError("RUN045", f"the code has no kernel '{name}'", why=error.why) from error

    def reset(self) -> bool:
        """Start over after a fault: the context with all memory and modules goes, a new one comes.

        Whether that worked. After some faults drivers give a process nothing more; the device is `lost` to it then.
        """
        with self.lock:
            self.epoch += 1
            self.memory.forget()
            try:
                self.driver.cuDevicePrimaryCtxReset_v2(self.ordinal)
                self._open()
            except CallFailed as error:
                self.lost = f"after a fault the driver gives it no new context: {error.call}, {error.why}"
            return not self.lost


def device(ordinal: int = 0) -> Device:
    """A GPU of this machine. Raises RUN030 (no driver or GPU), RUN040 (old driver), TGT008 (no such number)."""
    return _device(driver(), ordinal)


_device = once(Device)


def device_for(target: str, sm: str) -> Device:
    """The device a program runs on: ``cuda:N`` names it, else the first that runs code for ``sm``.

    Raises RUN041 when none does.
    """
    if target.startswith("cuda"):
        found = device(int(target.partition(":")[2] or 0))
        if runs(found.capability, sm, machine_code=False):
            return found
        raise _misfit(sm, [found])
    numbers = range(driver().devices)
    fitting = (n for n in numbers if runs(cuda.capability(n) or (0, 0), sm, machine_code=False))
    found = next(fitting, None)  # the others stay as they are: a context takes memory
    if found is None:
        raise _misfit(sm, [device(n) for n in numbers])
    return device(found)


def runs(has: tuple[int, int], sm: str, machine_code: bool) -> bool:
    """Whether a device of that compute capability runs code made for ``sm_NN``: PTX on every later one, machine code
    within the same major version, and code with features of one machine (``sm_90a``) on that alone."""
    digits = sm.removeprefix("sm_")
    number = int(digits.rstrip("af"))
    wanted = divmod(number, 10)
    if digits.endswith("a"):
        return has == wanted
    return has >= wanted and (has[0] == wanted[0] or not machine_code)


def _misfit(sm: str, devices: Sequence[Device]) -> HeronError:
    there = ", ".join(f"{d.name} (sm_{d.capability[0]}{d.capability[1]})" for d in devices)
    return HeronError(
        "RUN041",
        f"no GPU here runs code for {sm}",
        why=f"there is {there}",
        hint="--target cuda compiles for the GPU of this machine",
    )
