"""Whether a reduce may combine its elements in any order.

Elements may always be grouped: the function is associative. It need not be commutative: the last element that is not
zero, a product of matrices, one of two NaN. Kernels that combine elements far apart first are for functions whose sides
may change places, and for those that keep one of two sides and its position: partial results are merged by position.
"""

from __future__ import annotations

from heron.hlo.facts import combiners, is_combiner
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import Trait


def in_any_order(i: Instruction) -> bool:
    """Whether the elements of a reduce may be combined in any order, if partial results are merged by `position_of`."""
    return may_swap(i.to_apply) or position_of(i) is not None


def along_columns(i: Instruction) -> bool:
    """Whether neighbouring results of a reduce are made of neighbouring elements, whose rows follow in their order.

    A CPU's kernel then combines one row with the results after the other, whatever the function. Narrow floats do not
    go there: they are accumulated in a wider type where elements are combined one by one.
    """
    arrays = [o.shape for o in i.operands[: len(i.operands) // 2]]
    last = arrays[0].rank - 1
    if last in i.dimensions or arrays[0].dims[last] == 1 or not arrays[0].num_elements:
        return False
    if any(s.layout is not None and not s.layout.is_default for s in arrays):
        return False
    types = [s.element_type for s in arrays]
    return all(t.is_integer or t.bits >= 32 for t in types)


def may_swap(c: Computation) -> bool:
    """Whether the sides of a function may change places."""
    return bool(combiners(c)) or c.remembered("symmetric", lambda: _is_symmetric(c))


def position_of(i: Instruction) -> int | None:
    """The array of a reduce that has the positions of the others' elements, where its function keeps sides whole.

    One dimension is reduced. The positions are an iota along it, or the function itself decides by them between sides
    that are equal.
    """
    c = i.to_apply
    results = c.root.operands if c.root.opcode == "tuple" else ()
    along = [d for d in i.dimensions if i.operands[0].shape.dims[d] != 1]
    if not results or len(along) != 1 or not all(_keeps_a_side(r, k, len(results)) for k, r in enumerate(results)):
        return None
    for k, r in enumerate(results):
        if r.opcode == "select" and r.shape.element_type.is_integer:
            x = i.operands[k]
            if (x.opcode == "iota" and x.attrs["iota_dimension"] == along[0]) or _decides_ties(c, k, len(results)):
                return k
    return None


def _keeps_a_side(result: Instruction, k: int, count: int) -> bool:
    """Whether a result is one side's value number `k`, or a commutative op of both sides'."""
    sides = result.operands[1:] if result.opcode == "select" else result.operands
    if result.opcode != "select" and not is_combiner(result.op):
        return False
    return _numbers(sides) == [k, k + count]


def _numbers(sides: list[Instruction]) -> list[int]:
    return sorted(o.attrs["number"] for o in sides if o.opcode == "parameter")


def _decides_ties(c: Computation, k: int, count: int) -> bool:
    """Whether a function asks which side's value `k` is less, and whether those of another array are equal."""
    asked = {(i.direction, *_numbers(i.operands)) for i in c.instructions if i.opcode == "compare"}
    less = any((direction, k, k + count) in asked for direction in ("LT", "GT"))
    return less and any(("EQ", n, n + count) in asked for n in range(count) if n != k)


def _is_symmetric(c: Computation) -> bool:
    """Whether a function gives the same when its sides change places, by its form."""
    results = c.root.operands if c.root.opcode == "tuple" else [c.root]
    mirror = _Mirror(len(c.parameters) // 2)
    return all(mirror.holds(r, r) for r in results)


class _Mirror:
    """Compares values of a function with what becomes of them when its sides, of `half` parameters, change places."""

    def __init__(self, half: int) -> None:
        self.half = half
        self.known: dict[tuple[Instruction, Instruction], bool] = {}

    def holds(self, x: Instruction, y: Instruction) -> bool:
        """Whether `y` is what becomes of `x`."""
        if (x, y) not in self.known:
            self.known[x, y] = self._found(x, y)
        return self.known[x, y]

    def _found(self, x: Instruction, y: Instruction) -> bool:
        if x.opcode == y.opcode == "parameter":
            return abs(x.attrs["number"] - y.attrs["number"]) == self.half
        if x.opcode != y.opcode or x.attrs != y.attrs or x.called:
            return False
        if all(map(self.holds, x.operands, y.operands)):
            return True
        may_swap = Trait.COMMUTATIVE in x.op.traits or x.attrs.get("direction") in ("EQ", "NE")
        return may_swap and all(map(self.holds, x.operands, reversed(y.operands)))
