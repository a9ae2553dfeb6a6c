"""The word that was meant, most likely."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

#: names compared with a misspelt one; programs have tens of thousands
_CANDIDATES = 2000


def nearest(word: str, known: Iterable[str]) -> str | None:
    """A hint naming the likely intended word, if there is one."""
    word = word[:100]
    alike = [k for k in known if abs(len(k) - len(word)) <= 3]
    near = difflib.get_close_matches(word, alike[-_CANDIDATES:], 1)
    return f"did you mean '{near[0]}'?" if near else None
