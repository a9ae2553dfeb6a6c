"""Docstrings of passes and rules: prose first, then HLO before and after, in a short form that is run as a test.

The short form is HLO text of the entry computation's body, with four reliefs::

    zero = f32[] constant(0)
    ROOT r = f32[] subtract(f32[] x, zero)
    ->
    ROOT x

- an operand written with its type that no line defines (``f32[] x``) is a parameter, numbered as they appear;
- below the arrow, whatever is used and not defined there is as above it, parameters included;
- ``ROOT x`` alone makes `x` the root;
- a line that ends in a comma goes on in the next one;
- a line ``...`` below the arrow stands for more than one would read: such an example is run, but what it gives is not
  compared.

Other computations stand before the body as in any HLO text: ``name { ... }``. An example about what the header says
begins both parts with a line of it: ``HloModule example, is_scheduled=true``.
"""

from __future__ import annotations

import inspect
import re

from heron.records import dataclass

_ARROW = re.compile(r"^[ ]*->[ ]*$", re.M)
_LINE = re.compile(r"^(ROOT )?%?([\w.-]+) = (.*)$")
_TYPED_OPERAND = re.compile(r"(?<=[(\s])([a-z]\w*\[[\d,<=]*\](?:\{[\d,]*\})?) ([A-Za-z_][\w.-]*)(?=[,)])")
_NAME = re.compile(r"[A-Za-z_][\w.-]*")
_HLO = re.compile(r"^\s*(ROOT |HloModule |%?[\w.-]+ = |%?[\w.-]+ \{$)")
_HEADER = re.compile(r"^\s*(HloModule .*)$", re.M)


@dataclass(frozen=True, slots=True)
class Example:
    """HLO text of a module before and after; no text after where lines are left out."""

    before: str
    after: str | None


@dataclass(frozen=True, slots=True)
class Doc:
    """A docstring taken apart: its first sentence, all its prose, its example (None when it has none).

    ``short`` is the example as it is written.
    """

    summary: str
    prose: str
    example: Example | None
    short: str = ""


def doc_of(thing: object) -> Doc:
    """The parsed docstring of a pass class or a rule function."""
    text = inspect.cleandoc(thing.__doc__ or "")
    if not _ARROW.search(text):
        return Doc(_first_sentence(text), text, None)
    blocks = text.split("\n\n")
    # the example is the paragraph with the arrow and, before it, what is HLO too: computations and further lines
    arrow = next(n for n, block in enumerate(blocks) if _ARROW.search(block))
    first = arrow
    while first > 1 and _HLO.search(blocks[first - 1].split("\n")[0]):
        first -= 1
    last = arrow + 1
    while last < len(blocks) and _HLO.search(blocks[last].split("\n")[0]):
        last += 1
    prose = "\n\n".join(blocks[:first] + blocks[last:]).removesuffix("::").rstrip()
    short = "\n\n".join(blocks[first:last])
    before, after = _ARROW.split(short)
    return Doc(_first_sentence(prose), prose, expand_example(before, after), short)


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=[.:])\s+|\n\n", text, maxsplit=1)[0].replace("\n", " ").rstrip(".:")


def expand_example(before: str, after: str) -> Example:
    """Two short forms as two modules' texts."""
    (header, before), (header_after, after) = map(_without_header, (before, after))
    calls, lines = _split(before)
    lines = _with_parameters(lines)
    defined = {m[2]: line for line in lines if (m := _LINE.match(line))}
    if re.search(r"^ *\.\.\.$", after, re.M):
        return Example(_module(header, calls, lines), None)
    after_calls, after_lines = _split(after)
    own = {m[2] for line in after_lines if (m := _LINE.match(line))}
    keep = {name for name, line in defined.items() if " parameter(" in line}
    wanted = [n for line in after_lines for n in _names_used(line)]
    while wanted:
        name = wanted.pop()
        if name in defined and name not in own and name not in keep:
            keep.add(name)
            wanted += _names_used(defined[name])
    keep -= own
    kept = [line.removeprefix("ROOT ") for name, line in defined.items() if name in keep]
    own_calls = {block.split(" ", 1)[0] for block in after_calls}
    calls_after = [block for block in calls if block.split(" ", 1)[0] not in own_calls] + after_calls
    marked = _root_marked([*kept, *after_lines])
    return Example(_module(header, calls, lines), _module(header_after, calls_after, marked))


def _without_header(text: str) -> tuple[str, str]:
    """The header line, or a plain one, and the rest."""
    found = _HEADER.search(text)
    return (found[1], _HEADER.sub("", text, count=1)) if found else ("HloModule example", text)


def _split(text: str) -> tuple[list[str], list[str]]:
    """Computation blocks, and the body's lines."""
    calls: list[str] = []
    body: list[str] = []
    block: list[str] = []
    for raw in re.sub(r",\n\s*", ", ", text).splitlines():
        line = raw.strip()
        if not line:
            continue
        if block:
            block.append("  " + line if line != "}" else line)
            if line == "}":
                calls.append("\n".join(block))
                block = []
        elif line.endswith("{"):
            block = [line]
        else:
            body.append(line)
    return calls, body


def _with_parameters(lines: list[str]) -> list[str]:
    """Lines with a parameter for every typed operand that nothing defines, and plain names in their places."""
    defined = {m[2] for line in lines if (m := _LINE.match(line))}
    made: dict[str, str] = {}
    count = sum(" parameter(" in line for line in lines)

    def plain(match: re.Match[str]) -> str:
        type_, name = match[1], match[2]
        if name not in defined and name not in made:
            made[name] = f"{name} = {type_} parameter({count + len(made)})"
        return name

    rest = []
    for line in lines:
        head, paren, tail = line.partition("(") if not _LINE.match(line) else _head(line)
        rest.append(head + _TYPED_OPERAND.sub(plain, paren + tail))
    return [*made.values(), *_root_marked(rest)]


def _head(line: str) -> tuple[str, str, str]:
    """A line cut before the parenthesis that opens the operands."""
    match = re.search(r"[a-z][\w-]*\(", line.split(" = ", 1)[1])
    assert match is not None, line
    cut = len(line) - len(line.split(" = ", 1)[1]) + match.end() - 1
    return line[:cut], "(", line[cut + 1 :]


def _root_marked(lines: list[str]) -> list[str]:
    """The lines, with a lone ``ROOT x`` turned into the mark on the line that defines `x`."""
    last = lines[-1] if lines else ""
    if not last.startswith("ROOT ") or " = " in last:
        return lines
    name = last.removeprefix("ROOT ").strip()
    return [f"ROOT {line}" if (m := _LINE.match(line)) and m[2] == name else line for line in lines[:-1]]


def _names_used(line: str) -> list[str]:
    if " = " not in line:
        return [line.removeprefix("ROOT ").strip()]
    _, _, tail = _head(line)
    return _NAME.findall(tail)


def _module(header: str, calls: list[str], lines: list[str]) -> str:
    body = "\n".join("  " + line for line in lines)
    return f"{header}\n\n" + "".join(block + "\n\n" for block in calls) + f"ENTRY main {{\n{body}\n}}\n"
