"""A kernel of the simulated GPU as compiled for the host: machine code, and what its run must know of the source."""

from __future__ import annotations

from collections.abc import Sequence

from heron.records import dataclass
from heron.runtime.object_code import Object

Dims = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Access:
    """A load, store or atomic: its source text, bytes, kind, alignment and memory ('%argument', '@object', '')."""

    text: str
    size: int
    kind: int
    align: int
    root: str


@dataclass(frozen=True, slots=True)
class Global:
    """A global of the kernel, in shared memory or constant: an array of ``dims`` elements of ``item`` bytes."""

    name: str
    size: int
    shared: bool
    dims: tuple[int, ...] = ()
    item: int = 1


@dataclass(frozen=True, slots=True)
class KernelCode:
    """A kernel for one launch geometry.

    ``checks``: bits of `state.CHECKS` that are compiled in. ``arguments``: names of its pointers. ``sites``: by number
    the source text of a synchronisation, or a checked access. ``launch``, ``end``: addresses of the functions that run
    blocks and that end a launch. ``code``: the machine code, which lives as long as this.
    """

    name: str
    grid: Dims
    block: Dims
    checks: int
    arguments: Sequence[str]
    globals_: Sequence[Global]
    sites: Sequence[str | Access]
    launch: int
    end: int
    code: Object

    @property
    def blocks(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.block[0] * self.block[1] * self.block[2]

    def accesses(self) -> list[Access]:
        """The sites that are accesses."""
        return [s for s in self.sites if isinstance(s, Access)]

    def access(self, site: int) -> Access | None:
        """The access at a site; None for a synchronisation and for no site."""
        found = self.sites[site] if 0 <= site < len(self.sites) else None
        return found if isinstance(found, Access) else None

    def source(self, site: int) -> str | None:
        """The source text of a site; None for no site."""
        if not 0 <= site < len(self.sites):
            return None
        found = self.sites[site]
        return found.text if isinstance(found, Access) else found
