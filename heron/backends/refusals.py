"""Errors that several rules of lowering raise."""

from __future__ import annotations

from heron.errors import HeronError
from heron.hlo.ir.instruction import Instruction


def no_code(i: Instruction, target: str) -> HeronError:
    """The error for an op that the target has no code for."""
    return HeronError(
        "GEN002",
        f"no code generation for '{i.opcode}' on {target} yet",
        where=str(i),
        hint="`heron eval` runs it by the evaluator",
    )
