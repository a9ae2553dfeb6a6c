"""The program after every pass: each line is kept once, each version as what it takes over from the one before.

A line is printed again only when its instruction has changed, and a version costs no more than a walk over the program.

The stored form, plain data:

- ``lines``: texts of instructions; ``origins``: the Python line and operation of each, as an index into ``places``;
- ``versions``: in order, each with the number of its pass in the trace (-1: the program as given) and its computations,
  callees first, as pairs of a name and a body. A body is a list of numbers: n >= 0 stands for line n; -s - 1 followed
  by k for k lines from line s of the body that this computation had one version before. 0 for a list: no change.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from heron.hlo.ir.order import computation_order, print_order
from heron.hlo.ir.origin import origin
from heron.hlo.text.options import PrintOptions
from heron.hlo.text.printer import Printer

if TYPE_CHECKING:
    from heron.hlo.ir.computation import Computation
    from heron.hlo.ir.instruction import Instruction
    from heron.hlo.ir.module import Module
    from heron.trace import Trace

OPTIONS = PrintOptions(signatures=False, metadata=False, index_comments=False, elide_large_constants=True)

Body = list[int]


class Versions:
    """Listens to a compile: `Versions(trace)` before it; `to_json` when it is done."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._printer = Printer(OPTIONS)
        self._lines: dict[tuple[str, int], int] = {}
        self._places: dict[str, int] = {}
        #: the line that an instruction had last, and what that depended on
        self._known: dict[Instruction, tuple[_State, int]] = {}
        self._bodies: dict[str, Body] = {}
        self._versions: list[dict[str, Any]] = []
        trace.on_program = self.after

    def after(self, pass_name: str, module: Module) -> None:
        """Keep the module as it is now, after the pass that the trace recorded last (no name: as given)."""
        with self._trace.unclocked():
            self._keep(len(self._trace.passes) - 1 if pass_name else -1, module)

    def _keep(self, number: int, module: Module) -> None:
        computations, bodies = [], {}
        for c in computation_order(module):
            body = bodies[c.name] = [self._line(i, i is c.root) for i in _order(module, c)]
            label = f"ENTRY {c.name}" if c is module.entry else c.name
            computations.append([label, _body_change(body, self._bodies.get(c.name, []))])
        self._bodies = bodies
        self._versions.append({"pass": number, "computations": computations})

    def _line(self, i: Instruction, is_root: bool) -> int:
        known, state = self._known.get(i), _state(i, is_root)
        if known is not None and known[0] == state:
            return known[1]
        place = self._places.setdefault(origin(i), len(self._places))
        text = ("ROOT " if is_root else "") + self._printer.instruction(i)
        line = self._lines.setdefault((text, place), len(self._lines))
        self._known[i] = state, line
        return line

    def to_json(self) -> dict[str, Any]:
        """The stored form."""
        return {
            "lines": [text for text, _ in self._lines],
            "origins": [place for _, place in self._lines],
            "places": list(self._places),
            "versions": self._versions,
        }


def bodies(stored: dict[str, Any]) -> Iterable[tuple[int, list[tuple[str, Body]]]]:
    """The versions in order: the number of the pass, and the lines of every computation by their numbers."""
    last: dict[str, Body] = {}
    for version in stored["versions"]:
        now = {name: _body(change, last.get(_key(name), [])) for name, change in version["computations"]}
        last = {_key(name): body for name, body in now.items()}
        yield version["pass"], list(now.items())


_State = tuple[object, ...]


def _state(i: Instruction, is_root: bool) -> _State:
    """All that the text of an instruction depends on, by identity: layouts and attributes change in place."""
    called = tuple([c.name for c in i.called]) if i.called else ()
    others = tuple([o.name for o in (*i.operands, *i.control_predecessors)])
    values = map(id, (*i.attrs.values(), *i.extras.values()))
    return i.version, i.name, id(i.shape), is_root, called, others, len(i.operands), *values


def _key(label: str) -> str:
    return label.removeprefix("ENTRY ")


def _order(module: Module, c: Computation) -> Sequence[Instruction]:
    scheduled = module.schedule.get(c) if module.schedule is not None else None
    return print_order(c) if scheduled is None else scheduled


def _body_change(body: Body, before: Body) -> Body | int:
    """`body` as runs of `before` and single lines; 0 when they are equal."""
    if body == before:
        return 0
    place = {line: n for n, line in enumerate(before)}
    made: Body = []
    n = 0
    while n < len(body):
        start = place.get(body[n])
        if start is None:
            made.append(body[n])
            n += 1
            continue
        length = 1
        while n + length < len(body) and start + length < len(before) and body[n + length] == before[start + length]:
            length += 1
        made += (-start - 1, length)
        n += length
    return made


def _body(change: Body | int, before: Body) -> Body:
    if isinstance(change, int):
        return before
    made: Body = []
    numbers = iter(change)
    for n in numbers:
        if n >= 0:
            made.append(n)
        else:
            start = -n - 1
            made += before[start : start + next(numbers)]
    return made
