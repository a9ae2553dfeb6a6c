"""A program compiled for an NVIDIA GPU. The device is looked for at the first call, so that any machine compiles."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence as Seq
from typing import Any

import numpy as np

from heron.errors import HeronError
from heron.runtime.cuda.array import DeviceArray, put
from heron.runtime.cuda.device import STEPS_HINT, Device, device_for
from heron.runtime.cuda.driver import CallFailed
from heron.runtime.cuda.loaded import Loaded
from heron.runtime.cuda.plan import Plan, plan
from heron.runtime.cuda.program import GpuProgram
from heron.runtime.executable import Executable, ProgramInfo, memory_order
from heron.runtime.thunks import KernelThunk, Thunk


class CudaExecutable(Executable):
    """Calls are safe from several threads; one runs at a time on a device.

    On NumPy arrays everything goes to the device and back. `on_device` takes and gives `DeviceArray`s, and returns when
    the work is enqueued.
    """

    def __init__(self, info: ProgramInfo) -> None:
        super().__init__(info)
        self._loaded: Loaded | None = None
        leaves = [s for p in self.signature.parameters for _, s in p.leaves() if s.is_array]
        self._arguments = [_Kind(s) for s in leaves]
        self._results = [_Kind(s) for s in self.signature.outputs]
        positions = {key: n for n, key in enumerate(self.signature.arguments)}
        allocations = self.assignment.allocations
        given = [(a, positions[a.parameter, a.index]) for a in allocations if a.kind == "parameter"]
        #: flat argument number → its allocation; those the program may overwrite
        self._places = {n: a.number for a, n in given}
        self._donated = {n for a, n in given if not a.is_read_only}
        owner = {number: n for n, number in self._places.items() if n in self._donated}
        #: for each output: its allocation, and the donated argument whose memory it takes over, if any
        self._outputs = [(s.allocation, owner.get(s.allocation)) for s in self.assignment.outputs]

    @property
    @abstractmethod
    def program(self) -> GpuProgram:
        """The program with its code. Raises what making the code raises."""

    def graph(self) -> Plan:
        """The plan as text: graphs and steps of the host, for a driver with conditional nodes."""
        return plan(self.program.thunks, self.program.outputs, self.program.graphs)

    @property
    def device(self) -> Device:
        """The device it runs on. Raises RUN030 with no GPU here, RUN041 when none here runs its code."""
        return self.load().device

    def load(self) -> Loaded:
        """The program on its device, loaded there if it is not yet.

        Raises RUN030, RUN040, RUN041 (no device for it), RUN043 (memory), RUN045 (code refused).
        """
        found = self._ready
        if found is not None:
            return found
        before = self._loaded
        device = before.device if before is not None else self._choose()
        with device.lock:
            if (found := self._ready) is not None:
                return found  # another thread has loaded it
            device.make_current()
            device.give_back()
            try:
                made = self._loaded = self._load(device)
            except HeronError as error:
                raise self._placed(error) from error
            for note in made.notes:
                self.trace.note(note)
            return made

    @property
    def _ready(self) -> Loaded | None:
        """The program where it was loaded; None if nowhere, or if the device was reset since."""
        found = self._loaded
        return found if found is not None and found.epoch == found.device.epoch else None

    def _choose(self) -> Device:
        """The device to run on. Raises RUN030, RUN040 and RUN041."""
        return device_for(self.target, self.program.sm)

    def _load(self, device: Device) -> Loaded:
        """The program in a device's memory."""
        return Loaded(device, self.program, self.assignment.allocations)

    def unload(self) -> None:
        """Give its memory on the device back; the next call loads it again."""
        found, self._loaded = self._loaded, None
        if found is not None:
            with found.device.lock:
                found.device.make_current()
                found.device.synchronize()
                found.close()

    @property
    def overwritten(self) -> frozenset[int]:
        """Flat arguments that a call with `donate` takes."""
        return frozenset(self._donated)

    # -- calls -------------------------------------------------------------------------------------------------------
    def on_device(self, *arrays: DeviceArray, donate: bool = False) -> list[DeviceArray]:
        """Run on arrays of the device; flat outputs in order, computed later: `DeviceArray.numpy` waits.

        With `donate` the program takes the arrays its text says it may overwrite, which are gone then; without, it
        works on copies of them. Raises RUN001 to RUN003 for arrays that do not fit, RUN047 for lost ones.
        """
        loaded = self.load()
        self.check_there(arrays, loaded.device)
        with loaded.device.at_work(self.name):
            try:
                return self._enqueue(loaded, list(arrays), donate)
            except CallFailed as error:
                if not error.is_fault or error.thunk is None:
                    raise
                raise self._fault(error, loaded.device.reset()) from error

    def check_there(self, arrays: Seq[DeviceArray], device: Device) -> None:
        """Raise RUN001 to RUN003, RUN047 and RUN049 for arrays of a device that do not fit."""
        kinds = self._arguments
        if len(arrays) != len(kinds):
            self.signature.check([np.empty(0)] * len(arrays))
        for n, (array, kind) in enumerate(zip(arrays, kinds, strict=True)):
            if not kind.takes(array) or array.device is not device:
                self._refuse(n, array, device)

    def _enqueue(self, loaded: Loaded, arrays: list[DeviceArray], donate: bool) -> list[DeviceArray]:
        device = loaded.device
        bases = loaded.fixed.copy()
        held: dict[int, DeviceArray] = {}
        for n in self._donated:
            if not donate:
                arrays[n] = copied(arrays[n])
        for n, number in self._places.items():
            bases[number] = arrays[n].address
        outputs: list[DeviceArray] = []
        for (number, argument), kind in zip(self._outputs, self._results, strict=True):
            made = held.get(number)
            if made is None:
                if argument is not None:
                    made = arrays[argument]
                else:
                    made = DeviceArray(device, kind.dtype, kind.shape, kind.order)
                    bases[number] = made.address
                held[number] = made
            outputs.append(made)
        self._run(loaded, bases)
        if donate:
            self._hand_over(arrays, outputs)
        return outputs

    def _run(self, loaded: Loaded, bases: list[int]) -> None:
        """Enqueue the program, with ``HERON_CUDA_STEPS=1`` step by step; the trace keeps what did not go as planned."""
        before = len(loaded.notes)
        if loaded.by_steps:
            _by_steps(loaded, bases)
        else:
            loaded.run(bases)
        for note in loaded.notes[before:]:
            self.trace.note(note)

    def _hand_over(self, arrays: list[DeviceArray], outputs: list[DeviceArray]) -> None:
        """Donated arrays lose their memory: to an output, or, where it was only scratch, altogether."""
        for n in self._donated:
            array = arrays[n]
            for k, made in enumerate(outputs):
                if made is array:
                    outputs[k] = _taken_over(array, self._results[k])
            if array.address:
                array.device.memory.free(array.address, array.size)
                array.give_up()

    def execute(self, arrays: list[np.ndarray], donate: bool = False) -> list[np.ndarray]:
        """Run on checked host arrays, which stay as they are. Raises RUN044 for a kernel that faults; the device is
        usable afterwards."""
        loaded = self.load()
        device = loaded.device
        with device.lock:
            device.make_current()
            try:
                return self._on_copies(loaded, arrays)
            except CallFailed as error:
                if not error.is_fault:
                    raise
                usable = device.reset()
                if usable and error.thunk is None:
                    error, usable = self._again(error, arrays)
                raise self._fault(error, usable) from error
            except HeronError as error:
                raise self._placed(error) from error

    def _on_copies(self, loaded: Loaded, arrays: Seq[np.ndarray]) -> list[np.ndarray]:
        """Copy arguments there, run, and wait for the outputs."""
        given = [put(a, loaded.device) for a in arrays]
        bases, made = self.addresses(loaded, given)
        self._run(loaded, bases)
        return [self._fetch(m, kind) for m, kind in zip(made, self._results, strict=True)]

    def put(self, arrays: Seq[Any]) -> list[DeviceArray]:
        """Arguments on the program's device, checked as `run` does, each in the order in memory the program wants."""
        checked, device = self.signature.check(arrays), self.device
        return [put(a, device, kind.order) for a, kind in zip(checked, self._arguments, strict=True)]

    def addresses(self, loaded: Loaded, given: Seq[DeviceArray]) -> tuple[list[int], list[DeviceArray]]:
        """The address of every allocation in a run on these arrays, which it may overwrite; and its outputs."""
        bases = loaded.fixed.copy()
        for n, number in self._places.items():
            bases[number] = given[n].address
        held: dict[int, DeviceArray] = {}
        for (number, argument), kind in zip(self._outputs, self._results, strict=True):
            if number not in held:
                taken = given[argument] if argument is not None else None
                held[number] = taken or DeviceArray(loaded.device, kind.dtype, kind.stored)
                bases[number] = held[number].address
        return bases, [held[number] for number, _ in self._outputs]

    def _fetch(self, array: DeviceArray, kind: _Kind) -> np.ndarray:
        values = np.empty(kind.stored, kind.dtype)
        array.device.staging.to_host(array.address, values)
        return values

    # -- what went wrong ---------------------------------------------------------------------------------------------
    def _refuse(self, n: int, array: Any, device: Device) -> None:
        """Raise for an argument that is no array of the right kind on that device."""
        if not isinstance(array, DeviceArray):
            why = f"it is {type(array).__name__}"
            raise HeronError("RUN049", f"argument {n} is not a device array", why=why, hint="cuda.array.put")
        array.need()
        kind = self._arguments[n]
        if array.device is not device:
            why = f"it is on GPU {array.device.ordinal}, the program on GPU {device.ordinal}"
            raise HeronError("RUN049", f"argument {n} is on another device", why=why)
        shape = f"{kind.dtype}{list(kind.shape)}"
        code = "RUN002" if array.dtype != kind.dtype else "RUN003"
        why = "it has another layout" if array.shape == kind.shape else None
        raise HeronError(code, f"argument {n} is {array.dtype}{list(array.shape)}, the program takes {shape}", why=why)

    def _placed(self, error: HeronError) -> HeronError:
        """An error of memory tells what the program needs."""
        if error.code != "RUN043":
            return error
        m = self.memory
        needs = f"{self.name} needs {m['peak']:,} bytes: arguments {m['arguments']:,}, temp {m['temp']:,}"
        return error.located(f"{needs}, outputs {m['outputs']:,}, constants {m['constants']:,}")

    def _fault(self, error: CallFailed, usable: bool) -> HeronError:
        """The error for a fault. ``usable``: whether the device still is."""
        thunk = error.thunk
        rerun = f"heron run --target sim:{self.program.sm} --check all finds out-of-bounds accesses and races"
        after = "" if usable or self._loaded is None else f"; {self._loaded.device.lost}"
        if thunk is None:
            again = "; run step by step it did not happen again" if usable else after
            hint = rerun if usable else STEPS_HINT
            return HeronError("RUN044", f"a kernel of {self.name} faulted", why=f"{error.why}{again}", hint=hint)
        entry = self.program.kernels.get(thunk.kernel) if isinstance(thunk, KernelThunk) else None
        if entry is None:
            what = f"a step of {self.name} faulted"
            return HeronError("RUN044", what, where=thunk.source, why=f"{error.why}{after}", hint=rerun)
        return HeronError(
            "RUN044",
            f"kernel '{entry.name}' of {self.name} faulted",
            where=entry.story or thunk.source,
            why=f"{error.why}, launched with grid {entry.grid}, block {entry.block}{after}",
            hint=rerun,
        )

    def _again(self, error: CallFailed, arrays: list[np.ndarray]) -> tuple[CallFailed, bool]:
        """Run once more, step by step, to find which one faults: the fault with it, or as it was when it did not happen
        again; and whether the device is usable, which is reset if it did."""
        try:
            loaded = self.load()
            given = [put(a, loaded.device) for a in arrays]
            bases, made = self.addresses(loaded, given)
            _by_steps(loaded, bases)
            del made  # not before: it is used
        except CallFailed as found:
            assert self._loaded is not None
            return found, self._loaded.device.reset()
        return error, True


def _by_steps(loaded: Loaded, bases: list[int]) -> None:
    """Run the program without graphs, waiting for each step. A `CallFailed` from it has the step."""
    last: list[Thunk] = []

    def watch(thunk: Thunk) -> None:
        loaded.device.synchronize()
        last[:] = [thunk]

    try:
        loaded.run(bases, watch=watch)
        loaded.device.synchronize()
    except CallFailed as error:
        error.thunk = last[0] if last else None
        raise


class _Kind:
    """The kind of an argument or result: type, dimensions, and layout (None: row-major)."""

    __slots__ = ("dtype", "order", "shape", "stored")

    def __init__(self, shape: Any) -> None:
        order = memory_order(shape)
        self.dtype, self.shape = shape.element_type.dtype, tuple(shape.dims)
        self.order = None if order == tuple(range(len(order))) else order
        self.stored = tuple(shape.dims[d] for d in order)

    def takes(self, array: Any) -> bool:
        return (
            type(array) is DeviceArray
            and array.dtype == self.dtype
            and array.shape == self.shape
            and array.order == self.order
            and not array.is_lost
        )


def copied(array: DeviceArray) -> DeviceArray:
    """A copy on the same device, enqueued."""
    made = DeviceArray(array.device, array.dtype, array.shape, array.order)
    device = array.device
    if array.size:
        device.driver.cuMemcpyDtoDAsync_v2(made.address, array.address, array.size, device.stream)
    return made


def _taken_over(array: DeviceArray, kind: _Kind) -> DeviceArray:
    """An array of that kind with the memory of another, which has none from then on."""
    made = DeviceArray.__new__(DeviceArray)
    made.device, made.epoch, made.size, made.address = array.device, array.epoch, array.size, array.address
    made.dtype, made.shape, made.order = kind.dtype, kind.shape, kind.order
    array.give_up()
    return made
