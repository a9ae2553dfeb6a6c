"""Modules and kernels of the rehearsed device: what an image holds, and how its kernels run on the host."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tests.rehearsal.declared import Declared, declared
from tests.rehearsal.memory import DeviceMemory, Fault, raw

#: runs with the values of the kernel's parameters, 64 bits each
Runner = Callable[[list[int]], None]


@dataclass
class Function:
    """A kernel of a module. ``pointers``: how many parameters are arrays, where somebody knows; ``opted``: bytes of
    dynamic shared memory that were asked for."""

    name: str
    declared: Declared
    run: Runner | None
    pointers: int = 0
    opted: int = 0


@dataclass
class Known:
    """Kernels the device can run, by the image they are in and their name."""

    kernels: dict[tuple[str, str], tuple[int, tuple[int, ...], Runner]] = field(default_factory=dict)

    def learn(self, image: bytes, name: str, pointers: int, run: Runner, alignments: tuple[int, ...] = ()) -> None:
        self.kernels[digest(image), name] = (pointers, alignments, run)


def digest(image: bytes) -> str:
    return hashlib.sha256(image.rstrip(b"\0")).hexdigest()


def functions(image: bytes, known: Known, helpers: dict[str, Runner]) -> dict[str, Function] | None:
    """The kernels of an image, from the sections of machine code or the text of PTX; None when it is neither."""
    if not image.startswith(b"\x7fELF") and b".entry" not in image:
        return None
    made = {}
    for name, facts in declared(image).items():
        pointers, alignments, run = known.kernels.get((digest(image), name), (0, facts.alignments, helpers.get(name)))
        made[name] = Function(name, replace(facts, alignments=alignments or facts.alignments), run, pointers)
    return made


def helpers(memory: DeviceMemory, conditions: dict[int, int], is_pinned: Callable[[int], bool]) -> dict[str, Runner]:
    """The runtime's own kernels (`heron.runtime.cuda.helpers`). ``conditions``: handle of a conditional node → value.
    ``is_pinned``: whether devices may write to an address of the host."""

    def words(address: int, count: int, dtype: str = "<u8"):
        size = int(dtype[2]) * count
        return memory.view(address, size, "helper kernel").view(dtype)

    def random(values: list[int]) -> None:
        state, out, delta = values
        now = words(state, 2)
        low, high = int(now[0]), int(now[1])
        words(out, 2)[:] = now
        after = (low + (high << 64) + delta) % (1 << 128)
        now[:] = after % (1 << 64), after >> 64

    def go_on(values: list[int]) -> None:
        predicate, handle = values
        tell(handle, int(memory.view(predicate, 1, "heron_while")[0]))

    def start(values: list[int]) -> None:
        counter, handle, trips = values
        words(counter, 1)[:] = 0
        tell(handle, int(trips != 0))

    def count(values: list[int]) -> None:
        counter, handle, trips = values
        cell = words(counter, 1)
        cell += 1
        tell(handle, int(cell[0] < trips))

    def case(values: list[int]) -> None:
        selector, handle, which, branches, by_predicate = values
        if by_predicate:
            chosen = 0 if memory.view(selector, 1, "heron_case")[0] else 1
        else:
            n = int(words(selector, 1, "<i4")[0])
            chosen = n if 0 <= n < branches else branches - 1
        tell(handle, int(chosen == which))

    def sweep(values: list[int]) -> None:
        origin, count, out = values
        memory.view(origin, 16 * count, "heron_sweep"), memory.view(out, 8, "heron_sweep")

    def number(values: list[int]) -> None:
        out, n = values
        words(out, 1, "<u4")[:] = n

    def mark(values: list[int]) -> None:
        counter, word, n = values
        cell = words(counter, 1)
        cell += 1
        if not is_pinned(word):
            raise Fault(700, f"{word:#x} is no memory of the host that a device may write to")
        raw(word, 8).view("<i4")[:] = n, int(cell[0])

    def tell(handle: int, value: int) -> None:
        if handle not in conditions:
            raise Fault(719, f"no conditional node has the handle {handle}")
        conditions[handle] = value

    return {
        "heron_random": random,
        "heron_while": go_on,
        "heron_start": start,
        "heron_count": count,
        "heron_case": case,
        "heron_sweep": sweep,
        "heron_number": number,
        "heron_mark": mark,
    }
