"""A computation as numbers: what each of its steps holds, reads and frees, for schedulers to compare orders by.

Only what runs is a step: parameters, constants and views have no place of their own in an order and are put back by
`Steps.expand`. Bytes are counted by value, as buffer assignment shares buffers: an update in place holds nothing new,
loop state lies where its initial value does, what goes into a donated argument needs no room.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from heron.analysis.fusion.sharing import may_share_buffer
from heron.analysis.graph.dataflow import TRANSPARENT, Dataflow, Value, awaited, leaves
from heron.analysis.graph.donation import output_aliases
from heron.hlo.facts import having, is_alias, works_in_step
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import Trait
from heron.records import dataclass

_THERE = having(Trait.GIVEN)


class Places:
    """The flows of a whole module as buffers see them: in-place updates, and values in the caller's arguments.

    ``over[v]`` is the value that `v` is written over; ``moved`` are values whose buffers live on in others;
    ``state[body]`` are the values a loop's body gets and replaces; ``given`` lie in arguments, ``outs`` in outputs.
    """

    def __init__(self, flow: Dataflow) -> None:
        self.over: dict[Value, Value] = {}
        self.moved: set[Value] = set()
        self.state: dict[Computation, set[Value]] = {}
        self.given: set[Value] = set()
        for f in flow.flows:
            if f.kind == "in-place":
                self.over[f.target] = f.source
                self.moved.add(f.source)
            elif f.kind == "while-init":
                self.moved.add(f.source)
            elif f.kind == "while-body" and f.at.parent is not None:
                self.state.setdefault(f.at.parent, set()).add(f.target)
        aliased = {index for index, _, _ in output_aliases(flow.module)}
        self.given = _sharing(flow, {out for out in flow.outputs if out.index in aliased})
        outputs = {out for out in flow.outputs if out not in self.given}
        self.outs = _sharing(flow, outputs)
        self.output_bytes = sum(out.size for out in outputs)


def _sharing(flow: Dataflow, values: set[Value]) -> set[Value]:
    """The values and all that share a buffer with one of them."""
    beside: dict[Value, list[Value]] = {}
    for f in flow.flows if values else ():
        beside.setdefault(f.source, []).append(f.target)
        beside.setdefault(f.target, []).append(f.source)
    found, work = set(values), list(values)
    while work:
        for v in beside.get(work.pop(), ()):
            if v not in found:
                found.add(v)
                work.append(v)
    return found


@dataclass(slots=True)
class Steps:
    """Steps 0, 1, … in some order that may run. All sizes are bytes; values are numbered too.

    ``before[n]``, ``after[n]``: the steps that `n` must follow, and those that must follow it. ``makes[n]``: what it
    holds newly, of which ``keeps[n]`` to the end, ``outs[n]`` in the memory of outputs and ``drops[n]`` only while it
    runs. ``extra[n]``: what the computations it runs hold. ``reads[n]``: the values it needs; ``readers[v]`` counts
    their steps, ``frees[v]`` is given back with the last (0 for what is not the computation's to free), ``makers[v]``
    makes it (-1: no step does).
    """

    computation: Computation
    instructions: list[Instruction] = field(default_factory=list)
    before: list[set[int]] = field(default_factory=list)
    after: list[list[int]] = field(default_factory=list)
    makes: list[int] = field(default_factory=list)
    keeps: list[int] = field(default_factory=list)
    outs: list[int] = field(default_factory=list)
    drops: list[int] = field(default_factory=list)
    extra: list[int] = field(default_factory=list)
    reads: list[tuple[int, ...]] = field(default_factory=list)
    readers: list[int] = field(default_factory=list)
    frees: list[int] = field(default_factory=list)
    makers: list[int] = field(default_factory=list)
    #: bytes of outputs, whose memory serves until they are there
    spare: int = 0
    flow: Dataflow | None = None
    numbers: dict[Value, int] = field(default_factory=dict)
    _shares: dict[int, dict[int, int]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.instructions)

    def in_step(self, n: int, last: Sequence[int]) -> int:
        """Bytes of results of step `n` that its kernel computes in place over operands it is the last to read."""
        return sum(size for v, size in self.shared(n).items() if last[v] == n)

    def shared(self, n: int) -> Mapping[int, int]:
        """The operands of step `n` over which its kernel may compute a result in place, and the bytes of each."""
        found = self._shares.get(n)
        if found is None:
            found = self._shares[n] = self._shared(n)
        return found

    def _shared(self, n: int) -> dict[int, int]:
        i = self.instructions[n]
        assert self.flow is not None
        if not works_in_step(i):
            return {}
        at, found = self.flow.at, dict[int, int]()
        for index, made in leaves(at[i]):
            if made is None or made.instruction is not i:
                continue
            for k, operand in enumerate(i.operands):
                source = at[operand]
                if not isinstance(source, Value) or source.size != made.size:
                    continue
                v = self.numbers[source]
                if v not in found and self.frees[v] and may_share_buffer(i, k, index):
                    found[v] = made.size
                    break
        return found

    def expand(self, order: Sequence[int]) -> list[Instruction]:
        """All instructions of the computation: the steps in that order, what is no step just before it is needed."""
        c = self.computation
        done: dict[Instruction, None] = dict.fromkeys(p for p in c.parameters if not p.control_predecessors)
        for start in (*(self.instructions[n] for n in order), *c.instructions):
            if start in done:
                continue
            stack = [start]
            while stack:
                i = stack[-1]
                waiting = [o for o in i.operands if o not in done]
                if i.control_predecessors:
                    waiting += [o for o in i.control_predecessors if o not in done]
                if waiting:
                    stack += reversed(waiting)
                    continue
                stack.pop()
                done[i] = None
        if not c.root.users and not c.root.control_successors:
            del done[c.root]
            done[c.root] = None
        return list(done)


def steps_of(c: Computation, flow: Dataflow, places: Places, peaks: Mapping[Computation, int]) -> Steps:
    """The steps of `c`, operands first; `peaks` are the bytes that the computations it runs hold at most."""
    s = Steps(c, flow=flow)
    s.spare = places.output_bytes if c is flow.module.entry else 0
    values = _Values(s, flow, places)
    step: dict[Instruction, int] = {}
    for i in c.post_order():
        if not i.control_predecessors:
            if i.opcode in _THERE:
                step[i] = -1
                continue
            if is_alias(i):
                step[i] = step[i.operands[0]]
                continue
        step[i] = len(s.instructions)
        _add_step(s, i, step)
        if i.opcode in TRANSPARENT or i.opcode in _THERE:
            _add_bytes(s)
            continue
        reads = values.read_by(i)
        makes, keeps, outs = values.made_by(i)
        extra = max((peaks.get(k, 0) for k in i.called), default=0) if i.attrs else 0
        _add_bytes(s, reads, makes, keeps, outs, extra)
    values.drop_unread(step)
    return s


def _add_step(s: Steps, i: Instruction, step: Mapping[Instruction, int]) -> None:
    """The next step, with those it follows."""
    before = {step[o] for o in i.operands}
    if i.control_predecessors:
        before.update(step[o] for o in i.control_predecessors)
    before.discard(-1)
    for b in before:
        s.after[b].append(step[i])
    s.instructions.append(i)
    s.before.append(before)
    s.after.append([])


def _add_bytes(
    s: Steps, reads: tuple[int, ...] = (), makes: int = 0, keeps: int = 0, outs: int = 0, extra: int = 0
) -> None:
    s.reads.append(reads)
    s.makes.append(makes)
    s.keeps.append(keeps)
    s.outs.append(outs)
    s.drops.append(0)
    s.extra.append(extra)


class _Values:
    """Numbers the values of a computation as its steps come along."""

    def __init__(self, steps: Steps, flow: Dataflow, places: Places) -> None:
        self.steps, self.at, self.places = steps, flow.at, places
        self.kept = {v for _, v in leaves(self.at[steps.computation.root])}
        self.state = places.state.get(steps.computation, set())

    def number(self, v: Value, own: bool) -> int:
        """The number of a value; ``own``: the next step makes it."""
        s = self.steps
        found = s.numbers.get(v)
        if found is None:
            found = s.numbers[v] = len(s.readers)
            s.readers.append(0)
            s.makers.append(len(s.makes) if own else -1)
            lives_on = v in self.kept or v in self.places.given or v in self.places.moved
            s.frees.append(v.device_size if (own or v in self.state) and not lives_on else 0)
        return found

    def read_by(self, i: Instruction) -> tuple[int, ...]:
        """The values that `i` reads, which count it as a reader."""
        read: dict[int, None] = {}
        for o in awaited(i):
            tree = self.at[o]
            if isinstance(tree, Value):
                read[self.number(tree, False)] = None
            elif tree is not None:
                read.update((self.number(v, False), None) for _, v in leaves(tree) if v is not None)
        for v in read:
            self.steps.readers[v] += 1
        return tuple(read)

    def made_by(self, i: Instruction) -> tuple[int, int, int]:
        """Bytes that `i` holds newly, those of them that are kept to the end, and those in the memory of outputs."""
        makes = keeps = outs = 0
        tree = self.at[i]
        for _, v in [((), tree)] if isinstance(tree, Value) else leaves(tree):
            if v is None or v in self.steps.numbers:
                continue
            self.number(v, True)
            if v.kind == "phi" and i.opcode == "while" or v in self.places.given or v in self.places.over:
                continue
            size = v.device_size
            makes += size
            if v in self.kept:
                keeps += size
            if v in self.places.outs:
                outs += size
        return makes, keeps, outs

    def drop_unread(self, step: Mapping[Instruction, int]) -> None:
        """Free the values that nothing reads after the steps that make them."""
        s = self.steps
        for v, number in s.numbers.items():
            n = step.get(v.instruction, -1)
            if n >= 0 and not s.readers[number]:
                s.drops[n] += s.frees[number]
