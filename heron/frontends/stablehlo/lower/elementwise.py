"""Elementwise operations, constants and conversions."""

from __future__ import annotations

from typing import Any

from heron.frontends.stablehlo.block import Block, Rule, rule
from heron.frontends.stablehlo.constants import ELSEWHERE
from heron.frontends.stablehlo.sizes import fits, sized
from heron.frontends.stablehlo.syntax import Operation
from heron.hlo.ir import op as hlo_ops
from heron.hlo.ir import types
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape
from heron.hlo.ir.types import PRED, ElementType

#: operations that are named as in HLO, but for ``_``
_SAME_UNARY = (
    "abs ceil count_leading_zeros cosine exponential exponential_minus_one floor imag is_finite log log_plus_one"
    " logistic negate not popcnt real round_nearest_afz round_nearest_even rsqrt sign sine sqrt tan tanh"
).split()
SAME_BINARY = (
    "add atan2 complex divide maximum minimum multiply power remainder shift_left shift_right_arithmetic"
    " shift_right_logical subtract and or xor"
).split()


def opcode(name: str) -> str:
    """HLO's name of a StableHLO operation that has the same one."""
    return name.removeprefix("stablehlo.").replace("_", "-")


def _same(name: str) -> Rule:
    code = opcode(name)
    accurate = "result_accuracy" in hlo_ops.get(code).attributes

    def lower(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
        if accurate and op.attrs and (wanted := _accuracy(op)) is not None:
            return b.add(code, operands, result_accuracy=wanted)
        return b.add(code, operands)

    return lower


for _name in (*_SAME_UNARY, *SAME_BINARY):
    rule(_name)(_same(_name))


def _accuracy(op: Operation) -> str | None:
    """``result_accuracy`` in HLO's text."""
    given = op.fields("result_accuracy")
    mode = str(given.get("mode", "DEFAULT")).lower()
    if mode == "tolerance":
        numbers = ",".join(f"{name}={given.get(name, 0):g}" for name in ("atol", "rtol", "ulps"))
        return "{tolerance={" + numbers + "}}"
    return None if mode == "default" else "{mode=" + mode + "}"


@rule("constant", "chlo.constant", "sdy.constant")
def _constant(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    if op.words:
        return b.dense(op)
    number = op.find(ELSEWHERE)
    if isinstance(number, int) and 0 <= number < len(b.importer.program.source.elsewhere):
        value = b.importer.program.source.elsewhere[number]
        return b.constant((ELSEWHERE, number), op.types[0], lambda: value)
    value = op.find("value")
    if not hasattr(value, "dtype"):
        op.wrong("value", "a dense constant")
    return b.constant((value.tobytes(), value.shape), op.types[0], lambda: value)


@rule("iota")
def _iota(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    return b.checked("iota", (), op.types[0], iota_dimension=op.integer("dim", "iota_dimension"))


@rule("convert")
def _convert(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    """``convert(x: T) -> T == x``."""
    (x,) = operands
    to = op.types[0]
    if fits(x.shape, to):
        return x
    return b.checked("convert", operands, x.shape.with_type(to.element_type) if to.is_unbounded else to)


@rule("bitcast_convert")
def _bitcast_convert(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    """A type of another width has one minor dimension more, or less. Booleans are bits here, bytes in HLO."""
    (x,), to = operands, op.types[0]
    if x.shape.element_type is not to.element_type and PRED in (x.shape.element_type, to.element_type):
        return _of_bits(b, op, x, to) if x.shape.element_type is PRED else _to_bits(b, op, x, to)
    if to.is_unbounded:
        old, new = x.shape.element_type.bits, to.element_type.bits
        apart = (*x.shape.dims, old // new) if new < old else x.shape.dims
        to = sized(op, to, x.shape.dims[:-1] if new > old else apart)
    return b.checked("bitcast-convert", operands, to)


def _of_bits(b: Block, op: Operation, x: Instruction, to: Shape) -> Instruction:
    """Booleans, the lowest bit first, as one element."""
    count = x.shape.dims[-1] if x.shape.rank else 0
    whole = _unsigned(op, to.element_type, count)
    bits = b.add("convert", (x,), x.shape.with_type(whole))
    places = b.add("iota", (), bits.shape, iota_dimension=bits.shape.rank - 1)
    bits = b.add("shift-left", (bits, places))
    reducer = b.importer.reducer("or", whole)
    found = b.add("reduce", (bits, b.scalar(0, whole)), dimensions=(bits.shape.rank - 1,), to_apply=reducer)
    return b.checked("bitcast-convert", (found,), found.shape.with_type(to.element_type))


def _to_bits(b: Block, op: Operation, x: Instruction, to: Shape) -> Instruction:
    """Each element as booleans, the lowest bit first."""
    count = x.shape.element_type.bits
    whole = _unsigned(op, x.shape.element_type, count)
    bits = b.add("bitcast-convert", (x,), x.shape.with_type(whole))
    wide = bits.shape.with_dims((*bits.shape.dims, count))
    bits = b.add("broadcast", (bits,), wide, dimensions=tuple(range(bits.shape.rank)))
    places = b.add("iota", (), wide, iota_dimension=wide.rank - 1)
    one = b.add("and", (b.add("shift-right-logical", (bits, places)), b.full(1, wide)))
    return b.add("compare", (one, b.full(0, wide)), direction="NE")


def _unsigned(op: Operation, t: ElementType, count: int) -> ElementType:
    """The integers whose bits are `count` booleans. Raises SHLO004 when an element of `t` has not as many."""
    found = types.find(f"u{t.bits}")
    if count != t.bits or found is None or t.is_complex:
        op.fail("SHLO004", f"{op.name} needs {t.bits} booleans for one {t}", why=f"there are {count}")
    return found


@rule("cbrt")
def _cbrt(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    """HLO's op takes no complex numbers: their principal root is a power."""
    (x,) = operands
    if not x.shape.element_type.is_complex:
        return _same("cbrt")(b, op, operands)  # type: ignore[return-value]
    return b.add("power", (x, b.full(1 / 3, x.shape)))


@rule("reduce_precision")
def _reduce_precision(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    """``format = e5m10``, or two attributes."""
    text = op.find("format")
    if isinstance(text, str):
        exponent, m, mantissa = text.removeprefix("e").partition("m")
        if not (m and exponent.isdigit() and mantissa.isdigit()):
            op.wrong("format", "a format such as e5m10")
        bits = int(exponent), int(mantissa)
    else:
        bits = op.integer("exponent_bits"), op.integer("mantissa_bits")
    return b.add("reduce-precision", operands, exponent_bits=bits[0], mantissa_bits=bits[1])


_KINDS = {"float": "FLOAT", "complex": "FLOAT", "signed": "SIGNED", "unsigned": "UNSIGNED", "pred": "UNSIGNED"}


_DIRECTIONS = ("EQ", "NE", "GE", "GT", "LE", "LT")
_COMPARED = ("FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED", "NOTYPE")


def _plain_kind(t: ElementType) -> str:
    """The kind of comparison HLO does when its text names none."""
    return _KINDS[t.kind]


@rule("compare")
def _compare(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    """``compare LT, %a, %b, SIGNED``."""
    return compared(b, op, *operands)


def compared(b: Block, op: Operation, x: Instruction, y: Instruction) -> Instruction:
    """A comparison; its kind stays only where it is not the element type's own."""
    attrs: dict[str, Any] = {"direction": op.words[0] if op.words else op.word("comparison_direction")}
    kind = op.words[1] if len(op.words) > 1 else op.word("compare_type", default="NOTYPE")
    _need_case(op, attrs["direction"], _DIRECTIONS, "comparison")
    _need_case(op, kind, _COMPARED, "kind of comparison")
    if kind != "NOTYPE" and kind != _plain_kind(x.shape.element_type):
        attrs["type"] = kind
    return b.add("compare", (x, y), **attrs)


def _need_case(op: Operation, value: str, cases: tuple[str, ...], name: str) -> None:
    if value not in cases:
        op.fail("SHLO006", f"'{value[:40]}' is not a {name}", hint=f"one of {', '.join(cases)}")


@rule("select")
def _select(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    """A scalar predicate chooses for every element."""
    pred, x, y = operands
    return b.add("select", (_spread(b, pred, x.shape), x, y))


@rule("clamp")
def _clamp(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    low, x, high = operands
    low, high = _spread(b, low, x.shape), _spread(b, high, x.shape)
    if x.shape.element_type.is_complex or x.shape.element_type is PRED:  # HLO's clamp takes neither
        return b.add("minimum", (high, b.add("maximum", (low, x))))
    return b.add("clamp", (low, x, high))


def _spread(b: Block, x: Instruction, like: Shape) -> Instruction:
    return b.broadcast_scalar(x, like.with_type(x.shape.element_type)) if x.shape.is_scalar and like.rank else x


@rule("uniform_quantize", "uniform_dequantize")
def _quantize(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    """Between a quantized type and another `quantized.lowered` has done it."""
    op.fail("SHLO004", f"{op.name} is between a quantized type and another", why=f"the operand is {operands[0].shape}")
