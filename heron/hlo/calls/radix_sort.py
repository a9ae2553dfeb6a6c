"""Radix sorts of heron's own as custom calls: the operands of a sort → its results, copies of them, control words.

The comparator is the called computation. Arrays that are positions along the rows are no operands: the configuration
has their numbers among what is sorted. The copies are where elements lie between the passes of the sort; they and the
control words, which blocks of a launch count and speak by, mean nothing afterwards.
"""

from __future__ import annotations

from heron.errors import HeronError
from heron.hlo.calls import backend_config as config
from heron.hlo.calls.declaration import Call, what_misfits
from heron.hlo.calls.form import results_of
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape

TARGET = "__heron$radixSort"


def comparator_of(i: Instruction) -> Computation:
    """The comparator: whether one element comes before another."""
    return i.called_computations[0]


def positions(i: Instruction) -> tuple[int, ...]:
    """The numbers of the arrays that are no operands, but positions along the rows. Raises HLO170."""
    if not i.extras.get("backend_config"):
        return ()
    found = config.integers(i, config.read(i, "radix_sort").get("positions", []))
    if any(not 0 <= n < len(i.operands) + len(found) for n in found) or len(set(found)) < len(found):
        raise config.bad(i, f"positions {list(found)} of {len(i.operands) + len(found)} arrays")
    return found


def arrays(i: Instruction) -> tuple[Shape, ...]:
    """The shapes of all that is sorted."""
    return (i.shape.tuple_shapes or ())[: len(i.operands) + len(positions(i))]


def _form(i: Instruction) -> str:
    """All arrays have the same sizes; there are copies of all or of none."""
    if not i.attrs.get("called_computations"):
        raise HeronError("HLO172", what_misfits(i), where=str(i), why="it calls no computation, which compares")
    made, results = positions(i), results_of(i)
    count = len(i.operands) + len(made)
    given = iter(range(len(i.operands)))
    kinds = ["" if n in made else f":T{next(given)}" for n in range(count)]
    operands = ", ".join(f"x{n}{kind}[*r]" for n, kind in enumerate(kinds) if n not in made)
    sorted_ = [f"y{n}{kind}[*r]" for n, kind in enumerate(kinds)]
    copies = [f"copy{n}{kind}[*r]" for n, kind in enumerate(kinds)] if len(results) > count + 1 else []
    return f"{operands} -> {', '.join([*sorted_, *copies])}, control:u32[_]"


CALL = Call("radix_sort", (TARGET,), _form, gpu="kernel")
