"""Compiled programs in files (``.heron``): `save` writes one, `load_program` gives an executable, with no compiler.

A file is a zip of plain members: JSON for the plan, NumPy's own format for constants, object code, machine code or
LLVM text of kernels, each with a checksum. A program for a GPU can be saved on a machine that has none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron.archive.loading import load, load_program

if TYPE_CHECKING:
    from heron.archive.saving import save

__all__ = ["load", "load_program", "save"]


def __getattr__(name: str) -> object:
    """Saving is loaded on first use: it knows every kind of program, and a loaded one needs just its own."""
    if name != "save":
        raise AttributeError(f"module 'heron.archive' has no attribute '{name}'")
    from heron.archive.saving import save

    return save
