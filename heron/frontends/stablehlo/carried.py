"""Attributes that operations and arguments carry for later readers: shardings and frontend attributes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from heron.errors import HeronError
from heron.frontends.stablehlo.syntax import Operation, as_text
from heron.hlo.facts import ends_work
from heron.hlo.ir.instruction import Instruction
from heron.hlo.text.carried import normal

#: tiles of one device, which is all of the value
_ONE_TILE = re.compile(r"\{devices=\[1(?:,1)*\](?:<=\[1\]|0)[^{}]*\}")


def gspmd(value: Any) -> str:
    """A GSPMD sharding as HLO has it: a single tile is a replicated value."""
    text = str(value)
    if _ONE_TILE.fullmatch(text):
        return "{replicated}"
    try:
        return normal("sharding", text) or text
    except HeronError:  # the verifier says where
        return text


def extras(attrs: dict[str, Any]) -> dict[str, Any]:
    """`Instruction.extras` of discardable attributes: GSPMD shardings as such, Shardy's as frontend attributes."""
    found: dict[str, Any] = {}
    frontend: dict[str, str] = {}
    for name, value in attrs.items():
        if name == "mhlo.sharding":
            if value != "":  # says nothing
                found["sharding"] = gspmd(value)
        elif name == "mhlo.frontend_attributes" and isinstance(value, dict):
            frontend.update({k: v if isinstance(v, str) else as_text(v) for k, v in value.items()})
        elif name[:4] == "sdy.":
            frontend[f"xla.{name}"] = as_text(value)
    if frontend:
        found["frontend_attributes"] = frontend
    return found


def carry(op: Operation, results: Sequence[Instruction]) -> None:
    """Copy an operation's shardings and frontend attributes to its instruction."""
    if not any("." in name for name in op.attrs):
        return
    given = extras(op.attrs)
    if not given:
        return
    for i in results:
        i.extras.update(given)
        while i.opcode == "get-tuple-element" or ends_work(i.opcode):  # XLA has them on the start of a transfer, too
            i = i.operands[0]
            i.extras.update(given)
