"""sort, topk, fft and decompositions on several devices, with random sizes and shardings."""

from __future__ import annotations

import numpy as np
import pytest

from heron.hlo.ir.computation import Computation
from heron.hlo.ir.shape import row_major, scalar, tuple_
from heron.hlo.ir.types import BF16, C64, F32, S8, S32, ElementType
from heron.passes.sharding.partition.special import sort as sorts
from tests.passes.sharding.devices import agree
from tests.passes.sharding.draw import Draw

CASES = 40


# -- sort ------------------------------------------------------------------------------------------------------------
def _comparator(draw: Draw, types: list[ElementType], direction: str, keys: int) -> Computation:
    """Compares the first operands; the others are sorted along."""
    inner = draw.b.nested("before")
    ps = [inner.parameter(n, scalar(types[n // 2])) for n in range(2 * len(types))]
    found = inner.compare(ps[2 * keys - 2], ps[2 * keys - 1], direction=direction)
    for n in reversed(range(keys - 1)):
        a, b = ps[2 * n : 2 * n + 2]
        equal = inner.compare(a, b, direction="EQ")
        found = inner.or_(inner.compare(a, b, direction=direction), inner.and_(equal, found))
    return inner.finish(found)


@pytest.mark.parametrize("seed", range(2 * CASES))
def test_sort(seed, monkeypatch):
    """Half of them by the network, whether it pays or not."""
    if seed % 2:
        monkeypatch.setattr(sorts, "_pays", lambda *given: True)
    draw = Draw(seed)
    r = draw.random
    dims = draw.sizes(r.choice((1, 1, 2, 3)), 17)
    types = [r.choice((S32, F32, S8)) for _ in range(r.choice((1, 1, 2, 3)))]
    d = r.randrange(len(dims))
    operands = [draw.array(t, dims) for t in types]
    if len(types) > 1 and r.random() < 0.3:
        operands[-1] = draw.b.iota(row_major(types[-1], *dims), d)
    before = _comparator(draw, types, r.choice(("LT", "GT")), r.randint(1, len(types)))
    is_stable = len(types) > 1 or r.random() < 0.5
    root = draw.b.sort(*operands, dimensions=[d], is_stable=is_stable, to_apply=before)
    agree(draw.module(root), draw.inputs)


@pytest.mark.parametrize("count", range(1, 18))
def test_network(count):
    """All lists of zeros and ones are sorted, and so are all others."""
    lines = np.random.default_rng(count).integers(0, 2, (2000, count))
    for stage in sorts.network(count):
        assert len({n for pair in stage for n in pair}) == 2 * len(stage)
        for a, b in stage:
            lines[:, [a, b]] = np.sort(lines[:, [a, b]], 1)
    assert (np.diff(lines, axis=1) >= 0).all()


# -- topk ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(CASES))
def test_topk(seed):
    draw = Draw(seed)
    r = draw.random
    dims = [*draw.sizes(r.randint(0, 2), 5), r.choice((8, 16, 24, r.randint(1, 33)))]
    t = r.choice((F32, S32, S8, BF16))
    x = draw.array(t, dims)
    if t is F32 and r.random() < 0.3:
        odd = np.array([np.nan, -np.nan, np.inf, -np.inf, -0.0, 0.0], np.float32)
        draw.inputs[0] = draw.numbers.choice(odd, dims)
    root = draw.b.topk(x, k=r.randint(0, min(dims[-1], 6)), largest=r.random() < 0.7)
    agree(draw.module(root), draw.inputs)


# -- fft -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(CASES))
def test_fft(seed):
    draw = Draw(seed)
    r = draw.random
    count = r.randint(1, 3)
    dims = [*draw.sizes(r.randint(0, 2), 5), *(r.choice((4, 8, 16, r.randint(1, 9))) for _ in range(count))]
    if r.random() < 0.3:
        dims = [r.choice((16, 64))]
        count = 1
    kind = r.choice(("FFT", "FFT", "IFFT", "IFFT", "RFFT", "IRFFT"))
    lengths = dims[-count:]
    if kind == "IRFFT":
        dims = [*dims[:-1], dims[-1] // 2 + 1]
    x = draw.array(F32 if kind == "RFFT" else C64, dims)
    agree(draw.module(draw.b.fft(x, fft_type=kind, fft_length=lengths)), draw.inputs, tolerance=1e-3)


# -- matrices --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(CASES))
def test_matrices(seed):
    draw = Draw(seed)
    r = draw.random
    n, batch = r.choice((2, 4, 5)), draw.sizes(r.randint(0, 2), 5)
    a = draw.array(F32, [*batch, n, n])
    m = draw.inputs[0]
    draw.inputs[0] = (m @ np.swapaxes(m, -1, -2) + 9 * np.eye(n)).astype(np.float32)
    if r.random() < 0.5:
        root = draw.b.cholesky(a, lower=r.random() < 0.5)
    else:
        left = r.random() < 0.5
        free = r.choice((2, 8, 3))
        right = draw.array(F32, [*batch, *((n, free) if left else (free, n))])
        root = draw.b.triangular_solve(
            a,
            right,
            left_side=left,
            lower=True,
            transpose_a=r.choice(("NO_TRANSPOSE", "TRANSPOSE")),
            unit_diagonal=False,
        )
    agree(draw.module(root), draw.inputs, tolerance=1e-3)


@pytest.mark.parametrize("seed", range(CASES))
def test_lapack(seed):
    draw = Draw(seed)
    n, batch = 4, draw.sizes(1, 9)
    a = draw.array(F32, [*batch, n, n])
    last = row_major(F32, *batch, n, n)
    columns = last.with_layout_order((1, 2, 0)) if hasattr(last, "with_layout_order") else last
    shape = tuple_([columns, row_major(F32, *batch, n)])
    root = draw.b.custom_call(
        a,
        shape=shape,
        custom_call_target="lapack_sgeqrf_ffi",
        api_version="API_VERSION_TYPED_FFI",
        operand_layout_constraints=(columns,),
    )
    agree(draw.module(root), draw.inputs, tolerance=1e-4)
