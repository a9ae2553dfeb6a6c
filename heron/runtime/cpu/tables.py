"""Tables of 64-bit words in the native program, for hand-written code that is told what to do by one."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heron.runtime.cpu.program import ProgramWriter


def write_table(w: ProgramWriter, hint: str, words: Iterable[int | str]) -> str:
    """The symbol of a constant of words, each a number or the symbol whose address it is. Equal tables of numbers are
    one."""
    if not w.has_tables:
        return f"@heron_{hint}"
    items = list(words)
    if any(isinstance(word, str) for word in items):
        fields = [f"ptr {word}" if isinstance(word, str) else f"i64 {int(word)}" for word in items]
        symbol = w.label(f"@heron_{hint}_")
        kinds = ", ".join(field.split(" ", 1)[0] for field in fields)
        value = f"{{ {kinds} }} {{ {', '.join(fields)} }}"
    else:  # as bytes: long tables are written and read ten times as fast
        data = array("q", map(int, items)).tobytes()
        symbol = f"@heron_{hint}_{hashlib.blake2b(data, digest_size=8).hexdigest()}"
        escaped = "\\" + data.hex("\\") if data else ""
        value = f'[{len(data)} x i8] c"{escaped}"'
    w.declarations[symbol] = f"{symbol} = private unnamed_addr constant {value}, align 8"
    return symbol
