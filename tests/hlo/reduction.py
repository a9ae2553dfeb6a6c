"""Makes a program small that shows a fault: outputs dropped, values cut off by parameters, until nothing more goes.

A value is *cut* by making it a parameter that is given the value it had, so what is left computes what it computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from heron.errors import HeronError
from heron.evaluator import Evaluator, flatten
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module

Fails = Callable[[Module, list[np.ndarray]], bool]


def reduced(module: Module, inputs: Sequence[np.ndarray], fails: Fails) -> tuple[Module, list[np.ndarray]]:
    """The smallest form found of `module` for which `fails` still holds, with its inputs."""
    best, arrays = module, list(inputs)
    going = True
    while going:
        going = False
        for change in _changes(best):
            smaller = best.clone()
            smaller.schedule = None
            found = change(smaller, arrays)
            if found is None:
                continue
            smaller.entry_layout = None
            smaller.remove_unused_computations()
            if _size(smaller) < _size(best) and fails(smaller.clone(), found):
                best, arrays, going = smaller, found, True
                break
    return best, arrays


def _size(module: Module) -> tuple[int, int]:
    instructions = list(module.instructions())
    return sum(i.opcode != "parameter" for i in instructions) * 3 + len(instructions), len(str(module))


Change = Callable[[Module, list[np.ndarray]], "list[np.ndarray] | None"]


def _changes(module: Module) -> Iterator[Change]:
    """All that may be tried on `module`, what saves most first."""
    entry = module.entry
    if entry.root.opcode == "tuple":
        for n in range(len(entry.root.operands)):
            yield lambda m, a, n=n: with_root(m, a, m.entry.root.operands[n])
        if len(entry.root.operands) > 2:
            for n in range(len(entry.root.operands)):
                yield lambda m, a, n=n: _without_output(m, a, n)
    names = [i.name for i in reversed(entry.post_order())]
    for name in names[1:]:
        yield lambda m, a, name=name: with_root(m, a, _named(m, name))
    for name in names:
        yield lambda m, a, name=name: _cut(m, a, _named(m, name))
    for name in names:
        yield lambda m, a, name=name: _bare(m, a, _named(m, name))
    yield _without_dead


def _named(module: Module, name: str) -> Instruction:
    return next(i for i in module.entry.instructions if i.name == name)


def with_root(module: Module, arrays: list[np.ndarray], new: Instruction) -> list[np.ndarray] | None:
    """Make an instruction the result of the program; gives the arrays that are left, None for a token."""
    if new.shape.is_token:
        return None
    module.entry.root = new
    return _without_dead(module, arrays)


def _without_output(module: Module, arrays: list[np.ndarray], n: int) -> list[np.ndarray] | None:
    kept = [o for k, o in enumerate(module.entry.root.operands) if k != n]
    module.entry.root = module.entry.add("tuple", kept)
    return _without_dead(module, arrays)


def _cut(module: Module, arrays: list[np.ndarray], i: Instruction) -> list[np.ndarray] | None:
    """Make an array a parameter, given what it is."""
    if i.opcode in ("parameter", "constant") or not i.shape.is_array or i.shape.dynamic:
        return None
    found: list[np.ndarray] = []

    def watch(at: Instruction, value: object) -> None:
        if at is i:
            found.append(np.asarray(value))

    try:
        flatten(Evaluator(module, watch).run(*arrays))
    except HeronError:
        return None
    if not found:
        return None
    entry = module.entry
    new = entry.add_parameter(len(arrays), i.shape)
    i.drop_control_edges()
    entry.replace(i, new)
    return _without_dead(module, [*arrays, found[0]])


def _bare(module: Module, arrays: list[np.ndarray], i: Instruction) -> list[np.ndarray] | None:
    """Without control edges and what it carries."""
    if not i.control_predecessors and not i.extras and i.metadata is None:
        return None
    i.drop_control_edges()
    i.extras.clear()
    i.metadata = None
    return arrays


def _without_dead(module: Module, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Without what the root does not need, parameters included."""
    entry = module.entry
    needed = {entry.root}
    stack = [entry.root]
    while stack:
        for o in (i := stack.pop()).operands + i.control_predecessors:
            if o not in needed:
                needed.add(o)
                stack.append(o)
    dead = [i for i in entry.instructions if i not in needed]
    for i in dead:
        i.drop_control_edges()
    for i in reversed(_operands_first(entry, dead)):
        entry.remove(i)
    left = entry.parameters
    kept = [arrays[p.attrs["number"]] for p in left]
    for n, p in enumerate(left):
        p.attrs["number"] = n
    return kept


def _operands_first(entry: Computation, some: list[Instruction]) -> list[Instruction]:
    wanted = set(some)
    ordered = [i for i in entry.post_order() if i in wanted]
    return ordered + [i for i in some if i not in set(ordered)]
