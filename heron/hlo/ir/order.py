"""In which order computations and their instructions print: callees and operands first, as in XLA."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heron.hlo.ir.computation import Computation
    from heron.hlo.ir.instruction import Instruction
    from heron.hlo.ir.module import Module


def print_order(c: Computation) -> list[Instruction]:
    """Post-order from the instructions nobody uses: control predecessors, then operands from first to last."""
    return list(c.remembered("print order", lambda: _print_order(c)))


def _print_order(c: Computation) -> list[Instruction]:
    done: set[Instruction] = set()
    order: list[Instruction] = []
    for sink in c.instructions:
        if sink.users or sink in done:
            continue
        stack: list[Instruction | None] = [sink]
        while stack:
            i = stack.pop()
            if i is None:  # what follows has all its operands out
                i = stack.pop()
                assert i is not None
                if i not in done:
                    done.add(i)
                    order.append(i)
                continue
            if i in done:
                continue
            waiting = [o for o in reversed(i.operands) if o not in done]
            if i.control_predecessors:
                waiting += [o for o in i.control_predecessors if o not in done]
            if not waiting:
                done.add(i)
                order.append(i)
                continue
            stack += (i, None)
            stack += waiting
    return order


def computation_order(module: Module) -> list[Computation]:
    """Callees first, in the order in which the callers' instructions stand."""
    called = {callee for c in module.computations for callee in _called_by(c, _called)}
    roots = [c for c in module.computations if c not in called]
    order = _callees_first(roots, _called)
    done = set(order)
    return order + [c for c in module.computations if c not in done]  # reached by nothing but a cycle


def reachable(start: Computation) -> list[Computation]:
    """A computation and all it calls, callees first, so the computation itself comes last."""
    order: list[Computation] = []
    done = {start}
    stack = [(start, iter([k for i in print_order(start) for k in i.called]))]
    while stack:
        c, rest = stack[-1]
        callee = next((k for k in rest if k not in done), None)
        if callee is None:
            order.append(c)
            stack.pop()
            continue
        done.add(callee)
        stack.append((callee, iter([k for i in print_order(callee) for k in i.called])))
    return order


def insertion_order(module: Module) -> list[Computation]:
    """As the module has them, except that callees come first."""
    return _callees_first(module.computations, lambda i: i.called)


def _callees_first(roots: list[Computation], callees: Callable[[Instruction], list[Computation]]) -> list[Computation]:
    done: set[Computation] = set()
    order: list[Computation] = []
    for root in roots:
        if root in done:
            continue
        done.add(root)
        stack = [(root, _called_by(root, callees))]
        while stack:
            current, rest = stack[-1]
            fresh = next((callee for callee in rest if callee not in done), None)
            if fresh is None:
                stack.pop()
                order.append(current)
                continue
            done.add(fresh)
            stack.append((fresh, _called_by(fresh, callees)))
    return order


def _called_by(c: Computation, callees: Callable[[Instruction], list[Computation]]) -> Iterator[Computation]:
    return (callee for i in c.instructions if i.op.calling for callee in callees(i))


def _called(i: Instruction) -> list[Computation]:
    """Called computations in XLA's order, each once: the body of a loop before its condition."""
    called = i.called
    if len(called) < 2:
        return called
    return list(dict.fromkeys(reversed(called) if i.opcode == "while" else called))
