"""Structural ops with drawn shapes and attributes: the corners nobody thought of.

Values are small whole numbers, so that sums are exact in any order and results must be equal.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from heron.hlo.builder import Builder
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import row_major, scalar
from heron.hlo.ir.types import C64, F32, S8, S32, S64, U8, U32, ElementType
from heron.hlo.ir.window import ConvDims, Window, WindowDim
from tests.conformance.case import Case, Closeness

#: zeros may differ in sign: sums are taken in different orders
CLOSE = Closeness(zeros=False)


class Draw:
    """One program being drawn: a builder, its inputs so far, and dice."""

    def __init__(self, seed: tuple[int, int], t: ElementType) -> None:
        self.random = np.random.default_rng(seed)
        self.b = Builder("drawn")
        self.t = t
        self.arrays: list[np.ndarray] = []

    def number(self, low: int, high: int) -> int:
        """A whole number of low…high, both included."""
        return int(self.random.integers(low, high, endpoint=True))

    def chance(self, share: float) -> bool:
        return bool(self.random.random() < share)

    def sizes(self, rank: int) -> list[int]:
        """Dimensions of 1 to 5, seldom 0."""
        return [0 if self.chance(0.02) else self.number(1, 5) for _ in range(rank)]

    def shuffled(self, n: int) -> list[int]:
        return [int(k) for k in self.random.permutation(n)]

    def some(self, of: list[int], share: float = 0.5) -> list[int]:
        """A part of `of`, in another order."""
        return [int(k) for k in self.random.permutation([k for k in of if self.chance(share)])]

    def array(self, dims: list[int], t: ElementType | None = None, low: int = -4, high: int = 4) -> Instruction:
        """A parameter of small whole numbers."""
        t = t or self.t
        value = self.random.integers(0 if t.is_unsigned else low, high, dims, endpoint=True)
        if t.is_complex:
            value = value + 1j * self.random.integers(low, high, dims, endpoint=True)
        self.arrays.append(np.asarray(value).astype(t.dtype))
        return self.b.parameter(len(self.arrays) - 1, row_major(t, *dims))

    def window(self, dims: list[int], reversal: bool = False, dilation: bool = True) -> Window:
        """A window for each of `dims`, most of them fitting."""
        found = []
        for n in dims:
            base, wide = (self.number(1, 3) if dilation and self.chance(0.3) else 1 for _ in range(2))
            low, high = (self.number(-2, 3) if self.chance(0.5) else 0 for _ in range(2))
            dilated = (n - 1) * base + 1 if n else 0
            found.append(
                WindowDim(
                    size=self.number(1, min(4, max(1, n))),
                    stride=self.number(1, 3),
                    pad_low=max(low, -dilated),
                    pad_high=max(high, -dilated - max(low, -dilated)),
                    base_dilation=base,
                    window_dilation=wide,
                    reversal=reversal and self.chance(0.3),
                )
            )
        return tuple(found)

    def case(self, root: Instruction, label: str) -> Case:
        text = str(self.b.build(root))
        before, _, entry = text.partition("ENTRY ")
        body = entry[entry.index("{\n") + 2 : entry.rindex("}")].strip("\n")
        before = before.partition("\n")[2]
        return Case(root.opcode, self.t.name, body, self.arrays, label, before, CLOSE)


# -- products --------------------------------------------------------------------------------------------------------
def dot(d: Draw) -> Instruction:
    batch, summed = d.sizes(d.number(0, 2)), d.sizes(d.number(0, 2))
    sides, numbers = [], []
    for _ in range(2):
        sizes = batch + summed + d.sizes(d.number(0, 2))
        order = d.shuffled(len(sizes))
        sides.append(d.array([sizes[k] for k in order]))
        numbers.append(
            ([order.index(k) for k in range(len(batch))], [order.index(len(batch) + k) for k in range(len(summed))])
        )
    return d.b.dot(
        *sides,
        lhs_batch_dims=numbers[0][0],
        lhs_contracting_dims=numbers[0][1],
        rhs_batch_dims=numbers[1][0],
        rhs_contracting_dims=numbers[1][1],
    )


def convolution(d: Draw) -> Instruction:
    spatial = d.number(0, 3)
    groups, batch_groups = d.random.permutation([d.number(1, 3), 1]).tolist()
    sizes = d.sizes(spatial)
    window = d.window(sizes, reversal=True)
    features, batch, out = d.number(1, 3), d.number(1, 2) * batch_groups, d.number(1, 2) * groups * batch_groups
    x_order, k_order, y_order = (d.shuffled(spatial + 2) for _ in range(3))
    x, k = [0] * (spatial + 2), [0] * (spatial + 2)
    for order, dims, values in (
        (x_order, x, (batch, features * groups, *sizes)),
        (k_order, k, (features, out, *(w.size for w in window))),
    ):
        for at, n in zip(order, values, strict=True):
            dims[at] = n
    labels = ConvDims(
        x_order[0], x_order[1], tuple(x_order[2:]),
        k_order[0], k_order[1], tuple(k_order[2:]),
        y_order[0], y_order[1], tuple(y_order[2:]),
    )  # fmt: skip
    return d.b.convolution(
        d.array(x),
        d.array(k),
        window=window,
        dim_labels=labels,
        feature_group_count=groups,
        batch_group_count=batch_groups,
    )


# -- reductions ------------------------------------------------------------------------------------------------------
def _reducer(d: Draw) -> tuple[Computation, int]:
    """A reducer and its identity among the values drawn."""
    if d.t.is_complex or d.chance(0.6):
        return d.b.reducer("add", d.t), 0
    return (
        (d.b.reducer("maximum", d.t), 0 if d.t.is_unsigned else -4)
        if d.chance(0.5)
        else (d.b.reducer("minimum", d.t), 4)
    )


def reduce(d: Draw) -> Instruction:
    rank = d.number(0, 4)
    body, start = _reducer(d)
    return d.b.reduce(d.array(d.sizes(rank)), start, dimensions=d.some(list(range(rank))), to_apply=body)


def reduce_window(d: Draw) -> Instruction:
    sizes = d.sizes(d.number(1, 3))
    body, start = _reducer(d)
    window = d.window(sizes)
    while all(w.size == 1 for w in window) and any(w.pad_low < 0 or w.pad_high < 0 for w in window):
        window = d.window(sizes)  # XLA:CPU aborts on windows of one element that cut
    return d.b.reduce_window(d.array(sizes), start, window=window, to_apply=body)


def _comparison(d: Draw, direction: str) -> Computation:
    inner = d.b.nested("choose")
    a, b = inner.parameter(0, scalar(d.t)), inner.parameter(1, scalar(d.t))
    return inner.finish(inner.compare(a, b, direction=direction))


def select_and_scatter(d: Draw) -> Instruction:
    sizes = d.sizes(d.number(1, 3))
    window = d.window(sizes, dilation=False)
    source = [w.output_size(n) for w, n in zip(window, sizes, strict=True)]
    choice = _comparison(d, str(d.random.choice(["GE", "GT", "LE", "LT"])))
    x = d.array(sizes)  # no two equal: XLA takes now this one, now that
    different = d.random.permutation(d.arrays[-1].size) - (0 if d.t.is_unsigned else 60)
    d.arrays[-1] = different.reshape(sizes).astype(d.t.dtype)
    return d.b.select_and_scatter(
        x,
        d.array(source),
        0,
        window=window,
        select=choice,
        scatter=d.b.reducer("add", d.t),
    )


# -- indexing --------------------------------------------------------------------------------------------------------
class _Indices:
    """What gather and scatter say of their indices, for an operand of `sizes`."""

    def __init__(self, d: Draw) -> None:
        rank = d.number(1, 4)
        self.sizes = d.sizes(rank)
        roles = d.shuffled(rank)
        self.batching = roles[: d.number(0, 1) if rank > 1 else 0]
        others = [k for k in range(rank) if k not in self.batching]
        self.collapsed = sorted(k for k in others if d.chance(0.4) and self.sizes[k])
        self.mapped = d.some(others, 0.7) or others[:1]
        self.window_dims = [k for k in others if k not in self.collapsed]
        self.slice_sizes = [
            min(1, n) if k not in self.window_dims else d.number(min(1, n), n) for k, n in enumerate(self.sizes)
        ]
        free = d.sizes(d.number(0, 2))
        batch = free + [self.sizes[k] for k in self.batching]
        order = d.shuffled(len(batch))
        self.batch = [batch[k] for k in order]
        places = [order.index(len(free) + k) for k in range(len(self.batching))]
        self.vector = d.number(0, len(self.batch))
        self.start_batching = [p + (p >= self.vector) for p in places]
        dims = [*self.batch[: self.vector], len(self.mapped), *self.batch[self.vector :]]
        if len(self.mapped) == 1 and d.chance(0.3):  # scalar indices
            dims, self.vector, self.start_batching = self.batch, len(self.batch), places
        t = [S32, S64, S8, U8, U32][d.number(0, 4)]
        self.starts = d.array(dims, t, -2, 6)
        rank = len(self.batch) + len(self.window_dims)
        self.offset_dims = sorted(d.shuffled(rank)[: len(self.window_dims)])

    def result(self, window: list[int]) -> list[int]:
        rest, inside = iter(self.batch), iter(window)
        return [next(inside if k in self.offset_dims else rest) for k in range(len(self.batch) + len(window))]


def gather(d: Draw) -> Instruction:
    n = _Indices(d)
    return d.b.gather(
        d.array(n.sizes),
        n.starts,
        offset_dims=n.offset_dims,
        collapsed_slice_dims=n.collapsed,
        start_index_map=n.mapped,
        operand_batching_dims=n.batching,
        start_indices_batching_dims=n.start_batching,
        index_vector_dim=n.vector,
        slice_sizes=n.slice_sizes,
    )


def scatter(d: Draw) -> Instruction:
    n = _Indices(d)
    body, _ = _reducer(d)
    return d.b.scatter(
        d.array(n.sizes),
        n.starts,
        d.array(n.result([n.slice_sizes[k] for k in n.window_dims])),
        update_window_dims=n.offset_dims,
        inserted_window_dims=n.collapsed,
        scatter_dims_to_operand_dims=n.mapped,
        input_batching_dims=n.batching,
        scatter_indices_batching_dims=n.start_batching,
        index_vector_dim=n.vector,
        to_apply=body,
    )


def _starts(d: Draw, rank: int) -> list[Instruction]:
    t = [S32, S64, S8, U8, U32][d.number(0, 4)]
    return [d.array([], t, -3, 6) for _ in range(rank)]


def dynamic_slice(d: Draw) -> Instruction:
    sizes = d.sizes(d.number(1, 3))
    return d.b.dynamic_slice(
        d.array(sizes), *_starts(d, len(sizes)), dynamic_slice_sizes=[d.number(0, n) for n in sizes]
    )


def dynamic_update_slice(d: Draw) -> Instruction:
    sizes = d.sizes(d.number(1, 3))
    return d.b.dynamic_update_slice(d.array(sizes), d.array([d.number(0, n) for n in sizes]), *_starts(d, len(sizes)))


# -- movement --------------------------------------------------------------------------------------------------------
def pad(d: Draw) -> Instruction:
    sizes, padding = d.sizes(d.number(1, 3)), []
    for n in sizes:
        between = d.number(0, 2)
        low = d.number(-3, 3)
        padding.append((low, max(d.number(-3, 3), -low - (n + max(n - 1, 0) * between)), between))
    return d.b.pad(d.array(sizes), 3, padding=padding)


def slice(d: Draw) -> Instruction:
    sizes = d.sizes(d.number(1, 3))
    bounds = [(start := d.number(0, n), d.number(start, n), d.number(1, 3)) for n in sizes]
    return d.b.slice(d.array(sizes), slice=bounds)


def moved(d: Draw) -> Instruction:
    """A few movements on end."""
    x = d.array(d.sizes(d.number(1, 3)))
    for _ in range(3):
        rank, kind = x.shape.rank, d.number(0, 3)
        if kind == 0:
            x = d.b.transpose(x, dimensions=d.shuffled(rank))
        elif kind == 1:
            x = d.b.reverse(x, dimensions=d.some(list(range(rank))))
        elif kind == 2:
            x = d.b.concatenate(x, x, dimensions=[d.number(0, rank - 1)])
        else:
            to = d.shuffled(rank + 1)[:rank]
            dims = [2] * (rank + 1)
            for n, k in enumerate(to):
                dims[k] = x.shape.dims[n]
            x = d.b.broadcast(x, shape=row_major(d.t, *dims), dimensions=to)
    return x


def sort(d: Draw) -> Instruction:
    sizes = d.sizes(d.number(1, 3))
    inner = d.b.nested("less")
    a, b, c, e = (inner.parameter(n, scalar(d.t if n < 2 else S32)) for n in range(4))
    first = inner.compare(a, b, direction=str(d.random.choice(["LT", "GT"])))
    second = inner.compare(c, e, direction=str(d.random.choice(["LT", "GT"])))
    roots = [first, inner.select(inner.compare(a, b, direction="EQ"), second, first)]
    body = inner.finish(roots[d.number(0, 1)])
    return d.b.sort(
        d.array(sizes),
        d.array(sizes, S32),
        dimensions=[d.number(0, len(sizes) - 1)],
        is_stable=True,
        to_apply=body,
    )


OPS: dict[str, Callable[[Draw], Instruction]] = {
    "dot": dot,
    "convolution": convolution,
    "reduce": reduce,
    "reduce-window": reduce_window,
    "select-and-scatter": select_and_scatter,
    "gather": gather,
    "scatter": scatter,
    "dynamic-slice": dynamic_slice,
    "dynamic-update-slice": dynamic_update_slice,
    "pad": pad,
    "slice": slice,
    "moved": moved,
    "sort": sort,
}
TYPES = (F32, S32, U8, C64)


def cases(count: int, first: int = 0) -> list[Case]:
    """`count` cases of each op, from seeds `first` on."""
    found = []
    for n, (name, draw) in enumerate(OPS.items()):
        for seed in range(first, first + count):
            t = TYPES[seed % len(TYPES)]
            if t.is_complex and name in ("select-and-scatter", "sort"):
                t = S8
            d = Draw((n, seed), t)
            found.append(d.case(draw(d), f"drawn {name} {seed}"))
    return found
