"""Masks of indices that LLVM's scalar evolution must not see through.

It takes the low bits of a counter, ``i & 7``, for a counter of 3 bits. Its vectoriser reads from such an index as from
neighbours, after a check that the counter does not wrap. Where a loop has such indices of two widths, LLVM 22 takes the
check of the wider for that of the narrower one, and reads past the end of the array. A mask that it does not know is
no counter: the elements are then read one by one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import partial

#: the low bits of a number: by a mask, a remainder, a narrow type
_LOW = re.compile(r"(%\S+) = (and|urem|srem|trunc)(?: nuw| nsw)* i(\d+) (%\S+)(?:, (\d+)| to i(8|16))$", re.M)
_FUNCTION = re.compile(r"^define [^\n]*?@([\w.\-]+)\([^\n]*\{\n(.*?)^\}$", re.M | re.S)
_DEFINED = re.compile(r"^ +(%\S+) = (.*)$", re.M)
_NAME = re.compile(r"%[\w.\-]+")
_CALLED = re.compile(r"call [^@\n]*@([\w.\-]+)\(")
#: where an index leaves the integers: it is read from, returned, or handed on
_USED = re.compile(r"^ +(?:%\S+ = getelementptr|ret i\d|(?:%\S+ = )?call )[^\n]*$", re.M)


def hide_masks(out: list[str]) -> None:
    """Make masks unknown where indices of one kernel have low bits of several widths. ``out``: texts of a module, each
    of whole lines."""
    text = "\n".join(out)
    if len(set(_widths(_LOW.findall(text)))) < 2:
        return
    bodies = dict(_FUNCTION.findall(text))
    lows = {name: {low[0]: low for low in _of_indices(body)} for name, body in bodies.items()}
    hidden: dict[str, tuple[str, ...]] | None = None
    chosen = {
        name: lows[name]
        for together in _connected(bodies)
        if len({w for f in together for w in _widths(lows[f].values())}) > 1
        for name in together
    }
    masks: dict[tuple[str, int], str] = {}
    start = 0
    for n, part in enumerate(out) if chosen else ():
        if part.startswith("define "):
            hidden, masks = chosen.get(part.partition("@")[2].partition("(")[0]), {}
        elif part == "entry:":
            start = n
        elif hidden and _LOW.search(part):
            out[n] = _LOW.sub(partial(_written, lows=hidden, masks=masks), part)
        elif part == "}" and masks:
            out[start] += "".join(
                f'\n  {m} = call i{bits} asm "", "=r,0"(i{bits} {n})' for (bits, n), m in masks.items()
            )


def _widths(lows: Iterable[tuple[str, ...]]) -> Iterator[int]:
    """The numbers of low bits that are kept."""
    for _, op, _, _, number, narrow in lows:
        if op == "trunc":
            yield from [int(narrow)] if narrow else []
        elif number and (mask := int(number) - (op != "and")) > 0 and mask & (mask + 1) == 0:
            yield mask.bit_length()


def _of_indices(body: str) -> list[tuple[str, ...]]:
    """The low bits that indices in a function are made of."""
    made = dict(_DEFINED.findall(body))
    reached = set[str]()
    left = [name for line in _USED.findall(body) for name in _NAME.findall(line)]
    while left:
        name = left.pop()
        if name not in reached:
            reached.add(name)
            left += _NAME.findall(made.get(name, ""))
    return [low for low in _LOW.findall(body) if low[0] in reached and next(_widths([low]), 0)]


def _connected(bodies: dict[str, str]) -> list[set[str]]:
    """The functions in groups that may become one: those that call each other, and those of one step, which a program
    runs in loops of its own."""
    groups: list[set[str]] = [{name for name, body in bodies.items() if " phi " not in body}]
    for name, body in bodies.items():
        near = {name, *(callee for callee in _CALLED.findall(body) if callee in bodies)}
        for group in [g for g in groups if g & near]:
            groups.remove(group)
            near |= group
        groups.append(near)
    return groups


def _written(found: re.Match[str], lows: dict[str, tuple[str, ...]], masks: dict[tuple[str, int], str]) -> str:
    """The low bits of an index by a value that nobody knows; it is made at the beginning of the function."""
    name, op, bits, value, number, _ = found.groups()
    if name not in lows or op == "trunc":
        return found[0]
    mask = int(number) - (op != "and")
    unknown = masks.setdefault((bits, mask), f"%mask.{bits}.{mask}")
    if op != "srem":
        return f"{name} = and i{bits} {value}, {unknown}"
    # of a negative number the remainder is that of the number moved up, moved down again
    steps = [
        f"{name}.sign = ashr i{bits} {value}, {int(bits) - 1}",
        f"{name}.up = and i{bits} {name}.sign, {unknown}",
        f"{name}.moved = add i{bits} {value}, {name}.up",
        f"{name}.low = and i{bits} {name}.moved, {unknown}",
        f"{name} = sub i{bits} {name}.low, {name}.up",
    ]
    return "\n  ".join(steps)
