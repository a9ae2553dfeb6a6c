"""Fusion hints of a program: ``frontend_attributes={nofuse="true"}``, ``{fuse="NAME"}`` and, of products,
``{product="own"}``."""

from __future__ import annotations

from heron.errors import HeronError
from heron.hlo.ir.instruction import Instruction
from heron.passes.framework.measured import CUBLASLT, OWN


def group_of(i: Instruction) -> str:
    """The name that instructions of one kernel share, by ``fuse="NAME"``; empty without one."""
    return i.extras.get("frontend_attributes", {}).get("fuse", "") if i.extras else ""


def computed_by(dot: Instruction) -> str:
    """The implementation stated by ``product="own"`` or ``product="cublaslt"``; empty if none is.

    Raises PASS024 for anybody else.
    """
    who = dot.extras.get("frontend_attributes", {}).get("product", "") if dot.extras else ""
    if who not in ("", OWN, CUBLASLT):
        why = f"{OWN} and {CUBLASLT} can be named; tiles of block kernels are for the lock file"
        raise HeronError("PASS024", f"'{dot.name}' is not a product that '{who}' can compute", where=str(dot), why=why)
    return who


def compute_by(dot: Instruction, who: str) -> None:
    """Say who is to compute a product."""
    dot.extras["frontend_attributes"] = dot.extras.get("frontend_attributes", {}) | {"product": who}
    dot.mark_changed()
