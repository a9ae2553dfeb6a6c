"""Cases in text files: a module that breaks one rule, and the one close by that keeps it, as one text.

::

    # HLO121 layout_sensitive | what the message says
    HloModule m
    ...
    - a line of the broken module only
    + a line of the sound one only

Words after the code are modes of `VerifierOptions`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from heron.hlo.verifier import VerifierOptions

_HEAD = re.compile(r"# (HLO\d+)((?: \w+)*) \| (.*)")


@dataclass(frozen=True)
class Case:
    """One case; `broken` and `kept` are HLO texts."""

    code: str
    says: str
    options: VerifierOptions
    broken: str
    kept: str
    name: str


def read(path: Path) -> list[Case]:
    """The cases of a file."""
    found: list[Case] = []
    blocks = re.split(r"^(?=# HLO)", path.read_text(), flags=re.MULTILINE)
    for n, block in enumerate(b for b in blocks if b.startswith("# HLO")):
        head, _, body = block.partition("\n")
        match = _HEAD.fullmatch(head)
        assert match is not None, head
        modes = {m: m != "allow_mixed_precision" for m in match[2].split()}
        lines = body.splitlines()
        name = f"{path.stem}-{n}-{match[1]}"
        broken, kept = (_text(lines, sign) for sign in "-+")
        found.append(Case(match[1], match[3], VerifierOptions(**modes), broken, kept, name))
    return found


def _text(lines: list[str], sign: str) -> str:
    other = "+" if sign == "-" else "-"
    return "\n".join("  " + x[2:] if x.startswith(sign + " ") else x for x in lines if not x.startswith(other + " "))


ALL = [case for path in sorted(Path(__file__).parent.glob("*.txt")) if path.stem != "refusals" for case in read(path)]
