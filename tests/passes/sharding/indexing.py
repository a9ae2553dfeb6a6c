"""Random programs of gathers, scatters, sorts, transforms, decompositions and random bits, for the partitioner."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.layout import layout
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import row_major, scalar, tuple_
from heron.hlo.ir.types import BF16, C64, F32, PRED, S8, S16, S32, S64, U8, U32, U64, ElementType
from tests.passes.sharding.devices import agree
from tests.passes.sharding.draw import Draw

INDICES = (S32, S32, S32, S64, S8, U8, S16, U32, U64)

#: a program being drawn, and the result
Drawn: TypeAlias = tuple[Draw, Instruction]
PROGRAMS: dict[str, Callable[[int], Drawn]] = {}
#: programs that round: the difference that is allowed
TOLERANCE = {"fft": 1e-3, "matrices": 1e-3, "lapack": 1e-4}


def program(make: Callable[[int], Drawn]) -> Callable[[int], Drawn]:
    """Register a way to draw a program from a seed."""
    PROGRAMS[make.__name__] = make
    return make


def check(name: str, seed: int, compare: Callable[[Module, list[np.ndarray], float], Module] = agree) -> None:
    """Partition program `seed` of a kind and compare it with the global one."""
    draw, root = PROGRAMS[name](seed)
    with np.errstate(all="ignore"):
        compare(draw.module(root), draw.inputs, TOLERANCE.get(name, 0.0))


class Windows(Draw):
    """The dimension numbers that a gather and a scatter have alike."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        r = self.random
        self.dims = self.sizes(r.randint(1, 3))
        dims = list(range(len(self.dims)))
        self.batching = sorted(r.sample(dims, 1)) if len(dims) > 1 and r.random() < 0.3 else []
        others = [d for d in dims if d not in self.batching]
        self.mapped = r.sample(others, r.randint(0 if r.random() < 0.1 else 1, len(others)))
        self.window = [1 if d in self.batching else self._width(d) for d in dims]
        self.gone = [d for d in others if self.window[d] == 1 and r.random() < 0.7]
        self.batch = self.sizes(r.randint(0, 2), 6)
        self.counted = self._counted() if self.batch and len(self.mapped) > 1 and r.random() < 0.5 else None
        self.starts_batching = []
        for d in self.batching:
            self.starts_batching.append(r.randint(0, len(self.batch)))
            self.batch.insert(self.starts_batching[-1], self.dims[d])
        self.vector = r.randint(0, len(self.batch))
        if len(self.mapped) == 1 and r.random() < 0.3:
            self.vector, shape = len(self.batch), list(self.batch)
        else:
            shape = [*self.batch[: self.vector], len(self.mapped), *self.batch[self.vector :]]
            self.starts_batching = [d + (d >= self.vector) for d in self.starts_batching]
        self.starts_dims = shape
        rank = len(self.batch) + len(dims) - len(self.gone) - len(self.batching)
        self.offset = sorted(r.sample(range(rank), rank - len(self.batch)))

    def _counted(self) -> tuple[int, int] | None:
        """An entry of the indices that counts along a batch dimension, which gets its size."""
        entries = [k for k, d in enumerate(self.mapped) if d in self.gone]
        if not entries or self.batching:
            return None
        entry, d = self.random.choice(entries), self.random.randrange(len(self.batch))
        self.batch[d] = self.dims[self.mapped[entry]]
        return entry, d

    def _width(self, d: int) -> int:
        return self.random.choice((1, 1, self.dims[d], self.dims[d], self.random.randint(1, self.dims[d])))

    def starts(self):
        t: ElementType = self.random.choice(INDICES)
        drawn = self.numbers.integers(-3, max(self.dims) + 3, self.starts_dims)
        if self.random.random() < 0.1:
            drawn = self.numbers.choice([-(1 << 31), (1 << 31) - 1, 0, 2], self.starts_dims)
        return self._with_count(self.parameter(t, drawn))

    def _with_count(self, starts):
        """`starts` with the entry that counts: an iota, as programs that know negative indices write it."""
        if self.counted is None or self.vector == len(self.starts_dims):
            return starts
        entry, d = self.counted
        dims = [n if d != self.vector else 1 for d, n in enumerate(self.starts_dims)]
        t = starts.shape.element_type
        count = self.b.iota(row_major(t, dims[d + (d >= self.vector)]))
        if t.is_signed:
            count = self.b.select(self.b.compare(count, 0, direction="LT"), self.b.add(count, 3), count)
        column = self.b.broadcast(count, shape=row_major(t, *dims), dimensions=[d + (d >= self.vector)])
        parts = []
        for k in range(len(self.mapped)):
            bounds = [(k, k + 1, 1) if d == self.vector else (0, n, 1) for d, n in enumerate(dims)]
            parts.append(column if k == entry else self.b.slice(starts, slice=bounds))
        return self.b.concatenate(*parts, dimensions=[self.vector])

    def slices(self) -> list[int]:
        """The dimensions of a gather's result and of a scatter's updates."""
        inside = iter(w for d, w in enumerate(self.window) if d not in self.gone and d not in self.batching)
        batch = iter(self.batch)
        rank = len(self.batch) + len(self.offset)
        return [next(inside if d in self.offset else batch) for d in range(rank)]


@program
def gathers(seed: int) -> Drawn:
    draw = Windows(seed)
    x = draw.array(draw.random.choice((F32, F32, BF16, S32, PRED)), draw.dims)
    return draw, draw.b.gather(
        x,
        draw.starts(),
        offset_dims=draw.offset,
        collapsed_slice_dims=draw.gone,
        start_index_map=draw.mapped,
        operand_batching_dims=draw.batching,
        start_indices_batching_dims=draw.starts_batching,
        index_vector_dim=draw.vector,
        slice_sizes=draw.window,
    )


@program
def scatters(seed: int) -> Drawn:
    draw = Windows(seed)
    r = draw.random
    count = 2 if r.random() < 0.2 else 1
    types = [r.choice((F32, F32, S32)) for _ in range(count)]
    arrays = [draw.array(t, draw.dims) for t in types]
    starts = draw.starts()
    updates = [draw.array(t, draw.slices()) for t in types]
    return draw, draw.b.scatter(
        *arrays,
        starts,
        *updates,
        update_window_dims=draw.offset,
        inserted_window_dims=draw.gone,
        scatter_dims_to_operand_dims=draw.mapped,
        input_batching_dims=draw.batching,
        scatter_indices_batching_dims=draw.starts_batching,
        index_vector_dim=draw.vector,
        to_apply=_combiner(draw, types),
    )


def _combiner(draw: Draw, types: list[ElementType]):
    """Sums, products, extremes, the update alone, or what depends on the order; for several arrays of all of them."""
    inner = draw.b.nested("combine")
    count = len(types)
    ps = [inner.parameter(n, scalar(types[n % count])) for n in range(2 * count)]
    kind = draw.random.choice(("add", "add", "add", "maximum", "minimum", "multiply", "second", "order"))
    made = []
    for a, b in zip(ps[:count], ps[count:], strict=True):
        if kind == "second":
            made.append(b)
        elif kind == "order":
            made.append(inner.subtract(inner.add(a, a), b))
        else:
            made.append(inner.computation.add(kind, (a, b)))
    root = made[0] if count == 1 else inner.computation.add("tuple", made, tuple_([m.shape for m in made]))
    return inner.finish(root)


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


@program
def sorts(seed: int) -> Drawn:
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
    return draw, root


@program
def topk(seed: int) -> Drawn:
    draw = Draw(seed)
    r = draw.random
    dims = [*draw.sizes(r.randint(0, 2), 5), r.choice((8, 16, 24, r.randint(1, 33)))]
    t = r.choice((F32, S32, S8, BF16))
    x = draw.array(t, dims)
    if t is F32 and r.random() < 0.3:
        odd = np.array([np.nan, -np.nan, np.inf, -np.inf, -0.0, 0.0], np.float32)
        draw.inputs[0] = draw.numbers.choice(odd, dims)
    root = draw.b.topk(x, k=r.randint(0, min(dims[-1], 6)), largest=r.random() < 0.7)
    return draw, root


@program
def fft(seed: int) -> Drawn:
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
    return draw, draw.b.fft(x, fft_type=kind, fft_length=lengths)


@program
def matrices(seed: int) -> Drawn:
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
    return draw, root


@program
def lapack(seed: int) -> Drawn:
    draw = Draw(seed)
    n, batch = 4, draw.sizes(1, 9)
    a = draw.array(F32, [*batch, n, n])
    columns = row_major(F32, *batch, n, n).with_layout(layout((1, 2, 0)))
    shape = tuple_([columns, row_major(F32, *batch, n)])
    root = draw.b.custom_call(
        a,
        shape=shape,
        custom_call_target="lapack_sgeqrf_ffi",
        api_version="API_VERSION_TYPED_FFI",
        operand_layout_constraints=(columns,),
    )
    return draw, root


@program
def random_bits(seed: int) -> Drawn:
    """States whose counter overflows on the way as well."""
    draw = Draw(seed)
    r = draw.random
    algorithm = r.choice(("rng_three_fry", "rng_philox", "rng_default"))
    words = 2 if algorithm == "rng_three_fry" else r.choice((2, 3))
    near_end = np.uint64((1 << 64) - r.choice((1, 3, 1 << 40)))
    state = np.array([r.getrandbits(64), near_end, r.getrandbits(64)][:words], np.uint64)
    t = r.choice((U64, U32))
    given = draw.parameter(t, np.zeros(words * 64 // t.bits))
    draw.inputs[0] = state.view(t.dtype)
    bits = row_major(r.choice((U32, U32, U64, U8)), *draw.sizes(r.randint(0, 3)))
    shape = tuple_([given.shape, bits])
    return draw, draw.b.rng_bit_generator(given, shape=shape, algorithm=algorithm)
