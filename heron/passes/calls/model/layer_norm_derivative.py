"""Finding the derivative of a layer norm, whatever way a program writes it."""

from __future__ import annotations

from heron.hlo.facts import is_additive
from heron.hlo.ir.instruction import Instruction
from heron.passes.calls.model.layer_norm import LayerNorm
from heron.passes.calls.model.row_algebra import Atom, Polynomial, Product, Rows, is_sum, same
from heron.records import dataclass

#: how far coefficients may be from what they stand for, relatively
_NEAR = 1e-5
#: from the norm's parts to the derivative of x it is so many ops at most
_STEPS = 16


@dataclass(frozen=True, slots=True)
class Derivative:
    """The derivatives computed from `dy`, that of the result: of x, and of scale and bias if they are computed."""

    dy: Instruction
    dx: Instruction
    dscale: Instruction | None
    dbias: Instruction | None


def find_derivative(n: LayerNorm) -> Derivative | None:
    """The derivative of a norm, if the program computes it: no other use of `dx` than its value is asked for."""
    near = _near(n)
    rows = Rows(n.centred, n.factor, n.columns, near)
    for i in near:
        if not (is_additive(i) or i.opcode == "multiply") or i.shape.dims != n.x.shape.dims or i in n.inside:
            continue
        for dy in _candidates(rows.of(i), n):
            if same(rows.of(i), _wanted(rows, n, dy), _NEAR):
                return Derivative(dy, i, *_sums(rows, n, dy))
    return None


def _near(n: LayerNorm) -> dict[Instruction, None]:
    """The instructions computed from the norm's parts in at most that many steps, not through its result."""
    found = dict.fromkeys(i for i in n.inside if i is not n.root)
    front = list(found)
    for _ in range(_STEPS):
        front = [u for u in dict.fromkeys(u for i in front for u in i.users) if u not in found and u is not n.root]
        found.update(dict.fromkeys(front))
    return found


def _candidates(found: Polynomial, n: LayerNorm) -> list[Instruction]:
    """Arrays that stand beside scale and factor in a term, as the result's derivative does."""
    others = {("column", n.scale), ("row", n.factor)}
    terms = [{atom for atom, _ in product} for product in found if len(product) == 3]
    rest = [next(iter(t - others)) for t in terms if others < t]
    return [i for kind, i in rest if kind == "whole" and isinstance(i, Instruction)]


def _wanted(rows: Rows, n: LayerNorm, dy: Instruction) -> Polynomial:
    """``factor (dy scale - mean(dy scale) - centred factor^2 mean(dy scale centred))``."""
    g: Atom = ("column", n.scale)
    d, c, r = ("whole", dy), ("whole", n.centred), ("row", n.factor)
    plain = frozenset({(g, 1), (d, 1)})
    mean, slope = ("sum", plain), ("sum", plain | {(c, 1)})
    by = -1.0 / rows.count
    return {
        plain | {(r, 1)}: 1.0,
        frozenset({(r, 1), (mean, 1)}): by,
        frozenset({(r, 3), (c, 1), (slope, 1)}): by,
    }


def _sums(rows: Rows, n: LayerNorm, dy: Instruction) -> tuple[Instruction | None, Instruction | None]:
    """The derivatives of scale and bias: sums over rows of ``dy centred factor``, and of dy."""
    over = tuple([d for d in range(n.x.shape.rank) if d not in n.columns])
    term: Product = frozenset({(("whole", dy), 1), (("whole", n.centred), 1), (("row", n.factor), 1)})
    scale: Polynomial = {term: 1.0}
    found: list[Instruction | None] = [None, None]
    for i in (*rows.within, *dy.users):
        if i.opcode != "reduce" or len(i.operands) != 2 or tuple(sorted(i.attrs["dimensions"])) != over:
            continue
        if i.operands[0].shape.dims != n.x.shape.dims or not is_sum(i):
            continue
        of = rows.of(i.operands[0])
        for k, wanted in enumerate((scale, rows.atom("whole", dy))):
            if same(of, wanted, _NEAR):
                found[k] = i
    return found[0], found[1]
