"""triangular-solve-expander: substitution, row by row."""

from __future__ import annotations

from heron.hlo.ir.instruction import Instruction
from heron.passes.expand.model import matrices as m
from heron.passes.expand.model.loops import State, counted
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import convert, splat
from heron.passes.rewriting.expander import Expander, home
from heron.records import dataclass


@register
@dataclass(frozen=True)
class TriangularSolveExpander(Expander):
    """Solves by a loop over rows, all right-hand sides and matrices at once.

    Every form is brought to ``a x = b``; the rows of x that are not known yet are zero, so one product with a whole row
    of `a` sums over the known ones. Types narrower than f32 are computed in f32. No pipeline has it: LAPACK and cuBLAS
    solve in blocks.

    ROOT r = f32[3,2] triangular-solve(f32[3,3] a, f32[3,2] b), left_side=true, lower=true, transpose_a=NO_TRANSPOSE
    ->
    ...
    """

    name = "triangular-solve-expander"
    opcodes = frozenset({"triangular-solve"})

    def expand(self, i: Instruction) -> Instruction:
        a, b = (m.widened(x) for x in i.operands)
        lower = bool(i.lower)
        a = m.triangle(a, lower)
        if i.transpose_a in ("TRANSPOSE", "ADJOINT"):
            a, lower = m.flipped(a), not lower
            a = m.conj(a) if i.transpose_a == "ADJOINT" else a
        if not i.left_side:  # x a = b is a^T x^T = b^T
            a, b, lower = m.flipped(a), m.flipped(b), not lower
        n = a.shape.dims[-1]

        def step(k: Instruction, state: State) -> State:
            a, b, x = state
            at = k if lower else (n - 1) - k
            line = m.row(a, at)
            value = m.row(b, at) - m.product(line, x)
            if not i.unit_diagonal:
                value = value / m.column(line, at)
            return [a, b, m.with_row(x, at, value)]

        x = counted(home(i), "triangular_solve", n, step, [a, b, splat(home(i), b.shape, 0)])[-1]
        return convert(x if i.left_side else m.flipped(x), i.shape.element_type)
