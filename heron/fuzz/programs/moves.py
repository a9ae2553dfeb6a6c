"""Steps of `program` that move elements about: broadcasts, slices, gathers and the like."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from heron.fuzz.programs.state import MAX_ELEMENTS, SIZES, Facts, State
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import row_major
from heron.hlo.ir.types import S32


def _ranked(s: State) -> Instruction | None:
    return s.pick(fits=lambda v: v.shape.rank > 0)


def _kept(s: State, made: Instruction, *sources: Instruction) -> Instruction:
    """A value whose elements are all from `sources`."""
    facts: list[Facts] = [s.facts[x] for x in sources]
    return s.keep(made, max(f.bound for f in facts), max(f.error for f in facts))


def _broadcast(s: State) -> Instruction | None:
    x = s.pick()
    extra = s.choices.several(SIZES, 1, 2)
    if prod(extra) * x.shape.num_elements > MAX_ELEMENTS or x.shape.rank > 4:
        return None
    rank = x.shape.rank + len(extra)
    kept = sorted(s.choices.shuffled(range(rank))[: x.shape.rank])
    added = iter(extra)
    dims = [x.shape.dims[kept.index(n)] if n in kept else next(added) for n in range(rank)]
    return _kept(s, s.b.broadcast(x, shape=row_major(x.shape.element_type, *dims), dimensions=kept), x)


def _reshape(s: State) -> Instruction | None:
    x = s.pick()
    dims = list(x.shape.dims)
    way = s.integer(0, 3)
    if len(dims) >= 2 and way <= 1:
        at = s.integer(0, len(dims) - 2)
        dims[at : at + 2] = [dims[at] * dims[at + 1]]
    elif way == 2 and any(d % 2 == 0 for d in dims):
        at = s.one_of([n for n, d in enumerate(dims) if d % 2 == 0])
        dims[at : at + 1] = [2, dims[at] // 2]
    elif way == 3 and 1 in dims:
        dims.remove(1)
    else:
        dims.insert(s.integer(0, len(dims)), 1)
    return None if len(dims) > 6 else _kept(s, s.b.reshape(x, shape=row_major(x.shape.element_type, *dims)), x)


def _transpose(s: State) -> Instruction | None:
    x = _ranked(s)
    return None if x is None else _kept(s, s.b.transpose(x, dimensions=s.choices.shuffled(range(x.shape.rank))), x)


def _slice(s: State) -> Instruction | None:
    x = _ranked(s)
    if x is None:
        return None
    pieces = []
    for size in x.shape.dims:
        start = s.integer(0, size - 1)
        pieces.append((start, s.integer(start + 1, size), s.integer(1, 2)))
    return _kept(s, s.b.slice(x, slice=pieces), x)


def _reverse(s: State) -> Instruction | None:
    x = _ranked(s)
    return None if x is None else _kept(s, s.b.reverse(x, dimensions=[s.integer(0, x.shape.rank - 1)]), x)


def _concatenate(s: State) -> Instruction | None:
    x = _ranked(s)
    if x is None or 3 * x.shape.num_elements > MAX_ELEMENTS:
        return None
    d = s.integer(0, x.shape.rank - 1)

    def fits(v: Instruction) -> bool:
        ours, theirs = list(x.shape.dims), list(v.shape.dims)
        same = len(ours) == len(theirs) and ours[:d] + ours[d + 1 :] == theirs[:d] + theirs[d + 1 :]
        return same and v.shape.element_type is x.shape.element_type

    parts = [x, *(s.pick(fits=fits) for _ in range(s.integer(1, 2)))]
    return _kept(s, s.b.concatenate(*parts, dimensions=[d]), *parts)


def _pad(s: State) -> Instruction | None:
    x = _ranked(s)
    if x is None or x.shape.num_elements > MAX_ELEMENTS // 8:
        return None
    padding = []
    for size in x.shape.dims:
        low, high, inside = s.integer(-1, 2), s.integer(-1, 1), s.integer(0, 1)
        fits = size + (size - 1) * inside + low + high > 0
        padding.append((low, high, inside) if fits else (0, 1, 0))
    facts = s.facts[x]
    return s.keep(s.b.pad(x, 1, padding=padding), max(facts.bound, 1), facts.error)


def _start(s: State) -> Instruction:
    """A start index: often a value of the program, which may lie anywhere."""
    x = s.pick(fits=lambda v: v.shape.element_type is S32 and not v.shape.rank)
    return x if x is not None and s.integer(0, 1) else s.b.constant(s.integer(-1, 8), S32)


def _dynamic_slice(s: State) -> Instruction | None:
    x = _ranked(s)
    if x is None:
        return None
    sizes = [s.integer(1, size) for size in x.shape.dims]
    return _kept(s, s.b.dynamic_slice(x, *(_start(s) for _ in sizes), dynamic_slice_sizes=sizes), x)


def _dynamic_update_slice(s: State) -> Instruction | None:
    x = _ranked(s)
    if x is None:
        return None

    def fits(v: Instruction) -> bool:
        smaller = v.shape.rank == x.shape.rank and all(a <= b for a, b in zip(v.shape.dims, x.shape.dims, strict=True))
        return v.shape.element_type is x.shape.element_type and smaller

    update = s.pick(fits=fits)
    return _kept(s, s.b.dynamic_update_slice(x, update, *(_start(s) for _ in x.shape.dims)), x, update)


def _gather(s: State) -> Instruction | None:
    """Rows along one dimension, at indices in and out of range."""
    x, starts = _ranked(s), s.pick(fits=lambda v: v.shape.element_type is S32 and v.shape.rank <= 2)
    if x is None or starts is None:
        return None
    d = s.integer(0, x.shape.rank - 1)
    sizes = [1 if n == d else s.integer(1, size) for n, size in enumerate(x.shape.dims)]
    batch, window = starts.shape.rank, x.shape.rank - 1
    if prod(sizes) * starts.shape.num_elements > MAX_ELEMENTS:
        return None
    offset = sorted(s.choices.shuffled(range(batch + window))[:window])
    made = s.b.gather(
        x,
        starts,
        offset_dims=offset,
        collapsed_slice_dims=[d],
        start_index_map=[d],
        index_vector_dim=batch,
        slice_sizes=sizes,
    )
    return _kept(s, made, x)


def _copy(s: State) -> Instruction | None:
    x = s.pick()
    return _kept(s, s.b.copy(x), x)


MOVES: dict[str, Callable[[State], Instruction | None]] = {
    "broadcast": _broadcast,
    "reshape": _reshape,
    "transpose": _transpose,
    "slice": _slice,
    "reverse": _reverse,
    "concatenate": _concatenate,
    "pad": _pad,
    "dynamic-slice": _dynamic_slice,
    "dynamic-update-slice": _dynamic_update_slice,
    "gather": _gather,
    "copy": _copy,
}
