"""A launch of a program whose devices work together: one run over all of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from heron.pjrt import on_gpu
from heron.pjrt.buffer import Buffer
from heron.pjrt.event import Event
from heron.pjrt.worker import Worker
from heron.runtime.collectives.executable import DevicesExecutable

if TYPE_CHECKING:
    from heron.pjrt.loaded import ExecuteOptions, Given, LoadedExecutable


class Launches:
    """Runs launches one after the other, in the order in which they come, so that no two of them wait for each other's
    devices. Launches must not raise."""

    def __init__(self) -> None:
        self._worker = Worker("heron-launches")
        self._turn, self._lock = threading.Lock(), threading.Lock()
        self._waiting = 0

    def submit(self, launch: Callable[[], None], at_once: bool) -> None:
        """Run it after all that came before: in the caller if it may run `at_once` and none is under way."""
        if at_once and self._begin():
            try:
                launch()
            finally:
                self._turn.release()
            return
        with self._lock:
            self._waiting += 1

        def run() -> None:
            with self._turn:
                launch()
            with self._lock:
                self._waiting -= 1

        self._worker.submit(run)

    def stop(self) -> None:
        """Wait for what came, and end the thread."""
        self._worker.stop()

    def _begin(self) -> bool:
        with self._lock:
            return self._waiting == 0 and self._turn.acquire(blocking=False)


def run(
    executable: LoadedExecutable, rows: Sequence[Sequence[Buffer]], options: ExecuteOptions
) -> list[tuple[list[Buffer], Event]]:
    """Outputs of each device, and the event of its run, which may be under way. A small program whose arguments are
    there runs in the caller.

    Args:
        executable: the program; ``rows`` has a row of its arguments for each of its devices, checked.
        options: what is not to be donated.

    An error on one device is the error of all. A program none of whose devices are here does nothing here.
    """
    if not rows:
        return []
    outputs = [executable.new_outputs(d) for d in executable.devices]
    done = [Event() for _ in rows]
    given = [executable.given(row, options) for row in rows]

    def launch() -> None:
        try:
            if executable.client.devices[0].gpu is not None:
                results = on_gpu.run_together(executable, given)
            else:
                results = run_on_host(executable, given)
        except Exception as error:
            fail(outputs, done, error)
            return
        for row, found, event in zip(outputs, results, done, strict=True):
            executable.fulfil(row, found)
            event.set()

    is_ready = all(b.ready.is_ready for row in rows for b in row)
    # other processes may come later, after what this one does meanwhile
    at_once = executable.is_small and is_ready and not executable.processes
    executable.client.launches.submit(launch, at_once)
    return list(zip(outputs, done, strict=True))


def run_on_host(executable: LoadedExecutable, given: list[Given]) -> list[list[np.ndarray]]:
    """The outputs of all devices of a program whose arrays are the host's."""
    arrays, donates = [g.arrays() for g in given], any(g.donates for g in given)
    given.clear()
    program, processes = executable.program, executable.processes
    if not processes or not isinstance(program, DevicesExecutable):
        return program.run_devices(arrays, donate=donates)
    program.identity = executable.identity
    return program.run_devices(arrays, donate=donates, places=executable.places, processes=processes)


def fail(outputs: Sequence[Sequence[Buffer]], done: Sequence[Event], error: BaseException) -> None:
    """Tell whoever waits for any device's results."""
    for row, event in zip(outputs, done, strict=True):
        for b in row:
            b.fail(error)
        event.set(error)
