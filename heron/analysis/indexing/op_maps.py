"""Maps from results to operands for ops that iterate, pad, or mix a whole dimension; nothing known at run time only.

Builders take the instruction, the operand's number, which result (when there are several) and the result's sizes.
"""

from __future__ import annotations

from typing import TypeAlias

from heron.analysis.indexing.expr import Const, Dim, Expr, Sym, dims, floordiv, mod, syms
from heron.analysis.indexing.hlo_maps import (
    contracting_dims,
    convolution_index,
    delinearize,
    dot_index,
    from_memory,
    linearize,
    memory_sizes,
    pad_index,
    reduce_index,
    to_memory,
    window_index,
)
from heron.analysis.indexing.map import Constraint, IndexingMap
from heron.hlo.ir.instruction import Instruction

Sizes: TypeAlias = tuple[int, ...]


def _scalar(sizes: Sizes) -> IndexingMap:
    """Every element reads the one element of a scalar."""
    return IndexingMap.from_sizes((), sizes)


def whole_dims(sizes: Sizes, operand: Sizes, mixed: set[int]) -> IndexingMap:
    """The same index in the leading dimensions both have, except those in `mixed`, which are read whole."""
    lengths: list[int] = []
    results: list[Expr] = []
    for d, size in enumerate(operand):
        if d in mixed or d >= len(sizes):
            results.append(Sym(len(lengths)))
            lengths.append(size)
        else:
            results.append(Dim(d))
    return IndexingMap.from_sizes(results, sizes, lengths)


def _identity(i: Instruction, n: int, output: int, sizes: Sizes) -> IndexingMap | None:
    operand = i.operands[n].shape.dims
    return IndexingMap.identity(sizes) if operand == sizes else None


def _first_operand(i: Instruction, n: int, output: int, sizes: Sizes) -> IndexingMap | None:
    """The operand itself; what else is given decides no element."""
    return IndexingMap.identity(sizes) if n == 0 else None


def _tuple(i: Instruction, n: int, output: int, sizes: Sizes) -> IndexingMap:
    if n == output:
        return IndexingMap.identity(sizes)
    return IndexingMap.empty(i.operands[n].shape.rank, IndexingMap.identity(sizes).dims)


# -- the same elements in another form -----------------------------------------------------------------------------


def _bitcast(i: Instruction, n: int, output: int, sizes: Sizes) -> IndexingMap | None:
    """A bitcast to another width: elements that share bytes."""
    source, target = i.operands[0].shape, i.shape
    old, new = source.element_type.bits, target.element_type.bits
    if source.num_elements * old != target.num_elements * new or max(old, new) % min(old, new):
        return None
    linear = linearize(to_memory(target, dims(len(sizes))), memory_sizes(target))
    ratio = max(old, new) // min(old, new)
    place = floordiv(linear, Const(ratio)) if old > new else linear * ratio + Sym(0)
    index = from_memory(source, delinearize(place, memory_sizes(source)))
    return IndexingMap.from_sizes(index, sizes, [] if old > new else [ratio])


def _bitcast_convert(i: Instruction, n: int, output: int, sizes: Sizes) -> IndexingMap:
    """A change of width adds or drops a minor dimension."""
    return whole_dims(sizes, i.operands[0].shape.dims, set())


def _pad(i: Instruction, n: int, output: int, sizes: Sizes) -> IndexingMap:
    if n == 1:
        return _scalar(sizes)
    results, constraints = pad_index(i, dims(len(sizes)))
    return IndexingMap.from_sizes(results, sizes).replace(constraints=constraints)


def _concatenate(i: Instruction, n: int, output: int, sizes: Sizes) -> IndexingMap:
    d = i.dimensions[0]
    offset = sum(o.shape.dims[d] for o in i.operands[:n])
    index = list(dims(len(sizes)))
    index[d] = index[d] - offset
    constraint = (Dim(d), offset, offset + i.operands[n].shape.dims[d] - 1)
    return IndexingMap.from_sizes(index, sizes).replace(constraints=(constraint,))


# -- reductions, windows, products ---------------------------------------------------------------------------------


def _reduce(i: Instruction, n: int, output: int, sizes: Sizes) -> IndexingMap:
    if n >= len(i.operands) // 2:
        return _scalar(sizes)
    reduced = sorted(i.dimensions)
    operand = i.operands[n].shape.dims
    index = reduce_index(i, dims(len(sizes)), syms(len(reduced)))
    return IndexingMap.from_sizes(index, sizes, [operand[d] for d in reduced])


def _reduce_window(i: Instruction, n: int, output: int, sizes: Sizes) -> IndexingMap:
    if n >= len(i.operands) // 2:
        return _scalar(sizes)
    operand = i.operands[n].shape.dims
    results, constraints = window_index(i.window, operand, dims(len(sizes)), syms(len(i.window)))
    return IndexingMap.from_sizes(results, sizes, [w.size for w in i.window]).replace(constraints=constraints)


def _select_and_scatter(i: Instruction, n: int, output: int, sizes: Sizes) -> IndexingMap:
    """A result element may get the source of every window it lies in, and each window is read whole to decide."""
    if n == 2:
        return _scalar(sizes)
    source = i.operands[1].shape.dims
    windows: list[Expr] = []
    constraints: list[Constraint] = []
    rank = len(sizes)
    for d, w in enumerate(i.window):  # the window that has this element at its place Sym(d)
        start = Dim(d) + w.pad_low - Sym(d) * w.window_dilation
        windows.append(floordiv(start, Const(w.stride)))
        constraints += [(mod(start, Const(w.stride)), 0, 0), (windows[d], 0, source[d] - 1)]
    lengths = [w.size for w in i.window]
    if n == 1:
        return IndexingMap.from_sizes(windows, sizes, lengths).replace(constraints=constraints)
    results, inside = window_index(i.window, sizes, windows, syms(2 * rank)[rank:])
    return IndexingMap.from_sizes(results, sizes, lengths * 2).replace(constraints=[*constraints, *inside])


def _dot(i: Instruction, n: int, output: int, sizes: Sizes) -> IndexingMap | None:
    if n > 1:
        return None
    contracted = contracting_dims(i, n)
    index = dot_index(i, n, dims(len(sizes)), syms(len(contracted)))
    return IndexingMap.from_sizes(index, sizes, [i.operands[n].shape.dims[d] for d in contracted])


def _scaled_dot(i: Instruction, n: int, output: int, sizes: Sizes) -> IndexingMap | None:
    """The products are a dot's; an operand's scale has one element for a block of the operand's."""
    side = n % 2
    found = _dot(i, side, output, sizes)
    if n < 2 or found is None:
        return found
    operand, scale = i.operands[side].shape.dims, i.operands[n].shape.dims
    if len(scale) != len(operand):
        return None
    results = [floordiv(e, Const(a // b)) for e, a, b in zip(found.results, operand, scale, strict=True)]
    return found.replace(results=results)


def _convolution(i: Instruction, n: int, output: int, sizes: Sizes) -> IndexingMap:
    features = i.operands[1].shape.dims[i.dim_labels.kernel_input]
    symbols = syms(len(i.window) + 1)
    lhs, rhs, constraints = convolution_index(i, dims(len(sizes)), symbols[:-1], symbols[-1])
    found = IndexingMap.from_sizes(rhs if n else lhs, sizes, [*(w.size for w in i.window), features])
    return found.replace(constraints=constraints)


# -- whole dimensions ----------------------------------------------------------------------------------------------


def _sort(i: Instruction, n: int, output: int, sizes: Sizes) -> IndexingMap:
    return whole_dims(sizes, sizes, set(i.dimensions))


def _topk(i: Instruction, n: int, output: int, sizes: Sizes) -> IndexingMap:
    return whole_dims(sizes, i.operands[0].shape.dims, {len(sizes) - 1})


def _fft(i: Instruction, n: int, output: int, sizes: Sizes) -> IndexingMap:
    rank = len(sizes)
    return whole_dims(sizes, i.operands[0].shape.dims, set(range(rank - len(i.fft_length), rank)))


def _cholesky(i: Instruction, n: int, output: int, sizes: Sizes) -> IndexingMap:
    return whole_dims(sizes, sizes, {len(sizes) - 2, len(sizes) - 1})


def _triangular_solve(i: Instruction, n: int, output: int, sizes: Sizes) -> IndexingMap:
    rank = len(sizes)
    solved = rank - 2 if i.left_side else rank - 1  # the dimension of unknowns
    return whole_dims(sizes, i.operands[n].shape.dims, {rank - 2, rank - 1} if n == 0 else {solved})


def _rng(i: Instruction, n: int, output: int, sizes: Sizes) -> IndexingMap:
    return _scalar(sizes)


def _rng_bit_generator(i: Instruction, n: int, output: int, sizes: Sizes) -> IndexingMap:
    operand = i.operands[0].shape.dims
    return IndexingMap.from_sizes(syms(len(operand)), sizes, operand)


def _scan(i: Instruction, n: int, output: int, sizes: Sizes) -> IndexingMap | None:
    """A step may mix all elements of its slices; the result of a step depends on the steps before it."""
    (along,) = i.dimensions
    operand = i.operands[n].shape.dims
    outputs = len(i.shape.tuple_shapes or (i.shape,)) - i.num_carries
    is_array = n < len(i.operands) - i.num_carries
    results = list(syms(len(operand)))
    found = IndexingMap.from_sizes(results, sizes, operand)
    if output >= outputs or not is_array:
        return found
    step = (Dim(along) - Sym(along)) * (-1 if i.is_reverse else 1)
    return found.replace(constraints=[(step, 0, sizes[along] - 1)])


def _batch_norm(i: Instruction, n: int, output: int, sizes: Sizes) -> IndexingMap:
    """One channel of the operand makes one channel of the results; inference goes element by element."""
    feature = i.feature_index
    channel = Dim(feature) if len(sizes) > 1 or feature == 0 else Dim(0)
    operand = i.operands[n].shape.dims
    if i.opcode == "batch-norm-inference" and len(operand) == len(sizes) and n == 0:
        return IndexingMap.identity(sizes)
    if n in _PER_CHANNEL[i.opcode]:
        return IndexingMap.from_sizes([channel if len(sizes) > 1 else Dim(0)], sizes)
    full = i.operands[0].shape.dims
    is_full = (output == 0) if i.opcode != "batch-norm-inference" else True
    results: list[Expr] = []
    lengths: list[int] = []
    for d, size in enumerate(full):
        if d == feature:
            results.append(Dim(feature) if is_full else Dim(0))
        else:
            results.append(Sym(len(lengths)))
            lengths.append(size)
    return IndexingMap.from_sizes(results, sizes, lengths)


#: operands of batch normalisations with one element a channel
_PER_CHANNEL = {
    "batch-norm-inference": frozenset({1, 2, 3, 4}),
    "batch-norm-training": frozenset({1, 2}),
    "batch-norm-grad": frozenset({1, 2, 3}),
}


# -- between devices: the place in the operand of whichever device brings the element ------------------------------


def _all_gather(i: Instruction, n: int, output: int, sizes: Sizes) -> IndexingMap | None:
    if n != output:
        return _nothing(i, n, sizes)
    d = i.dimensions[0]
    index = list(dims(len(sizes)))
    index[d] = mod(index[d], Const(max(1, i.operands[n].shape.dims[d])))
    return IndexingMap.from_sizes(index, sizes)


def _reduce_scatter(i: Instruction, n: int, output: int, sizes: Sizes) -> IndexingMap | None:
    """No map: the piece that a device keeps depends on the device."""
    if n != output:
        return _nothing(i, n, sizes)
    d = i.dimensions[0]
    return _pieces(sizes, d, sizes[d], i.operands[n].shape.dims[d])


def _all_to_all(i: Instruction, n: int, output: int, sizes: Sizes) -> IndexingMap | None:
    if i.dimensions is None:  # piece n of everyone: any of the operands
        return IndexingMap.identity(sizes)
    return whole_dims(sizes, sizes, {i.dimensions[0]})


def _pieces(sizes: Sizes, d: int, piece: int, whole: int) -> IndexingMap:
    index = list(dims(len(sizes)))
    index[d] = index[d] + Sym(0) * piece
    return IndexingMap.from_sizes(index, sizes, (), [whole // max(1, piece)])


def _same_part(i: Instruction, n: int, output: int, sizes: Sizes) -> IndexingMap | None:
    return IndexingMap.identity(sizes) if n == output else _nothing(i, n, sizes)


def _nothing(i: Instruction, n: int, sizes: Sizes) -> IndexingMap:
    return IndexingMap.empty(i.operands[n].shape.rank, IndexingMap.identity(sizes).dims)


BUILDERS = {
    "add-dependency": _first_operand,
    "all-gather": _all_gather,
    "all-reduce": _same_part,
    "all-to-all": _all_to_all,
    "batch-norm-grad": _batch_norm,
    "batch-norm-inference": _batch_norm,
    "batch-norm-training": _batch_norm,
    "bitcast": _bitcast,
    "bitcast-convert": _bitcast_convert,
    "cholesky": _cholesky,
    "collective-broadcast": _same_part,
    "collective-permute": _same_part,
    "concatenate": _concatenate,
    "convolution": _convolution,
    "domain": _identity,
    "dot": _dot,
    "fft": _fft,
    "map": _identity,
    "opt-barrier": _identity,
    "pad": _pad,
    "reduce": _reduce,
    "reduce-scatter": _reduce_scatter,
    "reduce-window": _reduce_window,
    "rng": _rng,
    "rng-bit-generator": _rng_bit_generator,
    "scaled-dot": _scaled_dot,
    "scan": _scan,
    "select-and-scatter": _select_and_scatter,
    "set-dimension-size": _first_operand,
    "sort": _sort,
    "topk": _topk,
    "triangular-solve": _triangular_solve,
    "tuple": _tuple,
}
