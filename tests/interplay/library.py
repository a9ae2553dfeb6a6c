"""All fragments, by name; each file of `fragments` is a family."""

from __future__ import annotations

import pkgutil
from dataclasses import replace
from functools import cache
from importlib import import_module

from tests.interplay import fragments
from tests.interplay.fragment import Fragment


@cache
def library() -> dict[str, Fragment]:
    """Fragments by name, in a fixed order."""
    found: dict[str, Fragment] = {}
    for file in sorted(m.name for m in pkgutil.iter_modules(fragments.__path__)):
        for f in import_module(f"{fragments.__name__}.{file}").FRAGMENTS:
            assert f.name not in found, f"two fragments named {f.name}"
            found[f.name] = replace(f, family=file)
    return found


def families() -> list[str]:
    return list(dict.fromkeys(f.family for f in library().values()))
