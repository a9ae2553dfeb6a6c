"""Groups of devices as text: lists, ``{{0,1},{2,3}}``; a reshaped count, ``[2,2]<=[4]``; axes of a mesh."""

from __future__ import annotations

import re

from heron.errors import HeronError
from heron.hlo.ir import replica_groups

_BLANKS = re.compile(r"\s+")
_LIST = r"\{(?:-?\d{1,19}(?:,-?\d{1,19})*)?\}"
_GROUPS = re.compile(rf"\{{(?:{_LIST}(?:,{_LIST})*)?\}}")
_SIZES = r"\d{1,19}(?:,\d{1,19})*"
_COUNT = re.compile(rf"\[\d{{1,19}},\d{{1,19}}\]<=\[{_SIZES}\](?:T\({_SIZES}\))?")


def normal(text: str) -> str | None:
    """The text as XLA prints it; None when these are no groups."""
    if text[:4] == "mesh":
        return text
    bare = _BLANKS.sub("", text)
    return bare if _GROUPS.fullmatch(bare) or _COUNT.fullmatch(bare) else None


def full(text: str) -> str:
    """Groups as lists; what does not fit together stays as it is."""
    try:
        found = replica_groups.parse(text)
    except HeronError:
        return text
    return "{" + ",".join("{" + ",".join(map(str, group)) + "}" for group in found) + "}"
