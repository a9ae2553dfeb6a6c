"""A draft: a copy of a case that edits change, and that becomes a case again if it is still a valid program."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from heron.errors import HeronError
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.verifier import verify
from heron.reduce.case import Case, split
from heron.reduce.recorded import Recorded

#: fields of the header that name parameters or outputs
_ALIASES = ("input_output_alias", "buffer_donor", "dynamic_parameter_binding")


class Draft:
    """A copy of `case` under change; ``recorded`` has the values of its instructions.

    `inputs` has the arrays of each parameter of the entry. The schedule is gone: edits would break it.
    """

    def __init__(self, case: Case, recorded: Recorded) -> None:
        self.module = case.module.clone()
        self.module.schedule, self.module.entry_layout = None, None
        self.recorded = recorded
        parts = split(case.module, case.inputs)
        self.inputs = dict(zip(self.module.entry.parameters, parts, strict=True))

    @cached_property
    def _by_name(self) -> dict[str, Instruction]:
        return {i.name: i for i in self.module.instructions()}

    def find(self, name: str) -> Instruction | None:
        """The instruction that had this name when the draft was made; None if it is gone."""
        found = self._by_name.get(name)
        return found if found is not None and found.parent is not None else None

    def cut(self, i: Instruction) -> bool:
        """Make an instruction of the entry a parameter that gets its value; whether it can be one."""
        if not can_be_given(i):
            return False
        entry, arrays = self.module.entry, self.recorded.of(i.name, i.shape)
        new = entry.add_parameter(len(self.inputs), i.shape)
        self.inputs[new] = arrays
        i.drop_control_edges()
        i.replace_uses_with(new)
        return True

    def set_root(self, c: Computation, roots: Sequence[Instruction]) -> None:
        """Make these the results of the entry."""
        c.root = roots[0] if len(roots) == 1 else c.add("tuple", list(roots))

    def finish(self) -> Case | None:
        """The draft as a case, without what no result needs; None if it is no valid program."""
        for c in self.module.computations:
            _drop_dead(c, keep_parameters=c is not self.module.entry)
        self.module.remove_unused_computations()
        left = self.module.entry.parameters
        for n, p in enumerate(left):
            p.attrs["number"] = n
        self.module.cleanup()
        if not _is_valid(self):
            return None
        return Case(self.module, tuple(array for p in left for array in self.inputs[p]))


def can_be_given(i: Instruction) -> bool:
    """Whether the value of `i` may come from outside: arrays of sizes known, no tokens."""
    leaves = [s for _, s in i.shape.leaves()]
    return i.opcode != "parameter" and all(s.is_array and not s.dynamic for s in leaves)


def _is_valid(draft: Draft) -> bool:
    for field in ("", *_ALIASES):
        draft.module.header.pop(field, None)
        try:
            verify(draft.module)
            return True
        except HeronError:
            continue
    return False


def _drop_dead(c: Computation, keep_parameters: bool) -> None:
    needed, stack = {c.root}, [c.root]
    while stack:
        for before in stack.pop().walk_operands():
            if before not in needed:
                needed.add(before)
                stack.append(before)
    for i in c.instructions:
        if i not in needed:
            i.drop_control_edges()
    for i in reversed(c.post_order()):
        if i not in needed and not (keep_parameters and i.opcode == "parameter"):
            c.remove(i)
