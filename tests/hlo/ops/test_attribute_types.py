"""The types of attributes that type checkers see are those of the declarations."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from heron.hlo.ir.attributes import AttrKind
from heron.hlo.ir.op import all_ops

FILE = Path(__file__).parents[3] / "heron" / "hlo" / "ir" / "attribute_types.py"
HEAD = '''"""Types of the ops' attributes, as they read on an instruction: `i.dimensions`, `i.to_apply`, ….

Generated from the declarations in heron/hlo/ops: `python -m pytest tests/hlo/ops/test_attribute_types.py --bless`.
An attribute has the type of the ops that require it or give it a default, and ``| None`` where no op does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron.hlo.ir.shape import Shape, ShapeIndex
from heron.hlo.ir.window import ConvDims, Window

if TYPE_CHECKING:
    from heron.hlo.ir.computation import Computation
    from heron.hlo.ir.literal import Literal


class AttributeTypes:
    """Base of `Instruction`: nothing but the types of attributes."""

    __slots__ = ()

'''
TYPES = {
    AttrKind.INT: "int",
    AttrKind.FLOAT: "float",
    AttrKind.BOOL: "bool",
    AttrKind.STRING: "str",
    AttrKind.ENUM: "str",
    AttrKind.INTS: "tuple[int, ...]",
    AttrKind.INT_LISTS: "tuple[tuple[int, ...], ...]",
    AttrKind.COMPUTATION: "Computation",
    AttrKind.COMPUTATIONS: "tuple[Computation, ...]",
    AttrKind.SLICES: "tuple[tuple[int, int, int], ...]",
    AttrKind.PADDING: "tuple[tuple[int, int, int], ...]",
    AttrKind.WINDOW: "Window",
    AttrKind.DIM_LABELS: "ConvDims",
    AttrKind.LITERAL: "Literal",
    AttrKind.SHAPE: "Shape",
    AttrKind.SHAPES: "tuple[Shape, ...]",
    AttrKind.WORDS: "tuple[str, ...]",
    AttrKind.RAW: "str",
    AttrKind.REPLICA_GROUPS: "str",
    AttrKind.PAIRS: "tuple[tuple[int, int], ...]",
    AttrKind.ALIASING: "tuple[tuple[ShapeIndex, int, ShapeIndex], ...]",
}


def test_types_of_attributes_are_declared(golden: Callable[[Path, str], None]) -> None:
    found: dict[str, str] = {}
    for op in all_ops():
        for name, attr in op.attributes.items():
            if attr.required or attr.default is not None:
                found[name] = TYPES[attr.kind]
            else:
                found.setdefault(name, f"{TYPES[attr.kind]} | None")
    golden(FILE, HEAD + "".join(f"    {name}: {found[name]}\n" for name in sorted(found)))
