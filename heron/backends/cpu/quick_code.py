"""The kernels that LLVM's optimiser is spared: those that together take next to nothing of a program's time.

To optimise a kernel and to choose its instructions with care takes LLVM some milliseconds, whatever it computes. Code
that is made without care is there in a tenth of that, and a call takes longer by one to three times the time that is
estimated here: for a kernel of a fraction of a microsecond, care pays after thousands of calls. Most kernels of small
programs are of this kind. By a cost estimate only, as all decisions of this folder.
"""

from __future__ import annotations

import math
from typing import TypeGuard

from heron.analysis.cost.kernel import kernel_cost
from heron.backends.cpu import parallel
from heron.backends.lower import KernelUse, LoweredProgram
from heron.codegen.elemental.reducer import rounds_freely
from heron.codegen.ir.editing import ops_within
from heron.hlo.ir.instruction import Instruction
from heron.runtime.fortran import Call, Factored, Move, Pivots, Turn
from heron.runtime.thunks import LapackThunk, Sequence, Thunk, WhileThunk, walk
from heron.trace import Decision

#: seconds of a call of the program that one kernel may take, and all of these kernels together
_EACH, _TOGETHER = 0.5e-6, 2.5e-6
#: operations that code made without care does a second
_FLOPS_PER_SECOND = 4e9
#: seconds of a multiplication in a small matrix
_MULTIPLICATION = 1e-9
#: steps on a matrix that are calls in the program
_CALLS = Call | Move | Turn | Pivots | Factored


def decisions(lowered: LoweredProgram) -> list[Decision]:
    """The kernels that are compiled without the optimiser; the costs are in µs of a call of the program."""
    found: list[Decision] = []
    spent = 0.0
    for cost, name in sorted((_seconds(use), name) for name, use in lowered.kernels.items()):
        spent += cost
        if cost >= _EACH or spent >= _TOGETHER:
            break
        reason = f"about {cost * 1e6:.3g} µs of a call: compiled without LLVM's optimiser"
        found.append(Decision(True, reason, "quick-code", name, "", cost * 1e6, None))
    return found


def computes(sequence: Sequence) -> bool:
    """Whether the program's own functions, most of which only call, have loops that the optimiser is for."""
    loops = [loop for loop in walk(sequence) if isinstance(loop, WhileThunk)]
    if any(map(_has_loops, (t for loop in loops for t in walk(loop.body)))):
        return True
    found = (t for t in walk(sequence) if _has_loops(t))
    return sum(t.steps.work * t.batch for t in found) * _MULTIPLICATION >= _TOGETHER


def _has_loops(t: Thunk) -> TypeGuard[LapackThunk]:
    return isinstance(t, LapackThunk) and not all(isinstance(step, _CALLS) for step in t.steps.steps)


def _work(i: Instruction) -> float:
    """Estimated time of the arithmetic of a fusion, what it computes again included: one number after the other."""
    return kernel_cost(i).flops / _FLOPS_PER_SECOND if i.opcode == "fusion" else 0.0


def _seconds(use: KernelUse) -> float:
    """Estimated time of a kernel in a call of the program; infinity for one that must be optimised, or that other code
    may call many times."""
    if use.kernel.parts or math.isinf(use.launches):
        return math.inf
    seconds = parallel.seconds_of(use) * use.launches
    if seconds < _EACH:
        seconds = max(seconds, _work(use.instruction) * use.launches)
    return math.inf if seconds < _EACH and any(map(rounds_freely, ops_within(use.kernel.module))) else seconds
