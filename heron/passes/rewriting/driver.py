"""Rewrite rules at work: what a pass made of rules is, and how rules are applied until none applies."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from heron.errors import HeronError
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.framework.base import Pass
from heron.passes.framework.changes import around, in_order
from heron.passes.framework.context import PassContext
from heron.passes.rewriting.building import same_type
from heron.passes.rewriting.rules import Builder, Rule, Table, allowed, table
from heron.records import dataclass

MayFire = Callable[[str, str, Instruction], bool]

#: how many operands up a rule looks at most; what changed further up is no reason to try it again
REACH = 6


@dataclass(frozen=True)
class RewritePass(Pass):
    """Applies rewrite rules until none applies. Computations with dynamic dimensions are left alone."""

    is_layout_sensitive: bool = False

    @classmethod
    def rules(cls) -> Sequence[Rule]:
        """The rules, of all classes."""
        raise NotImplementedError(cls.name)

    def run(self, module: Module, ctx: PassContext) -> bool:
        rules = self._table(ctx)
        changes = ctx.look(self, module)
        wanted = None if changes is None else around(changes, REACH)
        changed = False
        for c in module.computations_to_rewrite():
            if any(i.shape.dynamic for i in c.instructions):
                continue
            start = c.instructions if wanted is None else in_order(c, wanted)
            fired = rewrite(c, rules, self.is_layout_sensitive, start, ctx.may_fire)
            for r, times in fired.items():
                ctx.fired(r.name, r.where, times)
            changed |= bool(fired)
        return changed

    def _table(self, ctx: PassContext) -> Table:
        """The rules that may fire, by opcode; made anew when there are more or fewer of them than before."""
        rules = self.rules()
        key = type(self), ctx.options.math, self.is_layout_sensitive
        known = _tables.get(key)
        if known is None or known[0] != len(rules):
            known = _tables[key] = len(rules), table(allowed(rules, ctx.options.allows), self.is_layout_sensitive)
        return known[1]


_tables: dict[tuple[type[RewritePass], str, bool], tuple[int, Table]] = {}


def forget_tables() -> None:
    """For rules that are taken away: what is known of them is forgotten."""
    _tables.clear()


def rewrite(
    c: Computation,
    rules: Table,
    with_layouts: bool = False,
    start: Iterable[Instruction] | None = None,
    may_fire: MayFire | None = None,
) -> Counter[Rule]:
    """Apply `rules` in `c` until none applies; returns how often each fired.

    They are tried on all instructions, or on `start`, and then on what that changes. Once ``may_fire`` says no, the
    rest stays as it is.

    With `with_layouts` a rule's result counts only if it has the layout of what it replaces; so it does where a bitcast
    reads that.

    Raises PASS011 when a rule gives a value of another shape, PASS012 when rules chase each other without end.
    """
    fired: Counter[Rule] = Counter()
    builder = Builder(c, with_layouts)
    work = deque(i for i in (c.instructions if start is None else start) if i.opcode in rules)
    waiting = set(work)
    left = 200 + 40 * len(c)
    while work:
        i = work.popleft()
        waiting.discard(i)
        if i.parent is not c or (not i.users and i is not c.root):
            continue
        if i.control_predecessors or i.control_successors:
            continue
        builder.at = i
        found = _first_result(rules[i.opcode].candidates(i), i, builder)
        if found is None:
            continue
        r, new = found
        if may_fire is not None and not may_fire(r.name, r.where, i):
            builder.drop()
            return fired
        fired[r] += 1
        c.replace(i, new)
        if i.parent is c and i.has_side_effect and new in builder.created:
            c.remove(i)  # the new instruction has the effects
        for t in (*builder.created, new, *new.users):
            if t.opcode in rules and t.parent is c and t not in waiting:
                waiting.add(t)
                work.append(t)
        builder.created.clear()
        left -= 1
        if left < 0:
            raise _endless(c, fired)
    return fired


def _first_result(candidates: Iterable[Rule], i: Instruction, builder: Builder) -> tuple[Rule, Instruction] | None:
    """The first rule that gives a value for `i`, and that value."""
    for r in candidates:
        new = r.apply(i, builder)
        if new is not None and (
            new.shape is i.shape or not (builder.with_layouts or _lies_otherwise(i) or _refused(i, new, r))
        ):
            return r, new
        if builder.created:
            builder.drop()
    return None


def _lies_otherwise(i: Instruction) -> bool:
    """Whether a value in another layout would be another value for a user: bitcasts read bytes."""
    return any(user.opcode == "bitcast" for user in i.users)


def _refused(i: Instruction, new: Instruction, r: Rule) -> bool:
    """Whether a rule must not replace `i`, whose stated shape is not what its operands make: no program that verifies.

    Raises PASS011 when it is, and the rule gives another.
    """
    if same_type(i, new):
        return False
    try:
        made = i.op.shape(i, *(o.shape for o in i.operands))
    except HeronError:
        return True
    if made.bare is not i.shape.bare:
        return True
    raise HeronError(
        "PASS011",
        f"rule '{r.name}' ({r.where}) gave {new.shape} for {i.shape}",
        where=str(i),
        why="a rule must keep the shape of what it replaces",
    )


def _endless(c: Computation, fired: Counter[Rule]) -> HeronError:
    often: list[Any] = [f"{r.name} ({r.where})" for r, _ in fired.most_common(3)]
    return HeronError(
        "PASS012",
        f"rewrite rules chase each other in '{c.name}'",
        why=f"{fired.total()} rewrites of {len(c)} instructions, most by {', '.join(often)}",
        hint="report it with the module; the other passes work without this one",
    )
