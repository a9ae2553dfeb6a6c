"""A function of the inline library on vectors: its text with each instruction on all lanes.

%t1 = fmul float %a0, 0x4000000000000000
->
%t1 = fmul <16 x float> %a0, splat (float 0x4000000000000000)
"""

from __future__ import annotations

import re

#: a name; a number or a truth; a word, that of a type among them; anything else, which stays
_TOKEN = re.compile(r"([%@][\w.]+)|(-?\d\w*(?:\.\w+)?|true|false)|([a-z]\w*)|(.)", re.ASCII)
_TYPES = frozenset({"float", "double", "i1", "i8", "i16", "i32", "i64"})
#: the type in the name of one of LLVM's functions
_OVERLOAD = re.compile(r"\.(?=[fi]\d)")


def on_lanes(line: str, count: int) -> str:
    """The instruction of a line on `count` lanes. A constant has the type that was named last before it."""
    written: list[str] = []
    last = ""
    for name, constant, word, other in _TOKEN.findall(line):
        if name:
            written.append(_OVERLOAD.sub(f".v{count}", name) if name[0] == "@" else name)
        elif constant:
            written.append(f"splat ({last} {constant})")
        elif word in _TYPES:
            last = word
            written.append(f"<{count} x {word}>")
        else:
            written.append(word or other)
    return "".join(written)
