"""Code that runtime uses and a compiler makes: runtime asks for it here by name, codegen provides the makers.

`heron.codegen.native.helpers` provides all of them when it is imported; each backend imports it. A process that only
runs saved programs for a GPU may never import a compiler: then nothing is provided and callers do without.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from heron.once import once

#: gives the addresses of a helper's functions by name, or None where this machine cannot have it
Maker = Callable[[], Mapping[str, int] | None]
#: gives machine code for PTX text and an architecture (``sm_90``)
Assemble = Callable[[str, str], bytes]

_MAKERS: dict[str, Maker] = {}
_ASSEMBLERS: list[Assemble] = []


def provide(name: str, make: Maker) -> None:
    """Say who makes the native helper `name`."""
    _MAKERS[name] = make


def provide_assembler(assemble: Assemble) -> None:
    """Say who makes machine code of PTX."""
    _ASSEMBLERS[:] = [assemble]


def functions(name: str) -> Mapping[str, int] | None:
    """The addresses of a native helper's functions, compiled when first asked for; None where there are none."""
    return _made(name) if name in _MAKERS else None


@once
def _made(name: str) -> Mapping[str, int] | None:
    return _MAKERS[name]()


def assembler() -> Assemble | None:
    """The assembler from PTX to machine code; None if no compiler is loaded."""
    return _ASSEMBLERS[0] if _ASSEMBLERS else None
