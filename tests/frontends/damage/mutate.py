"""StableHLO texts with something changed: bytes, tokens, numbers, names, lines, or all behind a place cut off."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parents[2]
#: larger texts take long, and say the same
_MAX_SIZE = 12_000

_TOKEN = re.compile(r"[A-Za-z_][\w.$\-]*|\d+|[%@#^!][\w.$\-]+|->|[^\s\w]")
_NUMBER = re.compile(r"(?<![\w.%@#])-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_NAME = re.compile(r"[%@][\w.$\-]+|(?:stablehlo|chlo|func)\.\w+|tensor<[^<>]*>")
_NUMBERS = ("0", "1", "2", "-1", "7", "3.5", "1e999", "1000000", "4294967296", "99999999999999999999")
_BYTES = '{}[]()=,<>"/*%@#!?:-x \n\0é'


@cache
def texts(folder: Path = TESTS) -> tuple[str, ...]:
    """The StableHLO below a folder, each program by itself; locations, which programs do without, left out."""
    found = []
    for path in sorted(folder.rglob("*.mlir")):
        if path.stat().st_size > 10 * _MAX_SIZE:
            continue
        text = re.sub(r" loc\([^()]*(?:\([^()]*\)[^()]*)*\)", "", path.read_text(encoding="utf-8"))
        text = re.sub(r"^(?:#loc|//(?! -----)).*\n", "", text, flags=re.MULTILINE)
        found += [part for part in re.split(r"^// -----.*\n", text, flags=re.MULTILINE) if 20 < len(part) <= _MAX_SIZE]
    if folder != TESTS:
        return tuple(found)
    for dialect in ("stablehlo", "chlo"):
        functions = re.split(
            r"(?=^func\.func )", (TESTS / f"frontends/dialects/{dialect}.mlir").read_text(), flags=re.M
        )
        found += [f.replace("private @", "public @", 1) for f in functions if f.startswith("func.func private")]
    return tuple(found)


def damaged(seed: int, folder: Path = TESTS) -> str:
    """A text with one to three changes; the same for the same seed and folder."""
    rnd = random.Random(seed)
    text = rnd.choice(texts(folder))
    for _ in range(rnd.choice((1, 1, 1, 2, 3))):
        text = rnd.choice(_CHANGES)(text, rnd) or text
    return text


def _bytes(text: str, rnd: random.Random) -> str:
    at = rnd.randrange(len(text) or 1)
    return text[:at] + rnd.choice(_BYTES) + text[at + rnd.randrange(2) :]


def _cut(text: str, rnd: random.Random) -> str:
    return text[: rnd.randrange(len(text) or 1)]


def _span(pattern: re.Pattern[str], text: str, rnd: random.Random) -> tuple[int, int]:
    spans = [m.span() for m in pattern.finditer(text)]
    return rnd.choice(spans) if spans else (0, 0)


def _delete(text: str, rnd: random.Random) -> str:
    a, b = _span(_TOKEN, text, rnd)
    return text[:a] + text[b:]


def _repeat(text: str, rnd: random.Random) -> str:
    a, b = _span(_TOKEN, text, rnd)
    return text[:b] + " " + text[a:b] + text[b:]


def _swap(text: str, rnd: random.Random) -> str:
    (a, b), (c, d) = sorted((_span(_TOKEN, text, rnd), _span(_TOKEN, text, rnd)))
    return text[:a] + text[c:d] + text[b:c] + text[a:b] + text[d:] if b <= c else text


def _number(text: str, rnd: random.Random) -> str:
    a, b = _span(_NUMBER, text, rnd)
    return text[:a] + rnd.choice(_NUMBERS) + text[b:]


def _size(text: str, rnd: random.Random) -> str:
    """Another size, or an open one, everywhere that a size stands: programs often stay right."""
    sizes = re.findall(r"(?<=[<x])\d+(?=x)", text)
    if not sizes:
        return text
    return re.sub(rf"(?<=[<x]){rnd.choice(sizes)}(?=x)", rnd.choice(("0", "1", "2", "3", "5", "17", "?")), text)


def _name(text: str, rnd: random.Random) -> str:
    """A name, an operation or a type in place of another one."""
    (a, b), (c, d) = _span(_NAME, text, rnd), _span(_NAME, text, rnd)
    return text[:a] + text[c:d] + text[b:]


def _type(text: str, rnd: random.Random) -> str:
    """Another element type, once or everywhere."""
    names = re.findall(r"(?<=[x<])(?:f|i|ui|bf)\d+(?=>)", text)
    if not names:
        return text
    new = rnd.choice(("f32", "f64", "bf16", "f16", "i1", "i4", "i8", "ui8", "i32", "ui64", "f8E4M3FN", "complex<f32>"))
    new = rnd.choice((new, new, "!quant.uniform<i8:f32, 0.5:3>"))
    return re.sub(rf"(?<=[x<]){rnd.choice(names)}(?=>)", new, text, count=rnd.choice((0, 0, 1)))


def _line(text: str, rnd: random.Random) -> str:
    lines = text.split("\n")
    k, j = rnd.randrange(len(lines)), rnd.randrange(len(lines))
    kind = rnd.randrange(3)
    if kind == 0:
        del lines[k]
    elif kind == 1:
        lines.insert(k, lines[j])
    else:
        lines[k], lines[j] = lines[j], lines[k]
    return "\n".join(lines)


_CHANGES: tuple[Callable[[str, random.Random], str], ...] = (
    _bytes,
    _cut,
    _delete,
    _repeat,
    _swap,
    _number,
    _number,
    _size,
    _size,
    _name,
    _name,
    _type,
    _type,
    _line,
)
