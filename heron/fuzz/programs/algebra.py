"""Steps of `program` that libraries or heroes compute: convolutions, Fourier transforms, factors, solves, norms, pools.

Sums of products of integers stay exact. The others carry a bound of their error: matrices have a heavy diagonal, so
that neither a factor nor a solution is larger than a few times what it is made of.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from heron.fuzz.programs.state import MAX_ELEMENTS, Facts, State, epsilon, exact_limit, top
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape, row_major, scalar
from heron.hlo.ir.types import F32, F64, S32, ElementType
from heron.hlo.ir.window import ConvDims, WindowDim

_WIDE = (F32, F64)


def _windows(s: State, sizes: tuple[int, ...], *, dilated: bool) -> tuple[WindowDim, ...]:
    """A window for each of these sizes that fits in at least once."""
    found = []
    for size in sizes:
        window, low, high = s.integer(1, 3), s.integer(0, 2), s.integer(0, 1)
        apart = s.integer(1, 2) if dilated else 1
        inside = s.integer(1, 2) if dilated else 1
        dilated_size = (size - 1) * inside + 1
        if dilated_size + low + high < (window - 1) * apart + 1:
            window, low, high, apart = 1, 0, 0, 1
        dim = WindowDim(
            size=window,
            stride=s.integer(1, 2),
            pad_low=low,
            pad_high=high,
            window_dilation=apart,
            base_dilation=inside,
            reversal=dilated and bool(s.integer(0, 1)),
        )
        found.append(dim)
    return tuple(found)


def _weights(s: State, element_type: ElementType, dims: list[int]) -> Instruction:
    values = np.random.default_rng(s.integer(0, 2**16)).integers(0, 4, dims) - (1 if element_type.is_signed else 0)
    return s.keep(s.b.constant(values.astype(element_type.dtype), element_type), 2 if element_type.is_signed else 3)


def _convolution(s: State) -> Instruction | None:
    """One to two spatial dimensions, batch and features at any place, in groups at times."""
    x = s.pick("float signed unsigned", fits=lambda v: 3 <= v.shape.rank <= 4 and v.shape.num_elements <= 1024)
    if x is None:
        return None
    element_type, rank = x.shape.element_type, x.shape.rank
    last = bool(s.integer(0, 1))  # features last, or second
    feature, spatial = (rank - 1, tuple(range(1, rank - 1))) if last else (1, tuple(range(2, rank)))
    groups = s.one_of([g for g in (1, 2, 4) if x.shape.dims[feature] % g == 0])
    window = _windows(s, tuple(x.shape.dims[d] for d in spatial), dilated=True)
    each, outputs = x.shape.dims[feature] // groups, groups * s.integer(1, 2)
    count = each * prod(w.size for w in window)
    if element_type.is_float and 3 * count > exact_limit(element_type):
        return None
    x = s.within(x, max(exact_limit(element_type) // (3 * count), 1)) if element_type.is_float else x
    weights = _weights(s, element_type, [outputs, each, *(w.size for w in window)])
    places = tuple(range(2, rank))
    made = s.b.convolution(
        x,
        weights,
        window=window,
        dim_labels=ConvDims(0, feature, spatial, 1, 0, places, 0, feature, spatial),
        feature_group_count=groups,
    )
    if made.shape.num_elements > MAX_ELEMENTS:
        return None
    facts = s.facts[x]
    if not element_type.is_float:
        return s.keep(made, top(element_type))
    bound = 3 * count * facts.bound
    return s.keep(made, bound, 3 * count * facts.error + epsilon(element_type) * bound if facts.error else 0.0)


def _fft(s: State) -> Instruction | None:
    """The real or imaginary part of a transform of the last one or two dimensions."""
    x = s.pick("float", fits=lambda v: v.shape.element_type in _WIDE and v.shape.rank > 0)
    if x is None:
        return None
    x = s.within(x, 64)
    facts, element_type = s.facts[x], x.shape.element_type
    kind = s.one_of(("FFT", "IFFT", "RFFT", "IRFFT"))
    lengths = list(x.shape.dims[-s.integer(1, min(2, x.shape.rank)) :])
    count = prod(lengths)
    if count > 600:
        return None
    given = x
    if kind != "RFFT":
        given = s.b.complex(x, s.b.negate(x))
    if kind == "IRFFT":
        lengths[-1] = 2 * lengths[-1] - s.integer(1, 2) if lengths[-1] > 1 else 1
    made = s.b.fft(given, fft_type=kind, fft_length=lengths)
    if kind != "IRFFT":
        made = getattr(s.b, s.one_of(("real", "imag")))(made)
    # the sum of that many numbers, each turned by an angle and rounded a few times
    bound = 4 * count * facts.bound
    return s.keep(made, bound, 4 * count * facts.error + epsilon(element_type) * bound)


def _heavy(s: State, x: Instruction) -> tuple[Instruction, Facts, int]:
    """A symmetric matrix made of the last dimension of `x`: 2 on the diagonal, and all else in a row less than 1."""
    n, element_type = x.shape.dims[-1], x.shape.element_type
    x = s.within(x, 2)
    zeros = [0] * (x.shape.rank - 1)
    row = s.b.slice(x, slice=[*((z, z + 1, 1) for z in zeros), (0, n, 1)])
    row = s.b.multiply(
        s.b.reshape(row, shape=row_major(element_type, n)), s.b.full(1 / (4 * n), row_major(element_type, n))
    )
    square = row_major(element_type, n, n)
    both = s.b.add(*(s.b.broadcast(row, shape=square, dimensions=[d]) for d in (0, 1)))
    rows, columns = (s.b.iota(row_major(S32, n, n), d) for d in (0, 1))
    diagonal = s.b.convert(s.b.compare(rows, columns, direction="EQ"), shape=square)
    matrix = s.b.add(both, s.b.multiply(diagonal, s.b.full(2, square)))
    return matrix, Facts(3, s.facts[x].error / (2 * n) + epsilon(element_type)), n


def _factor(s: State) -> Instruction | None:
    """A Cholesky factor; what lies on the other side of the diagonal is nobody's."""
    x = s.pick("float", fits=lambda v: v.shape.element_type in _WIDE and v.shape.rank > 0 and v.shape.dims[-1] <= 16)
    if x is None:
        return None
    matrix, facts, n = _heavy(s, x)
    lower = bool(s.integer(0, 1))
    factor = s.b.cholesky(matrix, lower=lower)
    rows, columns = (s.b.iota(row_major(S32, n, n), d) for d in (0, 1))
    kept = s.b.compare(rows, columns, direction="GE" if lower else "LE")
    made = s.b.select(kept, factor, s.b.full(0, factor.shape))
    return s.keep(made, 2, 8 * n * facts.error + 8 * n * epsilon(x.shape.element_type))


def _solve(s: State) -> Instruction | None:
    """Triangular systems, the unknowns to the right or the left of the matrix."""
    x = s.pick("float", fits=lambda v: v.shape.element_type in _WIDE and v.shape.rank > 0 and v.shape.dims[-1] <= 16)
    if x is None:
        return None
    x = s.within(x, 20)
    matrix, facts, n = _heavy(s, x)
    element_type, left = x.shape.element_type, bool(s.integer(0, 1))
    unknowns = s.integer(1, 5)
    row = s.b.slice(x, slice=[*((0, 1, 1) for _ in x.shape.dims[1:]), (0, n, 1)])
    vector = s.b.reshape(row, shape=row_major(element_type, n))
    right = row_major(element_type, *((n, unknowns) if left else (unknowns, n)))
    unit = bool(s.integer(0, 1))
    made = s.b.triangular_solve(
        matrix,
        s.b.broadcast(vector, shape=right, dimensions=[0 if left else 1]),
        left_side=left,
        lower=bool(s.integer(0, 1)),
        unit_diagonal=unit,
        transpose_a=s.one_of(("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")),
    )
    # with a diagonal of 1 or more and less than 1/2 beside it, the inverse has rows of 2 at most
    bound = 2 * s.facts[x].bound
    error = 2 * s.facts[x].error + 2 * n * bound * facts.error + n * epsilon(element_type) * bound
    return s.keep(made, bound, error)


def _chosen(s: State, opcode: str, element_type: ElementType, name: str) -> Computation:
    inner = s.b.nested(f"{name}_{len(s.values)}")
    a, b = inner.parameter(0, scalar(element_type)), inner.parameter(1, scalar(element_type))
    return inner.finish(inner.compare(a, b, direction=opcode))


def _select_and_scatter(s: State) -> Instruction | None:
    """The gradient of a pool: values go where the largest or smallest of each window was."""
    x = s.pick("float signed", exact=True, fits=lambda v: 0 < v.shape.rank <= 3 and v.shape.num_elements <= 600)
    if x is None:
        return None
    element_type = x.shape.element_type
    window = _windows(s, x.shape.dims, dilated=False)
    dims = [w.output_size(size) for w, size in zip(window, x.shape.dims, strict=True)]
    count = prod(w.size for w in window)
    if 3 * count > exact_limit(element_type) or not prod(dims):
        return None
    made = s.b.select_and_scatter(
        x,
        _weights(s, element_type, dims),
        s.b.constant(0, element_type),
        window=window,
        select=_chosen(s, s.one_of(("GE", "LE")), element_type, "select"),
        scatter=s.b.reducer("add", element_type),
    )
    return s.keep(made, 2 * count if element_type.is_float else top(element_type))


def _window_pair(s: State) -> Instruction | None:
    """A window over two arrays at once: the largest value and where it is."""
    x = s.pick("float signed", exact=True, fits=lambda v: 0 < v.shape.rank <= 3 and v.shape.num_elements <= 600)
    if x is None:
        return None
    element_type = x.shape.element_type
    inner = s.b.nested(f"larger_{len(s.values)}")
    p = [inner.parameter(n, scalar(t)) for n, t in enumerate((element_type, S32, element_type, S32))]
    later = inner.compare(p[2], p[0], direction="GT")
    tie = inner.and_(inner.compare(p[2], p[0], direction="EQ"), inner.compare(p[3], p[1], direction="LT"))
    taken = inner.or_(later, tie)
    inner.finish(inner.tuple(inner.select(taken, p[2], p[0]), inner.select(taken, p[3], p[1])))
    places = s.b.iota(row_major(S32, *x.shape.dims), s.integer(0, x.shape.rank - 1))
    starts = s.b.constant(-100, element_type), s.b.constant(50, S32)
    window = _windows(s, x.shape.dims, dilated=False)
    both = s.b.reduce_window(x, places, *starts, window=window, to_apply=inner.computation)
    part = s.integer(0, 1)
    return s.keep(s.b.get_tuple_element(both, index=part), 50 if part else max(s.facts[x].bound, 100))


def _batch_norm(s: State) -> Instruction | None:
    """Values less their mean over all dimensions but one, on the scale of their variance."""
    x = s.pick("float", fits=lambda v: v.shape.element_type in _WIDE and v.shape.rank > 1)
    if x is None:
        return None
    x = s.within(x, 4)
    facts, element_type = s.facts[x], x.shape.element_type
    feature = s.integer(0, x.shape.rank - 1)
    vector: Shape = row_major(element_type, x.shape.dims[feature])
    scale, offset, mean = (s.b.full(s.one_of((0.5, 1, 2)), vector) for _ in range(3))
    if s.integer(0, 1):
        made = s.b.batch_norm_inference(x, scale, offset, mean, s.b.full(1, vector), epsilon=1.0, feature_index=feature)
    else:
        whole = s.b.batch_norm_training(x, scale, offset, epsilon=1.0, feature_index=feature)
        made = s.b.get_tuple_element(whole, index=0)
    return s.keep(made, 24, 64 * facts.error + 128 * epsilon(element_type))


ALGEBRA: dict[str, Callable[[State], Instruction | None]] = {
    "convolution": _convolution,
    "fft": _fft,
    "factor": _factor,
    "solve": _solve,
    "select-and-scatter": _select_and_scatter,
    "window-pair": _window_pair,
    "batch-norm": _batch_norm,
}
