"""Windows that hold one element, everything, or padding that could be theirs."""

from __future__ import annotations

from dataclasses import replace

from heron.analysis.values.splat import is_splat, splat_value
from heron.hlo.facts import combiner
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.window import WindowDim
from heron.passes.rewriting.rules import Builder, rule
from heron.passes.simplify.algebraic.reduce_functions import is_neutral


def _is_plain(w: WindowDim) -> bool:
    """Whether a window moves by one over elements as they are, padding aside."""
    return w.stride == 1 and w.base_dilation == 1 and w.window_dilation == 1


@rule("reduce-window")
def windows_of_nothing(i: Instruction, b: Builder) -> Instruction | None:
    """reduce-window(x) of no elements == broadcast(init)

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    ROOT r = f32[2] reduce-window(f32[0] x, f32[] init), window={size=2 pad=2_1}, to_apply=sum
    ->
    ROOT r = f32[2] broadcast(init), dimensions={}
    """
    if len(i.operands) != 2 or (i.operands[0].shape.num_elements and i.shape.num_elements):
        return None
    return b.broadcast(i.operands[1], i.shape.dims, ())


@rule("reduce-window")
def windows_of_one_element(i: Instruction, b: Builder) -> Instruction | None:
    """reduce-window(x) with windows of size 1 == pad(op(init, x), init)

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    ROOT r = f32[6] reduce-window(f32[4] x, f32[] init), window={size=1 pad=1_1}, to_apply=sum
    ->
    inits = f32[4] broadcast(init), dimensions={}
    y = f32[4] add(inits, x)
    ROOT r = f32[6] pad(y, init), padding=1_1
    """
    if len(i.operands) != 2 or any(w.size != 1 or not _is_plain(w) for w in i.window):
        return None
    x, init = i.operands
    op = combiner(i.to_apply)
    if op is None or x.shape.element_type is not i.shape.element_type:
        return None
    y = x if is_neutral(op, init) else b.add(op, [b.broadcast(init, x.shape.dims, ()), x], x.shape)
    if all(w.pad_low == w.pad_high == 0 for w in i.window):
        return y
    return b.add("pad", [y, init], i.shape, padding=tuple([(w.pad_low, w.pad_high, 0) for w in i.window]))


@rule("reduce-window")
def window_of_everything(i: Instruction, b: Builder) -> Instruction | None:
    """reduce-window(x) with one window along a dimension == reshape(reduce(x)), where other windows have size 1

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    ROOT r = f32[2,1] reduce-window(f32[2,8] x, f32[] init), window={size=1x8}, to_apply=sum
    ->
    s = f32[2] reduce(x, init), dimensions={1}, to_apply=sum
    ROOT r = f32[2,1] reshape(s)
    """
    if len(i.operands) != 2 or any(not _is_plain(w) or w.pad_low or w.pad_high for w in i.window):
        return None
    x, init = i.operands
    gone = [d for d, w in enumerate(i.window) if w.size > 1]
    if not gone or any(i.window[d].size != x.shape.dims[d] for d in gone):
        return None
    dims = tuple([size for d, size in enumerate(x.shape.dims) if d not in gone])
    s = b.add("reduce", [x, init], i.shape.with_dims(dims), dimensions=tuple(gone), to_apply=i.to_apply)
    return b.reshape(s, i.shape.dims)


def _with_padding(
    i: Instruction, x: Instruction, padding: tuple[tuple[int, int, int], ...], b: Builder
) -> Instruction | None:
    """The reduction `i` of `x` instead of `x` padded with the initial value; None when windows cannot say it."""
    window = []
    for w, (low, high, within) in zip(i.window, padding, strict=True):
        if low < 0 or high < 0 or (within and w.base_dilation != 1):
            return None
        step = w.base_dilation
        moved = replace(w, pad_low=w.pad_low + step * low, pad_high=w.pad_high + step * high)
        window.append(replace(moved, base_dilation=within + 1) if within else moved)
    return b.add("reduce-window", [x, i.operands[1]], i.shape, window=tuple(window), to_apply=i.to_apply)


@rule("reduce-window", operand="pad")
def padding_into_window(i: Instruction, b: Builder) -> Instruction | None:
    """reduce-window(pad(x, init)) == reduce-window(x) with padded windows

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    zero = f32[] constant(0)
    p = f32[6] pad(f32[4] x, zero), padding=1_1
    ROOT r = f32[5] reduce-window(p, zero), window={size=2}, to_apply=sum
    ->
    ROOT r = f32[5] reduce-window(x, zero), window={size=2 pad=1_1}, to_apply=sum
    """
    match i.operands:
        case [Instruction(opcode="pad", operands=[x, value], attrs={"padding": padding}), init]:
            op = combiner(i.to_apply)
            if op is None or not (is_neutral(op, init) and is_neutral(op, value)):
                return None
            return _with_padding(i, x, padding, b)
    return None


@rule("reduce-window", operand="broadcast", floats="reassociating")
def running_sum_of_same(i: Instruction, b: Builder) -> Instruction | None:
    """running sum of broadcast(v) == v * (iota() + 1), for floats up to rounding; XLA does it by default

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    zero = f32[] constant(0)
    x = f32[8] broadcast(f32[] v), dimensions={}
    ROOT r = f32[8] reduce-window(x, zero), window={size=8 pad=7_0}, to_apply=sum
    ->
    it = f32[8] iota(), iota_dimension=0
    one = f32[] constant(1)
    ones = f32[8] broadcast(one), dimensions={}
    count = f32[8] add(it, ones)
    ROOT r = f32[8] multiply(x, count)
    """
    if len(i.operands) != 2 or combiner(i.to_apply) != "add" or not is_splat(i.operands[1], 0):
        return None
    x = i.operands[0]
    if (
        i.shape.element_type.kind == "pred"
        or x.opcode != "broadcast"
        or x.operands[0].shape.rank
        or x.shape.dims != i.shape.dims
    ):
        return None
    along = [d for d, w in enumerate(i.window) if w.size > 1]
    if len(along) != 1 or any(not _is_plain(w) or w.pad_high for w in i.window):
        return None
    d = along[0]
    if i.window[d].size != x.shape.dims[d] or i.window[d].pad_low != x.shape.dims[d] - 1:
        return None
    it = b.add("iota", [], i.shape.with_default_layout(), iota_dimension=d)
    return b.add("multiply", [x, b.add("add", [it, b.splat(i.shape, 1)], i.shape)], i.shape)


@rule("reduce-window", operand="convert")
def converted_padding_into_window(i: Instruction, b: Builder) -> Instruction | None:
    """reduce-window(convert(pad(x, init))) == reduce-window(convert(x)) with padded windows

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    none = bf16[] constant(0)
    p = bf16[6] pad(bf16[4] x, none), padding=1_1
    q = f32[6] convert(p)
    zero = f32[] constant(0)
    ROOT r = f32[5] reduce-window(q, zero), window={size=2}, to_apply=sum
    ->
    y = f32[4] convert(x)
    ROOT r = f32[5] reduce-window(y, zero), window={size=2 pad=1_1}, to_apply=sum
    """
    match i.operands:
        case [
            Instruction(opcode="convert", operands=[Instruction(opcode="pad", operands=[x, v], attrs={"padding": p})]),
            init,
        ]:
            value, start = splat_value(v), splat_value(init)
            if value is None or start is None or value != start or i.operands[0].shape.element_type.bits < 8:
                return None
            return _with_padding(i, b.convert(x, i.operands[0].shape.element_type), p, b)
    return None


@rule("reduce-window")
def windows_around_one(i: Instruction, b: Builder) -> Instruction | None:
    """reduce-window(x) whose windows each hold the one element of a dimension == broadcast(x), for a neutral init

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    zero = f32[] constant(0)
    ROOT r = f32[4,3] reduce-window(f32[4,1] x, zero), window={size=1x3 pad=0_0x2_2}, to_apply=sum
    ->
    y = f32[4] reshape(x)
    ROOT r = f32[4,3] broadcast(y), dimensions={0}
    """
    if len(i.operands) != 2 or not i.shape.num_elements:
        return None
    x, init = i.operands
    op = combiner(i.to_apply)
    if op is None or not is_neutral(op, init) or x.shape.element_type is not i.shape.element_type:
        return None
    kept = []
    for d, (w, size, count) in enumerate(zip(i.window, x.shape.dims, i.shape.dims, strict=True)):
        if w.stride != 1 or w.window_dilation != 1:
            return None
        if w.size == 1 and w.base_dilation == 1 and not w.pad_low and not w.pad_high:
            kept.append(d)
        elif size != 1 or not count - 1 <= w.pad_low <= w.size - 1:
            return None
    if len(kept) == i.shape.rank:
        return None
    return b.broadcast(b.reshape(x, [x.shape.dims[d] for d in kept]), i.shape.dims, kept)
