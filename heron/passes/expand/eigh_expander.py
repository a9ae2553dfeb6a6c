"""eigh-expander: eigenvalues and -vectors of Hermitian matrices by Jacobi's rotations."""

from __future__ import annotations

import numpy as np

from heron.hlo.calls.lapack import eigh_is_lower, routine
from heron.hlo.ir import literal
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import PRED_SCALAR, scalar, tuple_
from heron.hlo.ir.types import S32
from heron.passes.expand.model import matrices as m
from heron.passes.expand.model.loops import State, counted, repeated
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array, constant, reshape, splat
from heron.passes.rewriting.expander import Expander, home
from heron.records import dataclass

#: sweeps over all pairs; they converge quadratically, a handful is enough
_MOST_SWEEPS = 20


@register
@dataclass(frozen=True)
class EighExpander(Expander):
    """Writes calls of symmetric eigensolvers as sweeps of plane rotations, as many at once as there are pairs.

    A round pairs every index with another, as a tournament does, and one rotation for each pair makes the elements
    between them zero; the rounds of a sweep pair every two. Sweeps go on until what is off the diagonal is lost in
    rounding. A matrix is brought to numbers around 1 first; one with a NaN or an infinity has NaNs for eigenvalues, and
    vectors. Eigenvalues are sorted at the end, vectors with them. What LAPACK leaves open, a vector's phase, is open.
    Without ``lapack`` the calls a host library has stay.

    both = (f32[3,3], f32[3], s32[]) custom-call(f32[3,3] a), custom_call_target="lapack_ssyevd_ffi"
    ROOT r = f32[3] get-tuple-element(both), index=1
    ->
    ...
    """

    name = "eigh-expander"
    opcodes = frozenset({"custom-call"})
    lapack: bool = True

    def matches(self, i: Instruction) -> bool:
        target = i.custom_call_target
        return target == "Eigh" or (self.lapack and routine(target) in ("syevd", "heevd"))

    def expand(self, i: Instruction) -> Instruction:
        c = home(i)
        w = _hermitian(i.operands[0], eigh_is_lower(i))
        scale = m.scale(w)
        w = w / m.spread(m.like(scale, w), w)
        n = w.shape.dims[-1]
        v = m.kept(m.places(w, -2).eq(m.places(w, -1)), splat(c, w.shape, 1))
        if n > 1:
            v, w = repeated(c, "sweeps", _MOST_SWEEPS, _sweep, [v, w], _is_left)
        v, values = _sorted(v, m.real(_diagonal(w)))
        v = m.kept(m.spread(scale.eq(scale), v), v, float("nan"))
        values = values * m.spread(scale, values)
        info = [splat(c, s, 0) for s in (i.shape.tuple_shapes or ())[2:]]
        return c.add("tuple", [v, reshape(values, i.shape.at((1,)).dims), *info], like=i)


def _hermitian(a: Instruction, lower: bool) -> Instruction:
    """The matrix one of whose triangles is that of `a`; the diagonal is real."""
    one = m.triangle(a, lower)
    off = m.kept(m.places(a, -2).ne(m.places(a, -1)), one)
    on = m.kept(m.places(a, -2).eq(m.places(a, -1)), m.like(m.real(a), a))
    return off + m.conj(m.flipped(off)) + on


def _rounds(n: int) -> np.ndarray:
    """[round, index]: whom each index is paired with; with itself when n is odd and it has to wait."""
    players = n + n % 2
    order = list(range(players))
    found = np.zeros((players - 1, n), np.int32)
    for r in range(players - 1):
        for k in range(players // 2):
            a, b = order[k], order[players - 1 - k]
            if a < n:
                found[r, a] = b if b < n else a
            if b < n:
                found[r, b] = a if a < n else b
        order = [order[0], order[-1], *order[1:-1]]
    return found


def _sweep(_: Instruction, state: State) -> State:
    n = state[1].shape.dims[-1]
    rounds = _rounds(n)

    def step(k: Instruction, state: State) -> State:
        c = home(k)
        table = constant(c, literal.of(rounds))
        zero = splat(c, scalar(S32), 0)
        partner = c.add("dynamic-slice", [table, k, zero], dynamic_slice_sizes=(1, n))
        return _rotate(reshape(partner, (n,)), *state)

    return counted(home(state[0]), "rounds", len(rounds), step, state)


def _rotate(partner: Instruction, v: Instruction, w: Instruction) -> State:
    """One rotation for each pair: ``w`` becomes J^H w J, ``v`` v J, J having two elements in each column."""
    c, dims = home(w), w.shape.dims
    rank = w.shape.rank
    across = c.add("broadcast", [partner], array(S32, dims), dimensions=(rank - 1,))
    mine = m.real(_diagonal(w))  # [..., 1, n]: of every column
    theirs = _taken(mine, partner, rank - 1)
    # w[i, partner i], of both triangles: rounding must not turn the two of a pair by different angles
    there = m.total(m.kept(m.places(w, -2).eq(across), w), [-2])
    off = (m.conj(there) + _taken(there, partner, rank - 1)) * 0.5
    size = abs(off)
    none = splat(c, size.shape, 0)
    angle = (theirs - mine) / (size * 2.0)
    place = m.places(size, -1)
    pair = c.add("broadcast", [partner], place.shape, dimensions=(rank - 1,))
    # of a pair, one turns one way and one the other, also where both are alike
    forward = angle.gt(none) | (angle.eq(none) & place.lt(pair))
    turn = 1.0 / (abs(angle) + c.add("sqrt", [angle * angle + 1.0]))
    turn = c.add("select", [forward, turn, -turn])
    turn = c.add("select", [size.gt(none) & place.ne(pair), turn, none])
    cosine = c.add("rsqrt", [turn * turn + 1.0])
    phase = m.conj(off) / m.like(c.add("select", [size.gt(none), size, splat(c, size.shape, 1)]), off)
    stay, move = m.like(cosine, w), m.like(-(turn * cosine), w) * phase
    v, w = (_turned(x, stay, move, partner, rank - 1) for x in (v, w))
    rows = [m.conj(m.flipped(x)) for x in (stay, move)]
    return [v, _turned(w, rows[0], rows[1], partner, rank - 2)]


def _turned(x: Instruction, stay: Instruction, move: Instruction, partner: Instruction, d: int) -> Instruction:
    """Every column (or row) times its factor, and its partner's times the other."""
    return x * stay + _taken(x, partner, d) * move


def _taken(x: Instruction, where: Instruction, d: int) -> Instruction:
    """`x` with its elements along dimension `d` at other places."""
    sizes = list(x.shape.dims)
    sizes[d] = 1
    return home(x).add(
        "gather",
        [x, reshape(where, (*where.shape.dims, 1))],
        offset_dims=tuple(n for n in range(x.shape.rank) if n != d),
        collapsed_slice_dims=(d,),
        start_index_map=(d,),
        index_vector_dim=1,
        slice_sizes=tuple(sizes),
    )


def _diagonal(w: Instruction) -> Instruction:
    """[..., 1, n]"""
    return m.total(m.kept(m.places(w, -2).eq(m.places(w, -1)), w), [-2])


def _is_left(state: State) -> Instruction:
    """Whether some matrix has more off its diagonal than rounding would leave."""
    w = state[1]
    squares = m.real(w * m.conj(w))
    off = m.total(m.kept(m.places(w, -2).ne(m.places(w, -1)), squares), [-2, -1])
    epsilon = float(np.finfo(w.shape.element_type.component.dtype).eps)
    more = off.gt(m.total(squares, [-2, -1]) * epsilon**2)
    return reshape(m.any_of(more, range(more.shape.rank)), ())


def _sorted(v: Instruction, values: Instruction) -> State:
    """Columns of vectors in the order of their values."""
    c, dims = home(v), v.shape.dims
    assert c.module is not None
    t, u = values.shape.element_type, v.shape.element_type
    flat = reshape(values, (*dims[:-2], dims[-1]))
    kept = (*range(len(dims) - 2), len(dims) - 1)
    keys = c.add("broadcast", [flat], array(t, dims), dimensions=kept)
    less = Computation("less")
    a, b, *_ = (less.add_parameter(k, scalar(s)) for k, s in enumerate((t, t, u, u)))
    less.root = less.add("compare", [a, b], PRED_SCALAR, direction="LT", type="TOTALORDER")
    c.module.add_computation(less)
    shape = tuple_([keys.shape, array(u, dims)])
    both = c.add("sort", [keys, v], shape, dimensions=(len(dims) - 1,), is_stable=True, to_apply=less)
    first, second = (c.add("get-tuple-element", [both], s, index=n) for n, s in enumerate(shape.tuple_shapes or ()))
    return [second, first[(..., slice(0, 1), slice(None))]]
