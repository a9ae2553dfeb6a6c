"""Answers from a trace: reasons for kernels, copies, layouts, buffers and the order of instructions.

Each question returns an `Answer`: a sentence, and the decisions it rests on. Names are those that any stage printed;
`Trace.became` leads from an instruction to the one that a pass replaced it by.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, KeysView
from dataclasses import field
from typing import TYPE_CHECKING, Any

from heron.errors import HeronError
from heron.hlo.facts import is_alias, is_copy
from heron.records import dataclass
from heron.trace.record import Decision, Record

if TYPE_CHECKING:
    from heron.hlo.ir.instruction import Instruction
    from heron.hlo.ir.module import Module

#: passes that fuse producers into their users, and all passes that fuse
_VERTICAL = ("instruction-fusion", "priority-fusion", "fusion-merger")
_FUSION = (*_VERTICAL, "multi-output-fusion")
_SHARDING = "sharding-propagation"
_LAYOUT = ("layout-assignment", "move-copy-to-users")


@dataclass(frozen=True, slots=True)
class Answer:
    """A sentence, the decisions behind it, and further lines of evidence."""

    text: str
    decisions: list[Decision] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Stable fields: ``answer``, ``decisions``, ``lines``."""
        rows = [{name: getattr(d, name) for name in Decision.__slots__} for d in self.decisions]
        return {"answer": self.text, "decisions": rows, "lines": self.lines}


def about(trace: Record, name: str) -> Answer:
    """All decisions about an instruction. Raises CLI050 for a name that the trace does not contain."""
    name = _known(trace, name)
    found = [d for d in trace.decisions if name == d.subject or name in _objects(d)]
    kernel = _kernel(trace, name)
    text = f"{name}: {len(found)} decision{'s' if len(found) != 1 else ''}"
    text += f"; it is part of the kernel {kernel}" if kernel else ""
    return Answer(text, found)


def fused(trace: Record, a: str, b: str) -> Answer:
    """Why `a` and `b` are in one kernel, or are not."""
    a, b = _known(trace, a), _known(trace, b)
    homes_a, homes_b = homes(trace, a), homes(trace, b)
    between = [
        d
        for d in trace.decisions
        if d.rule in _FUSION
        and (d.subject in homes_a and homes_b & _objects(d) or d.subject in homes_b and homes_a & _objects(d))
    ]
    shared = [k for k in homes_a if k in homes_b]
    if shared:
        kernel = next((k for k in shared if k not in trace.became), shared[-1])
        return Answer(f"{a} and {b} are in one kernel: {kernel}", [d for d in between if d.ok])
    refused = [d for d in between if not d.ok]
    if refused:
        return Answer(f"{a} and {b} are in different kernels: {refused[-1].reason}", between)
    own = [d for d in trace.decisions if d.rule in _FUSION and not d.ok and d.subject in homes_a | homes_b]
    text = f"{a} and {b} are in different kernels, and fusing the two was never considered: "
    return Answer(text + ("neither reads the other" if not own else "see what was"), own)


def copy(trace: Record, name: str) -> Answer:
    """The reason for a copy. Raises CLI050 if `name` is not a copy of the program."""
    module = _module(trace)
    name = name.removeprefix("%")
    found = [i for c in module.computations for i in c.instructions if i.name == name]
    if not found or not is_copy(found[0]):
        copies = [i.name for c in module.computations for i in c.instructions if i.opcode == "copy"]
        raise HeronError(
            "CLI050", f"'{name}' is not a copy", hint="copies are " + (", ".join(copies[:20]) or "none in this program")
        )
    value = _value(found[0].operands[0])
    reasons = [d for d in _copying(trace) if not d.ok and value in (d.subject, _base(d.subject))]
    if reasons:
        return Answer(f"{name} copies {value}: {reasons[0].reason.removeprefix('copied: ')}", reasons)
    reasons = _of_numbers(trace, found[0])
    if reasons:
        return Answer(f"{name} copies {value}: a constant cannot be written, and its copy is to be", reasons)
    return Answer(f"{name} copies {value}, and was in the program before copies were inserted")


def layout(trace: Record, name: str) -> Answer:
    """The reason for an instruction's layout. Raises CLI050 if neither the program nor a decision mentions it."""
    module, name = _module(trace), name.removeprefix("%")
    found = [i for c in module.computations for i in c.instructions if i.name == name]
    reasons = [d for d in trace.decisions if d.rule in _LAYOUT and name in (d.subject, *_objects(d))]
    if not found and not reasons:
        raise _unknown(name, [i.name for c in module.computations for i in c.instructions])
    shown = f"{name} is {found[0].shape}" if found else name  # it may have become part of a kernel
    if reasons:
        told = next((d for d in reversed(reasons) if d.ok), reasons[-1])
        return Answer(f"{shown}: {told.reason}", reasons)
    if found[0].opcode == "bitcast":
        x = found[0].operands[0]
        return Answer(f"{shown}: the bytes of {x.name}, {x.shape}, as they lie")
    if found[0].shape is not found[0].shape.with_default_layout():
        return Answer(f"{shown}: callers or a library have it so")
    return Answer(f"{shown}: nothing asked for another layout than the default")


def buffer(trace: Record, name: str) -> Answer:
    """The memory of a value, its live range, and the values that share it. Raises CLI050 for one without a buffer."""
    name = name.removeprefix("%")
    homes = [(a, v) for a in trace.buffers.get("allocations", ()) for v in a["values"]]
    mine = [(a, v) for a, v in homes if v["name"] == name or _base(v["name"]) == name]
    if not mine:
        if not homes:
            raise no_program()
        raise _unknown(name, [v["name"] for _, v in homes], "value with a buffer")
    allocation, value = mine[0]
    first, last = value["offset"], value["offset"] + value["size"]
    others = [v for v in allocation["values"] if v["offset"] < last and first < v["offset"] + v["size"]]
    text = f"{value['name']} ({value['shape']}) lies in {_place(allocation)}, {value['size']:,} B at {first:,}, "
    text += _ticks(value)
    shown = sorted((v for v in others if v is not value), key=lambda v: v["live"][0])
    lines = [f"the same place holds {v['name']} {_ticks(v)}" for v in shown]
    names = {v["name"] for _, v in mine}
    reasons = [d for d in _copying(trace) if d.subject in names or names & _objects(d)]
    return Answer(text, reasons, lines)


def order(trace: Record, a: str, b: str) -> Answer:
    """The reason that `a` runs before `b`: a chain of dependences, or the scheduler's choice."""
    module = _module(trace)
    places = {i.name: (c, n, i) for c, seq in (module.schedule or {}).items() for n, i in enumerate(seq)}
    a, b = a.removeprefix("%"), b.removeprefix("%")
    for name in (a, b):
        if name not in places:
            raise _unknown(name, places, "instruction that is scheduled")
    (home, at_a, first), (home_b, at_b, last) = places[a], places[b]
    if home is not home_b:
        return Answer(f"{a} is in {home.name}, {b} in {home_b.name}: they have no order of their own")
    if at_a > at_b:
        first, last, a, b = last, first, b, a
    path = _path(first, last)
    if path:
        kinds = [f"{y.name} {'reads' if x in y.operands else 'must wait for'} {x.name}" for x, y in path]
        return Answer(f"{a} runs before {b}: it must", lines=kinds)
    asked = {a, b, home.name}  # what was said of either, and of the whole order
    chosen = [d for d in trace.decisions if d.rule.endswith("scheduler") and asked & {d.subject, d.object}]
    return Answer(f"{a} runs before {b} by choice, neither needs the other", chosen)


def sharding(trace: Record, name: str) -> Answer:
    """The reasons for a value's sharding that propagation wrote down. Raises CLI050 for a value without any."""
    name = name.removeprefix("%")
    found = [d for d in trace.decisions if d.rule == _SHARDING and name == d.subject]
    if not found:
        raise _unknown(
            name, {d.subject for d in trace.decisions if d.rule == _SHARDING}, "parameter, result or constraint"
        )
    return Answer(f"{name}: {len(found)} decision{'s' if len(found) != 1 else ''} about its sharding", found)


# -- names -------------------------------------------------------------------------------------------------------------
def _objects(d: Decision) -> set[str]:
    return set(d.object.split(", "))


def _copying(trace: Record) -> Iterator[Decision]:
    return (d for d in trace.decisions if d.rule == "copy-insertion")


def _place(allocation: dict[str, Any]) -> str:
    """``scratch memory``, ``output 2``, ``parameter 0``, ``a constant``."""
    kind = allocation["kind"]
    return {"temp": "scratch memory", "constant": "a constant"}.get(kind) or f"{kind} {allocation[kind]}"


def fused_into(trace: Record) -> dict[str, list[str]]:
    """The instructions that each one was fused into."""
    into: dict[str, list[str]] = {}
    for d in trace.decisions:
        if d.ok and d.rule in _VERTICAL:
            into.setdefault(d.subject, []).extend(d.object.split(", "))
    return into


def homes(trace: Record, name: str, into: dict[str, list[str]] | None = None) -> KeysView[str]:
    """All kernels, final and intermediate, that compute `name`; itself first. ``into``: `fused_into`, if known."""
    into = fused_into(trace) if into is None else into
    found: dict[str, None] = {}
    stack = [name]
    while stack:
        n = stack.pop()
        if n in found:
            continue
        found[n] = None
        stack += into.get(n, ())
        if n in trace.became:
            stack.append(trace.became[n])
    return found.keys()


def _kernel(trace: Record, name: str) -> str:
    last = [k for k in homes(trace, name) if k not in trace.became and k != name]
    return ", ".join(last[:3])


def _known(trace: Record, name: str) -> str:
    """`name` without its %, if the trace mentions it. Raises CLI050."""
    name = name.removeprefix("%")
    names = set(_names(trace))
    if name not in names:
        raise _unknown(name, names)
    return name


def _names(trace: Record) -> Iterator[str]:
    for d in trace.decisions:
        yield d.subject
        yield from d.object.split(", ")
    for old, new in trace.became.items():
        yield from (old, new)
    for k in trace.kernels:
        yield from k.source


def _value(i: Instruction) -> str:
    """The name of the value that `i` refers to: of a tuple element or a parameter, the value behind it."""
    index: list[str] = []
    while True:
        if is_alias(i):
            index = [str(i.index), *index] if i.opcode == "get-tuple-element" else index
            i = i.operands[0]
            continue
        part = "{" + ",".join(index) + "}" if index else ""
        if i.opcode != "parameter" or i.parent is None or i.parent.module is None:
            return i.name + part
        callers = [x for x in i.parent.module.instructions() if i.parent in x.called]
        if callers and callers[0].opcode == "fusion":
            i = callers[0].operands[i.number]
            continue
        return (callers[0].name if callers and callers[0].opcode == "while" else i.name) + part


def _of_numbers(trace: Record, copy: Instruction) -> list[Decision]:
    """The reason for copied scalars that share a kernel with their copies, where they have other names."""
    number, home = copy.operands[0], copy.parent
    if number.opcode != "constant" or home is None or home.module is None:
        return []
    kernels = {i.name for i in home.module.instructions() if i.opcode == "fusion" and i.calls is home}
    return [d for d in _copying(trace) if not d.ok and kernels & homes(trace, _base(d.subject))]


def _base(value: str) -> str:
    """The instruction of a value's name: ``while.1{0}`` is part of ``while.1``."""
    return value.partition("{")[0]


def _ticks(v: dict[str, Any]) -> str:
    return "ticks " + ", ".join(f"{a} to {b}" for a, b in v["live"])


def _path(first: Instruction, last: Instruction) -> list[tuple[Instruction, Instruction]]:
    """The shortest chain of operands and control edges from `first` to `last`, as pairs; empty if there is none."""
    came: dict[Instruction, Instruction | None] = {last: None}
    queue = [last]
    for i in queue:
        if i is first:
            pairs = []
            while (user := came[i]) is not None:
                pairs.append((i, user))
                i = user
            return pairs
        for before in (*i.operands, *i.control_predecessors):
            if before not in came:
                came[before] = i
                queue.append(before)
    return []


def _module(trace: Record) -> Module:
    from heron.hlo.text import parse

    if not trace.program:
        raise no_program()
    return parse(trace.program, elided_as_zero=True)


def no_program() -> HeronError:
    """The error for a question that a trace without its program and buffers cannot answer."""
    hint = "`heron compile FILE -o x.trace` writes one that does"
    return HeronError("CLI051", "the trace holds no program", hint=hint)


def _unknown(name: str, names: Iterable[str], kind: str = "instruction or kernel") -> HeronError:
    near = difflib.get_close_matches(name, [n for n in names if n], 3)
    hint = f"did you mean {' or '.join(near)}?" if near else "`heron compile FILE --to scheduled` shows the names"
    return HeronError("CLI050", f"no {kind} is called '{name}' in this trace", hint=hint)
