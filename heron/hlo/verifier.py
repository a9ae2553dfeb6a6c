"""Verifier: the rules a module keeps between any two passes, each a small function with its own code.

Rules run in three groups: the structure (edges, names, calls), then the instructions' shapes, then what the header and
the schedule say. A group runs only when the ones before it found nothing, so that it can rely on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from heron.errors import HeronError, Span
from heron.hlo.computation import Computation
from heron.hlo.instruction import Instruction, operand_count_text
from heron.hlo.module import Module
from heron.hlo.op import Op
from heron.hlo.shape import Shape


@dataclass(frozen=True, slots=True)
class Problem:
    """A broken rule: its code, what is wrong, and the instruction or computation it was found at."""

    code: str
    what: str
    instruction: Instruction | None = None
    computation: Computation | None = None
    why: str | None = None
    hint: str | None = None

    def error(self, where: Span | str | None = None) -> HeronError:
        """The error to raise; `where` is the place in a text, if the caller knows it."""
        if where is None and self.instruction is not None:
            where = _place(self.instruction)
        if where is None and self.computation is not None:
            where = f"computation '{self.computation.name}'"
        return HeronError(self.code, self.what, where=where, why=self.why, hint=self.hint)


def verify(module: Module) -> None:
    """Raise the first broken rule as a HeronError (HLO1xx, or HLO010 from a shape rule)."""
    for problem in problems(module):
        raise problem.error()


def problems(module: Module) -> Iterator[Problem]:
    """Every broken rule, as far as the groups of rules go."""
    for group in (STRUCTURE, SHAPES, PROMISES):
        found = False
        for rule in group:
            for problem in rule(module):
                found = True
                yield problem
        if found:
            return


def _place(i: Instruction) -> str:
    parent = f" (in '{i.parent.name}')" if i.parent is not None else ""
    return f"{i}{parent}"


# -- structure -------------------------------------------------------------------------------------------------------
def computations_have_roots(module: Module) -> Iterator[Problem]:
    """HLO101: there is an entry; every computation has instructions, and its root is one of them."""
    if module.entry is None or module.entry.module is not module:
        yield Problem("HLO101", f"module '{module.name}' has no entry computation")
    for c in module.computations:
        if c.module is not module:
            yield Problem("HLO101", f"computation '{c.name}' does not know its module", computation=c)
        if c.root is None or c.root not in c:
            yield Problem("HLO101", f"computation '{c.name}' has no root among its instructions", computation=c)


def names_are_unique(module: Module) -> Iterator[Problem]:
    """HLO102: instruction names are unique in the module, and so are computation names."""
    computations: set[str] = set()
    names: set[str] = set()
    for c in module.computations:
        if c.name in computations:
            yield Problem("HLO102", f"two computations are named '{c.name}'", computation=c)
        computations.add(c.name)
        for i in c.instructions:
            if i.name in names or not i.name:
                yield Problem("HLO102", f"another instruction is named '{i.name}', too", i)
            names.add(i.name)


def edges_agree(module: Module) -> Iterator[Problem]:
    """HLO103: operands, users and control edges stay in the computation and are recorded on both sides."""
    for c in module.computations:
        members = dict.fromkeys(c.instructions)
        for i in members:
            if i.parent is not c:
                yield Problem("HLO103", f"'{i.name}' does not know its computation", i)
            for operand in i.operands:
                if operand not in members:
                    yield Problem("HLO103", f"operand '{operand.name}' is not in computation '{c.name}'", i)
                elif i not in operand.users:
                    yield Problem("HLO103", f"operand '{operand.name}' does not know its user '{i.name}'", i)
            for user, count in i.users.items():
                if user not in members or sum(o is i for o in user.operands) != count:
                    yield Problem("HLO103", f"'{user.name}' is no user of '{i.name}' {count} times", i)
            for before in i.control_predecessors:
                if before not in members or i not in before.control_successors:
                    yield Problem("HLO103", f"control predecessor '{before.name}' is not here", i)
            for after in i.control_successors:
                if after not in members or i not in after.control_predecessors:
                    yield Problem("HLO103", f"control successor '{after.name}' is not here", i)


def attributes_are_declared(module: Module) -> Iterator[Problem]:
    """HLO104: operand counts fit, required attributes are there, and none is unknown."""
    required: dict[Op, tuple[str, ...]] = {}
    for i in module.instructions():
        op = i.op
        count = len(i.operands)
        if count < op.min_operands or (op.max_operands is not None and count > op.max_operands):
            yield Problem("HLO104", f"{i.opcode} takes {operand_count_text(op)}, '{i.name}' has {count}", i)
        needed = required.get(op)
        if needed is None:
            needed = required[op] = tuple(n for n, a in op.attributes.items() if a.required)
        for name in needed:
            if i.attrs.get(name) is None:
                yield Problem("HLO104", f"{i.opcode} needs the attribute '{name}'", i)
        for name in i.attrs:
            if name not in op.attributes:
                yield Problem("HLO104", f"{i.opcode} has no attribute '{name}'", i)


def parameters_are_numbered(module: Module) -> Iterator[Problem]:
    """HLO105: parameters are numbered 0, 1, 2, …"""
    for c in module.computations:
        numbers = [p.attrs["number"] for p in c.parameters]
        if numbers != list(range(len(numbers))):
            why = f"their numbers are {', '.join(map(str, numbers[:20]))}"
            yield Problem("HLO105", f"the parameters of '{c.name}' must count from 0 up", computation=c, why=why)


def graphs_have_no_cycles(module: Module) -> Iterator[Problem]:
    """HLO106: no instruction depends on itself."""
    for c in module.computations:
        try:
            c.post_order()
        except HeronError as error:
            yield Problem("HLO106", error.what, computation=c)


def calls_do_not_recurse(module: Module) -> Iterator[Problem]:
    """HLO107: called computations are in the module, and none calls itself, however far around."""
    called = {c: {k for i in c.instructions for k in i.called} for c in module.computations}
    for c, callees in called.items():
        for callee in callees:
            if callee not in called:
                yield Problem("HLO107", f"'{c.name}' calls '{callee.name}', which is not in the module", computation=c)
                return
    waiting = {c: len(callees) for c, callees in called.items()}
    callers: dict[Computation, list[Computation]] = {c: [] for c in called}
    for c, callees in called.items():
        for callee in callees:
            callers[callee].append(c)
    ready = [c for c, count in waiting.items() if not count]
    while ready:
        for caller in callers[ready.pop()]:
            waiting[caller] -= 1
            if not waiting[caller]:
                ready.append(caller)
    stuck = [c for c, count in waiting.items() if count]
    if stuck:
        why = "through " + ", ".join(c.name for c in stuck[:5])
        yield Problem("HLO107", f"computation '{stuck[0].name}' calls itself", computation=stuck[0], why=why)


# -- shapes ----------------------------------------------------------------------------------------------------------
def shapes_are_as_inferred(module: Module) -> Iterator[Problem]:
    """HLO108: every shape is the one the op's rule gives, layouts apart; the rules' own findings are HLO010.

    The rules also check called computations against operands: reducers, loop bodies, branches, comparators.
    """
    for c in module.computations:
        for i in c.instructions:
            stated = i.shape
            if stated is None:
                yield Problem("HLO108", f"'{i.name}' has no shape", i)
                continue
            try:
                inferred = i.op.shape(i, *[o.shape for o in i.operands])
            except HeronError as error:
                yield Problem(error.code, error.what, i, why=error.why, hint=error.hint)
                continue
            if inferred is stated or inferred.bare is stated.bare or _differ_in_bounds_only(inferred, stated):
                continue
            what = f"the shape of '{i.name}' is stated as {stated.bare}"
            yield Problem("HLO108", what, i, why=f"{i.opcode} gives {inferred.bare}")


def _differ_in_bounds_only(a: Shape, b: Shape) -> bool:
    """Whether two shapes are the same but for which dimensions are dynamic."""
    if a.tuple_shapes is not None and b.tuple_shapes is not None:
        if len(a.tuple_shapes) != len(b.tuple_shapes):
            return False
        return all(map(_differ_in_bounds_only, a.tuple_shapes, b.tuple_shapes))
    return a.is_tuple == b.is_tuple and a.element_type is b.element_type and a.dims == b.dims


# -- what the header and the schedule promise ------------------------------------------------------------------------
def entry_layout_fits(module: Module) -> Iterator[Problem]:
    """HLO109: the entry layout has the entry computation's shapes."""
    if module.entry_layout is None:
        return
    parameters, result = module.entry_layout
    entry = module.entry
    own = entry.parameters
    if len(parameters) != len(own):
        what = f"the entry layout has {len(parameters)} parameters, '{entry.name}' has {len(own)}"
        yield Problem("HLO109", what, computation=entry)
        return
    for n, (says, p) in enumerate(zip(parameters, own, strict=True)):
        if says.bare is not p.shape.bare:
            yield Problem("HLO109", f"the entry layout says parameter {n} is {says.bare}", p)
    if result.bare is not entry.root.shape.bare:
        yield Problem("HLO109", f"the entry layout says the result is {result.bare}", entry.root)


def schedules_are_orders(module: Module) -> Iterator[Problem]:
    """HLO110: a schedule names every instruction of its computation once, after all that it depends on."""
    for c, order in (module.schedule or {}).items():
        if c.module is not module:
            yield Problem("HLO110", f"'{c.name}' is scheduled but not in the module", computation=c)
            continue
        if len(order) != len(c) or set(order) != set(c.instructions):
            what = f"the schedule of '{c.name}' does not name each of its instructions once"
            yield Problem("HLO110", what, computation=c, why=f"{len(order)} scheduled, {len(c)} in the computation")
            continue
        done: set[Instruction] = set()
        for i in order:
            for before in (*i.operands, *i.control_predecessors):
                if before not in done:
                    yield Problem("HLO110", f"'{i.name}' is scheduled ahead of '{before.name}', which it needs", i)
            done.add(i)


def aliases_exist(module: Module) -> Iterator[Problem]:
    """HLO111: aliased outputs and donated parameters exist, and none is used twice."""
    entry = module.entry
    shapes = [p.shape for p in entry.parameters]
    outputs: set[tuple[int, ...]] = set()
    inputs: set[tuple[int, tuple[int, ...]]] = set()
    for output, number, index, _kind in module.header.get("input_output_alias", ()):
        if _part(entry.root.shape, output) is None:
            yield Problem("HLO111", f"the result has no part {_show(output)} to alias", entry.root)
        if not 0 <= number < len(shapes) or _part(shapes[number], index) is None:
            yield Problem("HLO111", f"there is no parameter {number} with a part {_show(index)} to alias", entry.root)
        if output in outputs or (number, index) in inputs:
            yield Problem("HLO111", f"output {_show(output)} or parameter {number}{_show(index)} is aliased twice")
        outputs.add(output)
        inputs.add((number, index))
    for number, index in module.header.get("buffer_donor", ()):
        if not 0 <= number < len(shapes) or _part(shapes[number], index) is None:
            yield Problem("HLO111", f"there is no parameter {number} with a part {_show(index)} to donate", entry.root)


def _part(shape: Shape, index: Iterable[int]) -> Shape | None:
    for n in index:
        if shape.tuple_shapes is None or not 0 <= n < len(shape.tuple_shapes):
            return None
        shape = shape.tuple_shapes[n]
    return shape


def _show(index: tuple[int, ...]) -> str:
    return "{" + ",".join(map(str, index)) + "}"


Rule = Callable[[Module], Iterator[Problem]]

STRUCTURE: tuple[Rule, ...] = (
    computations_have_roots,
    names_are_unique,
    edges_agree,
    attributes_are_declared,
    parameters_are_numbered,
    graphs_have_no_cycles,
    calls_do_not_recurse,
)
SHAPES: tuple[Rule, ...] = (shapes_are_as_inferred,)
PROMISES: tuple[Rule, ...] = (entry_layout_fits, schedules_are_orders, aliases_exist)
