"""Steps that compute element by element: each makes one value from others, or gives up."""

from __future__ import annotations

from math import prod

import numpy as np

from heron.fuzz.programs.state import SIZES, State, epsilon, exact_limit, random_input, top
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import row_major
from heron.hlo.ir.types import F32, PRED, S32

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
    array = random_input(np.random.default_rng(s.integer(0, 2**16)), element_type, dims)
    return s.keep(s.b.constant(array, element_type), 1 if element_type is PRED else 20)


ARITHMETIC = {
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
