"""Reducing, sliding and scattering with a reducer computation, a few whole-array steps each.

A `Combiner` merges tuples of arrays elementwise. One-op reducers become NumPy ufuncs with sums and products of floats
accumulated in f64 and rounded once at the end, minima and maxima of floats found among integers of their order; any
other reducer is applied to halves of the data (a balanced tree that keeps the order of elements).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from heron.hlo.facts import is_order_free
from heron.hlo.ir.types import ElementType
from heron.hlo.ir.window import Window, WindowDim
from heron.hlo.meaning import batched
from heron.hlo.meaning.numeric import precise, ranked, settle, unranked, working

if TYPE_CHECKING:
    from heron.hlo.ir.computation import Computation
    from heron.hlo.ir.evaluation import Evaluation

Arrays = tuple[np.ndarray, ...]

_UFUNCS = {
    "add": np.add,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


class Combiner:
    """A reducer over accumulators of the given element types."""

    def __init__(self, ev: Evaluation, c: Computation, types: tuple[ElementType, ...]) -> None:
        self.ev, self.computation, self.types = ev, c, types
        self.opcode = batched.simple_opcode(c) if len(types) == 1 else None
        self.ufunc = _UFUNCS.get(self.opcode or "")
        self.rounds = self.ufunc is not None and not is_order_free(self.opcode or "")
        if not self.rounds and any(t.is_complex for t in types):
            self.ufunc = None

    def enter(self, arrays: Arrays) -> Arrays:
        """`arrays` in the types accumulated in."""
        if self.ufunc is None:
            return arrays
        t = self.types[0]
        if (t.is_float or t.is_complex) and self.rounds:
            return (precise(arrays[0]),)
        x = working(arrays[0])
        return (ranked(x, self.opcode == "maximum") if t.is_float else x,)

    def leave(self, arrays: Arrays) -> Arrays:
        """Accumulated values in the result types."""
        if self.ufunc is not None and self.types[0].is_float and not self.rounds:
            arrays = (unranked(arrays[0]),)
        return tuple(settle(a, t) for a, t in zip(arrays, self.types, strict=True))

    def __call__(self, a: Arrays, b: Arrays) -> Arrays:
        if self.ufunc is not None:
            return (np.asarray(self.ufunc(a[0], b[0])),)
        return batched.apply_tuple(self.ev, self.computation, *a, *b)

    def fold(self, arrays: Arrays) -> Arrays:
        """Reduce the leading dimension (at least one element long)."""
        if self.ufunc is not None:
            x = arrays[0]
            return (np.asarray(self.ufunc.reduce(x, axis=0, dtype=x.dtype)),)
        while (n := arrays[0].shape[0]) > 1:
            even = n - n % 2
            merged = self(tuple(a[0:even:2] for a in arrays), tuple(a[1:even:2] for a in arrays))
            if n % 2:
                merged = tuple(np.concatenate([m, a[-1:]]) for m, a in zip(merged, arrays, strict=True))
            arrays = merged
        return tuple(a[0] for a in arrays)


def reduce(combine: Combiner, arrays: Arrays, inits: Arrays, dims: tuple[int, ...]) -> Arrays:
    """`arrays` reduced over `dims`, starting from `inits`."""
    kept = [d for d in range(arrays[0].ndim) if d not in dims]
    shape = tuple(arrays[0].shape[d] for d in kept)
    inits = combine.enter(inits)
    start = tuple(np.broadcast_to(v, shape) for v in inits)
    if arrays[0].size == 0:
        return combine.leave(start)
    flat = combine.enter(tuple(a.transpose(*sorted(dims), *kept).reshape(-1, *shape) for a in arrays))
    return combine.leave(combine(start, combine.fold(flat)))


def reduce_window(combine: Combiner, arrays: Arrays, inits: Arrays, window: Window) -> Arrays:
    """`arrays` reduced in each window; padding and dilation holes are left out, as XLA does."""
    arrays, inits = combine.enter(arrays), combine.enter(inits)
    valid = np.ones((1,) * len(window), bool)
    for axis, w in reversed([*enumerate(window)]):  # so that elements keep their order
        arrays, valid = _spread(arrays, valid, inits, axis, w)
        arrays, valid = _slide(combine, arrays, valid, axis, w)
    start = tuple(np.broadcast_to(v, arrays[0].shape) for v in inits)
    merged = combine(start, arrays)
    if not valid.all():
        merged = tuple(np.where(valid, m, s) for m, s in zip(merged, start, strict=True))
    return combine.leave(merged)


def _spread(arrays: Arrays, valid: np.ndarray, fill: Arrays, axis: int, w: WindowDim) -> tuple[Arrays, np.ndarray]:
    """Dilate and pad along `axis`; `valid` (broadcastable) tells real elements."""
    if w.base_dilation == 1 and not w.pad_low and not w.pad_high:
        return arrays, valid
    spread = tuple(pad_axis(a, f, axis, w) for a, f in zip(arrays, fill, strict=True))
    n = arrays[0].shape[axis]
    line = pad_axis(np.ones(n, bool), np.zeros((), bool), 0, w)
    shape = [1] * arrays[0].ndim
    shape[axis] = line.size
    return spread, valid & line.reshape(shape)


def pad_axis(a: np.ndarray, fill: np.ndarray, axis: int, w: WindowDim) -> np.ndarray:
    """`a` with a window's base dilation and padding (negative cuts) applied to one dimension."""
    n = a.shape[axis]
    dilated = (n - 1) * w.base_dilation + 1 if n else 0
    shape = list(a.shape)
    shape[axis] = max(0, dilated + w.pad_low + w.pad_high)
    result = np.full(shape, fill, a.dtype)
    positions = np.arange(n) * w.base_dilation + w.pad_low
    inside = (positions >= 0) & (positions < shape[axis])
    at: list[object] = [slice(None)] * a.ndim
    at[axis] = positions[inside]
    result[tuple(at)] = np.compress(inside, a, axis)  # type: ignore[index]
    return result


#: arrays, and which of their elements are real (broadcastable)
Masked = tuple[Arrays, np.ndarray]


def _slide(combine: Combiner, arrays: Arrays, valid: np.ndarray, axis: int, w: WindowDim) -> Masked:
    """Reduce every window along `axis`, by doubling: windows of 1, 2, 4… elements give those of any size."""
    n = arrays[0].shape[axis]
    outputs = n - (w.size - 1) * w.window_dilation
    if outputs <= 0 or w.size == 0:
        none = tuple(np.take(a, [], axis) for a in arrays)
        return none, np.ones((*valid.shape[:axis], 0, *valid.shape[axis + 1 :]), bool)
    if w.size == 1 and w.stride == 1:
        return arrays, valid
    if valid.shape[axis] == 1:
        valid = np.broadcast_to(valid, (*valid.shape[:axis], n, *valid.shape[axis + 1 :]))
    done: Masked | None = None
    windows: Masked = arrays, valid  # of `width` elements each
    covered, width, left = 0, 1, w.size
    while True:
        if left & 1:
            chunk = _part(windows, axis, covered * w.window_dilation, outputs)
            done = chunk if done is None else _merged(combine, done, chunk)
            covered += width
        left >>= 1
        if not left:
            break
        step = width * w.window_dilation
        length = windows[0][0].shape[axis] - step
        windows = _merged(combine, _part(windows, axis, 0, length), _part(windows, axis, step, length))
        width *= 2
    assert done is not None
    at = (slice(None),) * axis + (slice(None, None, w.stride),)
    return tuple(a[at] for a in done[0]), done[1][at]


def _part(masked: Masked, axis: int, start: int, length: int) -> Masked:
    """A range of elements along `axis`."""
    at = (slice(None),) * axis + (slice(start, start + length),)
    return tuple(a[at] for a in masked[0]), masked[1][at]


def _merged(combine: Combiner, left: Masked, right: Masked) -> Masked:
    """Both sides combined; where only one has a real element, that one."""
    (a, va), (b, vb) = left, right
    both = combine(a, b)
    if not (va.all() and vb.all()):
        both = tuple(np.where(va & vb, m, np.where(va, x, y)) for m, x, y in zip(both, a, b, strict=True))
    return both, va | vb


def scatter(combine: Combiner, bases: Arrays, index: np.ndarray, updates: Arrays) -> Arrays:
    """Flat `bases` with ``base[index[n]] = combine(base[index[n]], update[n])`` for each n in order."""
    if combine.opcode == "second":
        (base,), (update,) = bases, updates
        base = base.copy()
        base[index] = update
        return (base,)
    bases = tuple(np.array(b) for b in combine.enter(bases))
    if combine.ufunc is not None:
        combine.ufunc.at(bases[0], index, combine.enter(updates)[0])
        return combine.leave(bases)
    order = np.argsort(index, kind="stable")
    ranked = index[order]
    first = np.searchsorted(ranked, ranked, "left")
    turn = np.arange(ranked.size) - first  # how many updates of the same element come before
    by_turn = order[np.argsort(turn, kind="stable")]
    for now in np.split(by_turn, np.cumsum(np.bincount(turn))[:-1]):
        at = index[now]
        merged = combine(tuple(b[at] for b in bases), tuple(u[now] for u in updates))
        for b, m in zip(bases, merged, strict=True):
            b[at] = m
    return combine.leave(bases)
