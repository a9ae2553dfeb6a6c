"""gather and scatter."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from heron.hlo.ir.op import Attr, AttrKind, Op, Trait, op, reject
from heron.hlo.ir.shape import Shape, scalar, tuple_
from heron.hlo.meaning import combine, indices
from heron.hlo.ops.rules import array, attr, default, need_arrays, need_dims, need_same_type

if TYPE_CHECKING:
    from heron.hlo.ir.evaluation import Evaluation
    from heron.hlo.ir.instruction import Instruction


@op("gather")
class Gather(Op):
    """Slices of the operand at the start indices, which are moved until each slice lies inside.

    Shape: `offset_dims` have the sizes of a slice without its collapsed dimensions, the others those of the indices
    without `index_vector_dim`.
    """

    operands = ("operand", "start_indices")
    attributes = {
        "offset_dims": Attr(AttrKind.INTS, required=True),
        "collapsed_slice_dims": Attr(AttrKind.INTS, required=True),
        "start_index_map": Attr(AttrKind.INTS, required=True),
        "operand_batching_dims": Attr(AttrKind.INTS, ()),
        "start_indices_batching_dims": Attr(AttrKind.INTS, ()),
        "index_vector_dim": Attr(AttrKind.INT, required=True),
        "slice_sizes": Attr(AttrKind.INTS, required=True),
        "indices_are_sorted": Attr(AttrKind.BOOL, False),
    }
    traits = {Trait.MOVES_ELEMENTS, Trait.READS_PART, Trait.INDIRECT}
    linear = ("operand",)
    flops = 3
    code = 16

    def shape(self, i: Instruction, x: Shape, starts: Shape) -> Shape:
        need_arrays(i, x, starts)
        offset_dims, sizes = attr(i, "offset_dims"), attr(i, "slice_sizes")
        batch = need_index_dims(
            i,
            x,
            starts,
            "start_index_map",
            "collapsed_slice_dims",
            "operand_batching_dims",
            "start_indices_batching_dims",
        )
        if len(sizes) != x.rank:
            reject(i, "slice_sizes needs one size a dimension", f"{len(sizes)} given for {x}")
        gone = {*i.collapsed_slice_dims, *i.operand_batching_dims}
        for d, size in enumerate(sizes):
            if not 0 <= size <= x.dims[d] or (d in gone and size > 1):
                limit = min(1, x.dims[d]) if d in gone else x.dims[d]
                reject(i, f"slice size {size} does not fit dimension {d}", f"at most {limit} is allowed ({x})")
        window = [size for d, size in enumerate(sizes) if d not in gone]
        rank = len(window) + len(batch)
        need_dims(i, "offset_dims", offset_dims, rank)
        _need_order(i, "offset_dims", offset_dims)
        if len(offset_dims) != len(window):
            reject(i, "offset_dims must place each slice dimension kept", f"{len(offset_dims)} for {len(window)}")
        rest, inside = iter(batch), iter(window)
        return array(x.element_type, [next(inside if d in offset_dims else rest) for d in range(rank)])

    def evaluate(self, ev: Evaluation, i: Instruction, x: np.ndarray, starts: np.ndarray) -> np.ndarray:
        if 0 in i.slice_sizes:  # there is nothing to read: a window that collapses has no element
            return np.zeros(i.shape.dims, x.dtype)
        gone = {*i.collapsed_slice_dims, *i.operand_batching_dims}
        spec = indices.Slices(
            starts, i.index_vector_dim, i.start_index_map, i.operand_batching_dims, i.start_indices_batching_dims
        )
        index = spec.index(x.shape, i.slice_sizes, [d for d in range(x.ndim) if d not in gone], clamp=True)
        value = x[index] if x.ndim else np.full(spec.starts.shape[:-1], x)  # no index of a scalar brings its copies
        return value.transpose(indices.order(i.offset_dims, value.ndim)[1])


@op("scatter")
class Scatter(Op):
    """N arrays with updates combined into them at the indices; windows that do not lie inside are dropped whole.

    Operands: N arrays, the indices, N arrays of updates.

    Shape: the array's; a tuple of the arrays' when N > 1.
    """

    operands = ("operands_indices_updates*",)
    attributes = {
        "update_window_dims": Attr(AttrKind.INTS, required=True),
        "inserted_window_dims": Attr(AttrKind.INTS, required=True),
        "scatter_dims_to_operand_dims": Attr(AttrKind.INTS, required=True),
        "input_batching_dims": Attr(AttrKind.INTS, ()),
        "scatter_indices_batching_dims": Attr(AttrKind.INTS, ()),
        "index_vector_dim": Attr(AttrKind.INT, required=True),
        "indices_are_sorted": Attr(AttrKind.BOOL, False),
        "unique_indices": Attr(AttrKind.BOOL, False),
        "to_apply": Attr(AttrKind.COMPUTATION, required=True),
    }
    traits = {
        Trait.UPDATES_OPERAND, Trait.APPLIES, Trait.ONE_BY_ONE, Trait.INDIRECT, Trait.SHAPES_KERNEL, Trait.OVER_OPERAND,
    }  # fmt: skip
    code = 12

    def shape(self, i: Instruction, *operands: Shape) -> Shape:
        count = len(operands) // 2
        if len(operands) < 3 or len(operands) % 2 == 0:
            reject(i, "needs arrays, indices and as many updates", f"{len(operands)} operands given")
        need_arrays(i, *operands)
        arrays, starts, updates = operands[:count], operands[count], operands[count + 1 :]
        x = arrays[0]
        batch = need_index_dims(
            i,
            x,
            starts,
            "scatter_dims_to_operand_dims",
            "inserted_window_dims",
            "input_batching_dims",
            "scatter_indices_batching_dims",
        )
        self._need_updates(i, arrays, updates, batch)
        self._need_combiner(i, arrays)
        return default(x) if count == 1 else tuple_([default(s) for s in arrays])

    def _need_updates(
        self, i: Instruction, arrays: tuple[Shape, ...], updates: tuple[Shape, ...], batch: list[int]
    ) -> None:
        x, window_dims = arrays[0], attr(i, "update_window_dims")
        gone = {*i.inserted_window_dims, *i.input_batching_dims}
        window = [n for d, n in enumerate(x.dims) if d not in gone]
        rank = len(window_dims) + len(batch)
        need_dims(i, "update_window_dims", window_dims, rank)
        _need_order(i, "update_window_dims", window_dims)
        if len(window_dims) != len(window):
            reject(i, "update_window_dims must place each window dimension", f"{len(window_dims)} for {len(window)}")
        for n, (s, u) in enumerate(zip(arrays, updates, strict=True)):
            need_same_type(i, s, u)
            if s.dims != x.dims:
                reject(i, f"operand {n} has other dimensions than operand 0", f"{s} and {x}")
            if u.rank != rank:
                reject(i, f"the updates must have rank {rank}", f"they are {u}")
            rest, inside = iter(batch), iter(window)
            for d, size in enumerate(u.dims):
                if d in window_dims:
                    limit = next(inside)
                    if size > limit:
                        reject(i, f"update dimension {d} of size {size} is wider than the operand", f"{limit}")
                elif size != (want := next(rest)):
                    reject(i, f"update dimension {d} has size {size}", f"the indices give {want}")

    def _need_combiner(self, i: Instruction, arrays: tuple[Shape, ...]) -> None:
        body, want = attr(i, "to_apply"), [scalar(s.element_type).bare for s in arrays]
        has = [p.shape.bare for p in body.parameters]
        gives = body.root.shape
        parts = [p.bare for p in gives.tuple_shapes or (gives,)]
        if has != want * 2 or parts != want:
            reject(
                i,
                "to_apply must take and return one scalar for each operand",
                f"({', '.join(map(str, has))}) to {gives}",
            )

    def evaluate(self, ev: Evaluation, i: Instruction, *operands: np.ndarray) -> object:
        count = len(operands) // 2
        arrays, starts, updates = operands[:count], operands[count], operands[count + 1 :]
        x = arrays[0]
        gone = {*i.inserted_window_dims, *i.input_batching_dims}
        window_dims = [d for d in range(x.ndim) if d not in gone]
        order, _ = indices.order(i.update_window_dims, updates[0].ndim)
        flat = [u.transpose(order) for u in updates]
        sizes = [1] * x.ndim
        for d, n in zip(window_dims, flat[0].shape[flat[0].ndim - len(window_dims) :], strict=True):
            sizes[d] = n
        spec = indices.Slices(
            starts,
            i.index_vector_dim,
            i.scatter_dims_to_operand_dims,
            i.input_batching_dims,
            i.scatter_indices_batching_dims,
        )
        index = spec.index(x.shape, tuple(sizes), window_dims, clamp=False)
        inside = np.ones(flat[0].shape, bool)
        place = np.zeros(flat[0].shape, np.int64)
        for n, at in zip(x.shape, index, strict=True):
            inside &= (at >= 0) & (at < n)
            place = place * n + at
        window_axes = tuple(range(inside.ndim - len(window_dims), inside.ndim))
        inside &= inside.all(window_axes, keepdims=True)
        types = tuple(o.shape.element_type for o in i.operands[:count])
        results = combine.scatter(
            combine.Combiner(ev, i.to_apply, types),
            tuple(a.reshape(-1) for a in arrays),
            place[inside],
            tuple(u[inside] for u in flat),
        )
        shaped = tuple(r.reshape(x.shape) for r in results)
        return shaped[0] if count == 1 else shaped


def need_index_dims(
    i: Instruction, x: Shape, starts: Shape, map_name: str, gone_name: str, batching: str, start_batching: str
) -> list[int]:
    """Checks what gather and scatter say of their indices; gives the sizes of the batch dimensions."""
    vector: int = attr(i, "index_vector_dim")
    mapped, gone = attr(i, map_name), attr(i, gone_name)
    x_batch, starts_batch = getattr(i, batching), getattr(i, start_batching)
    if not starts.element_type.is_integer:
        reject(i, "the indices must be integers", f"they are {starts}")
    if not 0 <= vector <= starts.rank:
        reject(i, f"index_vector_dim={vector} is not a dimension of the indices", f"{starts}")
    length = starts.dims[vector] if vector < starts.rank else 1
    if len(mapped) != length:
        reject(i, f"{map_name} must have as many entries as an index", f"{len(mapped)} for {length}")
    need_dims(i, map_name, mapped, x.rank)
    need_dims(i, gone_name, gone, x.rank)
    need_dims(i, batching, x_batch, x.rank)
    _need_order(i, gone_name, gone)
    _need_order(i, batching, x_batch)
    need_dims(i, start_batching, starts_batch, starts.rank)
    if set(x_batch) & ({*gone} | {*mapped}):
        reject(i, f"{batching} overlaps {gone_name} or {map_name}")
    if len(x_batch) != len(starts_batch) or vector in starts_batch:
        reject(i, f"{batching} and {start_batching} do not match", f"{x_batch} and {starts_batch}")
    for a, b in zip(x_batch, starts_batch, strict=True):
        if x.dims[a] != starts.dims[b]:
            reject(i, f"batching dimensions {a} and {b} differ in size", f"{x.dims[a]} and {starts.dims[b]}")
    return [n for d, n in enumerate(starts.dims) if d != vector]


def _need_order(i: Instruction, name: str, dims: Sequence[int]) -> None:
    """Rejects dimension numbers that do not go up: their order says nothing here, so it is fixed."""
    if any(a >= b for a, b in itertools.pairwise(dims)):
        reject(i, f"{name} must go up", f"it is {list(dims)}")
