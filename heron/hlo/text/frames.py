"""Stack frames as XLA's parser numbers them: those instructions refer to, in the order of the text, parents first."""

from __future__ import annotations

from collections.abc import Iterable

from heron.hlo.text.header import StackFrames


def used(tables: StackFrames, ids: Iterable[int]) -> tuple[StackFrames, dict[int, int]]:
    """The tables of the frames `ids` refer to, and the new number of each; frames that do not exist have none."""
    files: dict[str, int] = {}
    functions: dict[str, int] = {}
    locations: dict[tuple[int, int, int, int, int, int], int] = {}
    frames: dict[tuple[int, int], int] = {}
    numbers: dict[int, int] = {}
    for frame in ids:
        for n in _outermost_first(tables, frame, numbers):
            at, parent = tables.frames[n - 1]
            file, function, *rest = tables.locations[at - 1]
            place = (
                files.setdefault(tables.files[file - 1], len(files) + 1),
                functions.setdefault(tables.functions[function - 1], len(functions) + 1),
                *rest,
            )
            location = locations.setdefault(place, len(locations) + 1)  # type: ignore[arg-type]
            outer = numbers[parent - 1] if parent > 1 else 0
            numbers[n] = frames.setdefault((location, outer + 1), len(frames) + 1)
    return StackFrames(tuple(files), tuple(functions), tuple(locations), tuple(frames)), numbers


def _outermost_first(tables: StackFrames, frame: int, known: dict[int, int]) -> list[int]:
    """The frame and those it stands in as far as they are new; none where the chain leads nowhere or round."""
    chain: list[int] = []
    while frame > 0 and frame not in known:
        if tables.place(frame) is None or len(chain) > len(tables.frames):
            return []
        chain.append(frame)
        frame = tables.frames[frame - 1][1] - 1
    return chain[::-1]
