"""Rewrite rules of the algebraic simplifier, a file per theme.

Importing this package fills `rules.RULES`; a new theme file here is found without being listed anywhere.
"""

import importlib
import pkgutil

for _info in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_info.name}")
