"""Facts about error codes: causes and cures from docs/reference/errors.md, examples from a data file.

The page is the one owner of the texts. A wheel carries a copy of it beside this file (pyproject.toml). The rules of the
verifier explain themselves: their declarations are read.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from dataclasses import asdict
from functools import cache
from pathlib import Path

from heron import files
from heron.errors import HeronError
from heron.records import dataclass

_HERE = Path(__file__).parent
#: where the page is: in a wheel, in a checkout
_PAGES = (_HERE / "errors.md", _HERE.parents[1] / "docs" / "reference" / "errors.md")
_EXAMPLES = _HERE / "error_examples.toml"
_AREA = re.compile(r"^## ([A-Z]+): (.*)$")
_ROW = re.compile(r"^\| ([A-Z]+\d{3}) \| (.*) \| (.*) \|$")
_LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")
_RULE_CURE = "Correct the program where the message points; `heron verify FILE` finds every broken rule."


@dataclass(frozen=True, slots=True)
class Explanation:
    """An error code in words; `example` is a message with that code, empty where none is kept."""

    code: str
    area: str
    cause: str
    cure: str
    example: str

    def to_json(self) -> dict[str, str]:
        """All fields."""
        return asdict(self)


def find(code: str) -> Explanation:
    """The explanation of a code, in any case. Raises CLI070 for an unknown one, with the nearest."""
    known = explanations()
    found = known.get(code.upper())
    if found is None:
        near = difflib.get_close_matches(code.upper(), known, 3, cutoff=0.5)
        hint = f"near it are {', '.join(near)}" if near else "`heron explain` lists all"
        raise HeronError("CLI070", f"there is no error code '{code}'", hint=hint)
    return found


@cache
def explanations() -> dict[str, Explanation]:
    """Every code, in the order of the page."""
    examples = {code: text.strip() for code, text in tomllib.loads(files.read_text(_EXAMPLES)).items()}
    found, area = [], ""
    for line in _page().splitlines():
        if heading := _AREA.match(line):
            area = heading[2]
        elif row := _ROW.match(line):
            found.append(Explanation(row[1], area, row[2], row[3], examples.get(row[1], "")))
    return {e.code: e for e in [*found, *_rules(examples)]}


def _page() -> str:
    text = files.read_text(next((p for p in _PAGES if p.exists()), _PAGES[-1]))
    return _LINK.sub(r"\1", text).replace("\\|", "|")


def _rules(examples: dict[str, str]) -> list[Explanation]:
    from heron.hlo.verifier import RULES

    return [
        Explanation(
            r.code, "rules of the verifier", f"A rule is broken: {r.summary}", _RULE_CURE, examples.get(r.code, "")
        )
        for r in RULES
    ]
