"""Tables of 64-bit words in the native program, for hand-written code that is told what to do by one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heron.runtime.cpu.program import ProgramWriter


def write_table(w: ProgramWriter, hint: str, words: Iterable[int | str]) -> str:
    """The symbol of a constant of words, each a number or the symbol whose address it is."""
    items = [f"ptr {word}" if isinstance(word, str) else f"i64 {int(word)}" for word in words]
    symbol = w.label(f"@heron_{hint}_")
    kinds = ", ".join(item.split(" ", 1)[0] for item in items)
    text = f"{symbol} = private unnamed_addr constant {{ {kinds} }} {{ {', '.join(items)} }}, align 8"
    w.declarations[symbol] = text
    return symbol
