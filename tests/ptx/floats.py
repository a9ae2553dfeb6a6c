"""Meanings of float instructions, and of those that integers and floats share. 16-bit floats compute in f32.

Approximate instructions are within a unit of the last place here, as NVIDIA's are: nothing may rely on more.
"""

from __future__ import annotations

from tests.ptx import integers
from tests.ptx.body import Body, Unknown, means, type_of
from tests.ptx.text import Instruction

#: by how much approximate instructions are off: of NVIDIA's bounds, all (1), none (0), or all the other way (-1)
error = 0
#: LLVM's comparison of floats; what ends in u is true for NaN
COMPARED = {
    "eq": "oeq", "ne": "one", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "equ": "ueq", "neu": "une",
    "ltu": "ult", "leu": "ule", "gtu": "ugt", "geu": "uge", "num": "ord", "nan": "uno",
}  # fmt: skip


def is_float(t: str) -> bool:
    return t in ("f16", "bf16", "f32", "f64")


def llvm_of(t: str) -> str:
    """The type that floats compute in."""
    return "double" if t == "f64" else "float"


def flushed(b: Body, value: str, mods: list[str]) -> str:
    """A denormal number as a zero of its sign, with ``.ftz`` of f32."""
    if "ftz" not in mods or mods[-1] != "f32":
        return value
    size = b.intrinsic("fabs", "float", value)
    zero = b.intrinsic("copysign", "float", "0.0", value)
    small = b.value(f"fcmp olt float {size}, 0x3810000000000000")
    return b.select(small, "float", zero, value)


def _floats(b: Body, i: Instruction, mods: list[str]) -> tuple[str, list[str]]:
    """The operands; with two types the result and the last operand are of the first, others of the second."""
    t = mods[-1]
    if mods[-2:-1] == ["f32"] and t != "f32":
        *small, last = i.operands[1:]
        return "float", [*(b.read_float(o, t) for o in small), b.read_float(last, "f32")]
    return llvm_of(t), [flushed(b, b.read_float(o, t), mods) for o in i.operands[1:]]


def _off(b: Body, value: str, mods: list[str], units: int) -> str:
    """An f32 that an approximate instruction gives: so many units of the last place off, where `error` says so."""
    if "approx" not in mods or mods[-1] != "f32" or not error:
        return value
    bits = b.bitcast(value, "float", "i32")
    size = b.two("and", 32, bits, 0x7FFFFFFF)
    ordinary = b.two("icmp ult", 32, b.two("sub", 32, size, 0x00800000), 0x7F000000 - 16)
    whole = b.two("icmp eq", 32, b.two("and", 32, size, 0x7FFFFF), 0)  # powers of two are exact
    moved = b.two("add", 32, bits, error * units)
    return b.bitcast(
        b.select(b.two("and", 1, ordinary, b.two("xor", 1, whole, "true")), "i32", moved, bits), "i32", "float"
    )


def _result(mods: list[str]) -> str:
    return "f32" if mods[-2:-1] == ["f32"] else mods[-1]


def _known(i: Instruction, mods: list[str], *known: str) -> None:
    if left := set(mods[:-1]) - {"rn", "ftz", *known}:
        raise Unknown(f"{i}: {', '.join(sorted(left))}")


@means("add", "sub", "mul")
def _arithmetic(b: Body, i: Instruction, mods: list[str]) -> None:
    t, name = mods[-1], i.opcode.split(".")[0]
    if not is_float(t):
        if name == "mul":
            value, bits = integers.product(b, i, mods)
            b.write(i.operands[0], value, bits)
        else:
            integers.add_or_subtract(b, i, mods, name)
        return
    _known(i, mods, "rz", "rm", "rp", "f32")
    kind, (x, y) = _floats(b, i, mods)
    t = _result(mods)
    result = b.value(f"f{name} {kind} {x}, {y}")
    if way := set(mods) & {"rz", "rm", "rp"}:
        if name == "mul" or t != "f32":
            raise Unknown(str(i))
        wide = [b.value(f"fpext float {v} to double") for v in (x, y if name == "add" else b.value(f"fneg float {y}"))]
        result = _directed(b, result, wide, way.pop())
    b.write_float(i.operands[0], flushed(b, result, mods), t)


@means("fma")
def _fma(b: Body, i: Instruction, mods: list[str]) -> None:
    _known(i, mods, "rz", "rm", "rp", "f32")
    kind, (x, y, z) = _floats(b, i, mods)
    t = _result(mods)
    if t in ("f16", "bf16"):
        if {"rz", "rm", "rp"} & set(mods):
            raise Unknown(str(i))
        wide = [b.value(f"fpext float {v} to double") for v in (x, y, z)]
        b.write_float(i.operands[0], _sum_once(b, b.value(f"fmul double {wide[0]}, {wide[1]}"), wide[2]), t)
        return
    result = b.intrinsic("fma", kind, x, y, z)
    if way := set(mods) & {"rz", "rm", "rp"}:
        if t != "f32":
            raise Unknown(str(i))
        wide = [b.value(f"fpext float {v} to double") for v in (x, y, z)]
        result = _directed(b, result, [b.value(f"fmul double {wide[0]}, {wide[1]}"), wide[2]], way.pop())
    b.write_float(i.operands[0], flushed(b, result, mods), t)


def _directed(b: Body, nearest: str, addends: list[str], way: str) -> str:
    """The sum of two doubles rounded to f32 in another way than to nearest, which it is given as."""
    total, lost = _sum(b, *addends)
    wide = b.value(f"fpext float {nearest} to double")
    rest = b.value(f"fadd double {b.value(f'fsub double {total}, {wide}')}, {lost}")
    below, above = b.value(f"fcmp olt double {rest}, 0.0"), b.value(f"fcmp ogt double {rest}, 0.0")
    bits = b.bitcast(nearest, "float", "i32")
    negative = b.two("icmp slt", 32, bits, 0)
    inward, outward = b.two("sub", 32, bits, 1), b.two("add", 32, bits, 1)
    down, up = b.select(negative, "i32", outward, inward), b.select(negative, "i32", inward, outward)
    if way in ("rm", "rz"):
        may = below if way == "rm" else b.two("and", 1, below, b.two("xor", 1, negative, "true"))
        bits = b.select(may, "i32", down, bits)
    if way in ("rp", "rz"):
        may = above if way == "rp" else b.two("and", 1, above, negative)
        bits = b.select(may, "i32", up, bits)
    return b.bitcast(bits, "i32", "float")


@means("div")
def _divide(b: Body, i: Instruction, mods: list[str]) -> None:
    t = mods[-1]
    if not is_float(t):
        integers.divide(b, i, mods, "div")
        return
    _known(i, mods, "approx", "full")
    kind, (x, y) = _floats(b, i, mods)
    b.write_float(i.operands[0], flushed(b, _off(b, b.value(f"fdiv {kind} {x}, {y}"), mods, 2), mods), t)


@means("rem")
def _remainder(b: Body, i: Instruction, mods: list[str]) -> None:
    integers.divide(b, i, mods, "rem")


@means("min", "max")
def _extremum(b: Body, i: Instruction, mods: list[str]) -> None:
    """Of floats: a number before NaN, but with ``.NaN``; 0 is greater than -0."""
    t, name = mods[-1], i.opcode.split(".")[0]
    if not is_float(t):
        integers.extremum(b, i, mods, name)
        return
    _known(i, mods, "NaN")
    kind, values = _floats(b, i, mods)
    full = {"min": "minimum", "max": "maximum"}[name] + ("" if "NaN" in mods else "num")
    b.write_float(i.operands[0], b.intrinsic(full, kind, *values), t)


@means("neg", "abs")
def _sign(b: Body, i: Instruction, mods: list[str]) -> None:
    t, name = mods[-1], i.opcode.split(".")[0]
    if not is_float(t):
        integers.negated_or_absolute(b, i, mods, name)
        return
    _, bits = type_of(mods)
    if "ftz" in mods:
        raise Unknown(str(i))
    word, top = b.read(i.operands[1], bits), 1 << (bits - 1)
    mask = b.number(top if name == "neg" else top - 1, bits)
    b.write(i.operands[0], b.two("xor" if name == "neg" else "and", bits, word, mask), bits)


@means("copysign")
def _copysign(b: Body, i: Instruction, mods: list[str]) -> None:
    """The sign of the first on the second."""
    _, bits = type_of(mods)
    sign, value = (b.read(o, bits) for o in i.operands[1:])
    top = 1 << (bits - 1)
    kept = b.two("and", bits, value, b.number(top - 1, bits))
    b.write(i.operands[0], b.two("or", bits, kept, b.two("and", bits, sign, b.number(top, bits))), bits)


@means("sqrt", "rcp", "rsqrt")
def _roots(b: Body, i: Instruction, mods: list[str]) -> None:
    t, name = mods[-1], i.opcode.split(".")[0]
    _known(i, mods, "approx")
    kind, (x,) = _floats(b, i, mods)
    if t == "f64" and {"approx", "ftz"} <= set(mods):
        _gross(b, i, x, name)
        return
    wide = x if t == "f64" else b.value(f"fpext float {x} to double")
    if name in ("sqrt", "rsqrt"):
        wide = b.intrinsic("sqrt", "double", wide)
    if name in ("rcp", "rsqrt"):
        wide = b.value(f"fdiv double 1.0, {wide}")
    result = wide if t == "f64" else _off(b, b.value(f"fptrunc double {wide} to float"), mods, 1)
    b.write_float(i.operands[0], flushed(b, result, mods), t)


def _gross(b: Body, i: Instruction, x: str, name: str) -> None:
    """Of the upper 32 bits of a double, to 20 bits; the lower 32 are zeros."""
    high = b.number(0xFFFFFFFF00000000, 64)

    def cut(value: str) -> str:
        return b.bitcast(b.two("and", 64, b.bitcast(value, "double", "i64"), high), "i64", "double")

    def flush(value: str) -> str:
        small = b.value(f"fcmp olt double {b.intrinsic('fabs', 'double', value)}, 0x0010000000000000")
        return b.select(small, "double", b.intrinsic("copysign", "double", "0.0", value), value)

    x = cut(flush(x))
    if name == "rsqrt":
        x = b.intrinsic("sqrt", "double", x)
    b.write_float(i.operands[0], cut(flush(b.value(f"fdiv double 1.0, {x}"))), "f64")


@means("ex2", "lg2", "sin", "cos", "tanh")
def _approximate(b: Body, i: Instruction, mods: list[str]) -> None:
    if mods[-1] != "f32" or "approx" not in mods:
        raise Unknown(str(i))
    _, (x,) = _floats(b, i, mods)
    name = {"ex2": "exp2", "lg2": "log2"}.get(i.opcode.split(".")[0], i.opcode.split(".")[0])
    wide = b.call("double", f"__nv_{name}", ("double", b.value(f"fpext float {x} to double")))
    result = _off(b, b.value(f"fptrunc double {wide} to float"), mods, 2)
    b.write_float(i.operands[0], flushed(b, result, mods), "f32")


@means("setp")
def _compare(b: Body, i: Instruction, mods: list[str]) -> None:
    """A comparison, possibly joined with a predicate by and, or, xor; ``p|q`` gets the opposite, too."""
    t, targets = mods[-1], i.operands[0].split("|")
    first, second = i.operands[1:3]
    if is_float(t):
        values = [flushed(b, b.read_float(o, t), mods) for o in (first, second)]
        found = b.value(f"fcmp {COMPARED[mods[0]]} {llvm_of(t)} {values[0]}, {values[1]}")
    else:
        found = integers.compared(b, i, mods, first, second)
    joins = [m for m in mods[1:-1] if m != "ftz"]
    if any(m not in ("and", "or", "xor") for m in joins) or len(joins) > 1:
        raise Unknown(str(i))
    results = [found, b.two("xor", 1, found, "true")][: len(targets)]
    for target, value in zip(targets, results, strict=True):
        joined = b.two(joins[0], 1, value, b.read(i.operands[3], 1)) if joins else value
        b.write(target, joined, 1)


@means("selp")
def _select(b: Body, i: Instruction, mods: list[str]) -> None:
    _, bits = type_of(mods)
    yes, no = (b.read(o, bits) for o in i.operands[1:3])
    b.write(i.operands[0], b.select(b.read(i.operands[3], 1), f"i{bits}", yes, no), bits)


# -- conversions -------------------------------------------------------------------------------------------------------
_INTEGRAL = {"rni": "roundeven", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}


@means("cvt")
def _convert(b: Body, i: Instruction, mods: list[str]) -> None:
    *how, target, source = mods
    if target == "bf16x2" or target == "f16x2":
        _pack(b, i, how, target, source)
        return
    if left := set(how) - {"rn", "sat", "ftz", *_INTEGRAL}:
        raise Unknown(f"{i}: {', '.join(sorted(left))}")
    if is_float(source) and is_float(target):
        _float_to_float(b, i, how, target, source)
    elif is_float(source):
        _float_to_integer(b, i, how, target, source)
    elif is_float(target):
        bits = int(source[1:])
        word = b.read(i.operands[1], bits)
        kind, name = ("sitofp" if source[0] == "s" else "uitofp"), "double" if target == "f64" else "float"
        value = b.value(f"{kind} i{bits} {word} to {name}")
        if target in ("f16", "bf16") and bits > 16:
            value = _odd(b, b.value(f"{kind} i{bits} {word} to double"))
        b.write_float(i.operands[0], value, target)
    else:
        if "sat" in how:
            raise Unknown(str(i))
        word = b.read(i.operands[1], int(source[1:]))
        bits = min(int(target[1:]), b.function.registers.get(i.operands[0], 64))
        word = b.cast("sext" if source[0] == "s" else "zext", word, int(source[1:]), bits)
        b.write(i.operands[0], word, bits, signed=target[0] == "s")


def _pack(b: Body, i: Instruction, how: list[str], target: str, source: str) -> None:
    """Two floats as halves of a word, the first the upper one."""
    if how != ["rn"] or source != "f32":
        raise Unknown(str(i))
    high, low = (b.cast("zext", b.rounded(b.read_float(o, "f32"), target[:-2]), 16, 32) for o in i.operands[1:])
    b.write(i.operands[0], b.two("or", 32, low, b.two("shl", 32, high, 16)), 32)


def _odd(b: Body, value: str) -> str:
    """A double as a float that rounds on as the double itself would: cut, and odd where something is lost."""
    near = b.value(f"fptrunc double {value} to float")
    back = b.value(f"fpext float {near} to double")
    sizes = [b.intrinsic("fabs", "double", v) for v in (back, value)]
    bits = b.bitcast(near, "float", "i32")
    further = b.cast("zext", b.value(f"fcmp ogt double {sizes[0]}, {sizes[1]}"), 1, 32)
    odd = b.two("or", 32, b.two("sub", 32, bits, further), 1)
    lost = b.value(f"fcmp one double {back}, {value}")
    return b.bitcast(b.select(lost, "i32", odd, bits), "i32", "float")


def _sum_once(b: Body, x: str, y: str) -> str:
    """The sum of two doubles as a float, rounded so that a rounding to 16 bits is the only one."""
    total, lost = _sum(b, x, y)
    bits = b.bitcast(total, "double", "i64")
    same = b.two("icmp eq", 1, b.value(f"fcmp olt double {total}, 0.0"), b.value(f"fcmp olt double {lost}, 0.0"))
    beside = b.two("add", 64, bits, b.select(same, "i64", 1, -1))
    is_odd, exact = b.cast("zext", bits, 64, 1), b.value(f"fcmp oeq double {lost}, 0.0")
    finite = b.value(f"fcmp ord double {lost}, 0.0")
    moves = b.two("and", 1, finite, b.two("xor", 1, b.two("or", 1, is_odd, exact), "true"))
    return _odd(b, b.bitcast(b.select(moves, "i64", beside, bits), "i64", "double"))


def _sum(b: Body, x: str, y: str) -> tuple[str, str]:
    """The sum of two doubles, and what it lost."""
    total = b.value(f"fadd double {x}, {y}")
    back = b.value(f"fsub double {total}, {x}")
    lost_y = b.value(f"fsub double {y}, {back}")
    lost_x = b.value(f"fsub double {x}, {b.value(f'fsub double {total}, {back}')}")
    return total, b.value(f"fadd double {lost_x}, {lost_y}")


def _float_to_float(b: Body, i: Instruction, how: list[str], target: str, source: str) -> None:
    x = b.read_float(i.operands[1], source)
    x = flushed(b, x, [*how, source])
    if ways := set(how) & set(_INTEGRAL):
        x = b.intrinsic(_INTEGRAL[ways.pop()], llvm_of(source), x)
    if source == "f64" and target != "f64":
        if target in ("f16", "bf16"):
            word = b.value(f"fptrunc double {x} to {'half' if target == 'f16' else 'bfloat'}")
            word = b.bitcast(word, "half" if target == "f16" else "bfloat", "i16")
            nan = b.value(f"fcmp uno double {x}, 0.0")
            b.write(i.operands[0], b.select(nan, "i16", 32767, word), 16)
            return
        x = b.value(f"fptrunc double {x} to float")
    elif target == "f64" and source != "f64":
        x = b.value(f"fpext float {x} to double")
    if "sat" in how:  # NaN becomes 0
        kind = llvm_of(target)
        x = b.intrinsic("minimumnum", kind, b.intrinsic("maximumnum", kind, x, "0.0"), "1.0")
        x = b.select(b.value(f"fcmp oeq {kind} {x}, 0.0"), kind, "0.0", x)
    b.write_float(i.operands[0], flushed(b, x, [*how, target]), target)


def _float_to_integer(b: Body, i: Instruction, how: list[str], target: str, source: str) -> None:
    """Clamped; NaN is 0, but of 64 bits or from f64 it is the top bit alone."""
    bits, kind = int(target[1:]), llvm_of(source)
    (way,) = set(how) & set(_INTEGRAL)
    x = b.intrinsic(_INTEGRAL[way], kind, flushed(b, b.read_float(i.operands[1], source), [*how, source]))
    name = f"llvm.fpto{'s' if target[0] == 's' else 'u'}i.sat.i{bits}.{'f64' if kind == 'double' else 'f32'}"
    value = b.call(f"i{bits}", name, (kind, x))
    nan = b.value(f"fcmp uno {kind} {x}, 0.0")
    of_nan = 1 << (bits - 1) if source == "f64" or bits == 64 else 0
    b.write(i.operands[0], b.select(nan, f"i{bits}", b.number(of_nan, bits), value), bits, signed=target[0] == "s")
