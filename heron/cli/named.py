"""The parameters of a program by the names that users know: of Python, of StableHLO, of HLO, or by number."""

from __future__ import annotations

import re
from collections.abc import Sequence

from heron.frontends.stablehlo.syntax import plain
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.origin import operation


def parameter_named(parameters: Sequence[Instruction], name: str) -> Instruction | None:
    """The parameter that a user means: its number, its name, its argument's in Python (``params['w']``) or in StableHLO
    (``arg3``), or one of these without or with another number behind a dot. None where no one or several fit."""
    name = name.removeprefix("%")
    if name.isdigit():
        return parameters[int(name)] if int(name) < len(parameters) else None
    word = plain(name)
    for known in (
        [p for p in parameters if p.name == name],
        [p for p in parameters if operation(p) == name],
        [p for p in parameters if p.name == word],
        [p for p in parameters if _base(p.name) == _base(word)],
    ):
        if len(known) == 1:
            return known[0]
    number = re.fullmatch(r"arg(\d+)", name)
    return parameters[int(number[1])] if number and int(number[1]) < len(parameters) else None


def _base(name: str) -> str:
    return re.sub(r"\.\d+$", "", name)
