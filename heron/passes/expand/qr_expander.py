"""qr-expander: Householder's factorisation, and the orthogonal matrix of its reflections."""

from __future__ import annotations

from heron.hlo.calls.lapack import routine
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import S32
from heron.passes.expand.model import matrices as m
from heron.passes.expand.model.loops import State, counted
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array, reshape, splat
from heron.passes.rewriting.expander import Expander, home
from heron.records import dataclass

_FACTOR = frozenset({"Qr", "QrDecomposition", "geqrf"})
_MULTIPLY = frozenset({"ProductOfElementaryHouseholderReflectors", "orgqr", "ungqr"})


@register
@dataclass(frozen=True)
class QrExpander(Expander):
    """Writes calls of QR factorisations as a loop over columns, and those that make Q as a loop over reflections.

    A matrix is brought to numbers around 1 first, so that squares neither overflow nor vanish. A reflection
    ``1 - tau v v^H`` turns a column's lower part into one number, beta; R comes above and on the diagonal, the v below
    it, as LAPACK's geqrf leaves them. Without ``lapack`` the calls a host library has stay.

    ROOT r = (f32[4,3], f32[3]) custom-call(f32[4,3] a), custom_call_target="lapack_sgeqrf_ffi"
    ->
    ...
    """

    name = "qr-expander"
    opcodes = frozenset({"custom-call"})
    lapack: bool = True

    def matches(self, i: Instruction) -> bool:
        target = routine(i.custom_call_target) if self.lapack else i.custom_call_target
        return target in _FACTOR or (target in _MULTIPLY and i.shape.is_array)

    def expand(self, i: Instruction) -> Instruction:
        if routine(i.custom_call_target) in _MULTIPLY:
            return _orthogonal(*i.operands)
        c, a = home(i), i.operands[0]
        count = min(a.shape.dims[-2:])
        taus = splat(c, array(a.shape.element_type, (*a.shape.dims[:-2], 1, count)), 0)
        scale = m.spread(m.like(m.scale(a), a), a)
        a, taus = counted(c, "qr", count, _reflect, [a / scale, taus])
        a = c.add("select", [m.places(a, -2).le(m.places(a, -1)), a * scale, a])
        return c.add("tuple", [a, reshape(taus, i.shape.at((1,)).dims)], like=i)


def _reflect(k: Instruction, state: State) -> State:
    """Column k: its reflection found, kept in place of what it turns to zero, and done to the columns after it."""
    a, taus = state
    c, x = home(k), m.column(a, k)
    row = m.places(x, -2)
    below, on = row.gt(_at(k, row)), row.eq(_at(k, row))
    alpha = m.row(x, k)
    squares = m.total(_square(m.kept(below, x)), [-2])
    head = _square(alpha)
    norm = c.add("sqrt", [squares + head])
    zero = splat(c, norm.shape, 0)
    length = c.add("select", [m.real(alpha).lt(zero), norm, -norm])
    idle = squares.eq(zero)
    if alpha.shape.element_type.is_complex:
        idle = idle & c.add("imag", [alpha]).eq(zero)
    beta = c.add("select", [idle, m.real(alpha), length])
    wide_beta = m.like(beta, alpha)
    one = splat(c, alpha.shape, 1)
    tau = m.kept(~idle, (wide_beta - alpha) / c.add("select", [idle, one, wide_beta]))
    divisor = c.add("select", [idle, one, alpha - wide_beta])
    v = c.add("select", [on, splat(c, x.shape, 1), m.kept(below, x / m.spread(divisor, x))])
    later = m.places(a, -1).gt(_at(k, m.places(a, -1)))
    change = m.product(v, m.product(m.conj(m.flipped(v)), m.kept(later, a)))
    a = a - m.spread(m.conj(tau), change) * change
    new = c.add("select", [on, m.spread(wide_beta, x), c.add("select", [below, v, x])])
    return [m.with_column(a, k, new), m.with_column(taus, k, tau)]


def _orthogonal(a: Instruction, taus: Instruction) -> Instruction:
    """The first columns of the product of all reflections: of the last one first, on those of the identity."""
    c, count = home(a), taus.shape.dims[-1]
    start = m.kept(m.places(a, -2).eq(m.places(a, -1)), splat(c, a.shape, 1))
    line = reshape(taus, (*taus.shape.dims[:-1], 1, count))

    def step(k: Instruction, state: State) -> State:
        a, line, q = state
        at = (count - 1) - k
        x = m.column(a, at)
        row = m.places(x, -2)
        v = home(k).add("select", [row.eq(_at(at, row)), splat(home(k), x.shape, 1), m.kept(row.gt(_at(at, row)), x)])
        change = m.product(v, m.product(m.conj(m.flipped(v)), q))
        return [a, line, q - m.spread(m.column(line, at), change) * change]

    return counted(c, "reflections", count, step, [a, line, start])[-1]


def _square(x: Instruction) -> Instruction:
    return m.real(x * m.conj(x))


def _at(k: Instruction, where: Instruction) -> Instruction:
    assert where.shape.element_type is S32
    return home(k).add("broadcast", [k], where.shape, dimensions=())
