"""Dividing a kernel with several outputs into two, and putting it together again."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import field

from heron.analysis.fusion.iteration_space import hero_of
from heron.hlo.facts import root_parts
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.passes.fusion.model.build import kind_and_name, outlined
from heron.records import dataclass


@dataclass(slots=True)
class Divided:
    """``fusion``, taken out of its computation, and the two that compute the same: ``parts``, the second of which may
    read the first. ``given`` are its operands, ``taken`` the parts of its result with what stands for them now."""

    home: Computation
    fusion: Instruction
    given: tuple[Instruction, ...]
    parts: list[Instruction] = field(default_factory=list)
    taken: list[tuple[Instruction, Instruction]] = field(default_factory=list)

    @staticmethod
    def of(fusion: Instruction, late: Collection[int]) -> Divided:
        """Let a second kernel compute the outputs `late`."""
        home = fusion.parent
        assert home is not None
        self = Divided(home, fusion, tuple(fusion.operands))
        roots = root_parts(fusion.attrs["calls"])
        provided = dict(zip(fusion.attrs["calls"].parameters, fusion.operands, strict=True))
        early = [n for n in range(len(roots)) if n not in late]
        outputs = dict(zip(early, self._compute([roots[n] for n in early], provided), strict=True))
        provided |= {roots[n]: o for n, o in outputs.items()}
        last = sorted(late)
        outputs |= zip(last, self._compute([roots[n] for n in last], provided), strict=True)
        for old in list(fusion.users):
            new = outputs[old.attrs["index"]]
            new.metadata = old.metadata
            old.replace_uses_with(new)
            self.taken.append((old, new))
            home.remove(old)
        home.remove(fusion)
        for new in outputs.values():
            if not new.users and new.opcode == "get-tuple-element":
                home.remove(new)
        return self

    def _compute(self, roots: Sequence[Instruction], provided: dict[Instruction, Instruction]) -> list[Instruction]:
        """A kernel of these instructions of the fusion's body; its outputs."""
        home, body = self.home, self.fusion.attrs["calls"]
        assert home.module is not None
        members = set(body.instructions) - provided.keys()
        made, read = outlined(roots, members, body.name)
        home.module.add_computation(made)
        kind, name = kind_and_name(hero_of(roots))
        part = home.add("fusion", [provided[i] for i in read], made.root.shape, name, kind=kind, calls=made)
        part.metadata = self.fusion.metadata
        self.parts.append(part)
        if len(roots) == 1:
            return [part]
        return [home.add("get-tuple-element", [part], r.shape, index=n) for n, r in enumerate(roots)]

    def undo(self) -> None:
        """Have the one kernel back."""
        home, fusion = self.home, self.fusion
        assert home.module is not None
        name = fusion.name
        fusion.set_operands(self.given)
        home.attach(fusion).name = name
        for old, new in self.taken:
            name = old.name
            old.set_operands((fusion,))
            home.attach(old).name = name
            new.replace_uses_with(old)
        for part in reversed(self.parts):
            for user in list(part.users):
                home.remove(user)
            home.remove(part)
        for part in self.parts:
            home.module.remove_computation(part.attrs["calls"])
