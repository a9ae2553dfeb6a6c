"""The origin of a kernel's pointers, and the hook before each access.

An access becomes ``%safe = call ptr @sim.access(state, pointer, site)`` and the instruction on ``%safe``; what is known
of it when compiling (bytes, kind, alignment, which memory) goes into a table of sites.
"""

from __future__ import annotations

import re

from heron.codegen.sim.flatten import Flat
from heron.records import dataclass
from heron.runtime.sim.state import ATOMIC, ATOMIC_WRITE, READ, WRITE

LOAD = re.compile(r"^(\s*%[\w.]+ = load (?:atomic )?(?:volatile )?)([^,]+), ptr ([^\s,]+)(.*)$")
STORE = re.compile(r"^(\s*store (?:atomic )?(?:volatile )?)(.+), ptr ([^\s,]+)(.*)$")
ATOMICS = re.compile(
    r"^(\s*%[\w.]+ = (?:atomicrmw|cmpxchg) (?:weak )?(?:volatile )?(?:\w+ )?)ptr ([^\s,]+), (\S+) (.*)$"
)
_DERIVED = re.compile(r"^\s*(%[\w.]+) = (getelementptr|bitcast|freeze|select|phi)\b(.*)$")
_ALIGN = re.compile(r", align (\d+)")
_SIZES = {"half": 2, "bfloat": 2, "float": 4, "double": 8, "ptr": 8}


@dataclass(frozen=True, slots=True)
class Parts:
    """An access instruction taken apart: ``before`` + type and value … ``ptr`` pointer ``after``."""

    before: str
    pointer: str
    after: str
    type_: str
    kind: int

    def on(self, pointer: str) -> str:
        """The instruction on another pointer."""
        return f"{self.before}ptr {pointer}{self.after}"


def parts(text: str) -> Parts | None:
    """A load, store or atomic taken apart; None for other lines. Alignment is not promised to the host."""
    if match := LOAD.match(text):
        before, type_, pointer, after = match.groups()
        return Parts(f"{before}{type_}, ", pointer, _unaligned(after, before), type_, READ)
    if match := STORE.match(text):
        before, value, pointer, after = match.groups()
        type_ = value[: value.index(">") + 1] if value.startswith("<") else value.rsplit(" ", 1)[0]
        kind = ATOMIC_WRITE if "atomic" in before else WRITE
        return Parts(f"{before}{value}, ", pointer, _unaligned(after, before), type_, kind)
    if match := ATOMICS.match(text):
        before, pointer, type_, after = match.groups()
        return Parts(before, pointer, f", {type_} {after}", type_, ATOMIC)
    return None


def _unaligned(after: str, before: str) -> str:
    return after if "atomic" in before else _ALIGN.sub(", align 1", after)


def alignment(text: str) -> int:
    """The alignment that a GPU requires of the address: LLVM text always states it."""
    match = _ALIGN.search(text)
    return int(match.group(1)) if match else 1


def roots(flat: Flat) -> dict[str, str]:
    """The argument or global behind each pointer: '%name' or '@name'; '' if there may be several."""
    found = {name: name for type_, name in flat.arguments if type_ == "ptr"}
    found |= {f"@{name}": f"@{name}" for name in (*flat.shared, *flat.constants)}
    changed = True
    while changed:  # phis may name later values
        changed = False
        for line in flat.body:
            match = _DERIVED.match(line)
            if match is None or "ptr" not in match.group(3):
                continue
            name, kind, rest = match.groups()
            sources = {found[value] for value in _pointers(kind, rest) if value in found}
            root = sources.pop() if len(sources) == 1 else "" if sources else None
            if root is not None and found.get(name) != root and found.get(name) != "":
                found[name], changed = (root if name not in found else ""), True
    return found


def _pointers(kind: str, rest: str) -> list[str]:
    if kind == "phi":
        return re.findall(r"\[ ([^\s,]+),", rest)
    return re.findall(r"ptr ([%@][\w.$]+)", rest)


def root_of(pointer: str, known: dict[str, str]) -> str | None:
    """The memory a pointer is into; '' for any, None for the thread's own stack and the library's tables."""
    base = re.search(r"@[\w.$]+", pointer)
    if pointer.startswith("%") and pointer not in known:
        return None
    root = known.get(pointer, known.get(base.group(0), "") if base else "")
    return None if root.startswith("@heron.") else root


def type_size(text: str) -> int:
    """Bytes of the LLVM type ``text`` begins with: scalars, vectors, structures and (nested) arrays."""
    text = text.strip()
    if match := re.match(r"[\[<](\d+) x ", text):
        return int(match.group(1)) * type_size(text[match.end() :])
    if text.startswith("{"):
        return sum(type_size(part) for part in text[1 : text.index("}")].split(","))
    if match := re.match(r"i(\d+)", text):
        return (int(match.group(1)) + 7) // 8
    word = re.match(r"\w+", text)
    return _SIZES.get(word.group(0) if word else "", 1)


def array_dims(type_: str) -> tuple[int, ...]:
    """The sizes of an LLVM array type: ``[4 x [8 x float]]`` has 4 and 8."""
    sizes: list[int] = []
    while match := re.match(r"\[(\d+) x ", type_):
        sizes.append(int(match.group(1)))
        type_ = type_[match.end() :]
    return tuple(sizes)
