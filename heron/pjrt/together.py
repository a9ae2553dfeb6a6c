"""A launch of a program whose devices work together: one run over all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from heron.pjrt.buffer import Buffer
from heron.pjrt.event import Event

if TYPE_CHECKING:
    from heron.pjrt.loaded import ExecuteOptions, LoadedExecutable


def run(
    executable: LoadedExecutable, rows: Sequence[Sequence[Buffer]], options: ExecuteOptions
) -> list[tuple[list[Buffer], Event]]:
    """Outputs of each device, and the event of its run. The launch is enqueued: the client runs its launches one after
    the other, in the order of the calls, so that no two of them wait for each other's devices.

    Args:
        executable: the program; ``rows`` has a row of its arguments for each of its devices, checked.
        options: what is not to be donated.

    What goes wrong on one device is the error of all.
    """
    outputs = [executable.new_outputs(d) for d in executable.devices]
    done = [Event() for _ in rows]
    given = [executable.given(row, options) for row in rows]

    def launch() -> None:
        try:
            arrays = [g.arrays() for g in given]
            donates = any(g.donates for g in given)
            given.clear()
            results = executable.program.run_devices(arrays, donate=donates)
        except Exception as error:
            fail(outputs, done, error)
            return
        for row, found, event in zip(outputs, results, done, strict=True):
            executable.fulfil(row, found)
            event.set()

    executable.client.launches.submit(launch)
    return list(zip(outputs, done, strict=True))


def fail(outputs: Sequence[Sequence[Buffer]], done: Sequence[Event], error: BaseException) -> None:
    """Tell whoever waits for any device's results."""
    for row, event in zip(outputs, done, strict=True):
        for b in row:
            b.fail(error)
        event.set(error)
