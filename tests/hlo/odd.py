"""Odd but valid programs, for passes that must neither break on them nor change what they mean.

Where `generate` bounds errors so that compiled results can be compared, this one only wants trouble: every op the
registry has, sizes of 0 and 1, ranks up to 6, all element types, values from the corners of each type, computations
that ignore their operands, loops that do not run, nested tuples, tokens, control edges, layouts, bounded dimensions.
A program is drawn by numbers (`odd(seed)`), the same one for the same seed; `tests.hlo.reduction` makes it small.

A result is *rough* when the order of additions decides its last bits. Ops that turn such a bit into something large
(a comparison, a sort, a conversion to integers) are only given other values, so that whatever differs is a fault.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import NamedTuple

import numpy as np

from heron.errors import HeronError
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.layout import layout
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import REGISTRY, Op
from heron.hlo.ir.shape import Shape, row_major
from heron.hlo.ir.types import F32, PRED, S32, ElementType, by_name
from tests.conformance import drawn
from tests.conformance.values import ALL, corners

MOST = 300  # elements of a value
COMMON = "f32 s32 pred bf16 f64 s8 u8 f16 c64 u32".split()
DIRECTIONS = ("EQ", "NE", "GE", "GT", "LE", "LT")
#: ops whose result may depend on the order in which floats are added
ADDS = frozenset(
    "reduce dot reduce-window convolution scatter select-and-scatter fft cholesky triangular-solve scan map call fusion "
    "while conditional batch-norm-training batch-norm-inference batch-norm-grad".split()
)
#: elementwise ops that make much of little
JUMPS = frozenset(
    "compare convert floor ceil sign round-nearest-even round-nearest-afz remainder bitcast-convert is-finite "
    "stochastic-convert reduce-precision power atan2 divide tan".split()
)
_NOT_DRAWN = frozenset(("copy", "copy-start", "copy-done", "map"))


class OddProgram(NamedTuple):
    """A module with arrays for its parameters."""

    module: Module
    inputs: list[np.ndarray]


class Odd(drawn.Draw):
    """A program being drawn. ``special``: inputs are corners of their types, and no floats are added."""

    def __init__(self, seed: int, special: bool) -> None:
        super().__init__((9, seed), F32)
        self.special = special
        names = COMMON if self.chance(0.8) else ALL
        self.types = [by_name(str(n)) for n in self.random.choice(names, 3)]
        self.values: list[Instruction] = []
        self.rough: set[Instruction] = set()
        self.only_exact = False
        self.fresh = False

    # -- choosing ----------------------------------------------------------------------------------------------------
    def one_of(self, choices: list | tuple) -> object:  # type: ignore[type-arg]
        return choices[self.number(0, len(choices) - 1)]

    def type(self) -> ElementType:
        return self.one_of([*self.types, S32, F32])  # type: ignore[return-value]

    def dims(self, most: int = 6) -> list[int]:
        """Sizes of an array, most of them small, some 0 or 1."""
        rank = min(most, int(self.random.choice([0, 1, 2, 3, 4, 5, 6], p=[0.15, 0.25, 0.3, 0.15, 0.08, 0.04, 0.03])))
        sizes = [int(n) for n in self.random.choice([0, 1, 2, 3, 4, 7], rank, p=[0.04, 0.25, 0.26, 0.2, 0.15, 0.1])]
        while prod(sizes) > MOST:
            sizes.pop()
        return sizes

    def pick(self, kinds: str = "", exact: bool = False, ranked: bool = False) -> Instruction | None:
        """A value, the latest more often; None when there is none of the kinds."""
        found = [
            v
            for v in self.values
            if (not kinds or v.shape.element_type.kind in kinds.split())
            and not ((exact or self.only_exact) and v in self.rough)
            and (v.shape.rank or not ranked)
        ]
        if not found:
            return None
        at = int(len(found) * self.random.random() ** 0.5)
        return found[at]

    # -- values ------------------------------------------------------------------------------------------------------
    def array(self, dims: list[int], t: ElementType | None = None, low: int = -4, high: int = 4) -> Instruction:
        """A value of that type and those dimensions: made from one there is, a constant, or a parameter."""
        t = t or self.t
        dims = list(dims)
        kind = self.random.random()
        if not self.fresh and kind < 0.6:
            found = self._adapted(dims, t)
            if found is not None:
                return found
        if not self.fresh and kind > 0.85:
            return self.splat(row_major(t, *dims))
        return self.given(row_major(t, *dims), low, high)

    def given(self, shape: Shape, low: int = -4, high: int = 4) -> Instruction:
        """A parameter with an array for it."""
        self.arrays.append(self._numbers(shape.element_type, shape.dims, low, high))
        made = self.b.parameter(len(self.arrays) - 1, shape)
        self.values.append(made)
        return made

    def splat(self, shape: Shape) -> Instruction:
        """A constant, broadcast."""
        t = shape.element_type
        value = self.one_of([0, 1, 1, 2, -1 if t.is_signed and t.bits > 1 else 1])
        pool = corners(t.name)
        number = pool[self.number(0, pool.size - 1)] if self.special and self.chance(0.4) else value
        return self.b.full(np.asarray(number).astype(t.dtype), shape)

    def _numbers(self, t: ElementType, dims: tuple[int, ...], low: int, high: int) -> np.ndarray:
        if self.special:
            pool = corners(t.name)
            return pool[self.random.integers(0, pool.size, dims)]
        if t is PRED:
            return self.random.random(dims) < 0.5
        if t.bits == 1:
            low, high = (-1, 0) if t.is_signed else (0, 1)
        elif t.bits == 2:
            low, high = max(low, -2), min(high, 1)
        value = self.random.integers(0 if not t.is_signed and not t.is_complex else low, high, dims, endpoint=True)
        if t.is_complex:
            value = value + 1j * self.random.integers(low, high, dims, endpoint=True)
        return np.asarray(value).astype(t.dtype)

    def _adapted(self, dims: list[int], t: ElementType) -> Instruction | None:
        """A value there is, brought to the dimensions and the type wanted."""
        same = [v for v in self.values if list(v.shape.dims) == dims and v.shape.element_type is t]
        same = [v for v in same if not (self.only_exact and v in self.rough)]
        if same and self.chance(0.8):
            return self.one_of(same)  # type: ignore[return-value]
        x = self.pick(exact=not t.is_float)
        if x is None:
            return None
        if x.shape.element_type is not t:
            if x.shape.element_type.is_complex or not _converts(x.shape.element_type, t):
                return None
            x = self.b.convert(x, shape=x.shape.with_type(t))
        if x.shape.num_elements == prod(dims) and list(x.shape.dims) != dims:
            x = self.b.reshape(x, shape=row_major(t, *dims))
        elif list(x.shape.dims) != dims:
            if x.shape.rank > len(dims):
                return None
            places = sorted(self.shuffled(len(dims))[: x.shape.rank])
            wanted = [dims[p] for p in places]
            if any(n < m for n, m in zip(x.shape.dims, wanted, strict=True)):
                return None
            if list(x.shape.dims) != wanted:
                x = self.b.slice(x, slice=[(0, n, 1) for n in wanted])
            if len(dims) > len(wanted):
                x = self.b.broadcast(x, shape=row_major(t, *dims), dimensions=places)
        return x

    # -- the end -----------------------------------------------------------------------------------------------------
    def note(self, start: int) -> None:
        """Tell which of the instructions made since `start` are rough."""
        for i in self.b.computation.instructions[start:]:
            inexact = any(
                s.is_array and (s.element_type.is_float or s.element_type.is_complex) for _, s in i.shape.leaves()
            )
            if inexact and (i.opcode in ADDS or any(o in self.rough for o in i.operands)):
                self.rough.add(i)

    def finish(self) -> OddProgram:
        found = [v for v in self.values if not v.users and v.opcode != "parameter"][-5:] or self.values[-1:]
        self._control_edges()
        if len(found) > 2 and self.chance(0.2):
            found = [self.b.tuple(*found[:2]), *found[2:]]
        root = found[0] if len(found) == 1 else self.b.tuple(*found)
        return OddProgram(self.b.build(root, verify=False), self.arrays)

    def _control_edges(self) -> None:
        everything = [i for i in self.b.computation.instructions if i.opcode not in ("parameter", "constant")]
        while len(everything) > 2 and self.chance(0.15):
            first, last = sorted(self.shuffled(len(everything))[:2])
            if everything[first] not in everything[last].control_predecessors:
                everything[last].add_control_predecessor(everything[first])


def _converts(x: ElementType, t: ElementType) -> bool:
    return not (t.is_complex and x.is_complex)


def odd(seed: int, steps: int = 10) -> OddProgram | None:
    """The odd program of that number; None where what was drawn is not valid after all."""
    d = Odd(seed, special=seed % 2 == 1)
    for _ in range(d.number(1, 2)):
        d.given(row_major(d.type(), *d.dims()))
    ways = _steps()
    wanted = len(d.values) + d.number(1, steps)
    for _ in range(4 * steps):
        if len(d.values) >= wanted:
            break
        start = len(d.b.computation.instructions)
        d.t = d.type()
        name = str(d.random.choice(list(ways)))
        try:
            made = ways[name](d)
        except HeronError:  # not for these operands: the shape rule says so before anything is made
            made = None
        d.note(start)
        if made is not None and made.shape.is_array and made.shape.num_elements <= MOST:
            d.values.append(made)
    program = d.finish()
    if d.chance(0.3):
        laid_out(program.module, d.random)
    from heron.hlo.verifier import problems

    return None if next(problems(program.module), None) else program


def _steps() -> dict[str, Callable[[Odd], Instruction | None]]:
    from tests.hlo.odd_calls import CALLS

    weights = {"elementwise": _elementwise}
    return {**{f"elementwise{n}": _elementwise for n in range(12)}, **weights, **_MOVES, **_DRAWN, **CALLS}


# -- elementwise, from the registry -----------------------------------------------------------------------------------
def _elementwise(d: Odd) -> Instruction | None:
    op: Op = d.one_of(sorted((o for o in REGISTRY.values() if o.is_elementwise and o.name not in _NOT_DRAWN), key=str))  # type: ignore[assignment]
    x = d.pick(exact=op.name in JUMPS)
    if x is None or x.shape.dynamic:
        return None
    t, dims = x.shape.element_type, list(x.shape.dims)
    d.only_exact = op.name in JUMPS
    attrs: dict[str, object] = {}
    shape: Shape | None = None
    operands = [x]
    if op.name == "compare":
        attrs["direction"] = d.one_of(DIRECTIONS)
        if t.is_float and d.chance(0.2):
            attrs["type"] = "TOTALORDER"
    elif op.name == "reduce-precision":
        attrs.update(exponent_bits=d.number(1, 11), mantissa_bits=d.number(0, 12))
    elif op.name in ("convert", "bitcast-convert", "stochastic-convert"):
        to = d.type() if d.chance(0.5) else by_name(str(d.random.choice(COMMON)))
        if op.name == "stochastic-convert" and to.kind != "signed":
            return None
        shape = x.shape.with_type(to)
    elif op.name == "select":
        operands = [d.array(dims if d.chance(0.8) else [], PRED), x]
    elif op.name == "clamp":
        bound = [] if d.chance(0.5) else dims
        operands = [d.array(bound, t), x]
        d.only_exact = False
        return d.b.clamp(*operands, d.array(bound, t))
    if op.name == "stochastic-convert":
        bits = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}.get(x.shape.element_type.byte_size)
        if bits is None:
            return None
        operands.append(d.array(dims, by_name(bits)))
    while len(operands) < op.min_operands:
        operands.append(d.array(dims, t))
    d.only_exact = False
    return d.b.apply(op, operands, shape, "", attrs)


# -- movement ----------------------------------------------------------------------------------------------------------
def _reshape(d: Odd) -> Instruction | None:
    x = d.pick()
    if x is None:
        return None
    dims = list(x.shape.dims)
    for _ in range(d.number(1, 2)):
        at = d.number(0, len(dims))
        way = d.number(0, 3)
        if way == 0 and len(dims) < 6:
            dims.insert(at, 1)
        elif way == 1 and len(dims) > 1:
            at = min(at, len(dims) - 2)
            dims[at : at + 2] = [dims[at] * dims[at + 1]]
        elif way == 2 and dims and dims[min(at, len(dims) - 1)] % 2 == 0:
            at = min(at, len(dims) - 1)
            dims[at : at + 1] = [2, dims[at] // 2]
        elif 1 in dims:
            dims.remove(1)
    return d.b.reshape(x, shape=row_major(x.shape.element_type, *dims))


def _transpose(d: Odd) -> Instruction | None:
    x = d.pick()
    return None if x is None else d.b.transpose(x, dimensions=d.shuffled(x.shape.rank))


def _broadcast(d: Odd) -> Instruction | None:
    x = d.pick()
    if x is None or x.shape.rank > 4:
        return None
    rank = x.shape.rank + d.number(0, 2)
    places = d.shuffled(rank)[: x.shape.rank]
    if d.chance(0.6):
        places.sort()
    dims = [d.number(0, 3) if d.chance(0.1) else d.number(1, 3) for _ in range(rank)]
    for p, n in zip(places, x.shape.dims, strict=True):
        dims[p] = n
    return d.b.broadcast(x, shape=row_major(x.shape.element_type, *dims), dimensions=places)


def _slice(d: Odd) -> Instruction | None:
    x = d.pick()
    if x is None:
        return None
    pieces = []
    for n in x.shape.dims:
        start = d.number(0, n) if d.chance(0.4) else 0
        pieces.append((start, d.number(start, n) if d.chance(0.4) else n, d.number(1, 3) if d.chance(0.3) else 1))
    return d.b.slice(x, slice=pieces)


def _pad(d: Odd) -> Instruction | None:
    x = d.pick()
    if x is None:
        return None
    padding = []
    for n in x.shape.dims:
        between = d.number(0, 2) if d.chance(0.2) else 0
        low = d.number(-2, 2)
        padding.append((low, max(d.number(-2, 2), -low - (n + max(n - 1, 0) * between)), between))
    return d.b.pad(x, d.array([], x.shape.element_type), padding=padding)


def _reverse(d: Odd) -> Instruction | None:
    x = d.pick()
    return None if x is None else d.b.reverse(x, dimensions=d.some(list(range(x.shape.rank))))


def _concatenate(d: Odd) -> Instruction | None:
    x = d.pick(ranked=True)
    if x is None:
        return None
    at = d.number(0, x.shape.rank - 1)
    parts = [x]
    for _ in range(d.number(0, 3)):
        dims = list(x.shape.dims)
        dims[at] = d.number(0, 3)
        parts.append(d.array(dims, x.shape.element_type))
    return d.b.concatenate(*[parts[k] for k in d.shuffled(len(parts))], dimensions=[at])


def _iota(d: Odd) -> Instruction | None:
    dims = d.dims()
    return d.b.iota(row_major(d.t, *dims), d.number(0, len(dims) - 1)) if dims and d.t is not PRED else None


def _constant(d: Odd) -> Instruction | None:
    dims = d.dims(3)
    return d.b.constant(d._numbers(d.t, tuple(dims), -4, 4), d.t)


def _copy(d: Odd) -> Instruction | None:
    x = d.pick()
    return None if x is None else d.b.copy(x)


def _bitcast(d: Odd) -> Instruction | None:
    """The same bytes as an array of other dimensions, in any order."""
    x = d.pick()
    if x is None or x.shape.dynamic or x.shape.element_type.bits < 8:
        return None
    dims = [x.shape.dims[k] for k in d.shuffled(x.shape.rank)]
    if d.chance(0.3):
        dims.append(1)
    return d.b.bitcast(
        x, shape=row_major(x.shape.element_type, *dims).with_layout(layout(tuple(d.shuffled(len(dims)))))
    )


def _parts(d: Odd) -> Instruction | None:
    """A complex number taken apart and put together."""
    x = d.pick("complex")
    if x is None:
        y = d.pick("float")
        if y is None or y.shape.element_type.name not in ("f32", "f64"):
            return None
        return d.b.complex(y, d.array(list(y.shape.dims), y.shape.element_type))
    return d.b.imag(x) if d.chance(0.5) else d.b.real(x)


def _bounded(d: Odd) -> Instruction | None:
    """A value one of whose sizes is known at run time only, changed, and made one of fixed size again."""
    x = d.pick(ranked=True, exact=True)
    if x is None or x.shape.dynamic or not x.shape.num_elements:
        return None
    at, t = d.number(0, x.shape.rank - 1), x.shape.element_type
    size = d.b.constant(d.number(1, x.shape.dims[at]), S32)
    if d.chance(0.4):
        size = d.b.clamp(d.b.constant(1, S32), d.array([], S32), d.b.constant(x.shape.dims[at], S32))
    cut = d.b.set_dimension_size(x, size, dimensions=[at])
    for _ in range(d.number(0, 2)):
        way = d.number(0, 3)
        if way == 0 and (t.is_float or t.is_signed):
            cut = d.b.negate(cut)
        elif way == 1:
            cut = d.b.concatenate(cut, cut, dimensions=[d.number(0, x.shape.rank - 1)])
        elif way == 2:
            order = d.shuffled(x.shape.rank)
            cut, at = d.b.transpose(cut, dimensions=order), order.index(at)
        elif x.shape.rank > 1:
            cut = d.b.reverse(cut, dimensions=[k for k in range(x.shape.rank) if k != at][:1])
    if d.chance(0.3) or t.is_complex:
        return d.b.get_dimension_size(cut, dimensions=[at])
    opcode = "or" if t is PRED else d.one_of(("maximum", "minimum", *(("add",) if t.is_integer else ())))
    start = d.b.constant(np.zeros((), t.dtype), t)
    return d.b.reduce(cut, start, dimensions=list(range(x.shape.rank)), to_apply=d.b.reducer(str(opcode), t))


_MOVES: dict[str, Callable[[Odd], Instruction | None]] = {
    "reshape": _reshape,
    "reshape again": _reshape,
    "transpose": _transpose,
    "transpose again": _transpose,
    "broadcast": _broadcast,
    "broadcast again": _broadcast,
    "slice": _slice,
    "pad": _pad,
    "reverse": _reverse,
    "concatenate": _concatenate,
    "iota": _iota,
    "constant": _constant,
    "copy": _copy,
    "bitcast": _bitcast,
    "parts": _parts,
    "bounded": _bounded,
}


# -- what `drawn` has, on values of this program -----------------------------------------------------------------------
def _drawn(
    draw: Callable[[drawn.Draw], Instruction], adds: bool, exact: bool, fresh: bool
) -> Callable[[Odd], Instruction | None]:
    def step(d: Odd) -> Instruction | None:
        if adds and d.special and (d.t.is_float or d.t.is_complex):
            return None
        if d.t is PRED or d.t.bits < 8:
            return None
        d.only_exact, d.fresh = exact, fresh
        try:
            return draw(d)
        finally:
            d.only_exact = d.fresh = False

    return step


_DRAWN: dict[str, Callable[[Odd], Instruction | None]] = {
    name: _drawn(
        draw,
        adds=name in ("dot", "convolution", "reduce", "reduce-window", "select-and-scatter", "scatter"),
        exact=name in ("sort", "gather", "scatter", "dynamic-slice", "dynamic-update-slice"),
        fresh=name in ("select-and-scatter",),
    )
    for name, draw in drawn.OPS.items()
    if name not in ("pad", "slice", "moved")
}


# -- layouts -----------------------------------------------------------------------------------------------------------
def laid_out(module: Module, random: np.random.Generator) -> None:
    """Give the entry's arrays layouts of any order, with copies where an op takes another one than it is given."""
    from heron.hlo.verifier.layouts import KEEPING

    c = module.entry
    for i in c.post_order():
        keeps = (i.op.is_elementwise or i.opcode in KEEPING) and i.opcode != "copy"
        whole = not i.shape.is_array or i.opcode in _ROW_MAJOR or (i.called and not keeps and i.opcode != "reduce")
        order = None if whole or i.shape.rank < 2 else tuple(int(n) for n in random.permutation(i.shape.rank))
        if i.opcode in _ROW_MAJOR:
            i.shape = i.shape.with_default_layout()
        if order is not None and i.shape.layout is not None and i.opcode != "bitcast":
            i.shape = i.shape.with_layout(layout(order))
        for n, x in enumerate(i.operands):
            if not x.shape.is_array or x.shape.layout is None:
                continue
            wanted = i.shape if keeps and x.shape.rank == i.shape.rank and i.shape.is_array else None
            if wanted is None and (whole or i.opcode == "bitcast" or keeps):
                wanted = x.shape.with_default_layout()
            lies = None if wanted is None or wanted.layout is None else wanted.layout.minor_to_major
            if lies is not None and x.shape.layout.minor_to_major != lies:
                i.set_operand(n, c.add("copy", [x], x.shape.with_layout(layout(lies))))
    module.entry_layout = None


#: ops given only row-major arrays: they hand them on as they are, or to computations that take them so
_ROW_MAJOR = frozenset(
    "tuple get-tuple-element call fusion while conditional opt-barrier add-dependency domain async-start scan outfeed "
    "custom-call topk sort rng-bit-generator".split()
)
