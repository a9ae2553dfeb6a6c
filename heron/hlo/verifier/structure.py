"""Structure: what every other rule relies on: edges, names, calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from heron.errors import HeronError
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import operand_count_text
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Op
from heron.hlo.verifier.rules import Problem, Stage, rule


@rule("HLO101", Stage.STRUCTURE)
def computations_have_roots(module: Module) -> Iterator[Problem]:
    """There is an entry; every computation has instructions, and its root is one of them."""
    if module.entry is None or module.entry.module is not module:
        yield Problem("HLO101", f"module '{module.name}' has no entry computation")
    for c in module.computations:
        if c.module is not module:
            yield Problem("HLO101", f"computation '{c.name}' does not know its module", computation=c)
        if c.root is None or c.root not in c:
            yield Problem("HLO101", f"computation '{c.name}' has no root among its instructions", computation=c)


@rule("HLO102", Stage.STRUCTURE)
def names_are_unique(module: Module) -> Iterator[Problem]:
    """Instruction names are unique in the module, and so are computation names."""
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


@rule("HLO103", Stage.STRUCTURE)
def edges_agree(module: Module) -> Iterator[Problem]:
    """Operands, users and control edges stay in the computation and are recorded on both sides."""
    for c in module.computations:
        members = dict.fromkeys(c.instructions)
        reads = {i: Counter(i.operands) for i in members if len(i.operands) > 8}
        for i in members:
            if i.parent is not c:
                yield Problem("HLO103", f"'{i.name}' does not know its computation", i)
            for operand in i.operands:
                if operand not in members:
                    yield Problem("HLO103", f"operand '{operand.name}' is not in computation '{c.name}'", i)
                elif i not in operand.users:
                    yield Problem("HLO103", f"operand '{operand.name}' does not know its user '{i.name}'", i)
            for user, count in i.users.items():
                times = reads[user][i] if user in reads else sum(o is i for o in user.operands)
                if user not in members or times != count:
                    yield Problem("HLO103", f"'{user.name}' is not a user of '{i.name}' {count} times", i)
            for before in i.control_predecessors:
                if before not in members or i not in before.control_successors:
                    yield Problem("HLO103", f"control predecessor '{before.name}' is in another computation", i)
            for after in i.control_successors:
                if after not in members or i not in after.control_predecessors:
                    yield Problem("HLO103", f"control successor '{after.name}' is in another computation", i)


@rule("HLO104", Stage.STRUCTURE)
def attributes_are_declared(module: Module) -> Iterator[Problem]:
    """Operand counts fit, required attributes are there, and none is unknown."""
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


@rule("HLO105", Stage.STRUCTURE)
def parameters_are_numbered(module: Module) -> Iterator[Problem]:
    """Parameters are numbered from 0 up, without gaps."""
    for c in module.computations:
        numbers = [p.attrs["number"] for p in c.parameters]
        if numbers != list(range(len(numbers))):
            why = f"their numbers are {', '.join(map(str, numbers[:20]))}"
            yield Problem("HLO105", f"the parameters of '{c.name}' must count from 0 up", computation=c, why=why)


@rule("HLO106", Stage.STRUCTURE)
def graphs_have_no_cycles(module: Module) -> Iterator[Problem]:
    """No instruction depends on itself."""
    for c in module.computations:
        try:
            c.post_order()
        except HeronError as error:
            yield Problem("HLO106", error.what, computation=c)


@rule("HLO107", Stage.STRUCTURE)
def calls_do_not_recurse(module: Module) -> Iterator[Problem]:
    """Called computations are in the module, and none calls itself, however far around."""
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
