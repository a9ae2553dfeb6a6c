"""reduce-window and select-and-scatter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from heron.hlo.ir.op import Attr, AttrKind, Op, Trait, op, reject
from heron.hlo.ir.shape import PRED_SCALAR, Shape, scalar
from heron.hlo.ir.window import Window
from heron.hlo.meaning import batched, combine
from heron.hlo.ops.reduce import need_reducer_types, need_reduction, reduced_shape, reduction_inputs
from heron.hlo.ops.rules import attr, default, need_arrays, need_same_type, need_signature

if TYPE_CHECKING:
    from heron.hlo.ir.evaluation import Evaluation
    from heron.hlo.ir.instruction import Instruction


def need_window(i: Instruction, rank: int) -> Window:
    """The window attribute, one sound entry for each of `rank` dimensions."""
    window = i.window
    if len(window) != rank:
        reject(i, "window needs one entry a dimension", f"{len(window)} given for rank {rank}")
    for d, w in enumerate(window):
        if w.size < 1 or w.stride < 1 or w.base_dilation < 1 or w.window_dilation < 1:
            reject(
                i,
                f"window dimension {d} needs size, stride and dilations of at least 1",
                f"size={w.size} stride={w.stride} lhs_dilate={w.base_dilation} rhs_dilate={w.window_dilation}",
            )
    return window


@op("reduce-window")
class ReduceWindow(Op):
    """Each window's elements reduced; padding counts for nothing.

    Any number of arrays, then as many initial values.

    Shape: as many elements along each dimension as windows fit; a tuple of such for several arrays.
    """

    operands = ("operands_and_init_values*",)
    attributes = {
        "window": Attr(AttrKind.WINDOW, ()),
        "to_apply": Attr(AttrKind.COMPUTATION, required=True),
    }
    traits = {Trait.APPLIES, Trait.REDUCES, Trait.SHAPES_KERNEL}
    linear = ("operands_and_init_values*",)
    code = 12
    verify = staticmethod(need_reducer_types)

    def shape(self, i: Instruction, *operands: Shape) -> Shape:
        arrays = need_reduction(i, operands, attr(i, "to_apply"))
        window = need_window(i, arrays[0].rank)
        dims = [w.output_size(n) for w, n in zip(window, arrays[0].dims, strict=True)]
        return reduced_shape(arrays, dims, attr(i, "to_apply"))

    def evaluate(self, ev: Evaluation, i: Instruction, *operands: np.ndarray) -> object:
        arrays, inits = reduction_inputs(i, operands)
        types = tuple(o.shape.element_type for o in i.operands[len(arrays) :])
        results = combine.reduce_window(combine.Combiner(ev, i.to_apply, types), arrays, inits, i.window)
        return results if i.shape.is_tuple else results[0]


@op("select-and-scatter")
class SelectAndScatter(Op):
    """Each window of the operand selects one element; the window's source value is scattered to its place.

    Shape: the operand's.
    """

    operands = ("operand", "source", "init_value")
    attributes = {
        "window": Attr(AttrKind.WINDOW, ()),
        "select": Attr(AttrKind.COMPUTATION, required=True),
        "scatter": Attr(AttrKind.COMPUTATION, required=True),
    }
    traits = {Trait.APPLIES}
    code = 30

    def shape(self, i: Instruction, x: Shape, source: Shape, init: Shape) -> Shape:
        need_arrays(i, x, source, init)
        need_same_type(i, source, init)
        element, value = scalar(x.element_type), scalar(source.element_type)
        need_signature(i, "select", attr(i, "select"), (element, element), PRED_SCALAR)
        need_signature(i, "scatter", attr(i, "scatter"), (value, value), value)
        if init.rank:
            reject(i, "operand 2 must be a scalar", f"it is {init}")
        window = need_window(i, x.rank)
        for d, (w, n) in enumerate(zip(window, x.dims, strict=True)):
            if n and (n - 1) * w.base_dilation + 1 + w.pad_low + w.pad_high < 0:
                reject(i, f"the padding takes more from dimension {d} than it has", f"{w.pad_low}_{w.pad_high} of {n}")
        dims = tuple(w.output_size(n) for w, n in zip(window, x.dims, strict=True))
        if source.dims != dims:
            reject(i, f"the source must have one element a window, so dimensions {list(dims)}", f"it is {source}")
        return default(x)

    def evaluate(
        self, ev: Evaluation, i: Instruction, x: np.ndarray, source: np.ndarray, init: np.ndarray
    ) -> np.ndarray:
        base = np.full(x.size, init, source.dtype)
        if not x.size:  # every window lies in the padding
            return base.reshape(x.shape)
        place = _selected(ev, i, x, source.shape)
        found = place >= 0
        combiner = combine.Combiner(ev, i.scatter, (i.operand("source").shape.element_type,))
        (result,) = combine.scatter(combiner, (base,), place[found], (source[found],))
        return result.reshape(x.shape)


def _selected(ev: Evaluation, i: Instruction, x: np.ndarray, dims: tuple[int, ...]) -> np.ndarray:
    """The flat position in `x` each window selects; -1 when it lies in the padding altogether."""
    place = np.full(dims, -1)
    best = np.zeros(dims, x.dtype)
    flat = x.reshape(-1)
    for offset in np.ndindex(*(w.size for w in i.window)):
        at, inside = np.zeros(dims, np.int64), np.ones(dims, bool)
        for d, (w, k) in enumerate(zip(i.window, offset, strict=True)):
            line = np.arange(dims[d]) * w.stride + k * w.window_dilation - w.pad_low
            real = (line >= 0) & (line % w.base_dilation == 0) & (line // w.base_dilation < x.shape[d])
            shape = [-1 if n == d else 1 for n in range(len(dims))]
            inside &= real.reshape(shape)
            at = at * x.shape[d] + np.where(real, line // w.base_dilation, 0).reshape(shape)
        candidate = flat[at]
        stays = batched.apply(ev, i.select, best, candidate) & (place >= 0)
        taken = inside & ~stays
        best, place = np.where(taken, candidate, best), np.where(taken, at, place)
    return place
