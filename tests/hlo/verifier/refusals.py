"""refusals.txt: single instructions that a shape rule refuses, each beside one that it does not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PRELUDE = """HloModule m

add {
  add.a = f32[] parameter(0)
  add.b = f32[] parameter(1)
  ROOT add.c = f32[] add(add.a, add.b)
}

less {
  less.a = f32[] parameter(0)
  less.b = f32[] parameter(1)
  ROOT less.c = pred[] compare(less.a, less.b), direction=LT
}

less2 {
  less2.a = f32[] parameter(0)
  less2.b = f32[] parameter(1)
  less2.c = f32[] parameter(2)
  less2.d = f32[] parameter(3)
  ROOT less2.e = pred[] compare(less2.a, less2.b), direction=LT
}

add2 {
  add2.a = f32[] parameter(0)
  add2.b = f32[] parameter(1)
  add2.c = f32[] parameter(2)
  add2.d = f32[] parameter(3)
  add2.e = f32[] add(add2.a, add2.c)
  add2.f = f32[] add(add2.b, add2.d)
  ROOT add2.g = (f32[], f32[]) tuple(add2.e, add2.f)
}

halved {
  halved.a = f32[] parameter(0)
  halved.b = f32[] parameter(1)
  halved.c = f32[] add(halved.a, halved.b)
  halved.d = f32[] constant(0.5)
  ROOT halved.e = f32[] multiply(halved.c, halved.d)
}

negate {
  negate.a = f32[] parameter(0)
  ROOT negate.b = f32[] negate(negate.a)
}

pair {
  pair.a = f32[] parameter(0)
  ROOT pair.b = (f32[], f32[]) tuple(pair.a, pair.a)
}

both {
  both.a = f32[] parameter(0)
  both.b = f32[] parameter(1)
  both.c = f32[] add(both.a, both.b)
  ROOT both.d = (f32[], f32[]) tuple(both.c, both.c)
}

negate4 {
  negate4.a = f32[4]{0} parameter(0)
  ROOT negate4.b = f32[4]{0} negate(negate4.a)
}

abs4 {
  abs4.a = f32[4]{0} parameter(0)
  ROOT abs4.b = f32[4]{0} abs(abs4.a)
}

never {
  never.a = f32[4]{0} parameter(0)
  ROOT never.b = pred[] constant(false)
}

is_zero {
  is_zero.a = f32[] parameter(0)
  ROOT is_zero.b = pred[] constant(false)
}
"""


@dataclass(frozen=True)
class Pair:
    """A refused instruction, what the message says, and one that is not refused."""

    opcode: str
    refused: str
    says: str
    taken: str


def module(line: str, stated: bool = True) -> str:
    """The instruction on parameters of its operands' shapes; without its own shape unless `stated`."""
    head, rest = _opening(line)
    shape, _, opcode = head.rpartition(" ")
    operands, attributes = _operands(rest)
    parameters = [f"  p{n} = {s} parameter({n})" for n, s in enumerate(operands)]
    names = ", ".join(f"p{n}" for n in range(len(operands)))
    result = f"  ROOT r = {shape + ' ' if stated else ''}{opcode}({names}){attributes}"
    return "\n".join([PRELUDE, "ENTRY e {", *parameters, result, "}", ""])


def _opening(line: str) -> tuple[str, str]:
    """What stands before the parenthesis after the opcode, and what after it: the first one after a letter."""
    at = next(n for n, c in enumerate(line) if c == "(" and n and (line[n - 1].isalnum()) and " " in line[:n])
    return line[:at], line[at + 1 :]


def _operands(text: str) -> tuple[list[str], str]:
    """Shapes up to the closing parenthesis, and what follows."""
    found, depth, start = [], 0, 0
    for n, c in enumerate(text):
        if depth == 0 and c in ",)":
            found.append(text[start:n].strip())
            start = n + 1
            if c == ")":
                return [s for s in found if s], text[n + 1 :]
        depth += (c in "([{") - (c in ")]}")
    raise ValueError(text)


def _read(path: Path) -> list[Pair]:
    lines = [x for x in path.read_text().splitlines()[1:] if x and not x.startswith("#")]
    pairs: list[Pair] = []
    for bad, good in zip(lines[::2], lines[1::2], strict=True):
        assert bad.startswith("- ") and good.startswith("+ "), bad
        refused, _, says = bad[2:].partition(" | ")
        pairs.append(Pair(_opening(refused)[0].rpartition(" ")[2], refused, says, good[2:]))
    return pairs


PAIRS = _read(Path(__file__).parent / "refusals.txt")
