"""The HLO instruction that each MLIR op computes: noted while somebody asks (`noting`), at no cost otherwise.

While a kernel is emitted, ops belong to the instruction whose value is being computed. A transform's new ops belong to
the instruction of the op in front of which they are made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from xdsl.ir import Operation, SSAValue


class Origins:
    """Names of HLO instructions by op, and for each op of a transform the op in front of which it was made."""

    __slots__ = ("_at", "_is_held", "_of", "_source")

    def __init__(self) -> None:
        self._of: dict[Operation, str] = {}
        self._source: dict[Operation, Operation] = {}
        self._at = ""
        self._is_held = False

    @contextmanager
    def within(self, name: str, hold: bool = False) -> Iterator[None]:
        """Ops made meanwhile compute that instruction; with ``hold`` also those of instructions begun inside."""
        before = self._at, self._is_held
        if not self._is_held:
            self._at, self._is_held = name, hold
        try:
            yield
        finally:
            self._at, self._is_held = before

    def note(self, op: Operation, before: Operation | None) -> None:
        """`op` was made, in front of `before`."""
        name = self._at or (self.of(before) if before is not None else "")
        if name:
            self._of[op] = name
        if before is not None:
            self._source[op] = before

    def replaced(self, op: Operation, values: Iterable[SSAValue]) -> None:
        """`values` take the place of the results of `op`: where nothing else is known of their ops, they come of it."""
        for value in values:
            made = value.owner
            if isinstance(made, Operation) and made not in self._of:
                self.note(made, op)

    def copied(self, old: Operation, new: Operation) -> None:
        """`new` is a copy of `old`, regions and all."""
        for a, b in zip(old.walk(), new.walk(), strict=True):
            self._source[b] = a
            if a in self._of:
                self._of[b] = self._of[a]

    def of(self, op: Operation) -> str:
        """The instruction that an op computes; that of an operand where nothing else is known; or empty."""
        found = self._of.get(op)
        if found is not None or op.regions:
            return found or ""
        owners = (o.owner for o in op.operands)
        return next((self._of[o] for o in owners if isinstance(o, Operation) and o in self._of), "")

    def back(self, op: Operation) -> Iterator[Operation]:
        """`op`, the op in front of which it was made, and so on."""
        at: Operation | None = op
        while at is not None:
            yield at
            at = self._source.get(at)


#: who wants to know, if anybody
noted: Origins | None = None


@contextmanager
def noting() -> Iterator[Origins]:
    """Note the origins of all ops that this process makes meanwhile; one thread at a time."""
    global noted
    before, noted = noted, Origins()
    try:
        yield noted
    finally:
        noted = before


def computing(name: str) -> AbstractContextManager[None]:
    """Ops made meanwhile compute that instruction."""
    return nullcontext() if noted is None else noted.within(name)


def inside(name: str) -> AbstractContextManager[None]:
    """Ops made meanwhile compute that instruction, whatever its own computation is made of."""
    return nullcontext() if noted is None else noted.within(name, hold=True)
