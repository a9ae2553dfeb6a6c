"""The content of a graph: instructions as boxes; the box of an instruction that runs computations contains them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field

from heron.errors import HeronError
from heron.hlo.facts import having
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import Trait
from heron.records import dataclass

#: most boxes of one picture; a larger one is unreadable
MOST = 3000

#: ops whose computations are worth a look; a reduction's is a scalar operation and goes into the label
_OPEN = having(Trait.CALL, Trait.CONTROL_FLOW)


@dataclass(eq=False)
class Box:
    """One instruction, or a computation inside one. ``inside`` are graphs drawn within; sizes are filled in later.

    ``marks`` are small coloured fields with a word each, drawn at the right edge.
    """

    name: str
    lines: list[str]
    kind: str
    instruction: Instruction | None = None
    inside: list[Graph] = field(default_factory=list)
    marks: list[tuple[str, str]] = field(default_factory=list)
    x: float = 0.0
    y: float = 0.0
    width: float = 0.0
    height: float = 0.0


@dataclass(eq=False)
class Graph:
    """Boxes and the edges between them (which box is read by which, and by how many operands)."""

    title: str
    boxes: list[Box]
    edges: list[tuple[Box, Box]]
    width: float = 0.0
    height: float = 0.0

    def count(self) -> int:
        """Boxes, those inside boxes too."""
        return len(self.boxes) + sum(g.count() for b in self.boxes for g in b.inside)

    def walk(self) -> Iterator[Box]:
        """All boxes, those inside boxes too."""
        for box in self.boxes:
            yield box
            for inner in box.inside:
                yield from inner.walk()


def graph_of(c: Computation, chosen: Iterable[Instruction] | None = None, closed: bool = False) -> Graph:
    """The graph of a computation, or of `chosen` instructions of it; ``closed`` leaves fusions and loops shut.

    Raises CLI053 when it would have more than `MOST` boxes.
    """
    wanted = None if chosen is None else set(chosen)
    made = _graph(c, wanted, closed)
    if made.count() > MOST:
        raise HeronError(
            "CLI053",
            f"a graph of {made.count():,} boxes cannot be read",
            why=f"the most is {MOST:,}",
            hint="--around NAME shows a part, --closed leaves fusions and loops shut",
        )
    return made


def around(c: Computation, centre: Instruction, steps: int) -> list[Instruction]:
    """`centre` and what is at most `steps` edges away, in the order of `c`."""
    found = {centre}
    edge = {centre}
    for _ in range(steps):
        edge = {n for i in edge for n in (*i.operands, *i.users)} - found
        found |= edge
    return [i for i in c.post_order() if i in found]


def _graph(c: Computation, wanted: set[Instruction] | None, closed: bool) -> Graph:
    order = [i for i in c.post_order() if wanted is None or i in wanted]
    constants = {i for i in order if i.opcode == "constant" and i.shape.is_scalar and i.users}
    boxes = {i: _box(i, closed) for i in order if i not in constants}
    edges = [(boxes[o], boxes[i]) for i in boxes for o in dict.fromkeys(i.operands) if o in boxes]
    return Graph(c.name, list(boxes.values()), edges)


def _box(i: Instruction, closed: bool) -> Box:
    from heron.hlo.ir.origin import origin

    lines = [i.name if i.name.startswith(i.opcode) else f"{i.name} = {i.opcode}", str(i.shape)[:60]]
    small = [f"{_number(o)}" for o in i.operands if o.opcode == "constant" and o.shape.is_scalar]
    if small:
        lines[0] += f" ({', '.join(small)})"
    if i.is_root:
        lines[0] = "ROOT " + lines[0]
    where = origin(i)
    if where:
        lines.append(where[:60])
    inside = [_graph(c, None, closed) for c in i.called] if i.opcode in _OPEN and not closed else []
    return Box(i.name, lines, i.opcode, i, inside)


def _number(constant: Instruction) -> str:
    literal = constant.attrs.get("literal")
    if literal is None or not literal.array.size:
        return "?"
    value = literal.array.item()
    return f"{value:.6g}" if isinstance(value, float) else str(value)
