"""Every decision, as columns: words that repeat are kept once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heron.trace.record import Record


def section(trace: Record) -> dict[str, Any]:
    """``words``, and ``rows`` of: taken, then rule, reason, subject and object as numbers of words, costs."""
    words: dict[str, int] = {}

    def word(text: str) -> int:
        return words.setdefault(text, len(words))

    rows = [
        [int(d.ok), word(d.rule), word(d.reason), word(d.subject), word(d.object), d.cost_before, d.cost_after]
        for d in trace.decisions
    ]
    return {"words": list(words), "rows": rows}
