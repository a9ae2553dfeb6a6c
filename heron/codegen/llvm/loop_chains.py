"""Chains of operations in a loop's step, each of which waits for the result of the one before it.

A processor looks some two hundred operations ahead. Where a step is a longer chain, the next step's begins too late to
fill the time between two operations; two vectors at a time do.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith, func, math
from xdsl.ir import Operation, SSAValue

from heron.codegen.llvm.inline import is_long

#: cycles until the result of a float operation is there, more or less
_CYCLES: dict[type[Operation], int] = {
    **dict.fromkeys((arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.MaximumfOp, arith.MinimumfOp), 4),
    **dict.fromkeys((arith.CmpfOp, arith.SelectOp), 1),
    arith.DivfOp: 12,
    math.SqrtOp: 18,
}
#: float operations of a step that are worth two vectors at a time, and that are too much code for it
_CHAIN, _TWICE = 24, 300


def calls_in_turn(loop: Operation) -> int:
    """The long functions of a loop's step that wait for each other, at most."""
    return _longest(loop, lambda o: isinstance(o, func.CallOp) and is_long(o.callee.root_reference.data))


def waits_for_itself(loop: Operation) -> bool:
    """Whether the float operations of a loop's step take longer one after the other than a processor could do them."""
    count = sum(type(o) in _CYCLES for o in loop.regions[0].blocks[0].ops)
    return _CHAIN <= count <= _TWICE and _longest(loop, lambda o: _CYCLES.get(type(o), 0)) >= count


def _longest(loop: Operation, length: Callable[[Operation], int]) -> int:
    """The length of the longest chain of operations, by the length of each."""
    until: dict[SSAValue, int] = {}
    for o in loop.regions[0].blocks[0].ops:
        found = max((until.get(v, 0) for v in o.operands), default=0) + length(o)
        until.update(dict.fromkeys(o.results, found))
    return max(until.values(), default=0)
