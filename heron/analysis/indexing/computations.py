"""Whole computations: the maps from a root's index to everything the root needs, composed on the way up.

An instruction that is read in several ways has several maps. `None` among them says that any element may be read.
"""

from __future__ import annotations

from collections.abc import Sequence

from heron.analysis.indexing.map import IndexingMap
from heron.analysis.indexing.operands import operand_indexing
from heron.analysis.indexing.runtime import Indexing, compose_indexing, identity_indexing
from heron.errors import HeronError
from heron.hlo.facts import is_call
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction

#: ways of reading one instruction that are told apart, variables of one map, and bodies inside bodies; with more,
#: an instruction counts as read anywhere
MOST_WAYS = 64
MOST_VARIABLES = 100
MOST_DEPTH = 50

Ways = dict[Indexing | None, None]  # an ordered set
Place = tuple[Instruction, int]  # an instruction and, if its value is a tuple, the part of it


def computation_maps(
    computation: Computation, root: Instruction | None = None
) -> dict[Instruction, set[IndexingMap | None]]:
    """For each instruction the root needs, parameters above all: the maps from a root index to what is read of it."""
    found: dict[Instruction, set[IndexingMap | None]] = {}
    for (i, _), ways in computation_indexings(root or computation.root).items():
        found.setdefault(i, set()).update(way and way.map for way in ways)
    return found


def computation_indexings(root: Instruction, output: int = 0) -> dict[Place, Ways]:
    """Like `computation_maps`, with the origins of runtime variables, and each part of a tuple for itself.

    Args:
        output: which part of the root's value to start from when it is a tuple.

    Raises:
        HeronError: GEN112 when that is no array.
    """
    return _Walk().computation(root, output)


def parameter_indexings(i: Instruction, output: int = 0) -> list[Ways]:
    """The ways in which a fusion or call reads each of its operands for its `output`-th result.

    Operands that are tuples, and those read through instructions without a map, have `None` among their ways.
    """
    return _Walk().body(i, output)


class _Walk:
    """One pass over computations; a body that is called again is not walked again."""

    def __init__(self) -> None:
        self.bodies: dict[tuple[Computation, int], list[Ways]] = {}
        self.depth = 0

    def computation(self, root: Instruction, output: int) -> dict[Place, Ways]:
        shape = root.shape
        if shape.tuple_shapes is not None and 0 <= output < len(shape.tuple_shapes):
            shape = shape.tuple_shapes[output]
        if not shape.is_array:
            raise HeronError("GEN112", "indexing maps are defined for arrays only", where=str(root))
        found: dict[Place, Ways] = {(root, output): {identity_indexing(shape.dims): None}}
        for i in reversed(_below(root)):
            for place in [p for p in _parts(i) if p in found]:
                for n, operand in enumerate(i.operands):
                    self.step(found, place, n, operand)
        return found

    def body(self, i: Instruction, output: int) -> list[Ways]:
        called = i.called[0]
        known = self.bodies.get((called, output))
        if known is not None:
            return known
        if self.depth >= MOST_DEPTH:
            return [{None: None} for _ in i.operands]
        self.depth += 1
        ways: dict[Instruction, Ways] = {}
        for (at, _), found in self.computation(called.root, output).items():
            ways.setdefault(at, {}).update(found)
        self.depth -= 1
        known = self.bodies[called, output] = [ways.get(p, {}) for p in called.parameters]
        return known

    def step(self, found: dict[Place, Ways], place: Place, n: int, operand: Instruction) -> None:
        """Adds how `operand` is read through operand `n` of the instruction at `place`."""
        i, part = place
        if i.opcode == "get-tuple-element":
            return _add(found, (operand, i.index), found[place])
        if i.opcode == "tuple" and n != part:
            return
        if not operand.shape.is_array:
            for place in _parts(operand):
                _add(found, place, {None: None})
            return
        if i.opcode == "tuple":
            return _add(found, (operand, 0), found[place])
        steps = self.body(i, part)[n] if is_call(i) else {operand_indexing(i, n, part): None}
        for step in steps:
            ways: Ways = {}
            for way in found[place]:
                ways[None if way is None or step is None else compose_indexing(way, step)] = None
            _add(found, (operand, 0), ways)


def _parts(i: Instruction) -> list[Place]:
    return [(i, k) for k in range(len(i.shape.tuple_shapes or (1,)))]


def _add(found: dict[Place, Ways], place: Place, ways: Ways) -> None:
    known = found.setdefault(place, {})
    for way in ways:
        if way is not None and len(way.map.variables) > MOST_VARIABLES:
            way = None
        if way is None or not way.map.is_known_empty:
            known[way] = None
    if len(known) > MOST_WAYS:
        found[place] = {None: None}


def _below(root: Instruction) -> Sequence[Instruction]:
    """The instructions that `root` needs, operands first."""
    order: list[Instruction] = []
    seen: set[Instruction] = set()
    stack = [(root, False)]
    while stack:
        i, ready = stack.pop()
        if ready:
            order.append(i)
        elif i not in seen:
            seen.add(i)
            stack.append((i, True))
            stack.extend((o, False) for o in i.operands if o not in seen)
    return order
