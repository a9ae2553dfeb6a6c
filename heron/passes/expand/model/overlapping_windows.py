"""select-and-scatter with windows that overlap, as elementwise ops on the places of its result.

Windows of 3 elements, 2 apart: place q lies in windows q // 2 and q // 2 - 1, as element q % 2 of the one and element
q % 2 + 2 of the other. A place takes the source of each window that has selected it, in the windows' order. A dimension
of the result is written as two, q // 2 and q % 2, so that "the window t before" is the array of windows moved by t.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

import numpy as np

from heron.hlo.ir import literal
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import PRED, S32
from heron.passes.expand.model.whole_arrays import apply_to_arrays
from heron.passes.rewriting.building import array, constant, reshape, scalar, splat
from heron.passes.rewriting.expander import home


class Overlapping:
    """The windows of a select-and-scatter: ``counts`` of them, ``sizes``, and ``steps`` from one to the next; at most
    ``shares`` of them have a place in common."""

    def __init__(self, i: Instruction) -> None:
        self.i = i
        self.x, self.source, self.init = i.operands
        self.counts = self.source.shape.dims
        self.sizes, self.steps = [w.size for w in i.window], [w.stride for w in i.window]
        self.shares = [-(-size // step) for size, step in zip(self.sizes, self.steps, strict=True)]
        # the number of a window's element: places in each dimension, the last one fastest
        spans = [share * step for share, step in zip(self.shares, self.steps, strict=True)]
        self.weights = [prod(spans[d + 1 :]) for d in range(len(spans))]
        #: the result's dimensions, each as windows and places up to the next window
        self.outer = [2 * d for d in range(len(spans))]
        self.inner = [2 * d + 1 for d in range(len(spans))]
        self.dims = tuple(
            n
            for count, share, step in zip(self.counts, self.shares, self.steps, strict=True)
            for n in (count + share - 1, step)
        )

    def expand(self) -> Instruction:
        """The result."""
        i, c = self.i, home(self.i)
        chosen = self._chosen()
        result = c.add("broadcast", [self.init], array(self.x.shape.element_type, self.dims), dimensions=())
        for back in product(*(range(share - 1, -1, -1) for share in self.shares)):
            own = c.add("broadcast", [self._numbers(back)], array(S32, self.dims), dimensions=tuple(self.inner))
            hit = c.add("compare", [own, self._moved(chosen, -1, back)], array(PRED, self.dims), direction="EQ")
            (value,) = apply_to_arrays(c, i.scatter, [result, self._moved(self.source, 0, back)], like=i)
            result = c.add("select", [hit, value, result], result.shape)
        return self._fitted(result)

    def _chosen(self) -> Instruction:
        """For each window the number of the element that it selects."""
        c, numbers = home(self.i), array(S32, self.counts)
        places = list(product(*(range(size) for size in self.sizes)))
        best, chosen = self._element(places[0]), splat(c, numbers, 0)
        for n, place in enumerate(places[1:], 1):
            element = self._element(place)
            (keep,) = apply_to_arrays(c, self.i.select, [best, element], like=self.i)
            chosen = c.add("select", [keep, chosen, splat(c, numbers, self._number(place))], numbers)
            if n < len(places) - 1:
                best = c.add("select", [keep, best, element], element.shape)
        return chosen

    def _element(self, place: Sequence[int]) -> Instruction:
        """The element at a place of every window."""
        cut = tuple(
            (p, p + (count - 1) * step + 1, step) for p, count, step in zip(place, self.counts, self.steps, strict=True)
        )
        return home(self.i).add("slice", [self.x], array(self.x.shape.element_type, self.counts), slice=cut)

    def _number(self, place: Sequence[int]) -> int:
        return sum(p * w for p, w in zip(place, self.weights, strict=True))

    def _numbers(self, back: Sequence[int]) -> Instruction:
        """The numbers that the places up to the next window have in the window ``back`` before."""
        table = np.empty(self.steps, np.int32)
        for place in product(*(range(step) for step in self.steps)):
            inside = [p + t * step for p, t, step in zip(place, back, self.steps, strict=True)]
            fits = all(p < size for p, size in zip(inside, self.sizes, strict=True))
            table[place] = self._number(inside) if fits else -2
        return constant(home(self.i), literal.of(table))

    def _moved(self, windows: Instruction, outside: int, back: Sequence[int]) -> Instruction:
        """For each place of the result the value of the window ``back`` before its own."""
        c, t = home(self.i), windows.shape.element_type
        padding = tuple((b, share - 1 - b, 0) for b, share in zip(back, self.shares, strict=True))
        padded = array(t, [self.dims[d] for d in self.outer])
        moved = windows if padded.dims == windows.shape.dims else c.add(
            "pad", [windows, scalar(c, t, outside)], padded, padding=padding
        )  # fmt: skip
        return c.add("broadcast", [moved], array(t, self.dims), dimensions=tuple(self.outer))

    def _fitted(self, result: Instruction) -> Instruction:
        """The result without what is beyond the array, and with what no window reaches."""
        c, t, dims = home(self.i), result.shape.element_type, self.x.shape.dims
        whole = reshape(result, [self.dims[a] * self.dims[b] for a, b in zip(self.outer, self.inner, strict=True)])
        common = [min(a, b) for a, b in zip(whole.shape.dims, dims, strict=True)]
        if tuple(common) != whole.shape.dims:
            whole = c.add("slice", [whole], array(t, common), slice=tuple((0, n, 1) for n in common))
        if tuple(common) == dims:
            return whole
        padding = tuple((0, n - m, 0) for n, m in zip(dims, common, strict=True))
        return c.add("pad", [whole, self.init], array(t, dims), padding=padding)
