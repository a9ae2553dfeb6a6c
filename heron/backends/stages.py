"""The stages of an executable's program: its compilation, or one that is made when a stage is asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heron.backends.compiler import Compilation


class Stages:
    """The text of each stage. ``compile`` gives the compilation, once; a program from the cache has none yet."""

    def __init__(self, compile: Callable[[], Compilation]) -> None:
        self._compile = compile

    @cached_property
    def compilation(self) -> Compilation:
        """The compilation of the program."""
        return self._compile()

    def text(self, name: str) -> str:
        """The program at a stage. Raises TGT002 for a name that is no stage, TGT003 for one of other targets."""
        return self.compilation.text(name)
