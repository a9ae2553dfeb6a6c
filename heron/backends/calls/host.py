"""From an instruction to a call of a host routine on views of its operands and results."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from heron.errors import HeronError
from heron.hlo.calls.declaration import Call, Order
from heron.hlo.calls.form import results_of
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.layout import layout
from heron.hlo.ir.shape import Shape, ShapeIndex
from heron.records import dataclass
from heron.runtime.library_call import Array, Descriptor
from heron.runtime.thunks import HostThunk, LibraryThunk, Thunk

if TYPE_CHECKING:
    from heron.backends.lower import Lowering

Routine = Callable[..., None]
#: a part of a value that is an array: whose, where in it, and its shape
Place = tuple[Instruction, ShapeIndex, Shape]


@dataclass(frozen=True, slots=True)
class Permuted:
    """A routine on arrays with the program's dimensions, called on arrays with dimensions in the order of memory."""

    routine: Routine
    orders: tuple[tuple[int, ...], ...]  # for each array: which memory dimension each dimension is

    def __call__(self, *arrays: np.ndarray) -> None:
        self.routine(*(a.transpose(order) for a, order in zip(arrays, self.orders, strict=True)))


def call(lowering: Lowering, i: Instruction, routine: Routine, library: str) -> list[Thunk]:
    """One call of `routine` with the operands' arrays, then the results', in the order of their leaves."""
    given, made = [place for o in i.operands for place in arrays_of(o)], arrays_of(i)
    return [call_at(lowering, given, made, routine, library, i.name)]


def arrays_of(i: Instruction) -> list[Place]:
    """The arrays in the value of `i`."""
    return [(i, index, leaf) for index, leaf in i.shape.leaves() if leaf.is_array]


def call_at(
    lowering: Lowering, given: list[Place], made: list[Place], routine: Routine, library: str, name: str
) -> HostThunk:
    """One call of `routine` with the arrays that are given, then those it makes."""
    places = [*given, *made]
    orders = tuple(memory_order(leaf) for _, _, leaf in places)
    if any(order != tuple(range(len(order))) for order in orders):
        at = tuple(tuple(map(order.index, range(len(order)))) for order in orders)
        routine = Permuted(routine, at)
    types = tuple(
        (leaf.element_type.dtype, tuple(leaf.dims[d] for d in order))
        for (_, _, leaf), order in zip(places, orders, strict=True)
    )
    args = tuple(lowering.slice(o, index) for o, index, _ in places)
    return HostThunk(routine, args, types, library, name, len(made))


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
    """Raise GEN013 unless the arrays of a call have one of the layouts that its declaration gives for a GPU."""
    shapes = (*(o.shape for o in i.operands), *results_of(i))
    layouts = call.orders(i) if call.orders is not None else [[None] * len(shapes)]
    if not any(all(o is None or memory_order(s) == o for s, o in zip(shapes, each, strict=True)) for each in layouts):
        taken = (", ".join(str(_laid_out(s, o)) for s, o in zip(shapes, each, strict=True)) for each in layouts)
        raise HeronError(
            "GEN013",
            f"the layouts of '{i.name}' are not those that {call.gpu} takes",
            where=str(i),
            why=f"operands and results are {', '.join(map(str, shapes))}",
            hint=f"{call.gpu} takes {' or '.join(taken)}",
        )


def _laid_out(shape: Shape, order: Order | None) -> Shape:
    return shape if order is None else shape.with_layout(layout(order[::-1]))


def is_by_columns(shape: Shape) -> bool:
    """Whether matrices are stored column after column: of the last two dimensions the first one is the fastest."""
    return shape.rank >= 2 and memory_order(shape)[-1] == shape.rank - 2


def memory_order(shape: Shape) -> tuple[int, ...]:
    """The dimensions of an array, slowest first."""
    return tuple(range(shape.rank)) if shape.layout is None else shape.layout.minor_to_major[::-1]
