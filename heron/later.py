"""Tables of what lies in other modules: a module is loaded when something of it is first asked for.

Most programs need few of a table's rows, and the modules behind all of them take longer to load than a small program
takes to compile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, TypeVar

V = TypeVar("V")


class Later(Mapping[str, V]):
    """A table by key, each row a place: ``package.module:name``."""

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = dict(places)
        self._loaded: dict[str, V] = {}

    def __getitem__(self, key: str) -> V:
        found = self._loaded.get(key)
        if found is None:
            module, _, name = self._places[key].partition(":")
            value: Any = import_module(module)
            found = self._loaded[key] = getattr(value, name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)
