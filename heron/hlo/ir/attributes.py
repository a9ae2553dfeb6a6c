"""Attributes of ops: their kinds, each with its syntax in text and its Python type, and the test of a value."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any, cast

from heron.hlo.ir.literal import Literal
from heron.hlo.ir.shape import Shape
from heron.hlo.ir.window import ConvDims, WindowDim
from heron.records import dataclass


class AttrKind(enum.Enum):
    """The syntax an attribute's value has in text, and so its Python type."""

    INT = "5 → int"
    FLOAT = "0.5 → float"
    BOOL = "true → bool"
    STRING = '"text" → str'
    ENUM = "a bare word out of `choices` → str"
    INTS = "{1,2} → tuple[int, ...]"
    INT_LISTS = "{{1,2},{3}} → tuple[tuple[int, ...], ...]"
    COMPUTATION = "name or an inline body → Computation"
    COMPUTATIONS = "{a, b} → tuple[Computation, ...]"
    SLICES = "{[0:4], [1:9:2]} → tuple[tuple[start, limit, stride], ...]"
    PADDING = "0_1_2x3_4 → tuple[tuple[low, high, interior], ...]"
    WINDOW = "{size=2x2 stride=1x1 ...} → Window"
    DIM_LABELS = "b01f_01io->b01f → ConvDims"
    LITERAL = "a literal in XLA's text → Literal"
    SHAPE = "a shape → Shape"
    SHAPES = "{f32[2], s32[]} → tuple[Shape, ...]"
    WORDS = "{default,high} → tuple[str, ...]"
    RAW = "balanced braces or a word, kept as text → str"
    REPLICA_GROUPS = "{{0,1},{2,3}} or [2,2]<=[4] → str, kept as text"
    PAIRS = "{{0,1},{1,2}} → tuple[tuple[int, int], ...]"
    ALIASING = "{{0}: (1, {})} → tuple[(output index, operand, operand index), ...]"


@dataclass(frozen=True, slots=True)
class Attr:
    """One attribute of an op: its syntax, its default, whether text must give it.

    A value equal to the default is not printed, unless ``shown`` says XLA prints it all the same.
    """

    kind: AttrKind
    default: Any = None
    required: bool = False
    choices: tuple[str, ...] = ()
    shown: bool = False


def _is_int(v: Any) -> bool:
    return isinstance(v, int) and not isinstance(v, bool)


def _is_ints(v: Any) -> bool:
    return _all(v, _is_int)


def _is_text(v: Any) -> bool:
    return isinstance(v, str)


def _all(v: Any, test: Callable[[Any], bool]) -> bool:
    return isinstance(v, (tuple, list)) and all(test(part) for part in cast("Sequence[Any]", v))


def _triples(v: Any) -> bool:
    return _all(v, lambda p: _is_ints(p) and len(p) == 3)


class Callee:
    """Base of `Computation`: values of the kind COMPUTATION are told by it."""

    __slots__ = ()
    root: Any


def _is_computation(v: Any) -> bool:
    return isinstance(v, Callee) and v.root is not None


_TESTS: dict[AttrKind, Callable[[Any], bool]] = {
    AttrKind.INT: _is_int,
    AttrKind.FLOAT: lambda v: isinstance(v, float) or _is_int(v),
    AttrKind.BOOL: lambda v: isinstance(v, bool),
    AttrKind.STRING: _is_text,
    AttrKind.ENUM: _is_text,
    AttrKind.INTS: _is_ints,
    AttrKind.INT_LISTS: lambda v: _all(v, _is_ints),
    AttrKind.COMPUTATION: _is_computation,
    AttrKind.COMPUTATIONS: lambda v: _all(v, _is_computation),
    AttrKind.SLICES: _triples,
    AttrKind.PADDING: _triples,
    AttrKind.WINDOW: lambda v: _all(v, lambda d: isinstance(d, WindowDim)),
    AttrKind.DIM_LABELS: lambda v: isinstance(v, ConvDims),
    AttrKind.LITERAL: lambda v: isinstance(v, Literal),
    AttrKind.SHAPE: lambda v: isinstance(v, Shape),
    AttrKind.SHAPES: lambda v: _all(v, lambda s: isinstance(s, Shape)),
    AttrKind.WORDS: lambda v: _all(v, _is_text),
    AttrKind.RAW: _is_text,
    AttrKind.REPLICA_GROUPS: _is_text,
    AttrKind.PAIRS: lambda v: _all(v, lambda p: _is_ints(p) and len(p) == 2),
    AttrKind.ALIASING: lambda v: _all(v, lambda p: _all(p, lambda _: True) and len(p) == 3),
}


def fits(spec: Attr, value: Any) -> bool:
    """Whether `value` is what `spec` declares (None only where that is the default)."""
    if value is None:
        return spec.default is None and not spec.required
    return _TESTS[spec.kind](value)
