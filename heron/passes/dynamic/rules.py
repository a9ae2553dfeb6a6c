"""How each op works on padded arrays: what must be masked or moved, and the sizes of its result."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from heron.hlo.computation import Computation
from heron.hlo.instruction import Instruction
from heron.hlo.shape import PRED_SCALAR, scalar, tuple_
from heron.hlo.types import PRED, S32
from heron.hlo.window import WindowDim
from heron.passes.building import combiner, convert, identity_of
from heron.passes.building import scalar as constant_scalar
from heron.passes.dynamic.padded import (
    Padded,
    chosen,
    dynamic_places,
    greatest,
    least,
    number,
    of_array,
    refused,
    spread,
    static,
)
from heron.passes.dynamic.reshapes import dynamic_reshape, reshaped
from heron.passes.expand.expander import home

Rule = Callable[[Instruction, list[Padded]], Padded]
RULES: dict[str, Rule] = {}


def rule(*opcodes: str) -> Callable[[Rule], Rule]:
    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(opcodes, function))
        return function

    return register


def padded_form(i: Instruction, operands: list[Padded]) -> Padded:
    """The instruction on padded operands. Raises PASS020 where no rule tells how."""
    found = RULES.get(i.opcode)
    if found is not None:
        return found(i, operands)
    if i.op.is_elementwise and i.shape.rank == i.operands[0].shape.rank:
        return _elementwise(i, operands)
    raise refused(i, "there is no rule for it")


def remade(i: Instruction, operands: Sequence[Instruction], **attrs: object) -> Instruction:
    """The same op on other operands, with static sizes."""
    return home(i).attach(i.clone(operands, static(i.shape), **attrs))


# -- elements and places -----------------------------------------------------------------------------------------------
@rule("map", "all-reduce", "clamp", "select")
def _elementwise(i: Instruction, operands: list[Padded]) -> Padded:
    """A static operand takes the size of those whose size is dynamic."""
    sizes: dict[int, Instruction | None] = {}
    for d in range(i.shape.rank):
        sizes[d] = next((o.size(d) for o in operands if o.x.shape.rank == i.shape.rank and o.size(d) is not None), None)
    if not i.shape.is_array and dynamic_places(i.shape):
        raise refused(i, "it has several results")
    return of_array(remade(i, [o.x for o in operands]), sizes)


@rule("bitcast-convert")
def _bitcast_convert(i: Instruction, operands: list[Padded]) -> Padded:
    (x,) = operands
    kept = min(i.shape.rank, x.x.shape.rank)
    if x.size(kept) is not None:
        raise refused(i, "the dimension that makes one element is dynamic")
    return of_array(remade(i, [x.x]), {d: x.size(d) for d in range(kept)})


@rule("tuple")
def _tuple(i: Instruction, operands: list[Padded]) -> Padded:
    sizes = {((n, *index), d): size for n, o in enumerate(operands) for (index, d), size in o.sizes.items()}
    return Padded(remade(i, [o.x for o in operands]), sizes)


@rule("get-tuple-element")
def _element(i: Instruction, operands: list[Padded]) -> Padded:
    (x,) = operands
    sizes = {(index[1:], d): size for (index, d), size in x.sizes.items() if index[0] == i.index}
    return Padded(remade(i, [x.x]), sizes)


@rule("copy", "opt-barrier", "add-dependency", "domain")
def _same(i: Instruction, operands: list[Padded]) -> Padded:
    return Padded(remade(i, [o.x for o in operands]), operands[0].sizes)


@rule("iota", "constant", "rng", "rng-bit-generator")
def _whole(i: Instruction, operands: list[Padded]) -> Padded:
    """Nothing but the bound is known, so that is the size."""
    return Padded(remade(i, [o.x for o in operands]))


@rule("get-dimension-size")
def _size(i: Instruction, operands: list[Padded]) -> Padded:
    return Padded(operands[0].size_or_bound(i.dimensions[0]))


@rule("set-dimension-size")
def _resized(i: Instruction, operands: list[Padded]) -> Padded:
    x, size = operands
    (d,) = i.dimensions
    kept = x.masked([d], 0)  # what a larger size brings in
    sizes = {n: x.size(n) for n in range(i.shape.rank)}
    sizes[d] = size.x if i.shape.dynamic and i.shape.dynamic[d] else None
    return of_array(kept, sizes)


@rule("custom-call")
def _custom_call(i: Instruction, operands: list[Padded]) -> Padded:
    x = operands[0]
    if i.custom_call_target == "PadToStatic":
        whole = x.masked(range(x.x.shape.rank), 0)
        return Padded(home(i).add("tuple", [whole, *(x.size_or_bound(d) for d in range(whole.shape.rank))], like=i))
    if i.custom_call_target == "SliceToDynamic":
        kept = x.masked(range(x.x.shape.rank), 0)
        return of_array(kept, {d: operands[d + 1].x for d, marked in enumerate(i.shape.dynamic) if marked})
    raise refused(i, f"what '{i.custom_call_target}' does with padding is not known")


# -- movement ----------------------------------------------------------------------------------------------------------
@rule("broadcast")
def _broadcast(i: Instruction, operands: list[Padded]) -> Padded:
    (x,) = operands
    return of_array(remade(i, [x.x]), {d: x.size(n) for n, d in enumerate(i.dimensions or ())})


@rule("transpose")
def _transpose(i: Instruction, operands: list[Padded]) -> Padded:
    (x,) = operands
    return of_array(remade(i, [x.x]), {d: x.size(n) for d, n in enumerate(i.dimensions)})


@rule("reshape")
def _reshape(i: Instruction, operands: list[Padded]) -> Padded:
    return reshaped(i, operands[0])


@rule("dynamic-reshape")
def _dynamic_reshape(i: Instruction, operands: list[Padded]) -> Padded:
    return dynamic_reshape(i, operands[0], [o.x for o in operands[1:]])


@rule("reverse")
def _reverse(i: Instruction, operands: list[Padded]) -> Padded:
    """The reversed array has its padding in front: it is moved down by as much."""
    (x,) = operands
    turned = remade(i, [x.x])
    dynamic = x.dynamic_of(i.dimensions)
    if dynamic:
        c, dims = home(i), turned.shape.dims
        zero = constant_scalar(c, turned.shape.element_type, 0)
        padding = tuple((0, n if d in dynamic else 0, 0) for d, n in enumerate(dims))
        wide = c.add("pad", [turned, zero], padding=padding)
        starts = [number(c, n) - x.size_or_bound(d) if d in dynamic else number(c, 0) for d, n in enumerate(dims)]
        turned = c.add("dynamic-slice", [wide, *starts], dynamic_slice_sizes=dims)
    return Padded(turned, x.sizes)


@rule("concatenate")
def _concatenate(i: Instruction, operands: list[Padded]) -> Padded:
    """Each array is written where those before it end; the next one overwrites its padding."""
    (d,) = i.dimensions
    sizes: dict[int, Instruction | None] = {}
    for n in range(i.shape.rank):
        sizes[n] = next((o.size(n) for o in operands if o.size(n) is not None), None)
    if sizes[d] is None:
        return of_array(remade(i, [o.x for o in operands]), sizes)
    c = home(i)
    result = spread(constant_scalar(c, i.shape.element_type, 0), static(i.shape))
    at = zero = number(c, 0)
    for o in operands:
        starts = [at if n == d else zero for n in range(i.shape.rank)]
        result = c.add("dynamic-update-slice", [result, o.x, *starts], like=i)
        at = at + o.size_or_bound(d)
    return of_array(result, {**sizes, d: at})


@rule("pad")
def _pad(i: Instruction, operands: list[Padded]) -> Padded:
    x, fill = operands
    made = remade(i, [x.masked(range(i.shape.rank), fill.x), fill.x])
    sizes: dict[int, Instruction | None] = {}
    for d in x.dynamic_of(range(i.shape.rank)):
        low, high, interior = i.padding[d]
        n = x.size_or_bound(d)
        inner = greatest(n + (n - 1) * interior, number(home(i), 0)) if interior else n
        sizes[d] = greatest(inner + (low + high), number(home(i), 0))
    return of_array(made, sizes)


@rule("slice")
def _slice(i: Instruction, operands: list[Padded]) -> Padded:
    (x,) = operands
    sizes: dict[int, Instruction | None] = {}
    for d in x.dynamic_of(range(i.shape.rank)):
        if i.shape.dynamic and i.shape.dynamic[d]:
            start, limit, stride = i.slice[d]
            n, c = x.size_or_bound(d), home(i)
            sizes[d] = (least(n, number(c, limit)) - least(n, number(c, start)) + (stride - 1)) / stride
    return of_array(remade(i, [x.x]), sizes)


@rule("dynamic-slice")
def _dynamic_slice(i: Instruction, operands: list[Padded]) -> Padded:
    """A window over a whole dynamic dimension is as large as it is; over a part, it moves in the whole bound."""
    x, *starts = operands
    return _windows(i, x, starts, i.dynamic_slice_sizes, range(i.shape.rank))


def _windows(
    i: Instruction, x: Padded, starts: list[Padded], sizes: Sequence[int], placed: Sequence[int | None]
) -> Padded:
    parts = [d for d in x.dynamic_of(range(len(sizes))) if sizes[d] != x.x.shape.dims[d]]
    made = remade(i, [x.masked(parts, 0), *(s.x for s in starts)])
    found: dict[int, Instruction | None] = {}
    for d, at in enumerate(placed):
        if at is not None and d not in parts:
            found[at] = x.size(d)
    return of_array(made, found)


@rule("dynamic-update-slice")
def _dynamic_update_slice(i: Instruction, operands: list[Padded]) -> Padded:
    """Of the update only what counts is written: the rest is what is there already."""
    x, update, *starts = operands
    c, dims = home(i), update.x.shape.dims
    written = update.x
    dynamic = update.dynamic_of(range(len(dims)))
    whole = Padded(x.masked(range(len(dims)), 0), {})
    if dynamic:
        there = c.add("dynamic-slice", [whole.x, *(s.x for s in starts)], dynamic_slice_sizes=dims)
        written = c.add("select", [update.inside(dynamic), update.x, there])
    return Padded(remade(i, [whole.x, written, *(s.x for s in starts)]), x.sizes)


@rule("gather")
def _gather(i: Instruction, operands: list[Padded]) -> Padded:
    x, indices = operands
    gone = {*i.collapsed_slice_dims, *i.operand_batching_dims}
    inside = iter(i.offset_dims)
    placed = [None if d in gone else next(inside) for d in range(x.x.shape.rank)]
    found = _windows(i, x, [indices], i.slice_sizes, placed)
    batch = [d for d in range(indices.x.shape.rank) if d != i.index_vector_dim]
    places = [d for d in range(i.shape.rank) if d not in i.offset_dims]
    for d, at in zip(batch, places, strict=True):
        if (size := indices.size(d)) is not None:
            found.sizes[(), at] = size
    if indices.size(i.index_vector_dim) is not None:
        raise refused(i, "the length of an index is dynamic")
    return found


@rule("scatter")
def _scatter(i: Instruction, operands: list[Padded]) -> Padded:
    """Indices beyond their size point outside, where nothing is written."""
    count = len(operands) // 2
    arrays, indices, updates = operands[:count], operands[count], operands[count + 1 :]
    window = list(i.update_window_dims)
    gone = {*i.inserted_window_dims, *i.input_batching_dims}
    covered = [d for d in range(arrays[0].x.shape.rank) if d not in gone]
    if any(u.dynamic_of(window) for u in updates) or any(a.dynamic_of(covered) for a in arrays):
        raise refused(i, "its windows are dynamic")
    batch = [d for d in range(indices.x.shape.rank) if d != i.index_vector_dim]
    places = [d for d in range(updates[0].x.shape.rank) if d not in window]
    sizes = {at: u.size(at) for u in updates for at in u.dynamic_of(places)}
    sizes = {d: indices.size(d) or sizes.get(at) for d, at in zip(batch, places, strict=True)}
    if not i.scatter_dims_to_operand_dims and any(size is not None for size in sizes.values()):
        raise refused(i, "there is no index to point outside")
    t = indices.x.shape.element_type
    outside = (1 << t.bits - t.is_signed) - 1
    starts = of_array(indices.x, sizes)
    narrow = t.bits - t.is_signed < 31
    if narrow and starts.sizes:
        starts = of_array(convert(starts.x, S32), sizes)
        outside = (1 << 31) - 1
    made = remade(i, [*(a.x for a in arrays), starts.masked(batch, outside), *(u.x for u in updates)])
    parts = [((n,) if count > 1 else (), d, a.size(d)) for n, a in enumerate(arrays) for d in range(a.x.shape.rank)]
    return Padded(made, {(index, d): size for index, d, size in parts if size is not None})


# -- sums --------------------------------------------------------------------------------------------------------------
@rule("reduce")
def _reduce(i: Instruction, operands: list[Padded]) -> Padded:
    """What does not count is what changes nothing: the combiner's identity, else the initial value."""
    count = len(operands) // 2
    arrays, inits = operands[:count], [o.x for o in operands[count:]]
    opcode = combiner(i.to_apply)
    filled: list[Instruction] = []
    for a, init in zip(arrays, inits, strict=True):
        identity = None if opcode is None else identity_of(opcode, a.x.shape.element_type)
        filled.append(a.masked(i.dimensions, init if identity is None else identity))
    made = remade(i, [*filled, *inits])
    kept = [d for d in range(arrays[0].x.shape.rank) if d not in i.dimensions]
    sizes = {at: next((a.size(d) for a in arrays if a.size(d) is not None), None) for at, d in enumerate(kept)}
    return _of_results(i, made, sizes)


def _of_results(i: Instruction, made: Instruction, sizes: dict[int, Instruction | None]) -> Padded:
    """One array or a tuple of arrays of the same sizes."""
    indices = [(n,) for n in range(len(i.shape.tuple_shapes))] if i.shape.tuple_shapes is not None else [()]
    return Padded(made, {(index, d): size for index in indices for d, size in sizes.items() if size is not None})


@rule("reduce-window")
def _reduce_window(i: Instruction, operands: list[Padded]) -> Padded:
    """Windows see the initial value beyond the size, as they do beyond the edge."""
    count = len(operands) // 2
    arrays, inits = operands[:count], [o.x for o in operands[count:]]
    sliding = [d for d, w in enumerate(i.window) if w != WindowDim(1)]
    made = remade(i, [*(a.masked(sliding, init) for a, init in zip(arrays, inits, strict=True)), *inits])
    sizes = {
        d: _window_count(arrays[0].size_or_bound(d), i.window[d]) for d in arrays[0].dynamic_of(range(len(i.window)))
    }
    return _of_results(i, made, dict(sizes))


def _window_count(n: Instruction, w: WindowDim) -> Instruction:
    """How many positions a window has over `n` elements."""
    c = home(n)
    if w == WindowDim(1):
        return n
    zero = number(c, 0)
    dilated = greatest((n - 1) * w.base_dilation + 1, zero) if w.base_dilation > 1 else n
    room = dilated + (w.pad_low + w.pad_high - (w.size - 1) * w.window_dilation - 1)
    if w.size == 0:
        return zero
    return chosen(room.lt(zero), zero, room / w.stride + 1)


@rule("dot")
def _dot(i: Instruction, operands: list[Padded]) -> Padded:
    x, y = operands
    # zeros on both sides: a zero times what stands in the padding may be NaN
    left = _zeroed(x, y, i.lhs_contracting_dims, i.rhs_contracting_dims)
    right = _zeroed(y, x, i.rhs_contracting_dims, i.lhs_contracting_dims)
    sizes: list[Instruction | None] = []
    for p, q in zip(i.lhs_batch_dims, i.rhs_batch_dims, strict=True):
        sizes.append(x.size(p) if x.size(p) is not None else y.size(q))
    sizes += [x.size(d) for d in _rest(x, i.lhs_batch_dims, i.lhs_contracting_dims)]
    sizes += [y.size(d) for d in _rest(y, i.rhs_batch_dims, i.rhs_contracting_dims)]
    return of_array(remade(i, [left, right]), dict(enumerate(sizes)))


def _rest(x: Padded, *gone: Sequence[int]) -> list[int]:
    return [d for d in range(x.x.shape.rank) if not any(d in dims for dims in gone)]


def _zeroed(x: Padded, other: Padded, dims: Sequence[int], others: Sequence[int]) -> Instruction:
    """`x` with zeros where it or the other operand ends."""
    sizes = {d: x.size(d) if x.size(d) is not None else other.size(o) for d, o in zip(dims, others, strict=True)}
    return of_array(x.x, sizes).masked(dims, 0)


@rule("convolution")
def _convolution(i: Instruction, operands: list[Padded]) -> Padded:
    x, k = operands
    dims = i.dim_labels
    grouped = i.feature_group_count > 1 and x.size(dims.input_feature) is not None
    if (
        k.dynamic_of(dims.kernel_spatial)
        or grouped
        or (i.batch_group_count > 1 and x.size(dims.input_batch) is not None)
    ):
        raise refused(i, "groups or the window are dynamic")
    feature, kernel = (dims.input_feature,), (dims.kernel_input,)
    left = Padded(_zeroed(x, k, feature, kernel), x.sizes).masked(dims.input_spatial, 0)
    made = remade(i, [left, _zeroed(k, x, kernel, feature)])
    sizes = {dims.output_batch: x.size(dims.input_batch), dims.output_feature: k.size(dims.kernel_output)}
    for w, d, at in zip(i.window, dims.input_spatial, dims.output_spatial, strict=True):
        size = x.size(d)
        sizes[at] = None if size is None else _window_count(size, w)
    return of_array(made, sizes)


# -- order -------------------------------------------------------------------------------------------------------------
@rule("sort")
def _sort(i: Instruction, operands: list[Padded]) -> Padded:
    """What does not count is sorted behind all that does."""
    (d,) = i.dimensions
    sizes: dict[int, Instruction | None] = {}
    for n in range(operands[0].x.shape.rank):
        sizes[n] = next((o.size(n) for o in operands if o.size(n) is not None), None)
    arrays = [o.x for o in operands]
    if sizes[d] is None:
        return _of_results(i, remade(i, arrays), sizes)
    c = home(i)
    assert c.module is not None
    inside = of_array(arrays[0], sizes).inside([d])
    line = [*arrays, inside]
    shape = tuple_([x.shape.with_default_layout() for x in line])
    comparator = c.module.add_computation(_outside_last(i.to_apply, len(arrays)))
    made = c.attach(i.clone(line, shape, to_apply=comparator))
    parts = [c.add("get-tuple-element", [made], x.shape, index=n) for n, x in enumerate(arrays)]
    return _of_results(i, c.add("tuple", parts, like=i) if i.shape.is_tuple else parts[0], sizes)


def _outside_last(old: Computation, count: int) -> Computation:
    """`old(a, b)` where both count; else whether a alone does."""
    new = old.clone()
    order = new.root
    a, b = (new.add("parameter", (), scalar(PRED), number=2 * count + n) for n in range(2))
    new.root = new.add("select", [a & b, order, a & ~b], PRED_SCALAR)
    return new


@rule("cholesky", "triangular-solve", "fft")
def _matrices(i: Instruction, operands: list[Padded]) -> Padded:
    """Only whole matrices may be dynamic in number."""
    inner = len(i.fft_length) if i.opcode == "fft" else 2
    batch = range(i.shape.rank - inner)
    for o in operands:
        if len(o.dynamic_of(batch)) < len(o.sizes):
            raise refused(i, "the size of what it transforms is dynamic")
    sizes = {d: next((o.size(d) for o in operands if o.size(d) is not None), None) for d in batch}
    return of_array(remade(i, [o.x for o in operands]), sizes)
