"""arg-extremum-expander: the place of the largest element of a row is the first place that has the largest element."""

from __future__ import annotations

from heron.hlo.facts import calls_function
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import get
from heron.hlo.ir.types import PRED
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import applied, array, scalar, splat
from heron.passes.rewriting.expander import Expander
from heron.passes.simplify.algebraic.reduce_functions import arg_direction
from heron.records import dataclass

#: bits of numbers that vectors compare with their places several times as fast as others
_NARROW = 16


@register
@dataclass(frozen=True)
class ArgExtremumExpander(Expander):
    """Finds the largest element of a row first, then the first place that has it, and the smallest alike.

    A pair of a value and a place is combined with the next one by some ten instructions, one after the other. Both
    steps here are single ops, which vectors do along a row; the first is a row's own again for the second. A NaN is the
    largest and the smallest: where there is one, its place is the first that differs from itself. Rows have more than
    ``least`` elements, or twice that and more of 16 bits, up to ``most_bytes``, and there are ``rows`` of them.

    argmax {
      v = s32[] parameter(0)
      n = s32[] parameter(1)
      w = s32[] parameter(2)
      m = s32[] parameter(3)
      more = pred[] compare(v, w), direction=GT
      value = s32[] select(more, v, w)
      same = pred[] compare(v, w), direction=EQ
      before = pred[] compare(n, m), direction=LT
      tie = pred[] and(same, before)
      either = pred[] or(more, tie)
      index = s32[] select(either, n, m)
      ROOT t = (s32[], s32[]) tuple(value, index)
    }

    it = s32[64,40] iota(), iota_dimension=1
    low = s32[] constant(-2147483648)
    zero = s32[] constant(0)
    ROOT r = (s32[64], s32[64]) reduce(s32[64,40] x, it, low, zero), dimensions={1}, to_apply=argmax
    ->
    maximum {
      a = s32[] parameter(0)
      b = s32[] parameter(1)
      ROOT c = s32[] maximum(a, b)
    }

    minimum {
      a = s32[] parameter(0)
      b = s32[] parameter(1)
      ROOT c = s32[] minimum(a, b)
    }

    low = s32[] constant(-2147483648)
    m = s32[64] reduce(s32[64,40] x, low), dimensions={1}, to_apply=maximum
    b = s32[64,40] broadcast(m), dimensions={0}
    same = pred[64,40] compare(x, b), direction=EQ
    it = s32[64,40] iota(), iota_dimension=1
    end = s32[] constant(2147483647)
    ends = s32[64,40] broadcast(end), dimensions={}
    places = s32[64,40] select(same, it, ends)
    none = s32[] constant(2147483647)
    p = s32[64] reduce(places, none), dimensions={1}, to_apply=minimum
    ROOT r = (s32[64], s32[64]) tuple(m, p)
    """

    name = "arg-extremum-expander"
    opcodes = frozenset({"reduce"})
    least: int = 8
    most_bytes: int = 32 << 10
    rows: int = 16
    #: instructions that compute an element, at most: each is computed for both steps
    most_code: int = 16

    def matches(self, i: Instruction) -> bool:
        if arg_direction(i) is None:
            return False
        x, it = i.operands[:2]
        last, t = x.shape.rank - 1, x.shape.element_type
        if i.dimensions != (last,) or it.attrs["iota_dimension"] != last or not (t.is_float or t.is_integer):
            return False
        row = x.shape.dims[last]
        least = 4 * self.least if t.bits <= _NARROW else self.least
        if not least < row <= self.most_bytes // t.byte_size or x.shape.num_elements < self.rows * row:
            return False
        return self._is_cheap(x)

    def expand(self, i: Instruction) -> Instruction:
        c = i.parent
        assert c is not None and c.module is not None
        x, it, init = i.operands[:3]
        t, place = x.shape.element_type, it.shape.element_type
        opcode = "maximum" if arg_direction(i) == "GT" else "minimum"
        kept = x.shape.dims[:-1]
        results, pred = array(t, kept), array(PRED, x.shape.dims)
        largest = c.add(
            "reduce", [x, init], results, like=i, dimensions=i.dimensions, to_apply=applied(c.module, opcode, t)
        )
        wide = c.add("broadcast", [largest], x.shape, like=i, dimensions=tuple(range(len(kept))))
        found = c.add("compare", [x, wide], pred, like=i, direction="EQ")
        if t.is_float:
            nan = c.add("compare", [x, x], pred, like=i, direction="NE")
            found = c.add("or", [found, nan], pred, like=i)
        end = get("minimum").identity(place)
        places = c.add("select", [found, it, splat(c, it.shape, end)], it.shape, like=i)
        least = c.add(
            "reduce",
            [places, scalar(c, place, end)],
            array(place, kept),
            like=i,
            dimensions=i.dimensions,
            to_apply=applied(c.module, "minimum", place),
        )
        return c.add("tuple", [largest, least], i.shape, like=i)

    def _is_cheap(self, x: Instruction) -> bool:
        """Whether elements are computed by a few instructions."""
        seen: set[Instruction] = set()
        stack = [x]
        while stack and len(seen) <= self.most_code:
            o = stack.pop()
            if o in seen or not o.op.is_elementwise:
                continue
            if calls_function(o):
                return False
            seen.add(o)
            stack += o.operands
        return len(seen) <= self.most_code
