"""Modules as members of a file: text, and the bytes of long constants beside it, each once."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from heron.archive import container
from heron.hlo.ir.literal import Literal
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.hlo.text.literal_printer import print_literal
from heron.hlo.text.literals import is_long, parse_literal
from heron.hlo.text.printer import identity
from heron.hlo.text.shapes import parse_array

#: the member of a program after all passes
SCHEDULED = "stages/scheduled.txt"
_FOLDER = "literals/"
_LEFT_OUT = re.compile(r"(\S+) constant\((\{\.\.\.#[0-9a-f]+\})\)")


def pack(name: str, module: Module) -> dict[str, bytes]:
    """The members of a module whose text is member `name`."""
    members = {name: identity(module).encode()}
    for i in module.instructions():
        if i.opcode == "constant" and is_long(i.shape):
            value: Literal = i.attrs["literal"]
            member = f"{_FOLDER}{value.key.hex()}.npy"
            if member not in members:
                members[member] = container.array_bytes(value.array)
    return members


def unpack(name: str, members: Mapping[str, bytes]) -> Module:
    """The module whose text is member `name`. Raises what parsing raises, KeyError for a member that is missing."""
    return parse(members[name].decode(), elsewhere=_elsewhere(members))


def in_full(name: str, members: Mapping[str, bytes]) -> str:
    """The text of the module with the values of all constants."""
    elsewhere = _elsewhere(members)

    def printed(match: re.Match[str]) -> str:
        literal = parse_literal(match[2], parse_array(match[1]), elsewhere=elsewhere)
        return f"{match[1]} constant({print_literal(literal)})"

    return _LEFT_OUT.sub(printed, members[name].decode())


def _elsewhere(members: Mapping[str, bytes]) -> dict[str, np.ndarray]:
    return {
        n.removeprefix(_FOLDER).removesuffix(".npy"): container.bytes_array(data)
        for n, data in members.items()
        if n.startswith(_FOLDER)
    }
