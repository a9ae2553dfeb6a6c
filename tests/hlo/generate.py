"""Random programs: a Hypothesis strategy for small valid modules with inputs, for tests of passes, codegen and text.

The programs are well-behaved: no division by chance zeros, no overflow to infinity, so results of different backends
can be compared with the usual tolerances. Structure is what varies: shapes (with size-1 and odd dimensions), fan-out,
ranks, element types, reductions over any dimensions.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from hypothesis import strategies as st

from heron.hlo.builder import Builder
from heron.hlo.instruction import Instruction
from heron.hlo.module import Module
from heron.hlo.shape import row_major
from heron.hlo.types import BF16, F32, PRED, S32, ElementType

Program = tuple[Module, list[np.ndarray]]
Draw = Callable[[Any], Any]

MAX_ELEMENTS = 4096
SIZES = (1, 2, 3, 4, 5, 7, 8, 16, 33)

FLOAT_UNARY = ("negate", "abs", "tanh", "logistic", "cosine", "sine", "floor", "sign", "round-nearest-even")
FLOAT_BINARY = ("add", "subtract", "multiply", "maximum", "minimum")
INT_UNARY = ("negate", "abs", "not", "sign", "popcnt", "count-leading-zeros")
INT_BINARY = ("add", "subtract", "multiply", "maximum", "minimum", "and", "or", "xor")
PRED_BINARY = ("and", "or", "xor")
DIRECTIONS = ("EQ", "NE", "GE", "GT", "LE", "LT")


@st.composite
def programs(draw: Draw, types: tuple[ElementType, ...] = (F32, S32), max_ops: int = 12) -> Program:
    """A module and inputs for its parameters. Add `BF16` to `types` for narrow floats."""
    b = Builder("generated")
    inputs: list[np.ndarray] = []
    values: list[Instruction] = []
    for n in range(draw(st.integers(1, 3))):
        element_type = draw(st.sampled_from(types))
        dims = draw(_dims())
        values.append(b.parameter(n, row_major(element_type, *dims)))
        inputs.append(_input(draw, element_type, dims))
    for _ in range(draw(st.integers(1, max_ops))):
        made = _STEPS[draw(st.sampled_from(sorted(_STEPS)))](draw, b, values)
        if made is not None:
            values.append(made)
    outputs = [v for v in values if not v.users and v.opcode != "parameter"][-4:] or values[-1:]
    root = outputs[0] if len(outputs) == 1 else b.tuple(*outputs)
    return b.build(root), inputs


def _dims() -> st.SearchStrategy[tuple[int, ...]]:
    return st.lists(st.sampled_from(SIZES), max_size=4).map(_bounded)


def _bounded(sizes: list[int]) -> tuple[int, ...]:
    while prod(sizes) > MAX_ELEMENTS:
        sizes = sizes[:-1]
    return tuple(sizes)


def _input(draw: Draw, element_type: ElementType, dims: tuple[int, ...]) -> np.ndarray:
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    if element_type is PRED:
        return rng.random(dims) < 0.5
    if element_type.is_integer:
        return rng.integers(-20, 20, dims).astype(element_type.dtype)
    return np.asarray(rng.uniform(-2, 2, dims)).astype(element_type.dtype)


def _pick(draw: Draw, values: list[Instruction], kinds: str = "") -> Instruction | None:
    """A value whose element type is of one of the kinds, favouring recent ones."""
    fitting = [v for v in values if not kinds or v.shape.element_type.kind in kinds.split()]
    return draw(st.sampled_from(fitting[::-1])) if fitting else None


def _ops(x: Instruction, floats: tuple[str, ...], ints: tuple[str, ...], preds: tuple[str, ...]) -> tuple[str, ...]:
    kind = x.shape.element_type.kind
    return floats if kind == "float" else preds if kind == "pred" else ints


# -- steps: each adds one value, or gives up ------------------------------------------------------------------------
def _unary(draw: Draw, b: Builder, values: list[Instruction]) -> Instruction | None:
    x = _pick(draw, values)
    assert x is not None
    opcode = draw(st.sampled_from(_ops(x, FLOAT_UNARY, INT_UNARY, ("not",))))
    return b.computation.add(opcode, [x])


def _binary(draw: Draw, b: Builder, values: list[Instruction]) -> Instruction | None:
    x = _pick(draw, values)
    assert x is not None
    y = _pick(draw, [v for v in values if v.shape is x.shape])
    opcode = draw(st.sampled_from(_ops(x, FLOAT_BINARY, INT_BINARY, PRED_BINARY)))
    found = b.computation.add(opcode, [x, y or x])
    # keeps repeated squaring from running off to infinity
    return b.tanh(found) if opcode == "multiply" and x.shape.element_type.is_float else found


def _compare(draw: Draw, b: Builder, values: list[Instruction]) -> Instruction | None:
    x = _pick(draw, values, "float signed")
    if x is None:
        return None
    y = _pick(draw, [v for v in values if v.shape is x.shape])
    return b.compare(x, y or x, direction=draw(st.sampled_from(DIRECTIONS)))


def _select(draw: Draw, b: Builder, values: list[Instruction]) -> Instruction | None:
    p = _pick(draw, values, "pred")
    choices = [] if p is None else [v for v in values if v.shape.dims == p.shape.dims]
    x = _pick(draw, choices)
    y = None if x is None else _pick(draw, [v for v in choices if v.shape is x.shape])
    return None if y is None else b.select(p, x, y)


def _convert(draw: Draw, b: Builder, values: list[Instruction]) -> Instruction | None:
    x = _pick(draw, values, "signed pred float")
    if x is None:
        return None
    target = S32 if x.shape.element_type.is_float else F32
    if x.shape.element_type is BF16:
        target = F32
    return b.convert(x, shape=x.shape.with_type(target))


def _broadcast(draw: Draw, b: Builder, values: list[Instruction]) -> Instruction | None:
    x = _pick(draw, values)
    assert x is not None
    extra = draw(st.lists(st.sampled_from(SIZES), min_size=1, max_size=2))
    if prod(extra) * x.shape.num_elements > MAX_ELEMENTS or x.shape.rank > 4:
        return None
    rank = x.shape.rank + len(extra)
    kept = sorted(draw(st.permutations(range(rank)))[: x.shape.rank])
    added = iter(extra)
    dims = [x.shape.dims[kept.index(n)] if n in kept else next(added) for n in range(rank)]
    return b.broadcast(x, shape=row_major(x.shape.element_type, *dims), dimensions=kept)


def _reshape(draw: Draw, b: Builder, values: list[Instruction]) -> Instruction | None:
    x = _pick(draw, values)
    assert x is not None
    dims = list(x.shape.dims)
    if len(dims) >= 2 and draw(st.booleans()):
        at = draw(st.integers(0, len(dims) - 2))
        dims[at : at + 2] = [dims[at] * dims[at + 1]]
    else:
        dims.insert(draw(st.integers(0, len(dims))), 1)
    return b.reshape(x, shape=row_major(x.shape.element_type, *dims))


def _transpose(draw: Draw, b: Builder, values: list[Instruction]) -> Instruction | None:
    x = _pick(draw, values)
    assert x is not None
    return b.transpose(x, dimensions=draw(st.permutations(range(x.shape.rank)))) if x.shape.rank else None


def _slice(draw: Draw, b: Builder, values: list[Instruction]) -> Instruction | None:
    x = _pick(draw, values)
    assert x is not None
    pieces = []
    for size in x.shape.dims:
        start = draw(st.integers(0, size - 1))
        pieces.append((start, draw(st.integers(start + 1, size)), draw(st.integers(1, 2))))
    return b.slice(x, slice=pieces) if pieces else None


def _reverse(draw: Draw, b: Builder, values: list[Instruction]) -> Instruction | None:
    x = _pick(draw, values)
    assert x is not None
    return b.reverse(x, dimensions=[draw(st.integers(0, x.shape.rank - 1))]) if x.shape.rank else None


def _concatenate(draw: Draw, b: Builder, values: list[Instruction]) -> Instruction | None:
    x = _pick(draw, values)
    assert x is not None
    y = _pick(draw, [v for v in values if v.shape is x.shape])
    if not x.shape.rank or 2 * x.shape.num_elements > MAX_ELEMENTS:
        return None
    return b.concatenate(x, y or x, dimensions=[draw(st.integers(0, x.shape.rank - 1))])


def _pad(draw: Draw, b: Builder, values: list[Instruction]) -> Instruction | None:
    x = _pick(draw, values)
    assert x is not None
    if not x.shape.rank or x.shape.num_elements > MAX_ELEMENTS // 8:
        return None
    padding = [(draw(st.integers(0, 2)), draw(st.integers(0, 1)), draw(st.integers(0, 1))) for _ in x.shape.dims]
    return b.pad(x, 1, padding=padding)


def _reduce(draw: Draw, b: Builder, values: list[Instruction]) -> Instruction | None:
    x = _pick(draw, values, "float signed pred")
    if x is None or not x.shape.rank:
        return None
    over = draw(st.sets(st.integers(0, x.shape.rank - 1), min_size=1))
    element_type = x.shape.element_type
    choices = {"float": ("add", "maximum"), "signed": ("add", "minimum", "xor"), "pred": ("and", "or")}
    opcode = draw(st.sampled_from(choices[element_type.kind]))
    init = {"add": 0, "maximum": -1e4, "minimum": 10**6, "xor": 0, "and": True, "or": False}[opcode]
    combined = b.reduce(x, init, dimensions=sorted(over), to_apply=b.reducer(opcode, element_type))
    # keeps sums of sums in the range where tolerances mean something
    return b.multiply(combined, 1 / 64) if opcode == "add" and element_type.is_float else combined


def _iota(draw: Draw, b: Builder, values: list[Instruction]) -> Instruction | None:
    dims = draw(_dims())
    return b.iota(row_major(S32, *dims), draw(st.integers(0, len(dims) - 1))) if dims else None


_STEPS = {
    "unary": _unary,
    "binary": _binary,
    "compare": _compare,
    "select": _select,
    "convert": _convert,
    "broadcast": _broadcast,
    "reshape": _reshape,
    "transpose": _transpose,
    "slice": _slice,
    "reverse": _reverse,
    "concatenate": _concatenate,
    "pad": _pad,
    "reduce": _reduce,
    "iota": _iota,
}
