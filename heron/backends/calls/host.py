"""From an instruction to a call of a host routine on views of its operands and results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from heron.errors import HeronError
from heron.hlo.calls.declaration import Call, Order
from heron.hlo.calls.form import results_of
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.layout import layout
from heron.hlo.ir.shape import Shape
from heron.runtime.library_call import Array, Descriptor
from heron.runtime.thunks import HostThunk, LibraryThunk, Thunk

if TYPE_CHECKING:
    from heron.backends.lower import Lowering

Routine = Callable[..., None]


@dataclass(frozen=True, slots=True)
class Permuted:
    """A routine on arrays as the program has them, called on arrays as they lie in memory."""

    routine: Routine
    orders: tuple[tuple[int, ...], ...]  # for each array: which memory dimension each dimension is

    def __call__(self, *arrays: np.ndarray) -> None:
        self.routine(*(a.transpose(order) for a, order in zip(arrays, self.orders, strict=True)))


def call(lowering: Lowering, i: Instruction, routine: Routine, library: str) -> list[Thunk]:
    """One call of `routine` with the operands' arrays, then the results', in the order of their leaves."""
    places = [(o, index, leaf) for o in (*i.operands, i) for index, leaf in o.shape.leaves() if leaf.is_array]
    orders = tuple(memory_order(leaf) for _, _, leaf in places)
    if any(order != tuple(range(len(order))) for order in orders):
        at = tuple(tuple(map(order.index, range(len(order)))) for order in orders)
        routine = Permuted(routine, at)
    types = tuple(
        (leaf.element_type.dtype, tuple(leaf.dims[d] for d in order))
        for (_, _, leaf), order in zip(places, orders, strict=True)
    )
    args = tuple(lowering.slice(o, index) for o, index, _ in places)
    results = sum(leaf.is_array for _, leaf in i.shape.leaves())
    return [HostThunk(routine, args, types, library, i.name, results)]


def library_call(
    lowering: Lowering, i: Instruction, describe: Callable[[tuple[Array, ...]], Descriptor], routine: Routine
) -> list[Thunk]:
    """The call `describe` makes of the arrays, operands and then results; `routine` is what computes the same."""
    leaves = [leaf for o in (*i.operands, i) for _, leaf in o.shape.leaves() if leaf.is_array]
    arrays = tuple(Array(s.element_type, tuple(s.dims[d] for d in memory_order(s))) for s in leaves)
    descriptor = describe(arrays)
    (on_host,) = call(lowering, i, routine, descriptor.library)
    assert isinstance(on_host, HostThunk)
    return [LibraryThunk(descriptor, on_host)]


def need_orders(i: Instruction, call: Call) -> None:
    """Raise GEN013 unless every array of a call is in an order in memory that the declaration gives for a GPU."""
    shapes = (*(o.shape for o in i.operands), *results_of(i))
    for n, (shape, allowed) in enumerate(zip(shapes, call.orders(i) if call.orders else (), strict=False)):
        if allowed and memory_order(shape) not in allowed:
            what = f"operand {n}" if n < len(i.operands) else f"result {n - len(i.operands)}"
            raise HeronError(
                "GEN013",
                f"{what} of '{i.name}' is not in an order in memory that {call.gpu} takes",
                where=str(i),
                why=f"it is {shape}; {call.gpu} takes {' or '.join(str(_laid_out(shape, o)) for o in allowed)}",
                hint="state such a layout for the call",
            )


def _laid_out(shape: Shape, order: Order) -> Shape:
    return shape.with_layout(layout(order[::-1]))


def is_by_columns(shape: Shape) -> bool:
    """Whether matrices are stored column after column: of the last two dimensions the first one is the fastest."""
    return shape.rank >= 2 and memory_order(shape)[-1] == shape.rank - 2


def memory_order(shape: Shape) -> tuple[int, ...]:
    """The dimensions of an array, slowest first."""
    return tuple(range(shape.rank)) if shape.layout is None else shape.layout.minor_to_major[::-1]
