"""Bounded dynamic dimensions (``<=N``): an array of the actual size is the value.

So an op on such values is the same op on smaller, static arrays: `run` makes that instruction, its operands and result
shaped as the values are, and each op's own meaning does the rest. Padding never exists, so nothing can see it.
Where sizes alone do not tell the result, the rules below do, as XLA's dynamic dimension inference has them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from heron.errors import HeronError
from heron.hlo.facts import having, is_reduction
from heron.hlo.ir import shape as shapes
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import Trait, get
from heron.hlo.meaning.dynamic_size import trimmed

if TYPE_CHECKING:
    from heron.evaluator.walker import Evaluator
    from heron.hlo.ir.shape import Shape

#: hand values on, or look at them alone: what the program states about sizes does not matter to them
_INDIFFERENT = (
    having(Trait.TUPLE, Trait.FORWARDS, Trait.CALL, Trait.CONTROL_FLOW, Trait.ASYNC, Trait.HOST, Trait.CHANNEL)
    | having(Trait.SIZES)
    | {"parameter", "map", "custom-call", "after-all", "copy-start", "copy-done"}
) - {"bitcast"}


def is_dynamic(i: Instruction) -> bool:
    """Whether sizes of the instruction or its operands are known at run time only."""
    if i.opcode in _INDIFFERENT:
        return False
    return any(s.dynamic for o in (i, *i.operands) for _, s in o.shape.leaves())


def run(ev: Evaluator, i: Instruction, *values: Any) -> Any:
    """The value of `i` on operands of their actual sizes.

    Raises HLO010 when such operands do not go together, EVAL004 where no rule tells the result's size, EVAL008 when
    elements beyond the actual size are asked for.
    """
    try:
        made, fitting = _fitted(i, list(values))
    except HeronError as e:  # places said by the made instruction are not in the program
        raise HeronError(e.code, e.what, where=str(i), why=e.why, hint=e.hint) from None
    value: Any = ev.run_instruction(made, fitting)
    return trimmed(value, values[0].shape) if i.opcode == "dynamic-update-slice" else value


def _fitted(i: Instruction, values: list[Any]) -> tuple[Instruction, list[Any]]:
    """The same op on operands of the sizes `values` have, and those operands."""
    values, attrs = _operands(i, values)
    stubs = [_stub(o, v) for o, v in zip(i.operands, values, strict=True)]
    stated = _STATED.get(i.opcode)
    if stated is not None:
        return Instruction(i.op, stubs, stated(i, values), attrs, i.name, i.extras), values
    made = Instruction(i.op, stubs, None, attrs, i.name, i.extras)
    if i.shape.is_array and made.shape.element_type is not i.shape.element_type:
        made.shape = made.shape.with_type(i.shape.element_type)
    return made, values


# -- operands --------------------------------------------------------------------------------------------------------
def _stub(o: Instruction, value: Any) -> Instruction:
    return Instruction(get("parameter"), (), _shape_of(o.shape, value), {"number": 0}, o.name)


def _shape_of(s: Shape, value: Any) -> Shape:
    """`s` with the sizes `value` has."""
    if s.tuple_shapes is not None:
        return shapes.tuple_(tuple(_shape_of(p, v) for p, v in zip(s.tuple_shapes, value, strict=True)))
    return shapes.array(s.element_type, value.shape, s.layout) if s.is_array else s


def _operands(i: Instruction, values: list[Any]) -> tuple[list[Any], dict[str, Any]]:
    """Operands, and attributes, as the op needs them on actual sizes."""
    if i.op.is_elementwise or i.opcode == "sort":
        return _level(i.operands, values), i.attrs
    if not values:
        return values, i.attrs
    if is_reduction(i):
        count = len(values) // 2
        return _level(i.operands[:count], values[:count]) + values[count:], i.attrs
    x = values[0]
    if i.opcode == "slice":
        return values, {**i.attrs, "slice": _limits(i, x)}
    if i.opcode == "dynamic-slice":
        values[0], sizes = _windowed(i, x, i.dynamic_slice_sizes)
        return values, {**i.attrs, "dynamic_slice_sizes": sizes}
    if i.opcode == "gather":
        values[0], sizes = _windowed(i, x, i.slice_sizes, i.collapsed_slice_dims, i.operand_batching_dims)
        return values, {**i.attrs, "slice_sizes": sizes}
    if i.opcode == "dynamic-update-slice":  # moves within the bounds, whatever the sizes
        bounds, window = (o.shape.dims for o in i.operands[:2])
        starts = [np.clip(v, 0, n - m) for v, n, m in zip(values[2:], bounds, window, strict=True)]
        return [trimmed(x, bounds), values[1], *starts], i.attrs
    return values, i.attrs


def _level(operands: Sequence[Instruction], values: list[Any]) -> list[Any]:
    """Arrays that are gone through together: one whose size is static takes the size of those whose size is dynamic."""
    rank = max(o.shape.rank for o in operands)
    dims: list[int | None] = [None] * rank
    for o, v in zip(operands, values, strict=True):
        for d, is_dynamic in enumerate(o.shape.dynamic):
            if is_dynamic:
                dims[d] = v.shape[d] if dims[d] is None else dims[d]
    leveled: list[Any] = []
    for o, v in zip(operands, values, strict=True):
        static = [None if dyn else n for n, dyn in zip(dims, o.shape.dynamic or (False,) * v.ndim, strict=False)]
        leveled.append(trimmed(v, static) if o.shape.rank == rank else v)
    return leveled


def _limits(i: Instruction, x: np.ndarray) -> tuple[tuple[int, int, int], ...]:
    """A slice's limits; a dimension that stays dynamic ends where the operand does."""
    found: list[tuple[int, int, int]] = []
    for d, (start, limit, stride) in enumerate(i.slice):
        if limit > x.shape[d]:
            if not (i.shape.dynamic and i.shape.dynamic[d]):
                raise HeronError(
                    "EVAL008", f"'slice' takes elements {start} to {limit}", why=f"dimension {d} has {x.shape[d]}"
                )
            start, limit = min(start, x.shape[d]), x.shape[d]
        found.append((start, limit, stride))
    return tuple(found)


def _windowed(
    i: Instruction, x: np.ndarray, sizes: Sequence[int], gone: Sequence[int] = (), batching: Sequence[int] = ()
) -> tuple[np.ndarray, tuple[int, ...]]:
    """Windows over a whole dynamic dimension are as large as it is; over a part, they move in the whole bound.

    One element, of a dimension that is `gone` from the result, is a part.
    """
    bounds = i.operands[0].shape.dims
    whole = [size == bound != n for size, bound, n in zip(sizes, bounds, x.shape, strict=True)]
    whole = [w and d not in (*gone, *batching) for d, w in enumerate(whole)]
    kept = [w or d in batching for d, w in enumerate(whole)]
    padded = trimmed(x, [None if k else bound for k, bound in zip(kept, bounds, strict=True)])
    return padded, tuple(n if w else size for w, n, size in zip(whole, x.shape, sizes, strict=True))


# -- results that are stated -----------------------------------------------------------------------------------------
def _broadcast(i: Instruction, values: list[Any]) -> Shape:
    dims = list(i.shape.dims)
    for d, n in zip(i.dimensions or (), values[0].shape, strict=True):
        dims[d] = n
    return i.shape.with_dims(tuple(dims))


def _reshape(i: Instruction, values: list[Any]) -> Shape:
    """Dimensions are matched in runs of equal bounds; a run may have one dynamic dimension in the result."""
    x, bounds, to = values[0], i.operands[0].shape.dims, i.shape
    dims: list[int] = list(to.dims)
    if not prod(bounds):
        return to.with_dims(to.dims)
    a = b = 0
    while a < len(bounds) or b < len(dims):
        a0, b0 = a, b
        a, b = min(a + 1, len(bounds)), min(b + 1, len(dims))
        while prod(bounds[a0:a]) != prod(to.dims[b0:b]):
            if prod(bounds[a0:a]) < prod(to.dims[b0:b]):
                a += 1
            else:
                b += 1
        _settle_run(i, dims, b0, b, prod(x.shape[a0:a]))
    return to.with_dims(tuple(dims))


def _settle_run(i: Instruction, dims: list[int], start: int, end: int, count: int) -> None:
    """Give the dynamic dimension of ``dims[start:end]`` the size that makes `count` elements."""
    dynamic = [d for d in range(start, end) if i.shape.dynamic and i.shape.dynamic[d]]
    if prod(dims[start:end]) == count:
        return
    others = prod(dims[d] for d in range(start, end) if d not in dynamic[:1])
    if len(dynamic) != 1 or not others or count % others:
        raise HeronError(
            "EVAL004",
            f"'{i.opcode}' of {count} elements at run time to {i.shape.bare}",
            why="one dynamic dimension of the result must make up for the size",
            hint="dynamic-reshape says each size",
        )
    dims[dynamic[0]] = count // others


def _same_dims(i: Instruction, values: list[Any]) -> Shape:
    return i.shape.with_dims(values[0].shape)


def _bit_dims(i: Instruction, values: list[Any]) -> Shape:
    """bitcast-convert: a last dimension may come or go; the ones before are the operand's."""
    dims = values[0].shape
    extra = i.shape.rank - len(dims)
    return i.shape.with_dims((*dims, i.shape.dims[-1]) if extra > 0 else dims[: i.shape.rank])


def _scan(i: Instruction, values: list[Any]) -> Shape:
    parts = i.shape.tuple_shapes or (i.shape,)
    (dim,), count = i.dimensions, len(parts) - i.num_carries
    found = list(parts)
    for n, s in enumerate(parts[:count]):
        found[n] = s.with_dims((*s.dims[:dim], values[0].shape[dim], *s.dims[dim + 1 :]))
    return shapes.tuple_(found) if i.shape.is_tuple else found[0]


def _exchanged(i: Instruction, values: list[Any]) -> Shape:
    """An array exchanged along one dimension, of the stated size, keeps its sizes in the others."""
    along = i.dimensions[0] if i.dimensions else None
    parts = i.shape.tuple_shapes or (i.shape,)
    found: list[Shape] = []
    for s, o, v in zip(parts, i.operands, values, strict=True):
        own = [d != along and bool(o.shape.dynamic) and o.shape.dynamic[d] for d in range(s.rank)]
        found.append(
            s.with_dims(tuple(v.shape[d] if mine else n for d, (n, mine) in enumerate(zip(s.dims, own, strict=True))))
        )
    return shapes.tuple_(found) if i.shape.is_tuple else found[0]


def _bound(i: Instruction, values: list[Any]) -> Shape:
    """Nothing but the bound is known."""
    return i.shape


_STATED: dict[str, Callable[[Instruction, list[Any]], Shape]] = {
    "broadcast": _broadcast,
    "reshape": _reshape,
    "bitcast": _reshape,
    "convert": _same_dims,
    "bitcast-convert": _bit_dims,
    "scan": _scan,
    "all-gather": _exchanged,
    "all-to-all": _exchanged,
    "reduce-scatter": _exchanged,
    "iota": _bound,
    "rng": _bound,
    "rng-bit-generator": _bound,
    "constant": _bound,
    "all-gather-start": _bound,
    "ragged-all-to-all": _bound,
    "collective-permute-start": _bound,
}
