"""Rules for arith, math (what stays native), complex and vector ops."""

from __future__ import annotations

from xdsl.dialects import arith, complex, math, vector
from xdsl.dialects.builtin import ComplexType, IndexType, VectorType
from xdsl.ir import Attribute, Operation

from heron.codegen.llvm.emit import Emitter, is_set, rule, unsupported
from heron.codegen.llvm.types import SMALL_FLOATS, constant_text, float_text, short_name, text_of

_INTEGER: dict[type, str] = {
    arith.AddiOp: "add", arith.SubiOp: "sub", arith.MuliOp: "mul", arith.DivUIOp: "udiv", arith.DivSIOp: "sdiv",
    arith.RemUIOp: "urem", arith.RemSIOp: "srem", arith.AndIOp: "and", arith.OrIOp: "or", arith.XOrIOp: "xor",
    arith.ShLIOp: "shl", arith.ShRUIOp: "lshr", arith.ShRSIOp: "ashr",
}  # fmt: skip
_FLOAT: dict[type, str] = {
    arith.AddfOp: "fadd", arith.SubfOp: "fsub", arith.MulfOp: "fmul", arith.DivfOp: "fdiv",
}  # fmt: skip
_CAST: dict[type, str] = {
    arith.ExtSIOp: "sext", arith.ExtUIOp: "zext", arith.TruncIOp: "trunc", arith.SIToFPOp: "sitofp",
    arith.UIToFPOp: "uitofp", arith.FPToSIOp: "fptosi", arith.FPToUIOp: "fptoui",
}  # fmt: skip
_INTRINSIC: dict[type, str] = {
    arith.MaximumfOp: "maximum", arith.MinimumfOp: "minimum", arith.MaxnumfOp: "maxnum", arith.MinnumfOp: "minnum",
    arith.MaxSIOp: "smax", arith.MaxUIOp: "umax", arith.MinSIOp: "smin", arith.MinUIOp: "umin",
    math.AbsFOp: "fabs", math.CeilOp: "ceil", math.FloorOp: "floor", math.RoundEvenOp: "roundeven",
    math.RoundOp: "round", math.TruncOp: "trunc", math.CopySignOp: "copysign", math.FmaOp: "fma",
    math.SqrtOp: "sqrt", math.CtPopOp: "ctpop", vector.FMAOp: "fma",
}  # fmt: skip
_PREDICATE = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
_FLOAT_PREDICATE = (
    "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true",
)  # fmt: skip
_FLAGS: dict[Attribute, str] = {}
_OVERFLOW: dict[Attribute, str] = {}


#: float arithmetic that flags of the whole translation are for
_RELAXED = (math.SqrtOp,)


def fast_flags(op: Operation) -> str:
    """The op's fastmath flags as LLVM text with a trailing blank, or ''."""
    attribute = op.properties.get("fastmath")
    if attribute is None:
        return ""
    text = _FLAGS.get(attribute)
    if text is None:
        flags = [flag.value for flag in attribute.data]  # type: ignore[attr-defined]
        text = "fast " if len(flags) == 7 else "".join(f"{flag} " for flag in sorted(flags))
        _FLAGS[attribute] = text
    return text


@rule(arith.ConstantOp)
def _constant(e: Emitter, op: arith.ConstantOp) -> None:
    result = op.results[0]
    e.names[result] = constant_text(op.properties["value"], result.type, e.bf16)


@rule(*_INTEGER)
def _integer(e: Emitter, op: Operation) -> None:
    a, b = op.operands
    flags = ""
    overflow = op.properties.get("overflowFlags")
    if overflow is not None:
        flags = _OVERFLOW.get(overflow)
        if flags is None:  # the attribute holds a set, whose order differs between processes
            flags = "".join(sorted(f" {flag.value}" for flag in overflow.data))  # type: ignore[attr-defined]
            _OVERFLOW[overflow] = flags
    operands = f"{e.type(a.type)} {e.names[a]}, {e.names[b]}"
    e.out.append(f"  {e.define(op.results[0])} = {_INTEGER[type(op)]}{flags} {operands}")


@rule(*_FLOAT)
def _float(e: Emitter, op: Operation) -> None:
    a, b = op.operands
    operands = f"{e.type(a.type)} {e.names[a]}, {e.names[b]}"
    e.out.append(f"  {e.define(op.results[0])} = {_FLOAT[type(op)]} {e.flags}{fast_flags(op)}{operands}")


@rule(arith.NegfOp)
def _negate(e: Emitter, op: arith.NegfOp) -> None:
    operand = e.typed(op.operands[0])
    e.out.append(f"  {e.define(op.results[0])} = fneg {fast_flags(op)}{operand}")


@rule(*_INTRINSIC)
def _intrinsic(e: Emitter, op: Operation) -> None:
    result = op.results[0]
    text = e.type(result.type)
    name = f"llvm.{_INTRINSIC[type(op)]}.{mangled(text)}"
    operands = ", ".join(f"{text} {e.names[v]}" for v in op.operands)
    flags = e.flags if isinstance(op, _RELAXED) else ""
    e.out.append(f"  {e.define(result)} = call {flags}{fast_flags(op)}{text} @{name}({operands})")


def mangled(text: str) -> str:
    """The suffix of an overloaded intrinsic for a type: ``f32``, ``v4f32``, ``bf16``, ``i64``."""
    if text.startswith("<"):
        lanes, element = text[1:-1].split(" x ")
        return f"v{lanes}{mangled(element)}"
    return {"float": "f32", "double": "f64", "half": "f16", "bfloat": "bf16"}.get(text, text)


@rule(math.CountLeadingZerosOp, math.CountTrailingZerosOp)
def _count_zeros(e: Emitter, op: Operation) -> None:
    kind = "ctlz" if isinstance(op, math.CountLeadingZerosOp) else "cttz"
    operand = op.operands[0]
    text = e.type(operand.type)
    e.names[op.results[0]] = e.call(f"llvm.{kind}.{mangled(text)}", text, [(text, e.names[operand]), ("i1", "false")])


@rule(math.AbsIOp)
def _absolute(e: Emitter, op: math.AbsIOp) -> None:
    operand = op.operands[0]
    text = e.type(operand.type)
    e.names[op.results[0]] = e.call(f"llvm.abs.{mangled(text)}", text, [(text, e.names[operand]), ("i1", "false")])


@rule(arith.CmpiOp)
def _compare(e: Emitter, op: arith.CmpiOp) -> None:
    a, b = op.operands
    predicate = _PREDICATE[op.predicate.value.data]
    operands = f"{e.type(a.type)} {e.names[a]}, {e.names[b]}"
    e.out.append(f"  {e.define(op.results[0])} = icmp {predicate} {operands}")


@rule(arith.CmpfOp)
def _compare_float(e: Emitter, op: arith.CmpfOp) -> None:
    a, b = op.operands
    predicate = _FLOAT_PREDICATE[op.predicate.value.data]
    operands = f"{e.type(a.type)} {e.names[a]}, {e.names[b]}"
    e.out.append(f"  {e.define(op.results[0])} = fcmp {fast_flags(op)}{predicate} {operands}")


@rule(arith.SelectOp)
def _select(e: Emitter, op: arith.SelectOp) -> None:
    condition, a, b = op.operands
    if e.names[a] == e.names[b]:
        e.names[op.results[0]] = e.names[a]
        return
    operands = f"{e.typed(condition)}, {e.typed(a)}, {e.typed(b)}"
    e.out.append(f"  {e.define(op.results[0])} = select {operands}")


@rule(*_CAST)
def _cast(e: Emitter, op: Operation) -> None:
    operand, result = op.operands[0], op.results[0]
    if operand.type.name in SMALL_FLOATS or result.type.name in SMALL_FLOATS:
        raise unsupported(op)  # expand-float-ops goes through f32
    text = e.typed(operand)
    e.out.append(f"  {e.define(result)} = {_CAST[type(op)]} {text} to {e.type(result.type)}")


@rule(arith.ExtFOp, arith.TruncFOp)
def _convert_float(e: Emitter, op: Operation) -> None:
    """A conversion the target lacks is a call of the inline library (`inline/convert.py`)."""
    operand, result = op.operands[0], op.results[0]
    if is_set(op, "heron.computed") and e.bf16 == "i16":
        arguments = [(e.type(operand.type), e.names[operand])]
        e.names[result] = e.library("heron.round.f32.bf16bits", e.type(result.type), arguments)
        return
    e.names[result] = convert_float(e, e.names[operand], operand.type, result.type)


def convert_float(e: Emitter, value: str, source: Attribute, target: Attribute) -> str:
    """Convert a float operand between float types; returns the new operand's name."""
    source_text, target_text = e.type(source), e.type(target)
    if isinstance(source, VectorType) or isinstance(target, VectorType):
        widen = source.get_element_type().bitwidth < target.get_element_type().bitwidth  # type: ignore[union-attr]
        return _plain_conversion(e, value, source_text, target_text, widen)
    a, b = short_name(source), short_name(target)
    if e.bf16 == "i16":
        a, b = (name.replace("bf16", "bf16bits") for name in (a, b))
    if f"{a}->{b}" in e.native:
        return _plain_conversion(e, value, source_text, target_text, source.bitwidth < target.bitwidth)  # type: ignore[attr-defined]
    return e.library(f"heron.convert.{a}.{b}", target_text, [(source_text, value)])


def _plain_conversion(e: Emitter, value: str, source: str, target: str, widen: bool) -> str:
    fresh = e.fresh()
    e.out.append(f"  {fresh} = {'fpext' if widen else 'fptrunc'} {source} {value} to {target}")
    return fresh


@rule(arith.BitcastOp)
def _bitcast(e: Emitter, op: arith.BitcastOp) -> None:
    operand, result = op.operands[0], op.results[0]
    if e.type(operand.type) == e.type(result.type):
        e.names[result] = e.names[operand]
        return
    # f4 and f6 travel in a byte, integers of as many bits do not
    kinds = {("i8", "i4"): "trunc", ("i4", "i8"): "zext", ("i8", "i6"): "trunc", ("i6", "i8"): "zext"}
    kind = kinds.get((e.type(operand.type), e.type(result.type)), "bitcast")
    e.out.append(f"  {e.define(result)} = {kind} {e.typed(operand)} to {e.type(result.type)}")


@rule(arith.IndexCastOp)
def _index_cast(e: Emitter, op: arith.IndexCastOp) -> None:
    operand, result = op.operands[0], op.results[0]
    source, target = e.type(operand.type), e.type(result.type)
    if source == target:
        e.names[result] = e.names[operand]
        return
    narrow = int(source[1:]) > int(target[1:])
    # an unsigned reading can be asked for: xDSL has no index_castui
    kind = "trunc" if narrow else "zext" if "heron.unsigned" in op.attributes else "sext"
    e.out.append(f"  {e.define(result)} = {kind} {source} {e.names[operand]} to {target}")


@rule(arith.MulUIExtendedOp, arith.MulSIExtendedOp)
def _mul_extended(e: Emitter, op: Operation) -> None:
    a, b = op.operands
    text = e.type(a.type)
    width = e.index_bits if isinstance(a.type, IndexType) else int(text[1:])
    wide, extend = f"i{2 * width}", "zext" if isinstance(op, arith.MulUIExtendedOp) else "sext"
    wa, wb, product, high = e.fresh(), e.fresh(), e.fresh(), e.fresh()
    e.out += [
        f"  {wa} = {extend} {text} {e.names[a]} to {wide}",
        f"  {wb} = {extend} {text} {e.names[b]} to {wide}",
        f"  {product} = mul {wide} {wa}, {wb}",
        f"  {e.define(op.results[0])} = trunc {wide} {product} to {text}",
        f"  {high} = lshr {wide} {product}, {width}",
        f"  {e.define(op.results[1])} = trunc {wide} {high} to {text}",
    ]


@rule(arith.AddUIExtendedOp)
def _add_extended(e: Emitter, op: arith.AddUIExtendedOp) -> None:
    a, b = op.operands
    text = e.type(a.type)
    total = e.define(op.results[0])
    e.out.append(f"  {total} = add {text} {e.names[a]}, {e.names[b]}")
    e.out.append(f"  {e.define(op.results[1])} = icmp ult {text} {total}, {e.names[a]}")


@rule(arith.FloorDivSIOp, arith.CeilDivSIOp)
def _rounded_division(e: Emitter, op: Operation) -> None:
    """quotient toward zero, moved by one when the remainder is not 0 and the signs (dis)agree."""
    a, b = op.operands
    text, lhs, rhs = e.type(a.type), e.names[a], e.names[b]
    floor = isinstance(op, arith.FloorDivSIOp)
    q, r, nonzero, signs, differ, adjust, step = (e.fresh() for _ in range(7))
    e.out += [
        f"  {q} = sdiv {text} {lhs}, {rhs}",
        f"  {r} = srem {text} {lhs}, {rhs}",
        f"  {nonzero} = icmp ne {text} {r}, 0",
        f"  {signs} = xor {text} {lhs}, {rhs}",
        f"  {differ} = icmp {'slt' if floor else 'sge'} {text} {signs}, 0",
        f"  {adjust} = and i1 {nonzero}, {differ}",
        f"  {step} = {'sext' if floor else 'zext'} i1 {adjust} to {text}",
        f"  {e.define(op.results[0])} = add {text} {q}, {step}",
    ]


@rule(arith.CeilDivUIOp)
def _ceil_division(e: Emitter, op: arith.CeilDivUIOp) -> None:
    a, b = op.operands
    text, lhs, rhs = e.type(a.type), e.names[a], e.names[b]
    q, r, nonzero, step = (e.fresh() for _ in range(4))
    e.out += [
        f"  {q} = udiv {text} {lhs}, {rhs}",
        f"  {r} = urem {text} {lhs}, {rhs}",
        f"  {nonzero} = icmp ne {text} {r}, 0",
        f"  {step} = zext i1 {nonzero} to {text}",
        f"  {e.define(op.results[0])} = add {text} {q}, {step}",
    ]


# complex values are structs {re, im}


@rule(complex.CreateOp)
def _complex_create(e: Emitter, op: complex.CreateOp) -> None:
    e.names[op.results[0]] = pair(e, e.type(op.results[0].type), *(e.typed(v) for v in op.operands))


def pair(e: Emitter, text: str, real: str, imaginary: str) -> str:
    """A struct of two typed operands."""
    first, second = e.fresh(), e.fresh()
    e.out.append(f"  {first} = insertvalue {text} poison, {real}, 0")
    e.out.append(f"  {second} = insertvalue {text} {first}, {imaginary}, 1")
    return second


@rule(complex.ReOp, complex.ImOp)
def _complex_part(e: Emitter, op: Operation) -> None:
    text = e.typed(op.operands[0])
    e.out.append(f"  {e.define(op.results[0])} = extractvalue {text}, {0 if isinstance(op, complex.ReOp) else 1}")


@rule(complex.ConstantOp)
def _complex_constant(e: Emitter, op: complex.ConstantOp) -> None:
    type_ = op.results[0].type
    assert isinstance(type_, ComplexType)
    part = type_.element_type
    text = text_of(part)
    real, imaginary = (item for item in op.properties["value"])  # type: ignore[attr-defined]
    parts = (float_text(float(item.value.data), part) for item in (real, imaginary))
    e.names[op.results[0]] = "{ " + ", ".join(f"{text} {value}" for value in parts) + " }"


# vectors: what a vectorised memory access needs


@rule(vector.ExtractOp)
def _extract(e: Emitter, op: vector.ExtractOp) -> None:
    source = op.operands[0]
    position = _position(e, op, list(op.operands[1:]))
    e.out.append(f"  {e.define(op.results[0])} = extractelement {e.typed(source)}, {position}")


@rule(vector.InsertOp)
def _insert(e: Emitter, op: vector.InsertOp) -> None:
    value, target, *dynamic = op.operands
    position = _position(e, op, dynamic)
    e.out.append(f"  {e.define(op.results[0])} = insertelement {e.typed(target)}, {e.typed(value)}, {position}")


def _position(e: Emitter, op: Operation, dynamic: list) -> str:
    if dynamic:
        return e.typed(dynamic[0])
    return "i64 " + str(op.properties["static_position"].get_values()[0])  # type: ignore[attr-defined]


@rule(vector.BroadcastOp)
def _broadcast(e: Emitter, op: vector.BroadcastOp) -> None:
    source, result = op.operands[0], op.results[0]
    text, one = e.type(result.type), e.fresh()
    lanes = text[1:].split(" ")[0]
    e.out.append(f"  {one} = insertelement {text} poison, {e.typed(source)}, i64 0")
    mask = f"<{lanes} x i32> zeroinitializer"
    e.out.append(f"  {e.define(result)} = shufflevector {text} {one}, {text} poison, {mask}")
