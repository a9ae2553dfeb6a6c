"""Operations on quantized values: on the integers themselves, or on the numbers these stand for.

Operations that move values, call, loop or branch work on the integers. All others turn them into numbers, compute, and
turn the results into integers: what the specification calls ``dequantize_op_quantize``, or for floats on the left-hand
side ``hybrid_dequantize_then_op``. Differences from a zero point are taken in a wider type, so they never wrap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from heron.frontends.stablehlo.quantization import Quantization, plain_shape, quantization, shaped
from heron.frontends.stablehlo.syntax import Argument, Operation, Region
from heron.hlo.ir import layout as layouts
from heron.hlo.ir import shape as shapes
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape
from heron.hlo.ir.types import S32, S64, ElementType

if TYPE_CHECKING:
    from heron.frontends.stablehlo.block import Block, Results, Rule

#: operations whose results are some of the operands' values, or what regions and functions make of them
_ON_INTEGERS = frozenset(
    "stablehlo." + name
    for name in (
        "all_gather all_reduce all_to_all async_done async_start bitcast_convert broadcast broadcast_in_dim case"
        " collective_broadcast collective_permute composite concatenate constant custom_call dynamic_broadcast_in_dim"
        " dynamic_gather dynamic_pad dynamic_reshape dynamic_slice dynamic_update_slice gather get_dimension_size"
        " get_tuple_element if infeed map optimization_barrier outfeed pad real_dynamic_slice recv reduce"
        " reduce_scatter reduce_window reshape reverse scatter select select_and_scatter send set_dimension_size slice"
        " sort torch_index_select transpose tuple while"
    ).split()
) | {"func.call"}
#: of these, operations that need all quantized operands and results to stand for numbers in the same way
_ALIKE = frozenset(
    "stablehlo." + name
    for name in (
        "concatenate dynamic_gather dynamic_pad dynamic_reshape dynamic_slice dynamic_update_slice gather pad"
        " real_dynamic_slice reshape reverse select slice transpose"
    ).split()
)


def lowered(b: Block, op: Operation, operands: list[Instruction], rule: Rule) -> Results:
    """The results of an operation, some operands or results of which may be quantized."""
    given = [b.quantization(name) for name in op.operands]
    wanted = [quantization(t) for t in op.types]
    if not any(given) and not any(wanted):
        return rule(b, op, operands)
    if op.name == "stablehlo.convert":
        op.fail("SHLO004", "convert takes no quantized types", hint="uniform_quantize and uniform_dequantize do")
    if op.name in ("stablehlo.uniform_quantize", "stablehlo.uniform_dequantize"):
        return _converted(b, op, operands[0], given[0], wanted[0])
    if op.name in _ON_INTEGERS and (op.name not in _ALIKE or _are_alike([*given, *wanted])):
        return rule(b, _applied(b, op, op.retyped([plain_shape(t) for t in op.types])), operands)
    numbers = [x if q is None else dequantized(b, x, q) for x, q in zip(operands, given, strict=True)]
    types = [t if q is None else t.with_type(q.expressed) for t, q in zip(op.types, wanted, strict=True)]
    found = rule(b, op.retyped(types), numbers)
    results = [found] if isinstance(found, Instruction) else found
    return [x if q is None else quantized(b, op, x, q) for x, q in zip(results, wanted, strict=True)]


def _are_alike(found: Sequence[Quantization | None]) -> bool:
    known = [q for q in found if q is not None]
    return all(q.same_numbers(known[0]) for q in known)


def _applied(b: Block, op: Operation, plain: Operation) -> Operation:
    """``reduce … applies stablehlo.add`` with its region written out, which knows what its arguments stand for."""
    if op.name != "stablehlo.reduce" or not op.words:
        return plain
    q = b.quantization(op.operands[-1])
    scalar = shapes.scalar(op.types[0].element_type) if q is None else shaped(q, (), layouts.default(0), ())
    inner = Operation(op.source, op.at, op.words[0], ["%applied"])
    inner.operands, inner.types = ["%left", "%right"], (scalar,)
    last = Operation(op.source, op.at, "stablehlo.return", [])
    last.operands = ["%applied"]
    plain.words = []
    plain.regions = [Region([Argument("%left", scalar), Argument("%right", scalar)], [inner, last], op.at)]
    return plain


def _converted(
    b: Block, op: Operation, x: Instruction, given: Quantization | None, wanted: Quantization | None
) -> Instruction:
    """``uniform_quantize`` and ``uniform_dequantize``."""
    if wanted is None and op.name.endswith("_quantize"):
        op.fail("SHLO004", f"{op.name} gives a quantized type", why=f"the text says {op.types[0].bare}")
    if given is None and op.name.endswith("dequantize"):
        op.fail("SHLO004", f"{op.name} takes a quantized type", why=f"the operand is {x.shape.bare}")
    number = x if given is None else dequantized(b, x, given)
    return number if wanted is None else quantized(b, op, number, wanted)


def dequantized(b: Block, x: Instruction, q: Quantization) -> Instruction:
    """The numbers that integers stand for: ``(x - zero point) * scale``."""
    if any(q.zero_points):
        wide = S32 if q.storage.bits <= 16 else S64
        x = b.add("convert", (x,), x.shape.with_type(wide))
        x = b.add("subtract", (x, _spread(b, q.zero_points, wide, x.shape, q.axis)))
    x = b.add("convert", (x,), x.shape.with_type(q.expressed))
    return b.add("multiply", (x, _spread(b, q.scales, q.expressed, x.shape, q.axis)))


def quantized(b: Block, op: Operation, x: Instruction, q: Quantization) -> Instruction:
    """The integers that stand for numbers: ``x / scale + zero point``, within the range, to the nearest even."""
    t = x.shape.element_type
    if t is not q.expressed:
        op.fail("SHLO004", f"{op.name} quantizes {t}", why=f"the type expresses {q.expressed}: {q}")
    x = b.add("divide", (x, _spread(b, q.scales, t, x.shape, q.axis)))
    if any(q.zero_points):
        x = b.add("add", (x, _spread(b, q.zero_points, t, x.shape, q.axis)))
    with np.errstate(over="ignore"):  # 16-bit floats have no such numbers: infinity bounds nothing, and is right
        low, high = (b.full(np.float64(limit).astype(t.dtype), x.shape) for limit in (q.low, q.high))
    x = b.add("round-nearest-even", (b.add("clamp", (low, x, high)),))
    return b.add("convert", (x,), x.shape.with_type(q.storage))


def _spread(b: Block, values: Sequence[float], t: ElementType, shape: Shape, axis: int | None) -> Instruction:
    """A number for each element: the same one, or one for each slice of a dimension."""
    if axis is None or len(set(values)) == 1:
        return b.full(values[0], shape.with_type(t))
    array = np.array(values).astype(t.dtype)
    vector = b.constant((array.tobytes(), "slices"), shapes.row_major(t, len(values)), lambda: array)
    return b.add("broadcast", (vector,), shape.with_type(t), dimensions=(axis,))
