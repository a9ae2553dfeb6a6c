"""Short forms of the simulator's LLVM text.

`expand` turns ``%x = get i32 tick``, ``%x = get i32 states[%t]``, ``set i32 %x, tick``, ``%p = at i32 states[%t]`` into
loads and stores of the fields of a launch's `State`, to which ``%sim.state`` points.
"""

from __future__ import annotations

import re

from heron.runtime.sim.state import State

_FORM = re.compile(
    r"^( *)(?:(%[\w.]+) = (get|at)|(set)) (i32|i64|ptr) (?:(%?-?[\w.]+), )?(\w+)(?:\[(%?[\w.]+)\])?$", re.MULTILINE
)


def expand(text: str, tag: str = "") -> str:
    """LLVM text with the short forms written out. ``tag`` sets names apart within a function expanded in parts."""
    count = 0

    def write(match: re.Match[str]) -> str:
        nonlocal count
        indent, result, get, _, type_, value, name, index = match.groups()
        count += 1
        offset = getattr(State, name).offset
        place = result if get == "at" else f"%sim.at{tag}{count}"
        lines = [f"{place} = getelementptr i8, ptr %sim.state, i64 {offset}"]
        if index is not None:
            lines[0] = f"%sim.of{tag}{count} = getelementptr i8, ptr %sim.state, i64 {offset}"
            lines.append(f"{place} = getelementptr {type_}, ptr %sim.of{tag}{count}, i32 {index}")
        if get == "get":
            lines.append(f"{result} = load {type_}, ptr {place}")
        elif get is None:
            lines.append(f"store {type_} {value}, ptr {place}")
        return "\n".join(indent + line for line in lines)

    return _FORM.sub(write, text)
