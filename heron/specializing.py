"""Programs with open sizes, compiled when they are called: once for each kind of arguments, as by `heron.jit`.

The kind of arguments is their types and shapes, and the values of those integers that sizes depend on.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from heron.errors import HeronError
from heron.frontends.arguments import Given, given
from heron.frontends.loading import OPEN_SIZES
from heron.frontends.stablehlo import sizes
from heron.frontends.stablehlo.importer import imported
from heron.frontends.stablehlo.reader import read
from heron.frontends.stablehlo.syntax import Program
from heron.hlo.ir.module import Module
from heron.runtime.executable import Executable


class Specialized:
    """A program with its executables, one for each kind of arguments. Call it like an executable.

    Args:
        text: StableHLO whose sizes its arguments decide.
        filename: what errors call it.
        compile: makes the executable of a module.
    """

    def __init__(self, text: str, filename: str, compile: Callable[[Module], Executable]) -> None:
        self._text, self.filename, self._compile = text, filename, compile
        self._executables: dict[Hashable, Executable] = {}
        #: for each kind of types and shapes, the arguments whose values sizes depend on
        self._values: dict[Hashable, tuple[int, ...]] = {}

    def __call__(self, *arrays: Any) -> Any:
        """Run, compiling first where needed. Raises what `executable` and the executable raise."""
        return self.executable(*arrays)(*arrays)

    def module(self, *arguments: Any) -> Module:
        """The module for such arguments (arrays, or shapes where no value matters), verified and before any pass.

        Raises SHLO011 (sizes stay open), SHLO012 (the arguments are not the program's), SHLO013 (sizes the program
        refuses), and what importing raises.
        """
        known = given(arguments)
        return self._imported(known, self._deciding(known))

    def executable(self, *arguments: Any) -> Executable:
        """The executable a call with these arguments runs. Raises what `module` and `heron.compile` raise."""
        known = given(arguments)
        deciding = self._deciding(known)
        key = _kind(known), tuple([known[n].tobytes() for n in deciding])  # type: ignore[union-attr]
        found = self._executables.get(key)
        if found is None:
            module = self._imported(known, deciding)
            found = self._executables[key] = self._compile(module)
        return found

    @cached_property
    def _program(self) -> Program:
        return read(self._text, self.filename)

    def _deciding(self, known: Sequence[Given]) -> tuple[int, ...]:
        """The arguments whose values sizes depend on: as few as will do, found once for a kind of shapes."""
        kind = _kind(known)
        found = self._values.get(kind)
        if found is None:
            found = self._values[kind] = self._searched(known)
        return found

    def _searched(self, known: Sequence[Given]) -> tuple[int, ...]:
        if self._is_enough(known, ()):
            return ()
        needed = tuple([n for n, a in enumerate(known) if sizes.value(a) is not None])
        self._imported(known, needed)  # raises where these do not suffice either
        for n in needed:
            fewer = tuple([k for k in needed if k != n])
            if self._is_enough(known, fewer):
                needed = fewer
        return needed

    def _is_enough(self, known: Sequence[Given], deciding: tuple[int, ...]) -> bool:
        try:
            self._imported(known, deciding)
        except HeronError as error:
            if error.code != OPEN_SIZES:
                raise
            return False
        return True

    def _imported(self, known: Sequence[Given], deciding: tuple[int, ...]) -> Module:
        told = [a if n in deciding else sizes.shape(a) for n, a in enumerate(known)]
        return imported(self._program, self.filename, verify=True, arguments=told)


def _kind(known: Sequence[Given]) -> Hashable:
    return tuple([(a.dtype, a.shape) if isinstance(a, np.ndarray) else a for a in known])
