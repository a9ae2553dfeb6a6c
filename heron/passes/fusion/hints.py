"""What a program asks of fusion: ``frontend_attributes={nofuse="true"}`` and ``{fuse="NAME"}`` of an instruction."""

from __future__ import annotations

from heron.hlo.instruction import Instruction


def stays_alone(i: Instruction) -> bool:
    """Whether an instruction is to have a kernel of its own, by ``nofuse="true"``."""
    return bool(i.extras) and i.extras.get("frontend_attributes", {}).get("nofuse") == "true"


def group_of(i: Instruction) -> str:
    """The name that instructions of one kernel share, by ``fuse="NAME"``; empty without one."""
    return i.extras.get("frontend_attributes", {}).get("fuse", "") if i.extras else ""
