"""The rules as a page: docs/reference/verifier.md."""

from __future__ import annotations

from heron.hlo.verifier import RULES, Rule

_PAGE = """# The verifier's rules

Written by `heron verify --rules --markdown`; a test holds it true. A broken rule is a located error with the rule's
code. `heron verify FILE` finds all of them; `heron fmt` and every other verb stop at the first.

Rules run in three stages: first the structure (HLO101 to HLO107), then the shapes, then the rest. A stage runs when the
ones before it found nothing. Some rules count in a mode only: `heron verify --mode MODE`, or a field of
`VerifierOptions`; a compile turns `layout-sensitive` on after layout assignment and `scheduled` after scheduling.

What each op demands of its operands and attributes is its own shape rule's business, declared with the op
(`heron ops NAME`); all of these have the code HLO010.
"""


def markdown() -> str:
    """The page: a table for each theme, in the order of the first codes."""
    themes: dict[str, list[Rule]] = {}
    for r in RULES:
        themes.setdefault(r.theme, []).append(r)
    parts = [_PAGE]
    for theme, rules in themes.items():
        title, _, about = theme.partition(": ")
        parts.append(f"\n## {title}\n\n{about[:1].upper()}{about[1:]}\n")
        parts.append("\n| code | what must be so | asked of | mode |\n|---|---|---|---|\n")
        parts += [f"| {r.code} | {r.summary} | {r.looks_at} | {r.switch or 'always'} |\n" for r in rules]
    return "".join(parts)
