"""Manual computations: along which axes each value is local, and the borders where that changes."""

from __future__ import annotations

from dataclasses import replace

from heron.analysis.sharding.program import ProgramShardings
from heron.errors import HeronError
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.hlo.sharding.atoms import AtomicMesh, TensorSharding
from heron.hlo.sharding.refinement import Refinement
from heron.passes.sharding.model.annotations import CONSTRAINT, ENTER, LEAVE, Annotations, target

_Atoms = frozenset[int]
_NONE: _Atoms = frozenset()


class ManualAxes:
    """The manual atoms of every value of a program.

    They begin at SPMDFullToShardShape and go with the data, into called computations too, up to SPMDShardToFullShape.
    A computation that is called in several ways is copied for each.
    """

    def __init__(self, module: Module, found: Annotations, refinement: Refinement) -> None:
        self.module, self.found, self.refinement = module, found, refinement
        self.of: dict[Instruction, _Atoms] = {}
        self._done: dict[tuple[Computation, _Atoms], Computation] = {}
        self._taken: set[Computation] = set()
        self._mark(module.entry, _NONE)

    def _mark(self, c: Computation, base: _Atoms) -> Computation:
        """Find the atoms of a computation's values, all of which are local along `base`; a copy if need be."""
        done = self._done.get((c, base))
        if done is not None:
            return done
        original = c
        if c in self._taken:
            c = self._copy(c)
        self._taken.add(c)
        self._done[original, base] = self._done[c, base] = c
        order = c.post_order()
        for i in order:
            self.of[i] = self._atoms(i, base)
            if i.has(Trait.CONTROL_FLOW):
                self._mark_called(i, base)
        self._settle_sources(order, base)
        return c

    def _copy(self, c: Computation) -> Computation:
        copy = self.module.add_computation(c.clone())
        self.found.copy(dict(zip(c.instructions, copy.instructions, strict=True)))
        self.found.changed = True
        return copy

    def _mark_called(self, i: Instruction, base: _Atoms) -> None:
        inside = base.union(*(self.of[o] for o in i.operands), self._said(i))
        for name in i.op.calling:
            value = i.attrs.get(name)
            if isinstance(value, Computation):
                i.attrs[name] = self._mark(value, inside)
            elif value is not None:
                i.attrs[name] = tuple(self._mark(callee, inside) for callee in value)
        if i.opcode == "call":
            self.of[i] = self.of[i.attrs["to_apply"].root]

    def _said(self, i: Instruction) -> _Atoms:
        """The manual atoms that the program states. A call without operands has those that its users state."""
        named = self.found.manual.get(i)
        found = None if named is None else self.refinement.convert(named)
        if found is not None or i.operands:
            return _NONE if found is None else found.manual
        users = [u for j in i.users for u in (j.users if j.opcode == "get-tuple-element" else (j,))]
        return _NONE.union(*(s.manual for u in users if target(u) == CONSTRAINT for s in self._leaves(u)))

    def _atoms(self, i: Instruction, base: _Atoms) -> _Atoms:
        own = base.union(*(s.manual for s in self._leaves(i)))
        if target(i) == LEAVE:
            return (self.of[i.operands[0]] - self._said(i)) if i in self.found.manual else own
        return own.union(*(self.of[o] for o in i.operands))

    def _leaves(self, i: Instruction) -> list[TensorSharding]:
        given = self.found.leaves.get(i, ())
        return [s for named in given if named is not None and (s := self.refinement.convert(named)) is not None]

    def _settle_sources(self, order: list[Instruction], base: _Atoms) -> None:
        """Values made of constants alone have the atoms of their users; one is copied for users that differ."""
        sources: set[Instruction] = set()
        for i in order:
            if i.opcode != "parameter" and not i.has_side_effect and sources.issuperset(i.operands):
                sources.add(i)
        for i in reversed(order):
            if i not in sources or self.of[i] != base or i in self.found.leaves:
                continue
            kinds = dict.fromkeys(base if target(u) in (ENTER, LEAVE) else self.of[u] for u in i.users)
            if i.is_root:
                kinds[base] = None
            for n, atoms in enumerate(kinds):
                if n == 0:
                    first = atoms
                    self.of[i] = atoms
                    continue
                assert i.parent is not None
                copy = i.parent.attach(i.clone())
                self.of[copy] = atoms
                i.replace_uses_with(copy, [u for u in i.users if self.of[u] == atoms])
                if i.is_root and atoms == base != first:
                    i.parent.root = copy
                self.found.copy({i: copy})
                self.found.changed = True


def mark_manual(shardings: ProgramShardings, of: dict[Instruction, _Atoms]) -> None:
    """Give every value of a manual computation a sharding that names its manual atoms. Raises SPMD004 at a border."""
    for i, manual in of.items():
        if i.parent is None:
            continue
        kind = target(i)
        if kind == ENTER:
            _stay_whole(shardings, i.operands[0], manual - of[i.operands[0]])
        if kind == LEAVE:
            _stay_whole(shardings, i, of[i.operands[0]] - manual)
        if manual:
            for index, _ in i.shape.leaves():
                s = shardings.of(i, index)
                shardings.set(i, index, replace(s, manual=manual, replicated=s.replicated - manual))
    for i in of:
        if i.parent is not None and target(i) in (ENTER, LEAVE):
            _need_fit(shardings, i, of)


def _stay_whole(shardings: ProgramShardings, i: Instruction, manual: _Atoms) -> None:
    """Propagation must not split the global value along manual atoms that do not split it yet."""
    s = shardings.of(i)
    if any(s.is_open):
        shardings.set(i, (), replace(s, replicated=s.replicated | (manual - s.used)))


def _need_fit(shardings: ProgramShardings, i: Instruction, of: dict[Instruction, _Atoms]) -> None:
    """Raises SPMD004 unless the local shape is the global one, divided by the manual atoms that split it."""
    x = i.operands[0]
    outer, whole, local = (x, x.shape, i.shape) if target(i) == ENTER else (i, i.shape, x.shape)
    manual = of[i] ^ of[x]
    dims = shardings.of(outer).dims
    mesh: AtomicMesh = shardings.mesh
    wanted = tuple(-(-d // mesh.size(a for a in axes if a in manual)) for d, axes in zip(whole.dims, dims, strict=True))
    if wanted != local.dims:
        raise HeronError(
            "SPMD004",
            f"a manual computation has {local.bare} of {whole.bare}",
            where=str(i)[:200],
            why=f"its sharding {mesh.write(shardings.of(outer))} makes parts of {list(wanted)}; "
            f"the manual axes are {mesh.text(sorted(manual)) or 'none'}",
            hint="the manual axes of a dimension divide it into its local size",
        )


def with_constraints(module: Module, found: Annotations) -> None:
    """Give each value that enters a manual computation a constraint of its own. Raises SPMD004 without a sharding."""
    for c in module.non_fusion_computations():
        for i in c.instructions:
            if target(i) != ENTER or target(i.operands[0]) == CONSTRAINT:
                continue
            x = i.operands[0]
            if x not in found.leaves:
                raise HeronError(
                    "SPMD004",
                    f"'{x.name}' enters a manual computation without a sharding",
                    where=str(i)[:200],
                    hint="put a custom call Sharding in front",
                )
            outer = c.add("custom-call", (x,), x.shape, like=i, custom_call_target=CONSTRAINT)
            found.leaves[outer] = found.leaves[x]
            i.set_operand(0, outer)
            found.changed = True
