"""A kind of edit, as data: the atoms of a program that it can take away, and how it does."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from heron.hlo.ir.module import Module
from heron.records import dataclass
from heron.reduce.draft import Draft


@dataclass(frozen=True)
class Kind:
    """Edits of one kind.

    ``atoms(module)`` names what the edits are about, in an order in which neighbours belong together; `apply(draft,
    some)` makes the edit for some of them and tells whether it did anything. ``together``: how many atoms are tried at
    once at most; 0 for all, then halves, and so on. A kind that ``narrows`` is told what to keep instead.
    """

    name: str
    atoms: Callable[[Module], list[str]]
    apply: Callable[[Draft, Sequence[str]], bool]
    together: int = 0
    narrows: bool = False
