"""Attribute values by kind: does a Python value have the type its `AttrKind` promises?"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from heron.hlo.ir.op import Attr, AttrKind, reject
from heron.hlo.ir.shape import Shape
from heron.hlo.ir.window import ConvDims, WindowDim

if TYPE_CHECKING:
    from heron.hlo.ir.instruction import Instruction


def _is_int(v: Any) -> bool:
    return isinstance(v, int) and not isinstance(v, bool)


def _is_ints(v: Any) -> bool:
    return _all(v, _is_int)


def _is_text(v: Any) -> bool:
    return isinstance(v, str)


def _all(v: Any, test: Callable[[Any], bool]) -> bool:
    return isinstance(v, (tuple, list)) and all(map(test, v))


def _triples(v: Any) -> bool:
    return _all(v, lambda p: _is_ints(p) and len(p) == 3)


def _is_computation(v: Any) -> bool:
    from heron.hlo.ir.computation import Computation

    return isinstance(v, Computation) and v.root is not None


def _is_literal(v: Any) -> bool:
    from heron.hlo.ir.literal import Literal

    return isinstance(v, Literal)


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
    AttrKind.LITERAL: _is_literal,
    AttrKind.SHAPE: lambda v: isinstance(v, Shape),
    AttrKind.SHAPES: lambda v: _all(v, lambda s: isinstance(s, Shape)),
    AttrKind.WORDS: lambda v: _all(v, _is_text),
    AttrKind.RAW: _is_text,
    AttrKind.REPLICA_GROUPS: _is_text,
    AttrKind.PAIRS: lambda v: _all(v, lambda p: _is_ints(p) and len(p) == 2),
    AttrKind.ALIASING: lambda v: _all(v, lambda p: isinstance(p, (tuple, list)) and len(p) == 3),
}


def fits(spec: Attr, value: Any) -> bool:
    """Whether `value` is what `spec` declares (None only where that is the default)."""
    if value is None:
        return spec.default is None and not spec.required
    return _TESTS[spec.kind](value)


def misfits(i: Instruction) -> list[str]:
    """Names of attributes that have the wrong type, or that the op does not have."""
    declared = i.op.attributes
    return [n for n, value in i.attrs.items() if n not in declared or not fits(declared[n], value)]


def need_kinds(i: Instruction) -> None:
    """Rejects (HLO010) an instruction with an attribute of the wrong type, or one its op does not have."""
    for name in misfits(i):
        spec = i.op.attributes.get(name)
        if spec is None:
            reject(i, f"there is no attribute '{name}'", f"there are: {', '.join(i.op.attributes) or 'none'}")
        text = f"{i.attrs[name]!r}"[:60]
        reject(i, f"attribute '{name}' is {text}", f"it must be {spec.kind.name.lower()}: {spec.kind.value}")
