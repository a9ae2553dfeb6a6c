"""gather and scatter on several devices: random dimension numbers, shardings and indices, in and out of bounds."""

from __future__ import annotations

import numpy as np
import pytest

from heron.hlo.ir.types import BF16, F32, PRED, S8, S16, S32, S64, U8, U32, U64, ElementType
from tests.passes.sharding.devices import agree
from tests.passes.sharding.draw import Draw

INDICES = (S32, S32, S32, S64, S8, U8, S16, U32, U64)
CASES = 60


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

    def _width(self, d: int) -> int:
        return self.random.choice((1, 1, self.dims[d], self.dims[d], self.random.randint(1, self.dims[d])))

    def starts(self):
        t: ElementType = self.random.choice(INDICES)
        drawn = self.numbers.integers(-3, max(self.dims) + 3, self.starts_dims)
        if self.random.random() < 0.1:
            drawn = self.numbers.choice([-(1 << 31), (1 << 31) - 1, 0, 2], self.starts_dims)
        return self.parameter(t, drawn)

    def slices(self) -> list[int]:
        """The dimensions of a gather's result and of a scatter's updates."""
        inside = iter(w for d, w in enumerate(self.window) if d not in self.gone and d not in self.batching)
        batch = iter(self.batch)
        rank = len(self.batch) + len(self.offset)
        return [next(inside if d in self.offset else batch) for d in range(rank)]


def gathers(seed: int):
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


def scatters(seed: int):
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
    from heron.hlo.ir.shape import scalar, tuple_

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


@pytest.mark.parametrize("seed", range(CASES))
def test_gather(seed):
    draw, root = gathers(seed)
    agree(draw.module(root), draw.inputs)


@pytest.mark.parametrize("seed", range(CASES))
def test_scatter(seed):
    draw, root = scatters(seed)
    with np.errstate(all="ignore"):
        agree(draw.module(root), draw.inputs)
