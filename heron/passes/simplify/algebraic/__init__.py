"""Rewrite rules of the algebraic simplifier, a file per theme.

Importing this package fills `rules.RULES`; a new theme file here is found without being listed anywhere.

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

for _info in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_info.name}")
