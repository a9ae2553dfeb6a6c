"""External functions and globals of an LLVM module: each is declared once, whoever asks for it.

Nothing else writes declarations. Of intrinsics there are none: LLVM declares them itself where they are called.
"""

from __future__ import annotations

import re

from heron.errors import HeronError

_SIGNATURE = re.compile(r"@([\w.$]+)\(")
_INTRINSIC = "llvm."


class Declarations:
    """The declarations of one LLVM module; all who write text of that module share them."""

    def __init__(self) -> None:
        self._lines: dict[str, str] = {}
        self._defined: set[str] = set()

    def function(self, signature: str) -> None:
        """A function of elsewhere, ``void @name(ptr, i64)``; intrinsics are let be. Raises LLVM028 where the name has
        another signature."""
        found = _SIGNATURE.search(signature)
        assert found is not None, signature
        if not found[1].startswith(_INTRINSIC):
            self._add(found[1], f"declare {signature}")

    def variable(self, definition: str) -> str:
        """A global of the module's own or of elsewhere, ``@name = external global i8``; gives ``@name``. Raises LLVM028
        where the name is another global's."""
        name = definition.partition(" ")[0]
        self._add(name.removeprefix("@"), definition)
        return name

    def define(self, name: str) -> None:
        """The module has the function itself, and needs no declaration of it."""
        self._defined.add(name)

    def text(self) -> str:
        """All of them, a line each."""
        return "".join(f"{line}\n" for name, line in self._lines.items() if name not in self._defined)

    def _add(self, name: str, line: str) -> None:
        known = self._lines.setdefault(name, line)
        if known != line:
            raise HeronError(
                "LLVM028",
                f"two things in one LLVM module are called '{name}'",
                why=f"'{known[:200]}' and '{line[:200]}'",
                hint="whoever writes the second one needs a name of its own",
            )


def declared(*signatures: str) -> str:
    """The declarations of a module that is written as one text."""
    found = Declarations()
    for signature in signatures:
        found.function(signature)
    return found.text().rstrip("\n")
