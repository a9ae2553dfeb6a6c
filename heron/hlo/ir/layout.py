"""Layout: how the elements of an array lie in memory (https://openxla.org/xla/shapes, tiled layout)."""

from __future__ import annotations

from functools import cache

#: XLA's number of the host's memory, S(5) in layouts
HOST_SPACE = 5


class Layout:
    """Order of dimensions in memory, tiles, memory space. Interned: compare with ``is``; make with `layout()`.

    ``minor_to_major[0]`` is the fastest-varying dimension.
    """

    __slots__ = ("minor_to_major", "tiles", "element_size", "memory_space", "extra", "tail", "text")

    def __init__(
        self,
        minor_to_major: tuple[int, ...],
        tiles: tuple[tuple[int, ...], ...],
        element_size: int,
        memory_space: int,
        extra: str,
        tail: str,
    ) -> None:
        self.minor_to_major, self.tiles = minor_to_major, tiles
        self.element_size, self.memory_space = element_size, memory_space
        self.extra, self.tail = extra, tail
        self.text = self._text()

    def _text(self) -> str:
        tail = ""
        if self.tiles:
            tail += "T" + "".join("(" + ",".join("*" if d < 0 else str(d) for d in tile) + ")" for tile in self.tiles)
        tail += self.extra
        if self.element_size:
            tail += f"E({self.element_size})"
        if self.memory_space:
            tail += f"S({self.memory_space})"
        tail += self.tail
        return "{" + ",".join(map(str, self.minor_to_major)) + (":" + tail if tail else "") + "}"

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def __reduce__(self) -> tuple[object, ...]:
        return layout, (self.minor_to_major, self.tiles, self.element_size, self.memory_space, self.extra, self.tail)

    @property
    def is_default(self) -> bool:
        """Row-major, no tiles, default memory space."""
        return self is default(len(self.minor_to_major))


@cache
def _interned(*key: object) -> Layout:
    return Layout(*key)  # type: ignore[arg-type]


def layout(
    minor_to_major: tuple[int, ...],
    tiles: tuple[tuple[int, ...], ...] = (),
    element_size: int = 0,
    memory_space: int = 0,
    extra: str = "",
    tail: str = "",
) -> Layout:
    """The one Layout with these fields.

    ``extra`` and ``tail`` keep as text what heron only carries: padding and types of indices before the element size,
    splits and prefixes after the memory space.
    """
    return _interned(tuple(minor_to_major), tuple(tiles), element_size, memory_space, extra, tail)


@cache
def default(rank: int) -> Layout:
    """Row-major: ``{rank-1, ..., 0}``."""
    return layout(tuple(range(rank - 1, -1, -1)))
