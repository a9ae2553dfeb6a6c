"""Ops on row-major arrays with permuted dimensions: what each op of `layout-normalization` becomes.

A rule takes an instruction and `Rows`, and gives the op on row-major arrays, and for each dimension of that which
dimension of the instruction it is; None where all of them stay what they are. `RULES` has them by opcode.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from heron.analysis.fusion.reduce_order import in_any_order, may_swap
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.literal import Literal
from heron.hlo.ir.shape import Shape, tuple_
from heron.hlo.ir.window import ConvDims
from heron.hlo.verifier.layouts import is_bitcast
from heron.passes.layout.model.orders import Order, Rows, order, stored, viewed
from heron.passes.rewriting.building import array, constant
from heron.passes.rewriting.expander import home

Made = tuple[Instruction, Sequence[int] | None]
Rule = Callable[[Instruction, Rows], Made]

#: what belongs to the dimensions or the name of a value, not to what is computed
_OF_THE_VALUE = ("sharding", "origin", "parameter_replication")


def rule_for(i: Instruction) -> Rule | None:
    """The rule that rewrites `i` on row-major arrays; None for an op that keeps arrays in their layouts."""
    return RULES.get(i.opcode) or (elementwise if i.op.is_elementwise else None)


def _like(i: Instruction, operands: Sequence[Instruction], shape: Shape | None, **attrs: Any) -> Instruction:
    """The op of `i` with other operands and attributes."""
    made = i.clone(operands, shape, **attrs)
    for name in _OF_THE_VALUE:
        made.extras.pop(name, None)
    return home(i).attach(made)


def _placed(values: Sequence[Any], dims: Order) -> tuple[Any, ...]:
    """A list with one entry for each dimension, in another order of the dimensions."""
    return tuple([values[d] for d in dims])


def _same_rank(i: Instruction, rows: Rows, dims: Order, rank: int) -> list[Instruction]:
    """The operands in that order of dimensions; scalars and the like as they are."""
    return [rows.ordered(o, dims) if o.shape.is_array and o.shape.rank == rank else o for o in i.operands]


def _result(i: Instruction, dims: Order) -> Shape:
    """The shape of `i`, an array or a tuple of such, with row-major dimensions in that order."""
    if i.shape.tuple_shapes is None:
        return array(i.shape.element_type, _placed(i.shape.dims, dims))
    return tuple_([array(s.element_type, _placed(s.dims, dims)) for s in i.shape.tuple_shapes])


# -- one order for operands and result ---------------------------------------------------------------------------------
def elementwise(i: Instruction, rows: Rows) -> Made:
    dims = order(i.shape)
    return _like(i, _same_rank(i, rows, dims, i.shape.rank), _result(i, dims)), dims


def bitcast_convert(i: Instruction, rows: Rows) -> Made:
    same = i.shape.element_type.bits == i.operands[0].shape.element_type.bits
    return elementwise(i, rows) if same else row_by_row(i, rows)


def copy(i: Instruction, rows: Rows) -> Made:
    """Only what order elements lie in changes, if anything: a transpose."""
    dims = order(i.shape)
    return rows.ordered(i.operands[0], dims), dims


def _along(name: str) -> Rule:
    """For ops with the number of a dimension, or several, in attribute `name`."""

    def rule(i: Instruction, rows: Rows) -> Made:
        dims = order(i.shape if i.shape.is_array else i.operands[0].shape)
        given = i.attrs[name]
        new = dims.index(given) if isinstance(given, int) else tuple([dims.index(d) for d in given])
        return _like(i, _same_rank(i, rows, dims, len(dims)), _result(i, dims), **{name: new}), dims

    return rule


def _for_each(*names: str) -> Rule:
    """For ops with attributes that have an entry for each dimension."""

    def rule(i: Instruction, rows: Rows) -> Made:
        dims = order(i.shape if i.shape.is_array else i.operands[0].shape)
        placed = {name: _placed(i.attrs[name], dims) for name in names if i.attrs.get(name)}
        return _like(i, _same_rank(i, rows, dims, len(dims)), _result(i, dims), **placed), dims

    return rule


def dynamic_slice(i: Instruction, rows: Rows) -> Made:
    return _dynamic(i, rows, 1, dynamic_slice_sizes=_placed(i.attrs["dynamic_slice_sizes"], order(i.shape)))


def dynamic_update_slice(i: Instruction, rows: Rows) -> Made:
    return _dynamic(i, rows, 2)


def _dynamic(i: Instruction, rows: Rows, arrays: int, **attrs: Any) -> Made:
    dims = order(i.shape)
    starts = i.operands[arrays:]
    if len(starts) != len(dims):
        return row_by_row(i, rows)
    moved = [*(rows.ordered(o, dims) for o in i.operands[:arrays]), *_placed(starts, dims)]
    return _like(i, moved, _result(i, dims), **attrs), dims


# -- dimensions that come, go or change --------------------------------------------------------------------------------
def transpose(i: Instruction, rows: Rows) -> Made:
    """In another order of the operand's dimensions, which its bytes may be in already."""
    dims = order(i.shape)
    return rows.ordered(i.operands[0], _placed(i.attrs["dimensions"], dims)), dims


def bitcast(i: Instruction, rows: Rows) -> Made:
    """The same bytes under other dimensions, and maybe as another type."""
    x, wanted = i.operands[0], stored(i.shape)
    if x.shape.element_type is i.shape.element_type:
        return viewed(rows.of(x), wanted.dims), order(i.shape)
    return home(i).add("bitcast", [x], wanted, like=i), order(i.shape)


def reshape(i: Instruction, rows: Rows) -> Made:
    x = i.operands[0]
    if is_bitcast(x.shape, i.shape):
        return viewed(rows.of(x), stored(i.shape).dims), order(i.shape)
    return viewed(rows.ordered(x, range(x.shape.rank)), i.shape.dims), None


def broadcast(i: Instruction, rows: Rows) -> Made:
    dims, to = order(i.shape), i.attrs["dimensions"]
    own = sorted(range(len(to)), key=lambda d: dims.index(to[d]))
    repeated = rows.ordered(i.operands[0], own)
    return _like(i, [repeated], _result(i, dims), dimensions=tuple([dims.index(to[d]) for d in own])), dims


def reduce(i: Instruction, rows: Rows) -> Made:
    """Over the first operand's order; the others follow it."""
    dims, gone = order(i.operands[0].shape), i.attrs["dimensions"]
    if not in_any_order(i):
        dims = _in_step(dims, gone)
    kept = [d for d in dims if d not in gone]
    left = sorted(kept)
    found = tuple([left.index(d) for d in kept])
    operands = _same_rank(i, rows, dims, len(dims))
    return _like(i, operands, _result(i, found), dimensions=_positions(dims, gone)), found


def reduce_window(i: Instruction, rows: Rows) -> Made:
    x, window = i.operands[0].shape, i.attrs["window"]
    dims = order(x)
    if not may_swap(i.to_apply):
        dims = _in_step(dims, [d for d, w in enumerate(window) if w.size > 1])
    return _like(i, _same_rank(i, rows, dims, x.rank), _result(i, dims), window=_placed(window, dims)), dims


def _in_step(dims: Order, walked: Sequence[int]) -> Order:
    """An order with the dimensions in `walked` one after the other, in the places that they have together."""
    rest = iter(sorted(walked))
    return tuple([next(rest) if d in walked else d for d in dims])


def _positions(dims: Order, gone: Sequence[int]) -> tuple[int, ...]:
    return tuple([n for n, d in enumerate(dims) if d in gone])


def constant_(i: Instruction, rows: Rows) -> Made:
    dims = order(i.shape)
    value = i.attrs["literal"]
    return constant(home(i), Literal(_result(i, dims), value.array.transpose(dims)), like=i), dims


# -- products ----------------------------------------------------------------------------------------------------------
_SIDES = "lhs", "rhs"
_KINDS = "batch", "contracting"


def dot(i: Instruction, rows: Rows) -> Made:
    """On operands as they lie; the sides change places where the result's order asks for that."""
    lies = [order(o.shape) for o in i.operands]
    dims = {f"{s}_{k}_dims": i.attrs.get(f"{s}_{k}_dims", ()) for s in _SIDES for k in _KINDS}
    numbers = {name: tuple([lies[name[0] == "r"].index(d) for d in given]) for name, given in dims.items()}
    batch = range(len(dims["lhs_batch_dims"]))
    free, base = list[list[int]](), len(batch)
    for side, own in zip(_SIDES, lies, strict=True):
        gone = dims[f"{side}_batch_dims"] + dims[f"{side}_contracting_dims"]
        left = sorted(d for d in own if d not in gone)
        free.append([base + left.index(d) for d in own if d in left])
        base += len(left)
    operands = [rows.of(o) for o in i.operands]
    found = (*batch, *free[0], *free[1])
    swapped = (*batch, *free[1], *free[0])
    if swapped == order(i.shape) != found:
        found, operands = swapped, operands[::-1]
        numbers = {f"{'rl'[name[0] == 'r']}{name[1:]}": given for name, given in numbers.items()}
        if i.attrs.get("operand_precision"):
            numbers["operand_precision"] = i.attrs["operand_precision"][::-1]
    return _like(i, operands, _result(i, found), **numbers), found


def convolution(i: Instruction, rows: Rows) -> Made:
    """Every array as it lies: the dimension labels say which dimension is what."""
    x, k, out = (order(s) for s in (*(o.shape for o in i.operands), i.shape))
    d = i.attrs["dim_labels"]
    labels = ConvDims(
        x.index(d.input_batch),
        x.index(d.input_feature),
        tuple(map(x.index, d.input_spatial)),
        k.index(d.kernel_input),
        k.index(d.kernel_output),
        tuple(map(k.index, d.kernel_spatial)),
        out.index(d.output_batch),
        out.index(d.output_feature),
        tuple(map(out.index, d.output_spatial)),
    )
    return _like(i, [rows.of(o) for o in i.operands], _result(i, out), dim_labels=labels), out


# -- indices -----------------------------------------------------------------------------------------------------------
def gather(i: Instruction, rows: Rows) -> Made:
    """From the array as it lies; the window of each index has the order of that array's dimensions."""
    x, starts = i.operands
    dims, offsets = order(x.shape), i.attrs["offset_dims"]
    gone = (*i.attrs["collapsed_slice_dims"], *i.attrs.get("operand_batching_dims", ()))
    windows = [d for d in range(x.shape.rank) if d not in gone]
    window_at = dict(zip(windows, sorted(offsets), strict=True))
    # the result's dimensions: windows keep their places among the others, and change places among themselves
    found = list(range(i.shape.rank))
    for place, d in zip(sorted(offsets), [d for d in dims if d in window_at], strict=True):
        found[place] = window_at[d]
    made = _like(
        i,
        [rows.of(x), rows.ordered(starts, range(starts.shape.rank))],
        _result(i, tuple(found)),
        start_index_map=tuple([dims.index(d) for d in i.attrs["start_index_map"]]),
        collapsed_slice_dims=_sorted(dims, i.attrs["collapsed_slice_dims"]),
        slice_sizes=_placed(i.attrs["slice_sizes"], dims),
        **_batching(i, dims, "operand_batching_dims", "start_indices_batching_dims"),
    )
    return made, found


def scatter(i: Instruction, rows: Rows) -> Made:
    """Into the array as it lies in the result; each update's window has the order of that array's dimensions."""
    count = len(i.operands) // 2
    dims = order(i.shape if i.shape.is_array else i.operands[0].shape)
    gone = (*i.attrs["inserted_window_dims"], *i.attrs.get("input_batching_dims", ()))
    places = sorted(i.attrs["update_window_dims"])
    window_at = dict(zip([d for d in sorted(dims) if d not in gone], places, strict=True))
    updates = list(range(i.operands[-1].shape.rank))
    for place, d in zip(places, [d for d in dims if d in window_at], strict=True):
        updates[place] = window_at[d]
    starts = i.operands[count]
    operands = [rows.ordered(o, dims) for o in i.operands[:count]]
    operands += [rows.ordered(starts, range(starts.shape.rank))]
    operands += [rows.ordered(o, updates) for o in i.operands[count + 1 :]]
    made = _like(
        i,
        operands,
        _result(i, dims),
        scatter_dims_to_operand_dims=tuple([dims.index(d) for d in i.attrs["scatter_dims_to_operand_dims"]]),
        inserted_window_dims=_sorted(dims, i.attrs["inserted_window_dims"]),
        **_batching(i, dims, "input_batching_dims", "scatter_indices_batching_dims"),
    )
    return made, dims


def _sorted(dims: Order, given: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(dims.index(d) for d in given))


def _batching(i: Instruction, dims: Order, ours: str, theirs: str) -> dict[str, tuple[int, ...]]:
    """Batching dimensions of the array, ascending, with those of the indices that go with them."""
    pairs = zip(i.attrs.get(ours, ()), i.attrs.get(theirs, ()), strict=True)
    moved = sorted((dims.index(a), b) for a, b in pairs)
    return {ours: tuple([a for a, _ in moved]), theirs: tuple([b for _, b in moved])} if moved else {}


# -- what only knows row-major arrays ----------------------------------------------------------------------------------
def row_by_row(i: Instruction, rows: Rows) -> Made:
    """With all operands and the result row-major in the dimensions they have."""
    operands = [rows.ordered(o, range(o.shape.rank)) if o.shape.is_array else o for o in i.operands]
    return _like(i, operands, i.shape.with_default_layout()), None


RULES: dict[str, Rule] = {
    "bitcast": bitcast,
    "bitcast-convert": bitcast_convert,
    "broadcast": broadcast,
    "concatenate": _along("dimensions"),
    "constant": constant_,
    "convolution": convolution,
    "copy": copy,
    "dot": dot,
    "dynamic-slice": dynamic_slice,
    "dynamic-update-slice": dynamic_update_slice,
    "gather": gather,
    "map": row_by_row,
    "iota": _along("iota_dimension"),
    "pad": _for_each("padding"),
    "reduce": reduce,
    "reduce-window": reduce_window,
    "reshape": reshape,
    "reverse": _along("dimensions"),
    "rng": row_by_row,
    "rng-bit-generator": row_by_row,
    "scatter": scatter,
    "select-and-scatter": _for_each("window"),
    "slice": _for_each("slice"),
    "sort": _along("dimensions"),
    "topk": row_by_row,
    "transpose": transpose,
}
