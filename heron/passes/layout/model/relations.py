"""Relations between the layouts of an op's operand and of its result under which nothing moves.

A `Relation` is between one operand and the result: whether two orders fit, which order of the result an operand asks
for (``down``), which order of the operand a result asks for (``up``); None where there is no such order. A result order
is possible only where every operand has an ``up`` for it.
"""

from __future__ import annotations

from heron.hlo.calls.declared import takes_any_order
from heron.hlo.calls.markers import is_identity
from heron.hlo.facts import has_start_operands, updates_operand
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape
from heron.passes.layout.model.orders import Order, in_order, order, same_place
from heron.passes.layout.model.preferences import Preferences
from heron.passes.layout.reshape_decomposer import view_of
from heron.records import dataclass


@dataclass(frozen=True, slots=True)
class Relation:
    """One order for both; the base of the others. ``operand`` is the operand's shape, whatever its layout."""

    operand: Shape

    def fits(self, x: Order, result: Order) -> bool:
        wanted = self.up(result)
        return wanted is not None and same_place(self.operand, wanted, x)

    def up(self, result: Order) -> Order | None:
        return result

    def down(self, x: Order) -> Order | None:
        return x


@dataclass(frozen=True, slots=True)
class Stepped(Relation):
    """An array of which an op reads or writes a part of ``part`` elements in each dimension, by whole ``line``s of
    bytes."""

    part: tuple[int, ...]
    line: int

    def waste(self, x: Order) -> int:
        """Bytes more for one pass over the array, part by part, when it is in that order: those of lines of which only
        a few elements are wanted. Most come from a cache, which counts an eighth."""
        run = self.operand.element_type.byte_size
        for d in reversed(x):
            run *= self.part[d]
            if self.part[d] != self.operand.dims[d]:
                break
        return self.operand.byte_size * self.line // (8 * run) if run < self.line else 0


@dataclass(frozen=True, slots=True)
class Transposed(Relation):
    """Dimension d of the result is dimension ``dims[d]`` of the operand."""

    dims: Order

    def up(self, result: Order) -> Order | None:
        return tuple([self.dims[d] for d in result])

    def down(self, x: Order) -> Order | None:
        return tuple([self.dims.index(d) for d in x])


@dataclass(frozen=True, slots=True)
class Reshaped(Relation):
    """The same bytes with other dimensions."""

    result: Shape

    def up(self, result: Order) -> Order | None:
        view = view_of(in_order(self.result, result), self.operand)
        return None if view is None else order(view)

    def down(self, x: Order) -> Order | None:
        view = view_of(in_order(self.operand, x), self.result)
        return None if view is None else order(view)


@dataclass(frozen=True, slots=True)
class Repeated(Relation):
    """Dimension d of the operand is dimension ``to[d]`` of the result, which has others too."""

    to: Order
    rank: int

    def up(self, result: Order) -> Order | None:
        return tuple(sorted(range(len(self.to)), key=lambda d: result.index(self.to[d])))

    def down(self, x: Order) -> Order | None:
        return _among(self.rank, [self.to[d] for d in x])


@dataclass(frozen=True, slots=True)
class Reduced(Relation):
    """The dimensions of the operand without those that are gone."""

    gone: Order

    def fits(self, x: Order, result: Order) -> bool:
        kept = self.down(x)
        sizes = [n for d, n in enumerate(self.operand.dims) if d not in self.gone]
        return [d for d in kept if sizes[d] != 1] == [d for d in result if sizes[d] != 1]

    def up(self, result: Order) -> Order | None:
        left = [d for d in range(self.operand.rank) if d not in self.gone]
        return _among(self.operand.rank, [left[d] for d in result])

    def down(self, x: Order) -> Order:
        kept = [d for d in x if d not in self.gone]
        left = sorted(kept)
        return tuple([left.index(d) for d in kept])


@dataclass(frozen=True, slots=True)
class Factor(Relation):
    """A side of a product: any of the orders ``takes``, whatever the result's; the result in any of ``gives``."""

    takes: tuple[Order, ...]
    gives: tuple[Order, ...]

    def fits(self, x: Order, result: Order) -> bool:
        return any(same_place(self.operand, x, wanted) for wanted in self.takes)

    def up(self, result: Order) -> Order | None:
        return self.takes[0] if result in self.gives else None

    def down(self, x: Order) -> Order | None:
        return None


@dataclass(frozen=True, slots=True)
class Fixed(Relation):
    """An operand that must be in one order; the result in the default one."""

    wanted: Order

    def fits(self, x: Order, result: Order) -> bool:
        return same_place(self.operand, x, self.wanted)

    def up(self, result: Order) -> Order | None:
        return self.wanted if result == tuple(range(len(result))) else None

    def down(self, x: Order) -> Order | None:
        return None


@dataclass(frozen=True, slots=True)
class Stated(Fixed):
    """An operand of a library call, which says the order of each array by itself."""

    def up(self, result: Order) -> Order | None:
        return self.wanted


def _among(rank: int, dims: list[int]) -> Order:
    """The default order, with the dimensions of `dims` changing places so that they come in that order."""
    left = iter(dims)
    return tuple([next(left) if d in dims else d for d in range(rank)])


def relation_of(i: Instruction, n: int, likes: Preferences) -> Relation | None:
    """The relation between operand `n`, an array, and the result; None if any two layouts fit."""
    x = i.operands[n].shape.bare
    if has_start_operands(i.op) and not n and i.opcode in likes.one_order:
        return Stepped(x, i.operands[1].shape.dims if updates_operand(i) else i.shape.dims, likes.line)
    if i.op.is_elementwise or i.opcode in likes.one_order:
        return Relation(x) if x.rank == i.shape.rank else _rows(x)
    match i.opcode:
        case "tuple" | "while" | "call" | "conditional":
            return Relation(x)
        case "transpose":
            return Transposed(x, i.attrs["dimensions"])
        case "reshape" if i.shape.rank > 1:
            return Reshaped(x, i.shape.bare)
        case "broadcast":
            return Repeated(x, i.attrs["dimensions"], i.shape.rank)
        case "reduce":
            return Reduced(x, i.attrs["dimensions"])
        case "dot":
            return _factor(i, n, likes)
        case "custom-call":
            return _library(i, n, likes)
        case _:
            return _rows(x)


def _rows(x: Shape) -> Relation:
    return Fixed(x, tuple(range(x.rank)))


def _library(i: Instruction, n: int, likes: Preferences) -> Relation | None:
    """Markers give an array as it lies; calls that take any order read an operand in its order, unless a result
    overwrites it; others state one."""
    x = i.operands[n].shape.bare
    if i.shape.is_array and is_identity(i):  # a move to another memory copies bytes as they lie
        return Relation(x)
    if takes_any_order(i):
        is_overwritten = any(operand == n for _, operand, _ in i.attrs.get("output_to_operand_aliasing", ()))
        return None if i.opcode in likes.any_order and not is_overwritten else _rows(x)
    constraints = i.attrs.get("operand_layout_constraints")
    return Stated(x, order(constraints[n])) if constraints else _rows(x)


def _factor(i: Instruction, n: int, likes: Preferences) -> Relation:
    """Batch dimensions outermost, then the matrix, either way round."""
    side = ("lhs", "rhs")[n]
    x = i.operands[n].shape.bare
    batch, summed = i.attrs.get(f"{side}_batch_dims", ()), i.attrs.get(f"{side}_contracting_dims", ())
    free = tuple([d for d in range(x.rank) if d not in batch and d not in summed])
    takes = (tuple(range(x.rank)), (*batch, *free, *summed), (*batch, *summed, *free))
    rows = tuple(range(i.shape.rank))
    if not likes.turned_products:
        return Factor(x, takes, (rows,))
    left = i.operands[0].shape.rank - len(i.attrs.get("lhs_contracting_dims", ()))
    return Factor(x, takes, (rows, (*rows[: len(batch)], *rows[left:], *rows[len(batch) : left])))
