"""Rules of sizes for ops that combine elements, library routines, and calls."""

from __future__ import annotations

from heron.analysis.dynamic_sizes.infer import DynamicSizes, Sizes, rule
from heron.analysis.dynamic_sizes.rules import array, results, together
from heron.analysis.dynamic_sizes.size import Size, dynamic_places
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.window import WindowDim


# -- sums --------------------------------------------------------------------------------------------------------------
@rule("reduce")
def _reduce(f: DynamicSizes, i: Instruction) -> Sizes:
    arrays = i.operands[: len(i.operands) // 2]
    kept = [size for d, size in enumerate(together(f, i, arrays)) if d not in i.dimensions]
    return results(i, array(enumerate(kept)))


@rule("reduce-window")
def _reduce_window(f: DynamicSizes, i: Instruction) -> Sizes:
    arrays = i.operands[: len(i.operands) // 2]
    sizes = zip(together(f, i, arrays), i.window, strict=True)
    return results(i, array((d, n and window_count(n, w)) for d, (n, w) in enumerate(sizes)))


def window_count(n: Size, w: WindowDim) -> Size:
    """The number of positions of a window over `n` elements."""
    dilated = ((n - 1) * w.base_dilation + 1).at_least(0) if w.base_dilation > 1 else n
    room = dilated + (w.pad_low + w.pad_high - (w.size - 1) * w.window_dilation - 1 + w.stride)
    return room.at_least(0) // w.stride


@rule("select-and-scatter")
def _select_and_scatter(f: DynamicSizes, i: Instruction) -> Sizes:
    x, source, _ = i.operands
    for d, w in enumerate(i.window):
        n, m = f.size(x, d), f.size(source, d)
        if n is not None or m is not None:
            windows = window_count(f.whole(x, d), w)
            f.need_equal(i, f"there must be as many sources as windows, dimension {d}", f.whole(source, d), windows)
    return f.of(x)


@rule("dot")
def _dot(f: DynamicSizes, i: Instruction) -> Sizes:
    x, y = i.operands[:2]
    batch, contracted = (i.lhs_batch_dims, i.rhs_batch_dims), (i.lhs_contracting_dims, i.rhs_contracting_dims)
    sizes: list[Size | None] = []
    for n, (left, right) in enumerate((batch, contracted)):
        for p, q in zip(left, right, strict=True):
            if f.size(x, p) is not None or f.size(y, q) is not None:
                f.need_equal(i, f"dimensions {p} and {q} of the operands are one", f.whole(x, p), f.whole(y, q))
            if n == 0:
                sizes.append(f.whole(x, p) if f.size(x, p) is not None or f.size(y, q) is not None else None)
    sizes += [f.size(x, d) for d in range(x.shape.rank) if d not in (*batch[0], *contracted[0])]
    sizes += [f.size(y, d) for d in range(y.shape.rank) if d not in (*batch[1], *contracted[1])]
    return array(enumerate(sizes))


@rule("convolution")
def _convolution(f: DynamicSizes, i: Instruction) -> Sizes:
    x, k = i.operands
    dims = i.dim_labels
    if f.size(x, dims.input_feature) or f.size(k, dims.kernel_input):
        left, right = f.whole(x, dims.input_feature), f.whole(k, dims.kernel_input) * i.feature_group_count
        f.need_equal(i, "input and kernel must have as many features", left, right)
    sizes = {dims.output_batch: f.size(x, dims.input_batch), dims.output_feature: f.size(k, dims.kernel_output)}
    for w, d, at in zip(i.window, dims.input_spatial, dims.output_spatial, strict=True):
        n = f.size(x, d)
        sizes[at] = None if n is None else window_count(n, w)
    return array(sizes.items())


@rule("batch-norm-inference")
def _normalised(f: DynamicSizes, i: Instruction) -> Sizes:
    return f.of(i.operands[0])


@rule("batch-norm-training", "batch-norm-grad")
def _normalised_and_features(f: DynamicSizes, i: Instruction) -> Sizes:
    x = i.operands[0]
    sizes = {((0,), d): size for (_, d), size in f.of(x).items()}
    feature = f.size(x, i.feature_index)
    return sizes if feature is None else {**sizes, ((1,), 0): feature, ((2,), 0): feature}


@rule("scan")
def _scan(f: DynamicSizes, i: Instruction) -> Sizes:
    """Outputs are as long as what is scanned; carries, and what a step gives, must have stated sizes."""
    (along,) = i.dimensions
    scanned = i.operands[: len(i.operands) - i.num_carries]
    size = f.agreed(i, f"operands must have one size along dimension {along}", [(x, along) for x in scanned])
    found = {place: s for place, s in f.unknown(i).items() if place[1] != along}
    for n in range(len(i.shape.tuple_shapes or (i.shape,)) - i.num_carries):
        if size is not None:
            found[(n,) if i.shape.is_tuple else (), along] = size
    return found


# -- order -------------------------------------------------------------------------------------------------------------
@rule("sort")
def _sort(f: DynamicSizes, i: Instruction) -> Sizes:
    return results(i, array(enumerate(together(f, i, i.operands))))


@rule("fft")
def _fft(f: DynamicSizes, i: Instruction) -> Sizes:
    """The lengths of transforms are stated."""
    return array((d, f.size(i.operands[0], d)) for d in range(i.shape.rank - len(i.fft_length)))


@rule("cholesky", "triangular-solve")
def _solved(f: DynamicSizes, i: Instruction) -> Sizes:
    """The last operand's sizes; the matrix is square, and as large as what it is solved for."""
    a, b = i.operands[0], i.operands[-1]
    rows = a.shape.rank - 2
    if a is not b:
        for d in range(rows):
            f.agreed(i, f"operands must have one size along dimension {d}", [(a, d), (b, d)])
        side = rows if i.left_side else rows + 1
        f.agreed(i, "the matrix must be as large as what it is solved for", [(a, rows), (b, side)])
    f.agreed(i, "the matrix must be square", [(a, rows), (a, rows + 1)])
    return f.of(b)


# -- calls -------------------------------------------------------------------------------------------------------------
@rule("while")
def _while(f: DynamicSizes, i: Instruction) -> Sizes:
    """A size the body hands on is the one the loop starts with; any other is one that the loop brings in."""
    (start,) = i.operands
    (inside,) = i.body.parameters
    found: Sizes = {}
    for place in dynamic_places(i.shape):
        stays = f.of(i.body.root).get(place) is f.algebra.of(inside, place)
        found[place] = (
            f.of(start).get(place, f.number(start.shape.at(place[0]).dims[place[1]]))
            if stays
            else f.algebra.of(i, place)
        )
    return found


@rule("conditional", "call", "fusion")
def _called(f: DynamicSizes, i: Instruction) -> Sizes:
    """A size on which all callees agree, or one that comes in with the result."""
    found: Sizes = {}
    for place in dynamic_places(i.shape):
        if i.opcode == "conditional":
            sizes = {f.handed_on(i, place, c, [x]) for c, x in zip(i.called, i.operands[1:], strict=True)}
        else:
            sizes = {f.handed_on(i, place, i.called[0], i.operands)}
        size = sizes.pop()
        found[place] = f.algebra.of(i, place) if size is None or sizes else size
    return found
