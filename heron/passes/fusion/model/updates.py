"""Updates that a copy of the whole array would precede: they had better write the whole array themselves."""

from __future__ import annotations

from heron.analysis.fusion.in_place import in_place_pairs
from heron.analysis.graph.donation import donated_parameters
from heron.analysis.graph.reachability import Reachability
from heron.hlo.facts import having
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import Trait

_VIEWS = having(Trait.VIEW)


class Updates:
    """The dynamic-update-slices of a computation, alone or as the root of a fusion."""

    def __init__(self, c: Computation, reach: Reachability | None = None) -> None:
        self._computation, self._reach = c, reach
        self._known: dict[Instruction, bool] = {}

    def writes_all(self, i: Instruction) -> bool:
        """Whether the array that `i` updates is needed as it was when `i` has run, so that a copy must be updated."""
        known = self._known.get(i)
        if known is None:
            known = self._known[i] = self._look(i)
        return known

    def _look(self, i: Instruction) -> bool:
        root = i.fused_root if i.opcode == "fusion" else i
        if root.opcode != "dynamic-update-slice":
            return False
        pairs = in_place_pairs(i)
        return len(pairs) != 1 or self._is_needed(i.operands[pairs[0].operand], i)

    def _is_needed(self, x: Instruction, after: Instruction) -> bool:
        """Whether somebody may read `x`, or what it is a view of, when `after` has run."""
        while True:
            if x.opcode == "constant" or x.is_root or any(self._follows(u, after) for u in x.users if u is not after):
                return True
            if x.opcode == "parameter":
                c = self._computation
                donated = c.module is not None and (x.attrs["number"], ()) in donated_parameters(c.module)
                return c.is_entry and not donated
            if x.opcode not in _VIEWS:
                return False
            x = x.operands[0]

    def _follows(self, user: Instruction, after: Instruction) -> bool:
        if self._reach is None:
            self._reach = Reachability(self._computation)
        return self._reach.reaches(after, user)
