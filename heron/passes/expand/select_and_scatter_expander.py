"""select-and-scatter-expander: windows say which of their elements they select."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

import numpy as np

from heron.hlo.ir import literal
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import PRED, S32
from heron.passes.expand.model.overlapping_windows import Overlapping
from heron.passes.expand.model.whole_arrays import apply_to_arrays, is_elementwise
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array, constant, reshape, splat
from heron.passes.rewriting.expander import Expander, home
from heron.records import dataclass


@register
@dataclass(frozen=True)
class SelectAndScatterExpander(Expander):
    """Makes a select-and-scatter (the gradient of max pooling) elementwise.

    Each window finds the number of the element it selects, by comparing its elements in order, all windows at once.
    Then an element of the result is its window's source where it has that number, and the initial value elsewhere.
    So every element is looked at once, in vectors, and what comes before and after fuses with it. Where windows
    overlap, an element of the result takes the source of each window that selected it, one after the other. Windows
    that are padded or have more than ``most`` elements stay, and those of which more than ``shared`` have an element in
    common.

    ge {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT c = pred[] compare(a, b), direction=GE
    }

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT c = f32[] add(a, b)
    }

    zero = f32[] constant(0)
    ROOT r = f32[6] select-and-scatter(f32[6] x, f32[3] s, zero), window={size=2 stride=2}, select=ge, scatter=sum
    ->
    windows = f32[3,2] reshape(x)
    left = f32[3,1] slice(windows), slice={[0:3], [0:1]}
    a = f32[3] reshape(left)
    right = f32[3,1] slice(windows), slice={[0:3], [1:2]}
    b = f32[3] reshape(right)
    keep = pred[3] compare(a, b), direction=GE
    first = s32[] constant(0)
    firsts = s32[3] broadcast(first), dimensions={}
    second = s32[] constant(1)
    seconds = s32[3] broadcast(second), dimensions={}
    chosen = s32[3] select(keep, firsts, seconds)
    numbers = s32[2] constant({0, 1})
    own = s32[3,2] broadcast(numbers), dimensions={1}
    wanted = s32[3,2] broadcast(chosen), dimensions={0}
    hit = pred[3,2] compare(own, wanted), direction=EQ
    starts = f32[3] broadcast(zero), dimensions={}
    value = f32[3] add(starts, s)
    values = f32[3,2] broadcast(value), dimensions={0}
    rest = f32[3,2] broadcast(zero), dimensions={}
    all = f32[3,2] select(hit, values, rest)
    ROOT r = f32[6] reshape(all)
    """

    name = "select-and-scatter-expander"
    opcodes = frozenset({"select-and-scatter"})
    most: int = 64
    shared: int = 16

    def matches(self, i: Instruction) -> bool:
        if not all(w.pad_low == w.pad_high == 0 and w.base_dilation == w.window_dilation == 1 for w in i.window):
            return False
        shared = prod(-(-w.size // w.stride) for w in i.window)
        few = 1 < prod(w.size for w in i.window) <= self.most and shared <= self.shared
        some = i.operands[1].shape.num_elements > 0
        return few and some and is_elementwise(i.select) and is_elementwise(i.scatter)

    def expand(self, i: Instruction) -> Instruction:
        c, (x, source, init) = home(i), i.operands
        sizes = zip(x.shape.dims, i.window, source.shape.dims, strict=True)
        if any(w.size != w.stride or n != w.size * m for n, w, m in sizes):
            return Overlapping(i).expand()
        w = _Windows(source.shape.dims, [w.size for w in i.window])
        windows, numbers = reshape(x, w.dims), array(S32, w.counts)
        places = list(product(*(range(w.dims[d]) for d in w.inner)))
        best, chosen = w.element(windows, places[0]), splat(c, numbers, 0)
        for number, place in enumerate(places[1:], 1):
            element = w.element(windows, place)
            (keep,) = apply_to_arrays(c, i.select, [best, element], like=i)
            chosen = c.add("select", [keep, chosen, splat(c, numbers, number)], numbers)
            if number < len(places) - 1:
                best = c.add("select", [keep, best, element], element.shape)
        starts = c.add("broadcast", [init], source.shape.with_default_layout(), dimensions=())
        (value,) = apply_to_arrays(c, i.scatter, [starts, source], like=i)
        table = np.arange(len(places), dtype=np.int32).reshape([w.dims[d] for d in w.inner])
        own = c.add("broadcast", [constant(c, literal.of(table))], array(S32, w.dims), dimensions=w.inner)
        chosen = c.add("broadcast", [chosen], array(S32, w.dims), dimensions=w.outer)
        hit = c.add("compare", [own, chosen], array(PRED, w.dims), direction="EQ")
        wide = array(x.shape.element_type, w.dims)
        value = c.add("broadcast", [value], wide, dimensions=w.outer)
        rest = c.add("broadcast", [init], wide, dimensions=())
        return reshape(c.add("select", [hit, value, rest], wide), x.shape.dims)


class _Windows:
    """An array as windows: dimension d becomes ``counts[d]`` by ``sizes[d]``, or stays where windows have one element.

    ``dims``: its dimensions then; ``outer`` and ``inner`` say which of them count windows and which are inside one.
    """

    def __init__(self, counts: Sequence[int], sizes: Sequence[int]) -> None:
        self.counts = tuple(counts)
        outer, inner = [], []
        self.dims: tuple[int, ...] = ()
        for count, size in zip(counts, sizes, strict=True):
            outer.append(len(self.dims))
            inner += [len(self.dims) + 1] * (size > 1)
            self.dims += (count, size) if size > 1 else (count,)
        self.outer, self.inner = tuple(outer), tuple(inner)

    def element(self, windows: Instruction, place: tuple[int, ...]) -> Instruction:
        """The element of every window at a place in it."""
        cut = [(0, n, 1) for n in self.dims]
        for d, p in zip(self.inner, place, strict=True):
            cut[d] = (p, p + 1, 1)
        shape = array(windows.shape.element_type, [b - a for a, b, _ in cut])
        return reshape(home(windows).add("slice", [windows], shape, slice=tuple(cut)), self.counts)
