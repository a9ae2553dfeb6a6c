"""Recipe: what has to run to have an instruction's values once more at a later place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from heron.analysis.fusion.in_place import in_place_pairs
from heron.analysis.graph.dataflow import TRANSPARENT, Value, leaves
from heron.hlo.facts import having
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import Trait
from heron.passes.rewriting.building import is_pure
from heron.passes.schedule.remat.held import Held, Stay
from heron.records import dataclass

#: run computations of their own, or go on while others run: nothing that is done twice
_ONCE = having(Trait.FREE, Trait.CONTROL_FLOW) | {"copy-start"}
#: what is this much smaller than the memory to be saved is rather kept than computed again
SMALL = 16


@dataclass(slots=True)
class Recipe:
    """Instructions to run again, operands first; the last one has the values wanted. ``kept``: stays that must last
    longer for that. ``passing``: bytes held for a moment beside the values wanted."""

    steps: list[Instruction] = field(default_factory=list)
    kept: list[Stay] = field(default_factory=list)
    passing: int = 0


def is_repeatable(i: Instruction) -> bool:
    """Whether computing `i` twice gives the same and does nothing else: no effects, random state, collectives,
    updates in place, or computations of its own."""
    if i.opcode in TRANSPARENT or i.opcode in _ONCE or not is_pure(i):
        return False
    return all(len(index) < 2 for index, _ in i.shape.leaves()) and not in_place_pairs(i)


class Recipes:
    """Finds recipes in a program; ``most`` instructions each."""

    def __init__(self, held: Held, most: int, repeatable: Callable[[Instruction], bool]) -> None:
        self.held, self.most, self.repeatable = held, most, repeatable
        self._needs: dict[Instruction, list[Value]] = {}

    def find(self, i: Instruction, tick: int, place: int, saved: int, wanted: set[Value], keep: bool) -> Recipe | None:
        """The recipe to recompute `i` at that place, if it saves `saved` bytes; None if there is none.

        An operand that is gone by then is computed again as well where it is not small; with ``keep`` it rather stays
        longer.
        """
        recipe, planned = Recipe(), dict[Instruction, None]()
        work: list[Instruction | None] = [i]
        path: list[Instruction] = []
        while work:
            at = work.pop()
            if at is None:
                planned[path.pop()] = None
                continue
            if at in planned or at in path:
                continue
            path.append(at)
            if len(path) + len(planned) > self.most:
                return None
            work.append(None)
            for v in self.needs(at):
                if v.instruction in planned or self.held.stay_at(v, tick, place) is not None:
                    continue
                longer = self.held.stay_before(v, tick)
                again = v.instruction.parent is i.parent and self.repeatable(v.instruction)
                if longer is not None and (keep or not again or self.held.weight[v] * SMALL <= saved):
                    if longer not in recipe.kept:
                        recipe.kept.append(longer)
                elif again:
                    work.append(v.instruction)
                else:
                    return None
        recipe.steps = list(planned)
        recipe.passing = self._passing(recipe.steps, wanted)
        return recipe

    def needs(self, i: Instruction) -> list[Value]:
        """The values `i` reads."""
        found = self._needs.get(i)
        if found is None:
            at = self.held.at
            found = [v for o in dict.fromkeys(i.operands) for _, v in leaves(at[o]) if v is not None]
            self._needs[i] = found
        return found

    def _passing(self, steps: list[Instruction], wanted: set[Value]) -> int:
        """Most bytes held while the steps run beyond the wanted values, which count from the first step on."""
        last = {v: n for n, i in enumerate(steps) for v in self.needs(i)}
        gone: list[int] = [0] * len(steps)
        now = top = -sum(v.size for v in wanted)
        for n, i in enumerate(steps):
            for v in self.held.values(i):
                now += v.size
                if v not in wanted:
                    gone[last.get(v, n)] += v.size
            top = max(top, now)
            now -= gone[n]
        return max(0, top)
