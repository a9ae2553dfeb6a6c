"""cholesky-expander: the factor, column by column."""

from __future__ import annotations

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import PRED
from heron.passes.expand.model import matrices as m
from heron.passes.expand.model.loops import State, counted
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array, convert, splat
from heron.passes.rewriting.expander import Expander, home
from heron.records import dataclass


@register
@dataclass(frozen=True)
class CholeskyExpander(Expander):
    """Factors by a loop over columns, all matrices at once; a matrix with a pivot that is not positive gives NaN.

    Column k of L is that of `a` less what the columns before it account for, divided by the root of its diagonal
    element. The upper factor is the lower one's adjoint. Types narrower than f32 are computed in f32. No pipeline has
    it: LAPACK and cuSOLVER factor in blocks.

    ROOT r = f32[3,3] cholesky(f32[3,3] a), lower=true
    ->
    ...
    """

    name = "cholesky-expander"
    opcodes = frozenset({"cholesky"})

    def expand(self, i: Instruction) -> Instruction:
        c, a = home(i), m.widened(i.operands[0])
        if not i.lower:
            a = m.conj(m.flipped(a))
        n = a.shape.dims[-1]
        bad = splat(c, array(PRED, (*a.shape.dims[:-2], 1, 1)), False)
        _, factor, bad = counted(c, "cholesky", n, _step, [a, splat(c, a.shape, 0), bad])
        batch = tuple(range(a.shape.rank - 2))
        wrong = c.add("broadcast", [_scalars(bad)], array(PRED, a.shape.dims), dimensions=batch)
        factor = c.add("select", [wrong, splat(c, a.shape, float("nan")), factor])
        return convert(factor if i.lower else m.conj(m.flipped(factor)), i.shape.element_type)


def _scalars(x: Instruction) -> Instruction:
    """[..., 1, 1] without its last two dimensions."""
    return home(x).add("reshape", [x], array(x.shape.element_type, x.shape.dims[:-2]))


def _step(k: Instruction, state: State) -> State:
    a, factor, bad = state
    c = home(k)
    left = m.column(a, k) - m.product(factor, m.conj(m.flipped(m.row(factor, k))))
    pivot = m.real(m.row(left, k))
    row = m.places(left, -2)
    here = c.add("broadcast", [k], row.shape, dimensions=())
    root = _scalars(m.like(c.add("sqrt", [pivot]), left))
    spread = c.add("broadcast", [root], left.shape, dimensions=tuple(range(root.shape.rank)))
    # the diagonal itself is real: the root, not the quotient
    new = m.kept(row.ge(here), c.add("select", [row.eq(here), spread, left / spread]))
    fails = ~pivot.gt(splat(c, pivot.shape, 0))
    return [a, m.with_column(factor, k, new), bad | fails]
