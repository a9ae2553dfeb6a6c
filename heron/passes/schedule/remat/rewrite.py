"""Rewriting: instructions that run again, who reads them, and the schedule with them in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from heron.analysis.graph.dataflow import TRANSPARENT, Value
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.passes.rewriting.building import own_body
from heron.passes.schedule.remat.held import Held, Stay, Use
from heron.passes.schedule.remat.recipe import Recipe


def cut(held: Held, stays: Mapping[Stay, int], tick: int, place: int, recipe: Recipe) -> list[Stay]:
    """Run `recipe` at that place. Each of `stays` ends ahead of its use number `stays[s]`; that one and those behind it
    read what is new. Gives the new stays."""
    for s in recipe.kept:
        held.bytes[s.last + 1 : tick + 1] += held.weight[s.value]
        s.last = tick
    held.passing[tick] = max(held.passing[tick], recipe.passing)
    new: dict[Value, Stay] = {}
    for step in recipe.steps:
        home = step.parent
        assert home is not None
        spot = _Spot(held, home, tick, place)
        operands = [spot.given(o, spot.provider) for o in step.operands]
        again = _again(held, step, operands)
        spot.add(again)
        for v in dict.fromkeys(v for o in operands for v in held.values(o)):
            held.add_use(v, Use(tick, tick, again))
            writer = held.writer_over(v) if held.room[v] > tick else None
            if writer is not None and writer.parent is home:
                writer.add_control_predecessor(again)
        for v in held.values(again):
            new[v] = Stay(v, again, tick, tick)
            held.stays[v].append(new[v])
            if v.index:
                spot.add(home.add("get-tuple-element", [again], v.shape, like=step, index=v.index[0]), v)
        place = spot.place
    for s, n in stays.items():
        _divide(held, s, n, new[s.value])
    moved = {s.value: new[s.value].provider for s in stays}
    for use in dict.fromkeys(u for s in stays for u in new[s.value].uses):
        _redirect(held, use, moved)
    return list(new.values())


def _again(held: Held, step: Instruction, operands: list[Instruction]) -> Instruction:
    """A second `step`."""
    assert step.parent is not None
    clone = step.clone(operands)
    clone.name = f"{step.name.partition('.remat')[0]}.remat"
    again = step.parent.attach(clone)
    own_body(again)
    for before in step.control_predecessors:  # they read what is overwritten
        again.add_control_predecessor(before)
    held.at[again] = held.at[step]
    return again


def _divide(held: Held, s: Stay, n: int, rest: Stay) -> None:
    """`rest` takes over the uses of `s` from number `n` on; `s` ends with those before."""
    rest.uses, rest.last = s.uses[n:], s.last
    s.uses = s.uses[:n]
    s.last = max((u.last for u in s.uses), default=s.first)
    held.bytes[s.last + 1 : rest.first] -= held.weight[s.value]


def _redirect(held: Held, use: Use, moved: Mapping[Value, Instruction]) -> None:
    """Let a reader read these values from their new providers."""
    reader = use.reader
    home = reader.parent
    assert home is not None
    spot = _Spot(held, home, *held.place(use))
    if use.is_result:
        home.root = spot.given(home.root, moved.get)
        return
    for n, o in enumerate(reader.operands):
        reader.set_operand(n, spot.given(o, moved.get))


class _Spot:
    """The place where new instructions are inserted, one after another."""

    def __init__(self, held: Held, home: Computation, tick: int, place: int) -> None:
        self.held, self.home, self.tick, self.place = held, home, tick, place

    def add(self, i: Instruction, value: Value | None = None) -> Instruction:
        self.held.inserted.setdefault(self.tick, []).insert(self.place, i)
        self.place += 1
        if value is not None:
            self.held.at[i] = value
        return i

    def provider(self, v: Value) -> Instruction | None:
        """The instruction that provides `v` to an instruction inserted here."""
        stay = self.held.stay_at(v, self.tick, self.place)
        return None if stay is None else stay.provider

    def given(self, o: Instruction, provider: Callable[[Value], Instruction | None]) -> Instruction:
        """The equivalent of operand `o`, from the providers of its values."""
        tree = self.held.at[o]
        if isinstance(tree, Value):
            source = provider(tree)
            if source is None or source is tree.instruction or source.parent is not self.home:
                return o
            if o.shape is tree.shape:
                return source if not tree.index else self._part(source, tree)
        operands = [self.given(x, provider) for x in o.operands] if o.opcode in TRANSPARENT else o.operands
        if all(new is old for new, old in zip(operands, o.operands, strict=True)):
            return o
        new = self.home.attach(o.clone(operands))
        self.held.at[new] = tree
        return self.add(new)

    def _part(self, source: Instruction, v: Value) -> Instruction:
        """The element of a tuple that stands right behind it."""
        return next(u for u in source.users if u.opcode == "get-tuple-element" and u.attrs["index"] == v.index[0])


def is_plain(held: Held, o: Instruction) -> bool:
    """Whether an operand gives its values as they are, or through tuples, their elements and views: other providers of
    the same values can stand in for it."""
    work = [o]
    while work:
        at = work.pop()
        tree = held.at[at]
        if isinstance(tree, Value) and at.shape is tree.shape:
            continue
        if at.opcode not in TRANSPARENT:
            return False
        work += at.operands
    return True


def reschedule(held: Held) -> None:
    """Put what was inserted into the schedule, and take out what nobody reads any more."""
    schedule = held.module.schedule
    assert schedule is not None
    for c, order in schedule.items():
        whole: list[Instruction] = []
        for i in order:
            whole += held.inserted.get(held.start(i) - 1, ())
            whole.append(i)
        whole += held.inserted.get(held.timeline.span[c][1] - 1, ())
        for i in reversed(whole):
            if not i.users and i is not c.root and i.opcode != "parameter" and not i.has_side_effect:
                for after in i.control_successors:  # what had to come before `i` still comes before that
                    for o in i.operands:
                        after.add_control_predecessor(o)
                c.remove(i)
        order[:] = [i for i in whole if i.parent is c]
    held.module.remove_unused_computations()
