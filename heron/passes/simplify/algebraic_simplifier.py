"""algebraic-simplifier: small laws, applied until none applies."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from heron.errors import HeronError
from heron.hlo.computation import Computation
from heron.hlo.instruction import Instruction
from heron.hlo.module import Module
from heron.passes.base import Pass
from heron.passes.building import same_type
from heron.passes.changes import around, in_order
from heron.passes.context import PassContext
from heron.passes.registry import register
from heron.passes.simplify.algebraic.rules import Builder, Rule, Table, allowed, table

#: how many operands up a rule looks at most; what changed further up is no reason to try it again
REACH = 6

_tables: dict[tuple[str, bool], Table] = {}


@register
@dataclass(frozen=True)
class AlgebraicSimplifier(Pass):
    """Rewrites instructions by the laws in `heron/passes/simplify/algebraic`, a file per theme.

    Only laws that are exact fire unless the option ``math`` allows more. Layouts are ignored unless
    ``is_layout_sensitive`` is set, as it must be once layouts are assigned: then only the laws fire that keep them, and
    those about bitcasts and copies. Computations with dynamic dimensions are left alone, and so is what control edges
    hold in its place.

    a = f32[6] reshape(f32[2,3] x)
    b = f32[3,2] reshape(a)
    one = f32[] constant(1)
    ones = f32[3,2] broadcast(one), dimensions={}
    ROOT r = f32[3,2] multiply(b, ones)
    ->
    ROOT r = f32[3,2] reshape(x)
    """

    name = "algebraic-simplifier"
    is_layout_sensitive: bool = False

    def run(self, module: Module, ctx: PassContext) -> bool:
        rules = _table_for(ctx, self.is_layout_sensitive)
        changes = ctx.look(self, module)
        wanted = None if changes is None else around(changes, REACH)
        changed = False
        for c in module.computations_to_rewrite():
            if any(i.shape.dynamic for i in c.instructions):
                continue
            start = c.instructions if wanted is None else in_order(c, wanted)
            fired = rewrite(c, rules, self.is_layout_sensitive, start)
            for r, times in fired.items():
                ctx.fired(r.name, r.where, times)
            changed |= bool(fired)
        return changed


def _table_for(ctx: PassContext, with_layouts: bool) -> Table:
    key = ctx.options.math, with_layouts
    if key not in _tables:
        import heron.passes.simplify.algebraic  # noqa: F401  (fills the list of rules)

        _tables[key] = table(allowed(ctx.options.allows), with_layouts)
    return _tables[key]


def rewrite(
    c: Computation, rules: Table, with_layouts: bool = False, start: Iterable[Instruction] | None = None
) -> Counter[Rule]:
    """Apply `rules` in `c` until none applies; returns how often each fired.

    They are tried on all instructions, or on `start`, and then on what that changes.

    With `with_layouts` a rule's result counts only if it has the layout of what it replaces.

    Raises PASS011 when a rule gives a value of another shape, PASS012 when rules chase each other without end.
    """
    fired: Counter[Rule] = Counter()
    builder = Builder(c, with_layouts)
    work = deque(i for i in (c.instructions if start is None else start) if i.opcode in rules)
    left = 200 + 40 * len(c)
    while work:
        i = work.popleft()
        if i.parent is not c or (not i.users and i is not c.root):
            continue
        if i.control_predecessors or i.control_successors:
            continue
        builder.at = i
        for r in rules[i.opcode].candidates(i):
            new = r.apply(i, builder)
            if new is None or (with_layouts and new.shape is not i.shape):
                if builder.created:
                    builder.drop()
                continue
            fired[r] += 1
            left -= 1
            _replace(c, i, new, r)
            touched = [*builder.created, new, *new.users]
            builder.created.clear()
            work.extend(t for t in touched if t.opcode in rules and t.parent is c)
            break
        if left < 0:
            raise _endless(c, fired)
    return fired


def _replace(c: Computation, i: Instruction, new: Instruction, r: Rule) -> None:
    if not same_type(i, new):
        raise HeronError(
            "PASS011",
            f"rule '{r.name}' ({r.where}) gave {new.shape} for {i.shape}",
            where=str(i),
            why="a rule must keep the shape of what it replaces",
        )
    c.replace(i, new)


def _endless(c: Computation, fired: Counter[Rule]) -> HeronError:
    often: list[Any] = [f"{r.name} ({r.where})" for r, _ in fired.most_common(3)]
    return HeronError(
        "PASS012",
        f"rules of the algebraic simplifier chase each other in '{c.name}'",
        why=f"{fired.total()} rewrites of {len(c)} instructions, most by {', '.join(often)}",
        hint="report it with the module; the other passes work without this one",
    )
