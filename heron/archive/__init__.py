"""Compiled programs in files (``.heron``): `save` writes one, `load_program` gives an executable, with no compiler.

A file is a zip of plain members: JSON for the plan, NumPy's own format for constants, object code, machine code or
LLVM text of kernels, each with a checksum. A program for a GPU can be saved on a machine that has none.
"""

from __future__ import annotations

from heron.archive.loading import load, load_program
from heron.archive.saving import save

__all__ = ["load", "load_program", "save"]
