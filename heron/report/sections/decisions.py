"""Decisions that were refused because of their cost; the closest come first, since a better cost model turns these."""

from __future__ import annotations

from collections import Counter

from heron.report.document import Block, Section, Table
from heron.report.subject import Subject
from heron.trace.record import Decision

_MOST = 12


def decisions(s: Subject) -> Section:
    """Refusals with both costs, sorted by their ratio; then all refusals, counted by reason."""
    refused = [d for d in s.trace.decisions if not d.ok]
    taken = len(s.trace.decisions) - len(refused)
    priced = sorted((d for d in refused if _ratio(d) is not None), key=lambda d: _ratio(d) or 0.0)
    blocks: list[Block] = [f"{taken:,} decisions taken, {len(refused):,} refused, {len(priced):,} of them by cost."]
    if priced:
        rows = [(d.rule, d.subject, d.object, f"{_ratio(d):.2f} x", d.reason) for d in priced[:_MOST]]
        left = len(priced) - len(rows)
        rest = f"{left:,} more; `heron why` answers about each" if left else ""
        blocks.append(Table.of("pass", "of", "with", "cost if taken>", "reason", rows=rows, rest=rest))
    reasons = Counter((d.rule, d.reason) for d in refused)
    common = reasons.most_common(_MOST)
    if common:
        rows = [(rule, reason, f"{n:,}") for (rule, reason), n in common]
        blocks.append(Table.of("pass", "reason of a refusal", "times>", rows=rows))
    facts = {
        "taken": taken,
        "refused": len(refused),
        "by_cost": [
            {"rule": d.rule, "subject": d.subject, "object": d.object, "before": d.cost_before, "after": d.cost_after}
            for d in priced[:_MOST]
        ],
    }
    return Section("Decisions", blocks, facts)


def _ratio(d: Decision) -> float | None:
    """The cost with the refused change over the cost without; None where the cost was not the reason."""
    if d.cost_before is None or d.cost_after is None or not 0 < d.cost_before < d.cost_after:
        return None
    return d.cost_after / d.cost_before
