"""Tables of 64-bit words in the native program, for hand-written code that is told what to do by one."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heron.codegen.native.program import ProgramWriter


def write_numbers(w: ProgramWriter, hint: str, numbers: Iterable[int]) -> str:
    """The symbol of a constant of numbers. Equal ones are one."""
    if not w.has_tables:
        return f"@heron_{hint}"
    value = " ".join(_as_bytes(numbers))
    symbol = f"@heron_{hint}_{hashlib.blake2b(value.encode(), digest_size=8).hexdigest()}"
    return _declare(w, symbol, value)


def write_table(w: ProgramWriter, hint: str, words: Iterable[int | str]) -> str:
    """The symbol of a constant of words, each a number or the symbol whose address it is."""
    if not w.has_tables:
        return f"@heron_{hint}"
    fields: list[tuple[str, str]] = []  # type and value
    run: list[int] = []
    for word in words:
        if type(word) is int:
            run.append(word)
            continue
        if run:
            fields.append(_as_bytes(run))
            run = []
        fields.append(("ptr", str(word)))
    if run:
        fields.append(_as_bytes(run))
    kinds, values = ", ".join(kind for kind, _ in fields), ", ".join(" ".join(field) for field in fields)
    return _declare(w, w.name(f"@heron_{hint}_"), f"{{ {kinds} }} {{ {values} }}")


def _as_bytes(words: Iterable[Any]) -> tuple[str, str]:
    """Type and value of numbers. As bytes they are written and read ten times as fast."""
    data = array("q", words).tobytes()
    return f"[{len(data)} x i8]", 'c"\\' + data.hex("\\") + '"' if data else "zeroinitializer"


def _declare(w: ProgramWriter, symbol: str, value: str) -> str:
    return w.declared.variable(f"{symbol} = private unnamed_addr constant {value}, align 8")
