"""Groups of devices in text: lists of them, ``{{0,1},{2,3}}``, or a reshaped and transposed count, ``[2,2]<=[4]``."""

from __future__ import annotations

import re
from math import prod

import numpy as np

_IOTA = re.compile(r"\[(\d+),(\d+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")
#: more devices than any machine has; a text may claim any number
MAX_DEVICES = 1 << 20


def full_groups(text: str) -> str:
    """Groups as lists; text that is no count (or not a sound one) stays as it is."""
    match = _IOTA.fullmatch(text.replace(" ", ""))
    if match is None:
        return text
    groups, size = int(match[1]), int(match[2])
    dims = [int(d) for d in match[3].split(",") if d]
    order = [int(d) for d in (match[4] or "").split(",") if d] or list(range(len(dims)))
    if prod(dims) != groups * size or groups * size > MAX_DEVICES or sorted(order) != list(range(len(dims))):
        return text
    rows = np.arange(groups * size).reshape(dims).transpose(order).reshape(groups, size).tolist()
    return "{" + ",".join("{" + ",".join(map(str, row)) + "}" for row in rows) + "}"
