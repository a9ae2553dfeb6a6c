"""Cliques: devices that exchange arrays, with the communicator of each of them in this process.

A clique is a group of a program's devices in the order of their ranks. Its communicators are kept for all programs on
the same GPUs. The lowest rank's process makes the id; a program acquires all its cliques in one order before it runs.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from operator import itemgetter
from typing import TYPE_CHECKING

from heron.once import once
from heron.records import dataclass
from heron.runtime.cuda.nccl.binding import Nccl, NcclFailed, nccl

if TYPE_CHECKING:
    from heron.runtime.cuda.device import Device
    from heron.runtime.cuda.loaded import Loaded

Members = tuple[int, ...]
#: gives the id of a clique, which all its processes agree on; the argument makes a new one
Share = Callable[[Members, Callable[[], bytes]], bytes]
#: seconds that aborted communicators get to end
PATIENCE = 10.0
#: seconds that calls under way get before their communicator is aborted
_COURTESY = 1.0


@dataclass(eq=False)
class Clique:
    """``gpus``: this process's members, by number; ``epochs``, ``communicators``: theirs, once they have joined.
    ``users``: programs that may have graphs with their calls. ``aborted``: nobody joins any more.
    """

    members: Members
    gpus: Mapping[int, Device]
    epochs: Mapping[int, int]
    unique_id: bytes
    communicators: dict[int, int] = field(default_factory=dict)
    users: weakref.WeakSet[Loaded] = field(default_factory=weakref.WeakSet)
    aborted: bool = False
    #: held by a device's thread while it makes calls of a communicator
    calling: dict[int, threading.Lock] = field(init=False)

    def __post_init__(self) -> None:
        self.calling = {n: threading.Lock() for n in self.gpus}

    @property
    def told(self) -> str:
        """The devices, for messages."""
        return f"devices {', '.join(map(str, self.members))}"

    @property
    def is_whole(self) -> bool:
        """Whether all members of this process have joined, and none has lost its device's context since."""
        joined = len(self.communicators) == len(self.gpus)
        return joined and all(self.gpus[n].epoch == epoch for n, epoch in self.epochs.items())


class Cliques:
    """The cliques of a process for one set of GPUs: ``gpus`` has those of its devices, by number."""

    def __init__(self, nccl: Nccl, gpus: Mapping[int, Device]) -> None:
        self.nccl, self.gpus = nccl, gpus
        self._kept: dict[Members, Clique] = {}

    def acquire(self, groups: Sequence[Members], share: Share) -> dict[Members, Clique]:
        """The cliques of these groups that have a member here. Members of new ones have yet to `join`.

        All processes call this with the same groups, which are met in one order.
        """
        found: dict[Members, Clique] = {}
        for members in sorted(set(groups)):
            here = {n: self.gpus[n] for n in members if n in self.gpus}
            if not here:
                continue
            clique = self._kept.get(members)
            if clique is None or not clique.is_whole:
                if clique is not None:
                    self.abort([clique])
                epochs = {n: gpu.epoch for n, gpu in here.items()}
                try:
                    unique_id = share(members, self.nccl.unique_id)
                except NcclFailed as error:
                    raise error.at(f"the communicator of devices {', '.join(map(str, members))}") from error
                clique = self._kept[members] = Clique(members, here, epochs, unique_id)
            found[members] = clique
        return found

    def join(self, clique: Clique, number: int) -> None:
        """Make a member's communicator, when all have come. Its device is the current one of this thread."""
        if clique.aborted:
            raise NcclFailed("", 0, "it was aborted", f"the communicator of {clique.told}")
        if number not in clique.communicators:
            rank = clique.members.index(number)
            try:
                made = self.nccl.join(len(clique.members), clique.unique_id, rank)
            except NcclFailed as error:
                raise error.at(f"device {number} joins the communicator of {clique.told}") from error
            clique.communicators[number] = made

    def error(self, cliques: Sequence[Clique]) -> NcclFailed | None:
        """The first error that NCCL has found out of communicators."""
        for clique in cliques:
            for number, communicator in list(clique.communicators.items()):
                try:
                    found = self.nccl.error_of(communicator)
                except NcclFailed as error:
                    found = error
                if found is not None:
                    return found.at(f"device {number} in the communicator of {clique.told}")
        return None

    def begin_abort(self, cliques: Sequence[Clique]) -> list[threading.Thread]:
        """Stop what runs in communicators: kernels that wait for others end. Each abort waits, in a thread of its own,
        until no graph has calls of its communicator."""
        threads = []
        for clique in cliques:
            self._kept.pop(clique.members, None)
            clique.aborted = True
            while clique.communicators:
                number, communicator = clique.communicators.popitem()
                thread = threading.Thread(target=self._abort, args=(clique, number, communicator), daemon=True)
                thread.start()
                threads.append(thread)
        return threads

    def _abort(self, clique: Clique, number: int, communicator: int) -> None:
        """Abort a communicator, after the calls that its device's thread makes just now, unless they do not return."""
        lock = clique.calling[number]
        came = lock.acquire(timeout=_COURTESY)
        try:
            self.nccl.library.ncclCommAbort(communicator)  # its result matters to nobody any more
        finally:
            if came:
                lock.release()

    def abort(self, cliques: Sequence[Clique]) -> None:
        """Stop what runs in communicators, and drop the graphs that have their calls."""
        self.end_abort(cliques, self.begin_abort(cliques))

    def end_abort(self, cliques: Sequence[Clique], threads: Sequence[threading.Thread]) -> None:
        """Drop the graphs that have calls of aborted communicators, for which the aborts wait."""
        for loaded in {loaded for clique in cliques for loaded in clique.users}:
            loaded.drop_graphs()
        deadline = time.monotonic() + PATIENCE
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))


def cliques_of(gpus: Mapping[int, Device]) -> Cliques:
    """The cliques on these GPUs, which all programs share. Raises RUN090 and RUN093."""
    return _cliques(nccl(), tuple(sorted(gpus.items(), key=itemgetter(0))))


@once
def _cliques(library: Nccl, gpus: tuple[tuple[int, Device], ...]) -> Cliques:
    return Cliques(library, dict(gpus))
