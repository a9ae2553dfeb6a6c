"""gather and scatter on several devices: random dimension numbers, shardings and indices, in and out of bounds."""

from __future__ import annotations

import numpy as np
import pytest

from heron.hlo.ir.shape import row_major
from heron.hlo.ir.types import BF16, F32, PRED, S8, S16, S32, S64, U8, U32, U64, ElementType
from heron.hlo.text import parse
from tests.passes.sharding.devices import agree, sharded
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


COUNTED = """HloModule m, num_partitions=4
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY main {
  x = f32[8,6] parameter(0) @[{'x'}, {}]@
  k = s32[8,1] parameter(1) @[{'x'}, {}]@
  n = s32[8,1] iota(), iota_dimension=0 @[{'x'}, {}]@
  at = s32[8,2] concatenate(n, k), dimensions={1} @[{'x'}, {}]@
  g = f32[8] gather(x, at), offset_dims={}, collapsed_slice_dims={0,1}, start_index_map={0,1}, index_vector_dim=1,
    slice_sizes={1,1} @[{'x'}]@
  ROOT r = f32[8,6] scatter(x, at, g), update_window_dims={}, inserted_window_dims={0,1},
    scatter_dims_to_operand_dims={0,1}, index_vector_dim=1, to_apply=add @[{'x'}, {}]@
}"""


def test_indices_that_count_exchange_nothing():
    module = parse(sharded("mesh['x'=4]\n" + COUNTED))
    inputs = [np.arange(48, dtype=np.float32).reshape(8, 6), np.arange(8, dtype=np.int32).reshape(8, 1) % 6]
    assert "channel_id" not in str(agree(module, inputs))
