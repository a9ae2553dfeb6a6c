"""Rules that carry sizes through each op, and the conditions on them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from heron.analysis.dynamic_sizes.infer import DynamicSizes, Sizes, rule
from heron.analysis.dynamic_sizes.size import Size
from heron.hlo.ir.instruction import Instruction


def array(sizes: Iterable[tuple[int, Size | None]]) -> Sizes:
    return {((), d): size for d, size in sizes if size is not None}


def results(i: Instruction, sizes: Sizes) -> Sizes:
    """The same sizes for each of several results."""
    parts = i.shape.tuple_shapes
    if parts is None:
        return sizes
    return {((n,), d): size for n, part in enumerate(parts) for (_, d), size in sizes.items() if d < part.rank}


def _marked(i: Instruction, d: int) -> bool:
    return bool(i.shape.dynamic and i.shape.dynamic[d])


# -- elements and places -----------------------------------------------------------------------------------------------
@rule("add", "map", "clamp", "select")
def _elementwise(f: DynamicSizes, i: Instruction) -> Sizes:
    """A static operand takes the size of those whose size is dynamic."""
    whole = [o for o in i.operands if o.shape.is_array and o.shape.rank == i.shape.rank]
    return array(enumerate(together(f, i, whole)))


@rule("all-reduce", "all-gather", "reduce-scatter", "all-to-all")
def _exchanged(f: DynamicSizes, i: Instruction) -> Sizes:
    """Each operand keeps its sizes but in the dimension along which devices exchange it."""
    along = None if i.opcode == "all-reduce" or not i.dimensions else i.dimensions[0]
    found: Sizes = {}
    for n, x in enumerate(i.operands):
        index = (n,) if i.shape.is_tuple else ()
        found.update({(index, d): size for (_, d), size in f.of(x).items() if d != along})
    return found


def together(f: DynamicSizes, i: Instruction, operands: Sequence[Instruction]) -> list[Size | None]:
    """The sizes of arrays that are gone through together."""
    what = "operands must have one size along dimension {}"
    rank = operands[0].shape.rank if operands else 0
    return [f.agreed(i, what.format(d), [(o, d) for o in operands], static_follows=True) for d in range(rank)]


@rule("tuple")
def _tuple(f: DynamicSizes, i: Instruction) -> Sizes:
    return {((n, *index), d): size for n, o in enumerate(i.operands) for (index, d), size in f.of(o).items()}


@rule("get-tuple-element")
def _element(f: DynamicSizes, i: Instruction) -> Sizes:
    return {(index[1:], d): s for (index, d), s in f.of(i.operands[0]).items() if index and index[0] == i.index}


@rule("copy", "add-dependency", "domain", "reverse")
def _same(f: DynamicSizes, i: Instruction) -> Sizes:
    return f.of(i.operands[0])


@rule("opt-barrier")
def _barrier(f: DynamicSizes, i: Instruction) -> Sizes:
    return f.of(i.operands[0]) if len(i.operands) == 1 else _tuple(f, i)


@rule("iota", "constant", "rng", "rng-bit-generator")
def _whole(f: DynamicSizes, i: Instruction) -> Sizes:
    """Nothing but the bound is known, so that is the size."""
    return {}


@rule("bitcast-convert")
def _bitcast_convert(f: DynamicSizes, i: Instruction) -> Sizes:
    (x,) = i.operands
    return array((d, f.size(x, d)) for d in range(min(i.shape.rank, x.shape.rank)))


# -- sizes themselves --------------------------------------------------------------------------------------------------
@rule("get-dimension-size")
def _size(f: DynamicSizes, i: Instruction) -> Sizes:
    return {}


@rule("set-dimension-size")
def _resized(f: DynamicSizes, i: Instruction) -> Sizes:
    x, size = i.operands
    (d,) = i.dimensions
    return {**f.of(x), **_set(f, i, {d: size})} if _marked(i, d) else _made_static(f, i, d, f.value(size))


def _made_static(f: DynamicSizes, i: Instruction, d: int, size: Size) -> Sizes:
    f.need_equal(i, f"dimension {d} must have the size the program states", size, f.number(i.shape.dims[d]))
    return {place: s for place, s in f.of(i.operands[0]).items() if place != ((), d)}


def _set(f: DynamicSizes, i: Instruction, given: dict[int, Instruction]) -> Sizes:
    """Sizes the program says, which must lie within the bounds."""
    found: Sizes = {}
    for d, x in given.items():
        size = found[(), d] = f.value(x)
        f.need_at_most(i, f"the size of dimension {d} cannot be negative", f.number(0), size)
        f.need_at_most(i, f"the size of dimension {d} must not exceed its bound", size, i.shape.dims[d])
        if size.number is None:
            f.algebra.narrow(size, 0, i.shape.dims[d])
    return found


@rule("dynamic-reshape")
def _dynamic_reshape(f: DynamicSizes, i: Instruction) -> Sizes:
    x, *given = i.operands
    sizes = _set(f, i, {d: n for d, n in enumerate(given) if _marked(i, d)})
    for d, n in enumerate(given):
        if not _marked(i, d):
            f.need_equal(
                i, f"dimension {d} must have the size the program states", f.value(n), f.number(i.shape.dims[d])
            )
    made = f.number(1)
    for d, n in enumerate(i.shape.dims):
        made = made * sizes.get(((), d), f.number(n))
    f.need_equal(i, "a reshape keeps the number of elements", _count(f, x, range(x.shape.rank)), made)
    return sizes


@rule("topk")
def _top_k(f: DynamicSizes, i: Instruction) -> Sizes:
    (x,) = i.operands
    last = x.shape.rank - 1
    if (n := f.size(x, last)) is not None:
        f.need_at_most(i, "more elements wanted than there are", f.number(i.shape.at((0,)).dims[last]), n)
    return results(i, array((d, f.size(x, d)) for d in range(last)))


@rule("custom-call")
def _custom_call(f: DynamicSizes, i: Instruction) -> Sizes:
    match i.custom_call_target:
        case "PadToStatic":
            return {}
        case "SliceToDynamic":
            return _set(f, i, {d: n for d, n in enumerate(i.operands[1:]) if _marked(i, d)})
        case "TopK":
            return _top_k(f, i)
    return f.unknown(i)


# -- movement ----------------------------------------------------------------------------------------------------------
@rule("broadcast")
def _broadcast(f: DynamicSizes, i: Instruction) -> Sizes:
    return array((d, f.size(i.operands[0], n)) for n, d in enumerate(i.dimensions or ()))


@rule("transpose")
def _transpose(f: DynamicSizes, i: Instruction) -> Sizes:
    return array((d, f.size(i.operands[0], n)) for d, n in enumerate(i.dimensions))


@rule("reshape", "bitcast")
def _reshape(f: DynamicSizes, i: Instruction) -> Sizes:
    """In each run of dimensions of equal products, one dynamic dimension of the result makes up for the size."""
    (x,) = i.operands
    sizes: dict[int, Size | None] = {}
    for source, result in runs(x.shape.dims, i.shape.dims):
        dynamic = [d for d in source if f.size(x, d) is not None]
        unknown = [d for d in result if _marked(i, d)]
        if not dynamic:
            continue
        count = _count(f, x, source)
        if len(unknown) != 1:
            sizes.update({d: f.algebra.of(i, ((), d)) for d in unknown})
            if not unknown:
                stated = f.number(prod(i.shape.dims[d] for d in result))
                f.need_equal(i, "a reshape keeps the number of elements", count, stated)
            continue
        others = prod(i.shape.dims[d] for d in result if d != unknown[0])
        size = sizes[unknown[0]] = count // max(others, 1)
        f.need_equal(i, "a reshape keeps the number of elements", count, size * others)
    return array(sizes.items())


def _count(f: DynamicSizes, x: Instruction, dims: Iterable[int]) -> Size:
    count = f.number(1)
    for d in dims:
        count = count * f.whole(x, d)
    return count


def runs(a: Sequence[int], b: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Dimensions of two shapes of as many elements, matched in the shortest runs of equal products."""
    if not prod(a):
        return [(list(range(len(a))), list(range(len(b))))]
    found: list[tuple[list[int], list[int]]] = []
    n = m = 0
    while n < len(a) or m < len(b):
        first, second = n, m
        n, m = min(n + 1, len(a)), min(m + 1, len(b))
        while prod(a[first:n]) != prod(b[second:m]):
            if prod(a[first:n]) < prod(b[second:m]):
                n += 1
            else:
                m += 1
        found.append((list(range(first, n)), list(range(second, m))))
    return found


@rule("concatenate")
def _concatenate(f: DynamicSizes, i: Instruction) -> Sizes:
    (along,) = i.dimensions
    found: dict[int, Size | None] = {}
    for d in range(i.shape.rank):
        if d != along:
            what = f"operands must have one size along dimension {d}"
            found[d] = f.agreed(i, what, [(o, d) for o in i.operands])
        elif any(f.size(o, d) is not None for o in i.operands):
            total = f.number(0)
            for o in i.operands:
                total = total + f.whole(o, d)
            found[d] = total
    return array(found.items())


@rule("pad")
def _pad(f: DynamicSizes, i: Instruction) -> Sizes:
    sizes: dict[int, Size | None] = {}
    for d, (low, high, interior) in enumerate(i.padding):
        n = f.size(i.operands[0], d)
        if n is not None:
            inner = (n + (n - 1) * interior).at_least(0) + (low + high)
            f.need_at_most(i, f"the padding takes more from dimension {d} than it has", f.number(0), inner)
            sizes[d] = inner.at_least(0)
    return array(sizes.items())


@rule("slice")
def _slice(f: DynamicSizes, i: Instruction) -> Sizes:
    """A dimension that stays dynamic ends where the operand does."""
    sizes: dict[int, Size | None] = {}
    for d, (start, limit, stride) in enumerate(i.slice):
        n = f.size(i.operands[0], d)
        if n is None:
            continue
        if _marked(i, d):
            sizes[d] = (n.at_most(limit) - n.at_most(start) + (stride - 1)) // stride
        elif start < limit:
            f.need_at_most(i, f"the slice ends beyond dimension {d}", f.number(limit), n)
    return array(sizes.items())


@rule("dynamic-slice")
def _dynamic_slice(f: DynamicSizes, i: Instruction) -> Sizes:
    """A window over a whole dynamic dimension is as large as it is; over a part, it moves in the whole bound."""
    x = i.operands[0]
    return array((d, f.size(x, d) if n == x.shape.dims[d] else None) for d, n in enumerate(i.dynamic_slice_sizes))


@rule("dynamic-update-slice")
def _dynamic_update_slice(f: DynamicSizes, i: Instruction) -> Sizes:
    return f.of(i.operands[0])


@rule("gather")
def _gather(f: DynamicSizes, i: Instruction) -> Sizes:
    x, indices = i.operands
    _batches_agree(f, i, i.operand_batching_dims, i.start_indices_batching_dims)
    gone = {*i.collapsed_slice_dims, *i.operand_batching_dims}
    windows = [d for d in range(x.shape.rank) if d not in gone]
    sizes: dict[int, Size | None] = {}
    for d, at in zip(windows, i.offset_dims, strict=True):
        sizes[at] = f.size(x, d) if i.slice_sizes[d] == x.shape.dims[d] else None
    batch = [d for d in range(indices.shape.rank) if d != i.index_vector_dim]
    places = [d for d in range(i.shape.rank) if d not in i.offset_dims]
    return array([*sizes.items(), *((at, f.size(indices, d)) for d, at in zip(batch, places, strict=True))])


def _batches_agree(f: DynamicSizes, i: Instruction, dims: Sequence[int], index_dims: Sequence[int]) -> None:
    x, indices = i.operands[0], i.operands[len(i.operands) // 2]
    for d, e in zip(dims, index_dims, strict=True):
        f.agreed(i, f"the batches, dimension {d} of the array and {e} of the indices, are one", [(x, d), (indices, e)])


@rule("scatter")
def _scatter(f: DynamicSizes, i: Instruction) -> Sizes:
    count = len(i.operands) // 2
    arrays, indices, updates = i.operands[:count], i.operands[count], i.operands[count + 1 :]
    batch = [d for d in range(indices.shape.rank) if d != i.index_vector_dim]
    places = [d for d in range(updates[0].shape.rank) if d not in i.update_window_dims]
    for d, at in zip(batch, places, strict=True):
        f.agreed(
            i, f"there must be as many updates as indices, dimension {at}", [(indices, d), *((u, at) for u in updates)]
        )
    _batches_agree(f, i, i.input_batching_dims, i.scatter_indices_batching_dims)
    gone = {*i.inserted_window_dims, *i.input_batching_dims}
    for d, w in zip((d for d in range(arrays[0].shape.rank) if d not in gone), i.update_window_dims, strict=True):
        if any(s.dynamic for s in (arrays[0].shape, updates[0].shape)):
            what = f"an update must not be larger than the array, dimension {d}"
            f.need_at_most(i, what, f.whole(updates[0], w), f.whole(arrays[0], d))
    if count == 1:
        return f.of(arrays[0])
    return {((n,), d): size for n, x in enumerate(arrays) for (_, d), size in f.of(x).items()}
