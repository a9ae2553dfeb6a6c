"""Names that are unique, counted as XLA counts them.

A name is a base and a number: ``add.7`` is number 7 of ``add``, ``add`` itself number 0. One that is taken gets the
first free number of its base.
"""

from __future__ import annotations

_MAX = 2**63 - 1
_DIGITS = 64  # leading zeros included


class Names:
    """The names in use. Numbers are without leading zeros: ``x.07`` becomes ``x.7``."""

    __slots__ = ("_used", "_next")

    def __init__(self) -> None:
        self._used: set[str] = set()  # number 0 as the base alone, unless that is a number of another one
        self._next: dict[str, int] = {}  # the number to try, for bases that needed one

    def copy(self) -> Names:
        copy = Names()
        copy._used, copy._next = set(self._used), dict(self._next)
        return copy

    def take(self, wanted: str) -> str:
        """`wanted` if it is free, else with the first free number; the name is taken from now on."""
        base, _, digits = wanted.rpartition(".")
        if wanted not in self._used and digits[:1] not in "0-":  # as almost all are
            self._used.add(wanted)
            return wanted
        base, number = _parts(wanted)
        numbered = number is not None
        number = number or 0
        # x.1 alone is number 1 of x, not number 0 of x.1
        first = f"{base}.0" if "." in base and _parts(base)[1] is not None else base
        key = f"{base}.{number}" if number else first
        if key in self._used:
            number = self._next.get(base, 0)
            while (key := f"{base}.{number}" if number else first) in self._used:
                number += 1
            self._next[base] = number + 1
        self._used.add(key)
        return key if number or not numbered else f"{base}.0"


def _parts(name: str) -> tuple[str, int | None]:
    """Base and number; the whole name and None where there is no number."""
    base, _, digits = name.rpartition(".")
    if base != "" and digits.removeprefix("-").isdecimal() and len(digits) <= _DIGITS and abs(int(digits)) <= _MAX:
        return base, int(digits)
    return name, None
