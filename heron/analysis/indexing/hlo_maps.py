"""A given index pushed from an op's result to its operand: the form code generation uses, as no map is made.

`operand_index` serves ops that only move elements (broadcast, reshape, transpose, slice, reverse, elementwise); the
others have a function each, which takes positions in what they iterate over and gives constraints where they read
conditionally. Whole `IndexingMap`s, made of these, are in `operands.py`.

Source: https://openxla.org/xla/indexing and https://openxla.org/xla/operation_semantics.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod
from typing import TypeAlias

from heron.analysis.indexing.expr import Const, Expr, add, floordiv, mod, mul
from heron.analysis.indexing.map import Constraint
from heron.hlo.facts import is_view, reindexes
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape
from heron.hlo.ir.window import WindowDim

Index: TypeAlias = tuple[Expr, ...]
Sizes: TypeAlias = tuple[int, ...]


def moves_elements(i: Instruction) -> bool:
    """Whether `operand_index` knows the op: each result element is one operand element at an affine place."""
    if i.op.is_elementwise:
        return i.opcode != "bitcast-convert" or i.operands[0].shape.dims == i.shape.dims
    return reindexes(i) and (i.opcode != "bitcast" or is_reshape_like(i))


def is_reshape_like(i: Instruction) -> bool:
    """Whether a bitcast keeps elements as they are: same element width and count."""
    source, target = i.operands[0].shape, i.shape
    return source.element_type is target.element_type and source.num_elements == target.num_elements


def memory_order(shape: Shape) -> tuple[int, ...]:
    """The dimensions of an array outermost first, as they lie in memory."""
    layout = shape.layout
    if layout is None or layout.is_default:
        return tuple(range(shape.rank))
    return tuple(reversed(layout.minor_to_major))


def memory_sizes(shape: Shape) -> Sizes:
    """The sizes of an array's dimensions in memory order."""
    return tuple(shape.dims[d] for d in memory_order(shape))


def to_memory(shape: Shape, index: Index) -> Index:
    """An index in memory order."""
    if shape.layout is None or shape.layout.is_default:
        return index
    return tuple(index[d] for d in memory_order(shape))


def from_memory(shape: Shape, index: Index) -> Index:
    """The index that `to_memory` turns into this one."""
    if shape.layout is None or shape.layout.is_default:
        return index
    result: list[Expr] = list(index)
    for at, d in enumerate(memory_order(shape)):
        result[d] = index[at]
    return tuple(result)


def operand_index(i: Instruction, n: int, index: Index) -> Index:
    """The index of operand `n` of `i` for the result element at `index`. `i` must satisfy `moves_elements`.

    Scalar operands of elementwise ops (clamp's bounds, select's predicate) are read at `()`. Not simplified.
    """
    operand = i.operands[n].shape
    match i.opcode:
        case "broadcast":
            return tuple(
                Const(0) if size == 1 else index[d] for d, size in zip(i.dimensions, operand.dims, strict=True)
            )
        case "transpose":
            source: list[Expr] = list(index)
            for at, d in enumerate(i.dimensions):
                source[d] = index[at]
            return tuple(source)
        case "reshape":
            return reshape_index(index, i.shape.dims, operand.dims)
        case "bitcast":  # the same place in memory
            place = to_memory(i.shape, index)
            return from_memory(operand, reshape_index(place, memory_sizes(i.shape), memory_sizes(operand)))
        case "slice":
            return tuple(
                add(mul(e, Const(stride)), Const(start)) for e, (start, _, stride) in zip(index, i.slice, strict=True)
            )
        case "reverse":
            return tuple(
                Const(size - 1) - e if d in i.dimensions else e
                for d, (e, size) in enumerate(zip(index, operand.dims, strict=True))
            )
    return index if operand.dims == i.shape.dims else ()


def linearize(index: Sequence[Expr], sizes: Sequence[int]) -> Expr:
    """The row-major position of `index` in a tensor of these sizes."""
    total: Expr = Const(0)
    stride = 1
    for e, size in zip(reversed(index), reversed(sizes), strict=True):
        total = add(mul(e, Const(stride)), total)
        stride *= size
    return total


def delinearize(linear: Expr, sizes: Sequence[int]) -> Index:
    """The index of row-major position `linear`; no `mod` on the outermost dimension, which the position bounds."""
    result: list[Expr] = []
    inner = prod(sizes)
    outermost = True
    for size in sizes:
        inner //= max(size, 1)
        if size == 1:
            result.append(Const(0))
            continue
        quotient = floordiv(linear, Const(max(inner, 1)))
        result.append(quotient if outermost else mod(quotient, Const(max(size, 1))))
        outermost = False
    return tuple(result)


def reshape_index(index: Sequence[Expr], sizes: Sizes, target: Sizes) -> Index:
    """The place, after a reshape to `target`, of the element at `index` of a tensor of `sizes`.

    The shapes are cut into the smallest runs of dimensions with equal products, so that a dimension both shapes have
    costs nothing and the rest needs no more divisions than it must.
    """
    result: list[Expr] = [Const(0)] * len(target)
    for run, target_run in _common_runs(sizes, target):
        if len(run) == 1 and len(target_run) == 1:
            result[target_run[0]] = index[run[0]]
            continue
        linear = linearize([index[d] for d in run], [sizes[d] for d in run])
        for d, e in zip(target_run, delinearize(linear, [target[d] for d in target_run]), strict=True):
            result[d] = e
    return tuple(result)


#: views that take dimensions apart, one behind the other, through which a kernel finds an element
MOST_DIVISIONS = 3


def divides_index(i: Instruction) -> bool:
    """Whether the place that an element of `i` is read from is told by quotients: a view that takes dimensions apart.

    Each of them needs the whole index once for every dimension it makes of one: the size of the expressions grows with
    two to the power of such views, one behind the other.
    """
    if not is_view(i):
        return False
    return any(len(made) > 1 for _, made in _common_runs(memory_sizes(i.shape), memory_sizes(i.operands[0].shape)))


def divisions(root: Instruction, inside: Collection[Instruction]) -> int:
    """The most views that take dimensions apart on a way from a root through the instructions `inside`."""
    found: dict[Instruction, int] = {}
    stack = [root]
    while stack:
        i = stack[-1]
        operands = [o for o in i.operands if o in inside]
        waiting = [o for o in operands if o not in found]
        if waiting:
            stack += waiting
        else:
            found[stack.pop()] = max([found[o] for o in operands], default=0) + divides_index(i)
    return found[root]


@lru_cache(maxsize=4096)
def _common_runs(a: Sizes, b: Sizes) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
    """Pairs of runs of dimensions (of sizes above 1) of `a` and `b` with equal products."""
    if 0 in a or 0 in b:
        return ()
    left = [d for d, size in enumerate(a) if size != 1]
    right = [d for d, size in enumerate(b) if size != 1]
    runs = []
    n = m = 0
    while n < len(left):
        start, target_start = n, m
        p, q = a[left[n]], b[right[m]]
        n, m = n + 1, m + 1
        while p != q:
            if p < q:
                p *= a[left[n]]
                n += 1
            else:
                q *= b[right[m]]
                m += 1
        runs.append((tuple(left[start:n]), tuple(right[target_start:m])))
    return tuple(runs)


def pad_index(i: Instruction, index: Sequence[Expr]) -> tuple[Index, list[Constraint]]:
    """The operand index a pad's element `index` shows, and when it is not padding."""
    results: list[Expr] = []
    constraints: list[Constraint] = []
    for e, (low, high, interior), size in zip(index, i.padding, i.operands[0].shape.dims, strict=True):
        shifted = e - low if low else e
        step = interior + 1
        results.append(floordiv(shifted, Const(step)))
        if low or high or interior:
            constraints.append((shifted, 0, (size - 1) * step))
        if interior:
            constraints.append((mod(shifted, Const(step)), 0, 0))
    return tuple(results), constraints


def reduce_index(i: Instruction, index: Sequence[Expr], reduced: Sequence[Expr]) -> Index:
    """The operand index of a reduce: `index` for the dimensions kept, `reduced` for those summed over (in order)."""
    kept, summed = iter(index), iter(reduced)
    gone = set(i.dimensions)
    return tuple(next(summed) if d in gone else next(kept) for d in range(i.operands[0].shape.rank))


def window_index(
    window: Sequence[WindowDim], sizes: Sequence[int], index: Sequence[Expr], offsets: Sequence[Expr]
) -> tuple[Index, list[Constraint]]:
    """The place in the base of window element `offsets` at window position `index`, and when it is not padding.

    A dimension whose whole range of positions lies in the base gives no constraint.
    """
    results: list[Expr] = []
    constraints: list[Constraint] = []
    for w, size, e, s in zip(window, sizes, index, offsets, strict=True):
        if w.reversal:
            s = Const(w.size - 1) - s
        at = add(add(mul(e, Const(w.stride)), mul(s, Const(w.window_dilation))), Const(-w.pad_low))
        step = w.base_dilation
        results.append(floordiv(at, Const(step)))
        if step > 1:
            constraints.append((mod(at, Const(step)), 0, 0))
        if w.pad_low > 0 or w.pad_high > 0:
            constraints.append((at, 0, (size - 1) * step))
    return tuple(results), constraints


def contracting_dims(i: Instruction, n: int) -> Sizes:
    """The dimensions of operand `n` that a dot sums over."""
    return tuple(i.rhs_contracting_dims if n else i.lhs_contracting_dims or ())


def _batch(i: Instruction, n: int) -> Sizes:
    return tuple((i.rhs_batch_dims if n else i.lhs_batch_dims) or ())


def _free(i: Instruction, n: int) -> list[int]:
    taken = {*contracting_dims(i, n), *_batch(i, n)}
    return [d for d in range(i.operands[n].shape.rank) if d not in taken]


def dot_index(i: Instruction, n: int, index: Sequence[Expr], contracted: Sequence[Expr]) -> Index:
    """The index into operand `n` of a dot for result `index` and contracting positions `contracted`."""
    result: list[Expr] = [Const(0)] * i.operands[n].shape.rank
    batch = _batch(i, n)
    for at, d in enumerate(batch):
        result[d] = index[at]
    start = len(batch) + (len(_free(i, 0)) if n else 0)
    for at, d in enumerate(_free(i, n)):
        result[d] = index[start + at]
    for at, d in enumerate(contracting_dims(i, n)):
        result[d] = contracted[at]
    return tuple(result)


def gather_dims(i: Instruction) -> tuple[list[int], list[int]]:
    """Of a gather's result: its batch dimensions, and the operand dimensions its offset dimensions walk."""
    batch = [d for d in range(i.shape.rank) if d not in i.offset_dims]
    gone = {*i.collapsed_slice_dims, *(i.operand_batching_dims or ())}
    return batch, [d for d in range(i.operands[0].shape.rank) if d not in gone]


def gather_start_index(i: Instruction, index: Sequence[Expr], component: Expr) -> Index:
    """The place of a gather's start indices for result `index`: batch dimensions and the index vector's place."""
    batch, _ = gather_dims(i)
    start = [index[d] for d in batch]
    if i.index_vector_dim < i.operands[1].shape.rank:
        start.insert(i.index_vector_dim, component)
    return tuple(start)


def gather_index(i: Instruction, index: Sequence[Expr], starts: Sequence[Expr]) -> tuple[Index, list[int]]:
    """The operand index of a gather, given its clamped start positions; and how many values each start can take."""
    operand = i.operands[0].shape.dims
    batch, walked = gather_dims(i)
    results: list[Expr] = [Const(0)] * len(operand)
    for at, d in zip(i.offset_dims, walked, strict=True):
        results[d] = index[at]
    batching = tuple(i.operand_batching_dims or ())
    indices_batch = tuple(i.start_indices_batching_dims or ())
    for d, at in zip(batching, indices_batch, strict=True):
        results[d] = index[batch[at - (at > i.index_vector_dim)]]
    sizes = []
    for d, start in zip(i.start_index_map, starts, strict=True):
        results[d] = results[d] + start
        sizes.append(operand[d] - i.slice_sizes[d] + 1)
    return tuple(results), sizes


def convolution_index(
    i: Instruction, index: Sequence[Expr], offsets: Sequence[Expr], feature: Expr
) -> tuple[Index, Index, list[Constraint]]:
    """Input and kernel index of a convolution's term, and when the input index is not padding.

    `offsets`: position in the window; `feature`: kernel input feature. Feature and batch groups are honoured.
    """
    labels, window = i.dim_labels, i.window
    lhs, rhs = i.operands[0].shape, i.operands[1].shape
    features = rhs.dims[labels.kernel_input]
    out_feature = index[labels.output_feature]
    out_features = i.shape.dims[labels.output_feature]
    batch, channel = index[labels.output_batch], feature
    if i.feature_group_count > 1:
        group = floordiv(out_feature, Const(out_features // i.feature_group_count))
        channel = add(mul(group, Const(features)), feature)
    if i.batch_group_count > 1:
        group = floordiv(out_feature, Const(out_features // i.batch_group_count))
        batch = add(mul(group, Const(lhs.dims[labels.input_batch] // i.batch_group_count)), batch)
    spatial_sizes = [lhs.dims[d] for d in labels.input_spatial]
    # a reversed window flips the kernel, not the input
    plain = [_without_reversal(w) for w in window]
    places, constraints = window_index(plain, spatial_sizes, [index[d] for d in labels.output_spatial], offsets)
    left: list[Expr] = [Const(0)] * lhs.rank
    right: list[Expr] = [Const(0)] * rhs.rank
    left[labels.input_batch], left[labels.input_feature] = batch, channel
    right[labels.kernel_input], right[labels.kernel_output] = feature, out_feature
    for d, e in zip(labels.input_spatial, places, strict=True):
        left[d] = e
    for d, w, e in zip(labels.kernel_spatial, window, offsets, strict=True):
        right[d] = Const(w.size - 1) - e if w.reversal else e
    return tuple(left), tuple(right), constraints


def _without_reversal(w: WindowDim) -> WindowDim:
    return replace(w, reversal=False) if w.reversal else w
