"""The parts of values that a program needs: all that its result and side effects depend on, across calls.

Finer than use by use: an element of a loop's state that nothing needs but itself, in whatever computations it is handed
through, is not needed.
"""

from __future__ import annotations

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import ShapeIndex

#: ops that give part k of their operand as part k of their result
_HANDED_ON = frozenset({"opt-barrier", "optimization-barrier", "domain"})


class Needed:
    """`parts[i]` are the indices of the leaves of `i` that are needed; instructions of which none is are not there."""

    def __init__(self, module: Module) -> None:
        self.parts: dict[Instruction, set[ShapeIndex]] = {}
        self._callers = module.callers()
        self._work: list[tuple[Instruction, ShapeIndex]] = []
        self._running: set[Instruction] = set()
        self._whole(module.entry.root)
        for i in module.instructions():
            if i.opcode == "while" or i.has_side_effect:
                self._runs(i)  # a loop runs as long as it is there, so it must end, even if nothing needs its result
        while self._work:
            self._sources(*self._work.pop())

    def is_needed(self, i: Instruction, index: ShapeIndex = ()) -> bool:
        """Whether any leaf under a part of `i` is needed."""
        return any(part[: len(index)] == index for part in self.parts.get(i, ()))

    def _whole(self, i: Instruction) -> None:
        for index, _ in i.shape.leaves():
            self._part(i, index)

    def _part(self, i: Instruction, index: ShapeIndex) -> None:
        known = self.parts.setdefault(i, set())
        if index not in known:
            known.add(index)
            self._work.append((i, index))

    def _under(self, i: Instruction, index: ShapeIndex) -> None:
        for below, _ in i.shape.at(index).leaves():
            self._part(i, index + below)

    def _runs(self, i: Instruction) -> None:
        """`i` must run: what decides whether and how often its computations run is needed, or else all it reads."""
        if i in self._running:
            return
        self._running.add(i)
        match i.opcode:
            case "while":
                self._whole(i.condition.root)
            case "conditional":
                self._whole(i.operands[0])
            case "call":
                pass
            case _:
                for operand in i.operands:
                    self._whole(operand)
        for c in i.called:  # what other callers made it need so far
            for p in c.parameters:
                for index in list(self.parts.get(p, ())):
                    self._argument(i, p, index)

    def _sources(self, i: Instruction, index: ShapeIndex) -> None:
        """Need what the part of `i` is made of."""
        match i.opcode:
            case "parameter":
                self._arguments(i, index)
            case "tuple":
                self._under(i.operands[index[0]], index[1:])
            case "get-tuple-element":
                self._part(i.operands[0], (i.attrs["index"], *index))
            case "while":
                self._runs(i)
                self._part(i.operands[0], index)
                self._part(i.body.root, index)
            case "conditional":
                self._runs(i)
                for c in i.branch_computations:
                    self._part(c.root, index)
            case "call":
                self._runs(i)
                self._part(i.to_apply.root, index)
            case opcode if opcode in _HANDED_ON:
                self._part(i.operands[0], index)
            case _:
                for operand in i.operands:
                    self._whole(operand)

    def _arguments(self, parameter: Instruction, index: ShapeIndex) -> None:
        c = parameter.parent
        assert c is not None
        for caller in self._callers[c]:
            if caller in self._running:
                self._argument(caller, parameter, index)

    def _argument(self, caller: Instruction, parameter: Instruction, index: ShapeIndex) -> None:
        for operand in _arguments(caller, parameter):
            self._part(operand, index)
        if caller.opcode == "while":  # also what the round before left there
            self._part(caller.body.root, index)


def _arguments(caller: Instruction, parameter: Instruction) -> list[Instruction]:
    """The operands that may become this parameter; of what applies a computation to elements none, as it needs all."""
    match caller.opcode:
        case "while":
            return [caller.operands[0]]
        case "conditional":
            branches = zip(caller.operands[1:], caller.branch_computations, strict=True)
            return [o for o, branch in branches if branch is parameter.parent]
        case "call":
            return [caller.operands[parameter.attrs["number"]]]
        case _:
            return []
