"""Generated programs: small valid modules with inputs, drawn by any source of choices.

What the results of two backends may differ by is known for every output, so that a comparison needs no tolerance that
could hide a fault. Most float values are integers small enough for all arithmetic on them to be exact whatever its
order; only these are compared, rounded or made integers. Values from functions such as tanh carry a bound of their
error along. Structure is what varies: shapes (with size-1 and odd dimensions), fan-out, ranks, element types, loops.

This file has the state and the ops that compute; more functions are in `functions`, the steps that move
elements in `moves`, those that call computations in `calls`, and convolutions, transforms and linear
algebra in `algebra`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from math import prod
from typing import Any, NamedTuple

import numpy as np

from heron.fuzz.choices import Choices
from heron.hlo.builder import Builder
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import row_major
from heron.hlo.ir.types import BF16, F16, F32, F64, PRED, S8, S16, S32, S64, U8, U32, ElementType
from heron.records import dataclass

MAX_ELEMENTS = 4096
SIZES = (1, 2, 3, 4, 5, 7, 8, 16, 33)
ALL_TYPES = (F32, S32, BF16, F16, F64, PRED, S8, U8, S16, S64, U32)
#: bits of integers a float type holds exactly
_MANTISSA = {F64: 53, F32: 24, F16: 11, BF16: 8}

FLOAT_UNARY = ("negate", "abs", "floor", "ceil", "sign", "round-nearest-even", "round-nearest-afz")
INT_UNARY = ("negate", "abs", "not", "sign", "popcnt", "count-leading-zeros")
INT_BINARY = ("add", "subtract", "multiply", "maximum", "minimum", "and", "or", "xor")
PRED_BINARY = ("and", "or", "xor")
DIRECTIONS = ("EQ", "NE", "GE", "GT", "LE", "LT")
#: functions with the largest slope and value on [-2, 2]
SMOOTH = {
    "tanh": (1.0, 1.0),
    "logistic": (0.25, 1.0),
    "cosine": (1.0, 1.0),
    "sine": (1.0, 1.0),
    "exponential": (7.5, 7.5),
    "exponential-minus-one": (7.5, 6.5),
    "erf": (1.2, 1.0),
}


class Program(NamedTuple):
    """A module, arrays for its parameters, and by how much each output may be off."""

    module: Module
    inputs: list[np.ndarray]
    errors: list[float]


@dataclass(frozen=True)
class Facts:
    """The largest magnitude a value can have and the largest error; without error a float is an integer."""

    bound: float
    error: float = 0.0


@dataclass
class State:
    """A program being made."""

    choices: Choices
    b: Builder
    types: tuple[ElementType, ...]
    values: list[Instruction] = field(default_factory=list)
    facts: dict[Instruction, Facts] = field(default_factory=dict)

    def integer(self, low: int, high: int) -> int:
        return self.choices.integer(low, high)

    def one_of(self, choices: Any) -> Any:
        return self.choices.one_of(choices)

    def dimensions(self, max_rank: int = 4) -> tuple[int, ...]:
        """Sizes of up to so many dimensions, of `MAX_ELEMENTS` at most together."""
        return _bounded(self.choices.several(SIZES, 0, max_rank))

    def pick(self, kinds: str = "", exact: bool = False, fits: Callable[[Instruction], bool] | None = None) -> Any:
        """A value of one of the kinds, favouring recent ones; None when there is none."""
        found = [
            v
            for v in self.values
            if (not kinds or v.shape.element_type.kind in kinds.split())
            and not (exact and self.facts[v].error)
            and (fits is None or fits(v))
        ]
        return self.one_of(found[::-1]) if found else None

    def like(self, x: Instruction, exact: bool = False) -> Instruction:
        """A value of the shape of `x`, often another one."""
        return self.pick(exact=exact, fits=lambda v: v.shape is x.shape) or x

    def keep(self, x: Instruction, bound: float, error: float = 0.0) -> Instruction:
        """Note the facts of `x`, which is the outcome of a step."""
        self.facts[x] = Facts(min(bound, top(x.shape.element_type)), error)
        return x

    def add(self, opcode: str, operands: list[Instruction], bound: float, error: float = 0.0, **attrs: Any) -> Any:
        return self.keep(self.b.computation.add(opcode, operands, **attrs), bound, error)

    def within(self, x: Instruction, limit: float) -> Instruction:
        """`x`, clamped when its magnitude could be above `limit`."""
        facts, element_type = self.facts[x], x.shape.element_type
        if facts.bound <= limit:
            return x
        low = self.b.constant(-int(limit) if element_type.is_signed else 0, element_type)
        high = self.b.constant(int(limit), element_type)
        return self.add("clamp", [low, x, high], int(limit), facts.error)

    def parameter(self, number: int, index: ElementType | None = None) -> np.ndarray:
        """Add a parameter, or a small scalar of the type `index`; gives an array for it."""
        element_type, dims = index or self.one_of(self.types), () if index else self.dimensions()
        p = self.b.parameter(number, row_major(element_type, *dims))
        self.values.append(self.keep(p, 1 if element_type is PRED else 20))
        if index:
            return np.asarray(self.integer(-2, 6), index.dtype)
        return _input(np.random.default_rng(self.integer(0, 2**16)), element_type, dims)


def top(element_type: ElementType) -> float:
    """More than any magnitude of an integer type; of a float type infinity."""
    return float("inf") if element_type.is_float else 2.0**element_type.bits


def exact_limit(element_type: ElementType) -> float:
    """Up to which magnitude integers are exact; integer types wrap, which is exact as well."""
    return 2.0 ** _MANTISSA[element_type] if element_type in _MANTISSA else float("inf")


def epsilon(element_type: ElementType) -> float:
    """A few units in the last place of 1."""
    return 8 * 2.0 ** (1 - _MANTISSA[element_type])


def _bounded(sizes: list[int]) -> tuple[int, ...]:
    while prod(sizes) > MAX_ELEMENTS:
        sizes = sizes[:-1]
    return tuple(sizes)


def _input(rng: np.random.Generator, element_type: ElementType, dims: tuple[int, ...]) -> np.ndarray:
    if element_type is PRED:
        return rng.random(dims) < 0.5
    low = -20 if element_type.is_signed else 0
    return np.asarray(rng.integers(low, 21, dims)).astype(element_type.dtype)


def program(choices: Choices, types: Sequence[ElementType] = ALL_TYPES, max_ops: int = 12) -> Program:
    """A module with inputs for its parameters; its element types are some of `types`, and s32, pred and f32."""
    some = tuple(choices.several(types, 1, 3, unique=True))
    s = State(choices, Builder("generated"), some)
    inputs = [s.parameter(n) for n in range(choices.integer(1, 3))]
    if choices.flag():  # what indices and branches may depend on
        inputs.append(s.parameter(len(inputs), S32))
    steps = _steps()
    for _ in range(choices.integer(1, max_ops)):
        made = steps[choices.one_of(sorted(steps))](s)
        if made is not None:
            s.values.append(made)
    found = [v for v in s.values if not v.users and v.opcode != "parameter"][-4:] or s.values[-1:]
    module = s.b.build(found[0] if len(found) == 1 else s.b.tuple(*found))
    return Program(module, inputs, [s.facts[v].error for v in found])


def _steps() -> dict[str, Callable[[State], Instruction | None]]:
    from heron.fuzz.programs.algebra import ALGEBRA
    from heron.fuzz.programs.calls import CALLS
    from heron.fuzz.programs.functions import FUNCTIONS
    from heron.fuzz.programs.moves import MOVES

    return {**_COMPUTE, **FUNCTIONS, **MOVES, **CALLS, **ALGEBRA}


# -- steps: each makes one value from others, or gives up -------------------------------------------------------------
def _unary(s: State) -> Instruction | None:
    x = s.pick()
    facts, element_type = s.facts[x], x.shape.element_type
    if element_type is PRED:
        return s.add("not", [x], 1)
    if element_type.is_float:
        return s.add(s.one_of(FLOAT_UNARY[:2] if facts.error else FLOAT_UNARY), [x], facts.bound, facts.error)
    opcode = s.one_of(INT_UNARY if element_type.is_signed else ("not", "popcnt", "count-leading-zeros", "negate"))
    same = opcode in ("abs", "sign") or (opcode == "negate" and element_type.is_signed)
    return s.add(opcode, [x], facts.bound if same else top(element_type))


def _smooth(s: State) -> Instruction | None:
    x = s.pick("float")
    if x is None:
        return None
    x = s.within(x, 2)
    opcode = s.one_of(sorted(SMOOTH))
    slope, bound = SMOOTH[opcode]
    return s.add(opcode, [x], bound, slope * s.facts[x].error + epsilon(x.shape.element_type) * bound)


def _binary(s: State) -> Instruction | None:
    x = s.pick()
    y, element_type = s.like(x), x.shape.element_type
    if element_type is PRED:
        return s.add(s.one_of(PRED_BINARY), [x, y], 1)
    opcode = s.one_of(INT_BINARY if element_type.is_integer else INT_BINARY[:5])
    if element_type.is_float and opcode == "multiply":
        most = min(exact_limit(element_type), 2.0**20)
        x, y = s.within(x, most**0.5), s.within(y, most**0.5)
    elif element_type.is_float:
        x, y = s.within(x, exact_limit(element_type) / 2), s.within(y, exact_limit(element_type) / 2)
    a, b = s.facts[x], s.facts[y]
    if opcode in ("and", "or", "xor"):
        return s.add(opcode, [x, y], top(element_type))
    if opcode in ("maximum", "minimum"):
        return s.add(opcode, [x, y], max(a.bound, b.bound), max(a.error, b.error))
    if opcode == "multiply":
        bound, error = a.bound * b.bound, a.bound * b.error + b.bound * a.error + a.error * b.error
    else:
        bound, error = a.bound + b.bound, a.error + b.error
    if element_type.is_integer:  # may wrap
        fits = bound < 2.0 ** (element_type.bits - 1) and element_type.is_signed
        return s.add(opcode, [x, y], bound if fits else top(element_type))
    return s.add(opcode, [x, y], bound, error + epsilon(element_type) * bound if error else 0.0)


def _divide(s: State) -> Instruction | None:
    x = s.pick("signed unsigned")
    if x is None:
        return None
    by = s.b.full(s.one_of((1, 2, 3, 7, 16)), x.shape)
    return s.add(s.one_of(("divide", "remainder")), [x, by], s.facts[x].bound)


def _shift(s: State) -> Instruction | None:
    x = s.pick("signed unsigned")
    if x is None:
        return None
    by = s.b.full(s.integer(0, x.shape.element_type.bits + 1), x.shape)
    opcode = s.one_of(("shift-left", "shift-right-logical", "shift-right-arithmetic"))
    return s.add(opcode, [x, by], top(x.shape.element_type))


def _compare(s: State) -> Instruction | None:
    x = s.pick(exact=True)
    return None if x is None else s.keep(s.b.compare(x, s.like(x, exact=True), direction=s.one_of(DIRECTIONS)), 1)


def _select(s: State) -> Instruction | None:
    p = s.pick("pred")
    x = None if p is None else s.pick(fits=lambda v: v.shape.dims == p.shape.dims or not p.shape.rank)
    if p is None or x is None:
        return None
    y = s.like(x)
    a, b = s.facts[x], s.facts[y]
    return s.add("select", [p, x, y], max(a.bound, b.bound), max(a.error, b.error))


def _clamp(s: State) -> Instruction | None:
    x = s.pick("float signed unsigned")
    return None if x is None else s.within(x, s.one_of((1, 3, 17)))


def _convert(s: State) -> Instruction | None:
    x = s.pick()
    origin, target = x.shape.element_type, s.one_of((*s.types, S32, F32, PRED))
    if target is origin or (s.facts[x].error and not target.is_float):
        return None
    if origin.is_float and target.is_integer:  # what lies outside is not the same everywhere
        x = s.within(x, 2.0 ** (target.bits - 1) - 1)
        x = x if target.is_signed else s.add("abs", [x], s.facts[x].bound)
    elif target.is_float:
        x = s.within(x, min(exact_limit(target), exact_limit(origin)))
    facts = s.facts[x]
    error = facts.error + epsilon(target) * facts.bound if facts.error else 0.0
    wraps = target.is_integer and facts.bound > 2.0 ** (target.bits - 1) - 1
    bound = 1 if target is PRED else top(target) if wraps or not origin.is_signed else facts.bound
    bound = facts.bound if target.is_float else bound
    return s.keep(s.b.convert(x, shape=x.shape.with_type(target)), bound, error)


def _iota(s: State) -> Instruction | None:
    dims = s.dimensions()
    if not dims:
        return None
    element_type = s.one_of([t for t in (*s.types, S32) if t is not PRED])
    return s.keep(s.b.iota(row_major(element_type, *dims), s.integer(0, len(dims) - 1)), max(SIZES))


def _constant(s: State) -> Instruction | None:
    element_type, dims = s.one_of(s.types), s.dimensions(2)
    if prod(dims) > 64:
        return None
    array = _input(np.random.default_rng(s.integer(0, 2**16)), element_type, dims)
    return s.keep(s.b.constant(array, element_type), 1 if element_type is PRED else 20)


_COMPUTE = {
    "unary": _unary,
    "smooth": _smooth,
    "binary": _binary,
    "divide": _divide,
    "shift": _shift,
    "compare": _compare,
    "select": _select,
    "clamp": _clamp,
    "convert": _convert,
    "iota": _iota,
    "constant": _constant,
}
