"""Running a program on a GPU: the caller enqueues it, the device's thread tells when it is done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from heron.errors import HeronError
from heron.pjrt.buffer import Buffer
from heron.pjrt.event import Event, all_of
from heron.runtime.cuda.array import DeviceArray, put
from heron.runtime.cuda.devices import CudaDevices
from heron.runtime.cuda.driver import CallFailed
from heron.runtime.cuda.executable import CudaExecutable, copied

if TYPE_CHECKING:
    from heron.pjrt.device import Device
    from heron.pjrt.loaded import ExecuteOptions, Given, LoadedExecutable
    from heron.runtime.cuda.device import Device as Gpu

#: what a token's buffer holds
_NOTHING = np.empty(0, np.uint8)


def run(
    executable: LoadedExecutable, device: Device, arguments: Sequence[Buffer], options: ExecuteOptions
) -> tuple[list[Buffer], Event]:
    """Outputs that hold their arrays as soon as the program is enqueued, and are ready when it has run.

    Arguments may be arrays that are being computed: all programs of a GPU run on one stream. One that is not even
    enqueued is waited for by the device's thread, and so is a program that calls Python.
    """
    memory, gpu = device.default_memory, cast("Gpu", device.gpu)
    outputs = [Buffer(memory, s.element_type, s.dims, None, owned=True) for s in executable.outputs]
    waiting = [b.ready for b in arguments if b.array_now() is None and not b.ready.is_ready]
    donated = {n for n in executable.donated if n not in options.non_donatable}
    given = [
        (b if (array := b.array_now()) is None else array, n in donated and b.is_alone)
        for n, (b, s) in enumerate(zip(arguments, executable.parameters, strict=True))
        if s.is_array
    ]
    for n in donated:
        arguments[n].delete()
    done = Event()

    def start() -> None:
        try:
            results = iter(_enqueue(cast(CudaExecutable, executable.program), gpu, given))
            mark = _mark(gpu)
        except Exception as error:
            _finish(outputs, done, error)
            return
        given.clear()
        for b, shape in zip(outputs, executable.outputs, strict=True):
            b.enqueued(next(results) if shape.is_array else _NOTHING)
        device.worker.submit(lambda: _finish(outputs, done, _waited(gpu, mark, executable.name)))

    if waiting:
        all_of(waiting).on_ready(lambda _: device.worker.submit(start))
    elif executable.about.calls_python and not device.worker.is_here:
        device.worker.submit(start)
    else:
        start()
    return outputs, done


def _enqueue(program: CudaExecutable, gpu: Gpu, given: Sequence[tuple[Any, bool]]) -> Sequence[Any]:
    """The program's outputs on the GPU, for arguments (an array, or a buffer that is ready by now) and whether each may
    be overwritten."""
    arrays = [a.held() if isinstance(a, Buffer) else a for a, _ in given]
    arrays = [put(a, gpu) if isinstance(a, np.ndarray) else a for a in arrays]
    takes = any(is_given for _, is_given in given)
    if takes:
        with gpu.at_work():
            for n in program.overwritten:
                arrays[n] = arrays[n] if given[n][1] else copied(arrays[n])
    return program.on_device(*arrays, donate=takes)


def run_together(executable: LoadedExecutable, given: list[Given]) -> list[list[DeviceArray]]:
    """The outputs of all devices of a program on several GPUs, when they are there; arrays of the host are copied."""
    gpus = [cast("Gpu", device.gpu) for device in executable.devices]
    rows: list[list[Any]] = []
    for gpu, each in zip(gpus, given, strict=True):
        rows.append([put(a, gpu) if isinstance(a, np.ndarray) else a for a in each.arrays()])
    gives = [[is_given for _, is_given in each.values] for each in given]
    given.clear()
    return cast(CudaDevices, executable.program).run_there(rows, gives, gpus)


def _mark(gpu: Gpu) -> int:
    """An event of all that is enqueued so far."""
    with gpu.at_work():
        event = gpu.event()
        gpu.driver.cuEventRecord(event, gpu.stream)
        return event


def _waited(gpu: Gpu, mark: int, name: str) -> BaseException | None:
    """Wait for an event, without holding up who enqueues more; what went wrong on the GPU until then."""
    try:
        gpu.make_current()
        gpu.driver.cuEventSynchronize(mark)
        gpu.driver.cuEventDestroy_v2(mark)
    except CallFailed as failure:
        try:
            with gpu.at_work(name):
                raise failure
        except HeronError as error:
            return error
    return None


def _finish(outputs: list[Buffer], done: Event, error: BaseException | None) -> None:
    for b in outputs:
        b.ready.set(error)
    done.set(error)
