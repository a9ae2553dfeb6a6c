"""The plan of a program on a GPU: thunks as graphs, which cost the host one call each, with steps of the host between.

A `Section` becomes a CUDA graph: its nodes name those they wait for, found from what each reads and writes. Loops and
branches are nodes where the driver has conditional nodes; elsewhere, and around steps of the host, they are steps that
the host drives. Made of plain data, with no driver: ``heron compile --to graph`` prints it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from heron.buffers.assignment import Slice
from heron.records import dataclass
from heron.runtime.collectives.exchange import Way
from heron.runtime.thunks import (
    CollectiveThunk,
    ConditionalThunk,
    CopyThunk,
    DeviceNumberThunk,
    HostThunk,
    KernelThunk,
    LibraryThunk,
    RandomStateThunk,
    Thunk,
    WhileThunk,
    place,
    show,
    walk,
)

#: counted loops of at most so many nodes in all are written out
UNROLLED_NODES = 256
#: where the program's random state lies, as if it were an allocation
STATE = Slice(-1, 0, 16)
#: where libraries work beside their arrays: one call at a time
_SCRATCH = Slice(-2, 0, 1)
#: what joins the devices: all must come to their collectives in one order
_LINKS = Slice(-3, 0, 1)


@dataclass(frozen=True, slots=True)
class Node:
    """A thunk and the nodes of its section it waits for. ``parts``: sections inside a loop (its condition, if it has
    one, and its body) or a branching (its branches)."""

    thunk: Thunk
    after: tuple[int, ...]
    parts: tuple[Section, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """The thunks that run as one graph."""

    nodes: tuple[Node, ...]

    def thunks(self) -> Iterator[Thunk]:
        """Every thunk that does something itself, those of inner sections too."""
        for node in self.nodes:
            if not node.parts:
                yield node.thunk
            for part in node.parts:
                yield from part.thunks()

    @property
    def allocations(self) -> tuple[int, ...]:
        """The allocations its nodes touch, those inside loops and branches too."""
        found = {s.allocation for node in self.nodes for part in effects(node.thunk, {}) for s in part}
        found.update(n for node in self.nodes for part in node.parts for n in part.allocations)
        return tuple(sorted(n for n in found if n >= 0))

    @property
    def width(self) -> int:
        """The most nodes on one level: a node's level is one more than the highest it waits for."""
        levels: list[int] = []
        for node in self.nodes:
            levels.append(1 + max((levels[n] for n in node.after), default=-1))
        return max((levels.count(level) for level in set(levels)), default=0)


@dataclass(frozen=True, slots=True)
class HostCall:
    """A routine on the host, with its arrays brought there and back."""

    thunk: HostThunk


@dataclass(frozen=True, slots=True)
class StreamCall:
    """A library's call that cannot be captured: enqueued between graphs, and nobody waits for it."""

    thunk: LibraryThunk


@dataclass(frozen=True, slots=True)
class HostExchange:
    """A collective whose sizes the host reads."""

    thunk: CollectiveThunk


@dataclass(frozen=True, slots=True)
class HostLoop:
    """A loop the host drives: it counts, or reads the predicate each time round."""

    thunk: WhileThunk
    condition: Plan
    body: Plan


@dataclass(frozen=True, slots=True)
class HostBranch:
    """A branching the host decides."""

    thunk: ConditionalThunk
    branches: tuple[Plan, ...]


Step = Section | HostCall | StreamCall | HostExchange | HostLoop | HostBranch
Plan = tuple[Step, ...]
#: which arguments of each kernel it writes, by the kernel's name; all of them where it is not known
Outputs = Mapping[str, frozenset[int]]


def plan(sequence: Sequence[Thunk], outputs: Outputs, conditional_nodes: bool = True) -> Plan:
    """The plan of a sequence. ``conditional_nodes``: whether the driver has loops and branches as nodes."""
    steps: list[Step] = []
    run: list[tuple[Thunk, tuple[Section, ...]]] = []

    def finish() -> None:
        if run:
            steps.append(_section(run, outputs))
            run.clear()

    for thunk in _unrolled(sequence):
        parts = _parts(thunk, outputs, conditional_nodes)
        if parts is not None:
            run.append((thunk, parts))
            continue
        finish()
        steps.append(_on_host(thunk, outputs, conditional_nodes))
    finish()
    return tuple(steps)


def _unrolled(sequence: Sequence[Thunk]) -> Iterator[Thunk]:
    """The thunks, short counted loops written out."""
    for thunk in sequence:
        if isinstance(thunk, WhileThunk) and thunk.trips is not None and _is_short(thunk):
            for _ in range(thunk.trips):
                yield from _unrolled(thunk.body)
        else:
            yield thunk


def _is_short(loop: WhileThunk) -> bool:
    assert loop.trips is not None
    return loop.trips * _count(loop.body) <= UNROLLED_NODES


def _count(sequence: Sequence[Thunk]) -> int:
    """Nodes a sequence comes to, once unrolled."""
    total = 0
    for thunk in sequence:
        if isinstance(thunk, WhileThunk):
            inside = _count(thunk.body) + _count(thunk.condition)
            total += inside * thunk.trips if thunk.trips is not None and _is_short(thunk) else inside + 1
        elif isinstance(thunk, ConditionalThunk):
            total += 1 + sum(_count(b) for b in thunk.branches)
        else:
            total += 1
    return total


def _parts(thunk: Thunk, outputs: Outputs, conditional_nodes: bool) -> tuple[Section, ...] | None:
    """The sections inside a node; None where the thunk needs the host."""
    match thunk:
        case HostThunk() | CollectiveThunk(way=Way.RAGGED):
            return None
        case LibraryThunk() if not thunk.call.is_capturable:
            return None
        case WhileThunk() | ConditionalThunk() if _has_collectives(thunk):
            return None
        case WhileThunk():
            inside = (thunk.body,) if thunk.trips is not None else (thunk.condition, thunk.body)
        case ConditionalThunk():
            inside = thunk.branches
        case _:
            return ()
    if not conditional_nodes:
        return None
    sections: list[Section] = []
    for sequence in inside:
        steps = plan(sequence, outputs, conditional_nodes)
        if any(not isinstance(s, Section) for s in steps):
            return None
        sections.append(steps[0] if steps else Section(()))  # type: ignore[arg-type]
    return tuple(sections)


def _has_collectives(thunk: Thunk) -> bool:
    """Whether devices meet inside: nodes that NCCL makes need not be such as conditional nodes take."""
    return any(isinstance(t, CollectiveThunk) for t in walk((thunk,)))


def _on_host(thunk: Thunk, outputs: Outputs, conditional_nodes: bool) -> Step:
    match thunk:
        case WhileThunk():
            condition = plan(thunk.condition, outputs, conditional_nodes)
            return HostLoop(thunk, condition, plan(thunk.body, outputs, conditional_nodes))
        case ConditionalThunk():
            return HostBranch(thunk, tuple(plan(b, outputs, conditional_nodes) for b in thunk.branches))
        case HostThunk():
            return HostCall(thunk)
        case LibraryThunk():
            return StreamCall(thunk)
        case CollectiveThunk():
            return HostExchange(thunk)
    raise AssertionError(thunk)


# -- dependencies ------------------------------------------------------------------------------------------------------
def effects(thunk: Thunk, outputs: Outputs) -> tuple[tuple[Slice, ...], tuple[Slice, ...]]:
    """The slices a thunk reads and those it writes, with everything inside loops and branches."""
    match thunk:
        case KernelThunk():
            written = outputs.get(thunk.kernel)
            if written is None:
                return thunk.args, thunk.args
            return (
                tuple(s for n, s in enumerate(thunk.args) if n not in written),
                tuple(s for n, s in enumerate(thunk.args) if n in written),
            )
        case CopyThunk():
            return (thunk.origin,), (thunk.target,)
        case RandomStateThunk():
            return (STATE,), (STATE, thunk.out)
        case DeviceNumberThunk():
            return (), (thunk.out,)
        case CollectiveThunk():
            return (*thunk.operands, _LINKS), (*thunk.results, _LINKS)
        case WhileThunk():
            reads, writes = _effects_of((*thunk.condition, *thunk.body), outputs)
            return (*reads, thunk.predicate), writes
        case ConditionalThunk():
            reads, writes = _effects_of([t for b in thunk.branches for t in b], outputs)
            return (*reads, thunk.selector), writes
        case HostThunk():
            return _split(thunk)
        case LibraryThunk():
            reads, writes = _split(thunk.on_host)
            return (*reads, _SCRATCH), (*writes, _SCRATCH)
    raise AssertionError(thunk)


def _split(thunk: HostThunk) -> tuple[tuple[Slice, ...], tuple[Slice, ...]]:
    first = len(thunk.args) - thunk.results
    return thunk.args[:first], thunk.args[first:]


def _effects_of(sequence: Sequence[Thunk], outputs: Outputs) -> tuple[tuple[Slice, ...], tuple[Slice, ...]]:
    reads: dict[Slice, None] = {}
    writes: dict[Slice, None] = {}
    for thunk in sequence:
        r, w = effects(thunk, outputs)
        reads.update(dict.fromkeys(r))
        writes.update(dict.fromkeys(w))
    return tuple(reads), tuple(writes)


def _section(run: Sequence[tuple[Thunk, tuple[Section, ...]]], outputs: Outputs) -> Section:
    """Nodes with what each waits for: who wrote what it reads, and who read or wrote what it writes.

    A node that another dependency waits for already is left out.
    """
    accesses: dict[int, list[tuple[Slice, int, bool]]] = {}  # allocation → (slice, node, whether it writes)
    behind: list[int] = []  # for each node all nodes it comes after, as bits
    nodes: list[Node] = []
    for n, (thunk, parts) in enumerate(run):
        reads, writes = effects(thunk, outputs)
        waits: set[int] = set()
        for s in reads:
            waits.update(m for other, m, wrote in accesses.get(s.allocation, ()) if wrote and other.overlaps(s))
        for s in writes:
            waits.update(m for other, m, _ in accesses.get(s.allocation, ()) if other.overlaps(s))
        direct: list[int] = []
        seen = 0
        for m in sorted(waits, reverse=True):
            if not seen >> m & 1:
                direct.append(m)
                seen |= behind[m] | 1 << m
        behind.append(seen)
        for s in reads:
            accesses.setdefault(s.allocation, []).append((s, n, False))
        for s in writes:
            kept = [a for a in accesses.get(s.allocation, ()) if not _covers(s, a[0]) or a[1] == n]
            accesses[s.allocation] = [*kept, (s, n, True)]
        nodes.append(Node(thunk, tuple(sorted(direct)), parts))
    return Section(tuple(nodes))


def _covers(s: Slice, other: Slice) -> bool:
    return s.offset <= other.offset and other.offset + other.size <= s.offset + s.size


# -- text --------------------------------------------------------------------------------------------------------------
def text(steps: Plan, indent: str = "") -> str:
    """The plan a line per node, with what each waits for."""
    return "\n".join(line for step in steps for line in _lines(step, indent))


def _lines(step: Step, indent: str) -> Iterator[str]:
    match step:
        case Section():
            count = f"{len(step.nodes)} node" + "s" * (len(step.nodes) != 1)
            yield f"{indent}graph of {count}, {step.width} side by side"
            yield from _nodes(step, indent + "  ")
        case HostCall() | HostExchange():
            yield f"{indent}host: {show((step.thunk,))}"
        case StreamCall():
            yield f"{indent}stream: {show((step.thunk,))}"
        case HostLoop():
            t = step.thunk
            turns = f"{t.trips} times" if t.trips is not None else f"while {place(t.predicate)}"
            yield f"{indent}host: loop {turns}  // {t.source}"
            if step.condition:
                yield f"{indent}  condition"
                yield text(step.condition, indent + "    ")
            yield f"{indent}  body"
            yield text(step.body, indent + "    ")
        case HostBranch():
            yield f"{indent}host: branch by {place(step.thunk.selector)}  // {step.thunk.source}"
            for n, branch in enumerate(step.branches):
                yield f"{indent}  branch {n}"
                if branch:
                    yield text(branch, indent + "    ")


def _nodes(section: Section, indent: str) -> Iterator[str]:
    for n, node in enumerate(section.nodes):
        after = f"  after {', '.join(f'n{m}' for m in node.after)}" if node.after else ""
        t = node.thunk
        if not node.parts:
            yield f"{indent}n{n} {show((t,))}{after}"
        elif isinstance(t, WhileThunk):
            turns = f"{t.trips} times" if t.trips is not None else place(t.predicate)
            yield f"{indent}n{n} while {turns}  // {t.source}{after}"
            for name, part in zip(("condition", "body")[-len(node.parts) :], node.parts, strict=True):
                yield f"{indent}  {name}"
                yield from _nodes(part, indent + "    ")
        elif isinstance(t, ConditionalThunk):
            yield f"{indent}n{n} conditional {place(t.selector)}  // {t.source}{after}"
            for branch, part in enumerate(node.parts):
                yield f"{indent}  branch {branch}"
                yield from _nodes(part, indent + "    ")


def exchanges(steps: Plan) -> tuple[int, int]:
    """The number of collectives that are nodes of graphs, and of those that the host begins itself."""
    captured = by_host = 0
    for step in steps:
        inner: tuple[Plan, ...] = ()
        match step:
            case Section():
                captured += sum(isinstance(t, CollectiveThunk) for t in step.thunks())
            case HostExchange():
                by_host += 1
            case HostLoop():
                inner = (step.condition, step.body)
            case HostBranch():
                inner = step.branches
        for part in inner:
            more = exchanges(part)
            captured, by_host = captured + more[0], by_host + more[1]
    return captured, by_host


def counts(steps: Plan) -> dict[str, int]:
    """The number of graphs, nodes, calls between graphs and steps of the host in a plan, including those inside loops
    of the host."""
    found = {"graphs": 0, "nodes": 0, "stream calls": 0, "host steps": 0}
    for step in steps:
        inner: tuple[Plan, ...] = ()
        match step:
            case Section():
                found["graphs"] += 1
                found["nodes"] += sum(1 for _ in step.thunks())
                continue
            case StreamCall():
                found["stream calls"] += 1
                continue
            case HostLoop():
                inner = (step.condition, step.body)
            case HostBranch():
                inner = step.branches
        found["host steps"] += 1
        for part in inner:
            for name, n in counts(part).items():
                found[name] += n
    return found
