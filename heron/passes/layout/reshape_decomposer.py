"""reshape-decomposer: reshapes that move elements as bitcasts around one transpose."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape
from heron.hlo.verifier.layouts import is_bitcast
from heron.passes.framework.base import Constraint
from heron.passes.framework.registry import register
from heron.passes.layout.model.orders import Order, in_order, is_default, is_plain, order
from heron.passes.rewriting.building import array
from heron.passes.rewriting.dimensions import common_groups
from heron.passes.rewriting.expander import Expander, home
from heron.records import dataclass


@register
@dataclass(frozen=True)
class ReshapeDecomposer(Expander):
    """Writes a reshape that is no bitcast in its layouts as a copy and a bitcast, or as bitcasts around one transpose.

    A copy does where the operand, in some order, or the result before it gets its own, has the other's bytes. Else both
    are cut into the factors their dimensions share: the operand's bytes are one order of those, the result's bytes
    another. Reshapes of row-major arrays, which move nothing, stay.

    ROOT r = f32[6,4]{0,1} reshape(f32[3,8]{1,0} x)
    ->
    y = f32[6,4]{1,0} bitcast(x)
    ROOT r = f32[6,4]{0,1} copy(y)
    """

    name = "reshape-decomposer"
    constraints = (
        Constraint("layout-assignment", "reshape-decomposer", "what a reshape moves depends on layouts", needed=True),
    )
    opcodes = frozenset({"reshape"})

    def matches(self, i: Instruction) -> bool:
        shapes = i.operands[0].shape, i.shape
        if all(map(is_default, shapes)) or not all(map(is_plain, shapes)):
            return False
        return any(s.layout is not None for s in shapes)

    def expand(self, i: Instruction) -> Instruction:
        x, c = i.operands[0], home(i)
        if is_bitcast(x.shape, i.shape):
            return c.add("bitcast", [x], i.shape, like=i)
        before = view_of(i.shape, x.shape)
        if before is not None:
            aligned = c.add("copy", [x], before, like=i)
            return c.add("bitcast", [aligned], i.shape, like=i)
        after = view_of(x.shape, i.shape)
        if after is not None:
            moved = c.add("bitcast", [x], after, like=i)
            return c.add("copy", [moved], i.shape, like=i)
        return _by_factors(i)


@cache
def view_of(shape: Shape, bare: Shape) -> Shape | None:
    """`bare` in the order in which its bytes are those of `shape`; None when there is no such order.

    The dimensions fall into runs of equal products. In memory, each run of `shape` must be in one piece, row-major.
    """
    if not shape.num_elements:
        return bare.with_default_layout()
    groups = common_groups(shape.dims, bare.dims)
    places = order(shape)
    at = {d: n for n, (own, _) in enumerate(groups) for d in own}
    found: list[int] = []
    done = set[int]()
    for d in places:
        group = at[d]
        if group in done or shape.dims[d] == 1:
            continue
        done.add(group)
        found += groups[group][1]
    whole = in_order(bare, _with_ones(found, bare))
    return whole if is_bitcast(shape, whole) else None


def _with_ones(dims: Sequence[int], shape: Shape) -> Order:
    """The order with the dimensions that are missing, of one element, each before the next greater one it has."""
    found = list(dims)
    for d in range(shape.rank):
        if d not in found:
            after = next((n for n, other in enumerate(found) if other > d), len(found))
            found.insert(after, d)
    return tuple(found)


def _by_factors(i: Instruction) -> Instruction:
    """Bitcasts around a transpose of the factors both sides share; where they share none, both in row-major order."""
    x = i.operands[0]
    factors = shared_factors(x.shape.dims, i.shape.dims)
    if factors is None:
        rows = home(i).add("copy", [x], x.shape.with_default_layout(), like=i)
        plain = home(i).add("bitcast", [rows], i.shape.with_default_layout(), like=i)
        return home(i).add("copy", [plain], i.shape, like=i)
    of_x, of_i = (_in_memory(s, factors) for s in (x.shape, i.shape))
    cut = home(i).add("bitcast", [x], array(x.shape.element_type, [factors[n] for n in of_x]), like=i)
    places = [of_x.index(n) for n in of_i]
    dims = [cut.shape.dims[n] for n in places]
    moved = home(i).add("transpose", [cut], array(i.shape.element_type, dims), like=i, dimensions=tuple(places))
    return home(i).add("bitcast", [moved], i.shape, like=i)


def shared_factors(a: Sequence[int], b: Sequence[int]) -> list[int] | None:
    """The finest dimensions of which both `a` and `b` are made by joining neighbours; None when there are none such.

    ``[4, 6]`` and ``[2, 12]`` share ``[2, 2, 6]``; ``[4, 9]`` and ``[6, 6]`` share none.
    """
    cuts = sorted({*_products(a), *_products(b)})
    found, last = [], 1
    for cut in cuts:
        if cut % last:
            return None
        if cut != last:
            found.append(cut // last)
        last = cut
    return found


def _products(dims: Sequence[int]) -> list[int]:
    found, product = [], 1
    for d in dims:
        product *= d
        found.append(product)
    return found


def _in_memory(shape: Shape, factors: Sequence[int]) -> list[int]:
    """The factors in the order of memory: those of each dimension, in the order of the dimensions."""
    of: list[list[int]] = []
    n = 0
    for size in shape.dims:
        own, product = [], 1
        while product < size:
            product *= factors[n]
            own.append(n)
            n += 1
        of.append(own)
    return [n for d in order(shape) for n in of[d]]
