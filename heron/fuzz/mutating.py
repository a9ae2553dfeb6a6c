"""Changes a program at random: parts of it go, sizes shrink; ops become others of the same form, types or sizes too."""

from __future__ import annotations

from heron.fuzz.choices import Choices
from heron.fuzz.everywhere import changed_everywhere
from heron.hlo.ir.op import Op, Trait, all_ops
from heron.reduce.case import Case
from heron.reduce.draft import Draft
from heron.reduce.edits import KINDS, Kind
from heron.reduce.recorded import Recorded

#: edits that make a program another one; the others only take away what it carries
_KINDS = tuple(k for k in KINDS if k.name not in ("bare", "header", "inputs", "simplify"))
_MOST, _TRIES = 4, 12


def mutated(case: Case, choices: Choices) -> Case:
    """The case after up to `_MOST` changes; as it is where none of `_TRIES` gives a valid program."""
    left = choices.integer(1, _MOST)
    for _ in range(_TRIES):
        changed = _changed(case, choices)
        if changed is not None:
            case, left = changed, left - 1
        if not left:
            break
    return case


def _changed(case: Case, choices: Choices) -> Case | None:
    try:
        if choices.flag():
            return changed_everywhere(case, choices)
        draft = Draft(case, Recorded(case.module, case.inputs))
        done = _swap(draft, choices) if choices.flag() else _edit(draft, choices.one_of(_KINDS), choices)
        return draft.finish() if done else None
    except Exception:  # a change that cannot be made, whatever the reason
        return None


def _edit(draft: Draft, kind: Kind, choices: Choices) -> bool:
    atoms = kind.atoms(draft.module)
    if not atoms:
        return False
    begin = choices.integer(0, len(atoms) - 1)
    count = kind.together or choices.integer(1, len(atoms))
    return kind.apply(draft, atoms[begin : begin + count])


def _swap(draft: Draft, choices: Choices) -> bool:
    """Give an elementwise instruction another op of as many operands."""
    some = [i for i in draft.module.instructions() if _is_plain(i.op)]
    if not some:
        return False
    i = choices.one_of(some)
    i.op = choices.one_of([op for op in all_ops() if _is_plain(op) and len(op.operands) == len(i.op.operands)])
    i.opcode = i.op.name
    i.mark_changed()
    return True


def _is_plain(op: Op) -> bool:
    return (
        op.is_elementwise and not op.attributes and Trait.CHANGES_TYPE not in op.traits and op.max_operands is not None
    )
