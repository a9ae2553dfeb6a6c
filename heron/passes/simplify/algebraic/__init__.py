"""Rewrite rules of the algebraic simplifier, a file per theme.

Importing this package registers the rules: take `RULES` from here. A new theme file is found without being listed.

What XLA's simplifier does and these rules leave out:

- signed quotients and remainders by powers of two as operations on the magnitude: LLVM needs fewer instructions
- reshapes of random numbers as random numbers of the other shape: that gives other numbers
- constants through collectives: that belongs to the passes about collectives
- transposes into scatters: two transposes for one
- gathers of what is padded along batching dimensions, and variadic reductions of a single array: nobody writes them
- what XLA has switched off on GPUs and CPUs: parameters to the right of dots, scalar factors through convolutions
"""

import importlib
import pkgutil

from heron.passes.rewriting.rules import RULES

__all__ = ["RULES"]

for _info in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_info.name}")
