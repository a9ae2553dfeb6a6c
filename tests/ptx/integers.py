"""Meanings of integer and logic instructions."""

from __future__ import annotations

from tests.ptx.body import Body, Unknown, means, type_of
from tests.ptx.text import Instruction

#: quotients by 0 and of the least number by -1 are "unspecified": no program may depend on this
UNSPECIFIED = 0x5A5A5A5A5A5A5A5A


def _only(i: Instruction, mods: list[str], *known: str) -> None:
    if left := set(mods[:-1]) - set(known):
        raise Unknown(f"{i}: {', '.join(sorted(left))}")


def add_or_subtract(b: Body, i: Instruction, mods: list[str], name: str) -> None:
    """Of integers, with carries (``.cc`` writes, ``addc`` reads)."""
    _, bits = type_of(mods)
    _only(i, mods, "cc")
    x, y = (b.read(o, bits) for o in i.operands[1:])
    _carried(b, i.operands[0], x, y, bits, name, "cc" in mods, carry=False)


def _carried(b: Body, to: str, x: str, y: str, bits: int, name: str, keeps: bool, carry: bool) -> None:
    wide = bits + 2
    total = b.two(name, wide, *(b.cast("zext", v, bits, wide) for v in (x, y)))
    if carry:
        total = b.two(name, wide, total, b.cast("zext", b.value("load i1, ptr %ptx.carry"), 1, wide))
    if keeps:
        b.line(f"store i1 {b.cast('zext', b.two('lshr', wide, total, bits), wide, 1)}, ptr %ptx.carry")
    b.write(to, b.cast("zext", total, wide, bits), bits)


@means("addc", "subc")
def _with_carry(b: Body, i: Instruction, mods: list[str]) -> None:
    _, bits = type_of(mods)
    x, y = (b.read(o, bits) for o in i.operands[1:])
    _carried(b, i.operands[0], x, y, bits, i.opcode[:3], "cc" in mods, carry=True)


def product(b: Body, i: Instruction, mods: list[str]) -> tuple[str, int]:
    """``lo``, ``hi`` or ``wide``: the value and its bits."""
    t, bits = type_of(mods)
    _only(i, mods, "lo", "hi", "wide", "cc")
    extend = "sext" if t[0] == "s" else "zext"
    whole = b.two("mul", 2 * bits, *(b.cast(extend, b.read(o, bits), bits, 2 * bits) for o in i.operands[1:3]))
    if "wide" in mods:
        return whole, 2 * bits
    if "hi" in mods:
        whole = b.two("lshr", 2 * bits, whole, bits)
    return b.cast(extend, whole, 2 * bits, bits), bits


@means("mad", "madc")
def _multiply_add(b: Body, i: Instruction, mods: list[str]) -> None:
    if mods[-1][0] == "f":
        raise Unknown(str(i))
    value, bits = product(b, i, mods)
    addend, carry = b.read(i.operands[3], bits), i.opcode.startswith("madc")
    _carried(b, i.operands[0], value, addend, bits, "add", "cc" in mods, carry)


def divide(b: Body, i: Instruction, mods: list[str], name: str) -> None:
    """``div`` and ``rem`` of integers."""
    t, bits = type_of(mods)
    _only(i, mods)
    signed = t[0] == "s"
    x, y = (b.read(o, bits) for o in i.operands[1:])
    bad = b.two("icmp eq", bits, y, 0)
    if signed:
        least = b.two("icmp eq", bits, x, b.number(1 << (bits - 1), bits))
        bad = b.two("or", 1, bad, b.two("and", 1, least, b.two("icmp eq", bits, y, -1)))
    divisor = b.select(bad, f"i{bits}", 1, y)
    result = b.two(f"{'s' if signed else 'u'}{name}", bits, x, divisor)
    b.write(i.operands[0], b.select(bad, f"i{bits}", b.number(UNSPECIFIED, bits), result), bits)


@means("and", "or", "xor")
def _logic(b: Body, i: Instruction, mods: list[str]) -> None:
    _, bits = type_of(mods)
    x, y = (b.read(o, bits) for o in i.operands[1:])
    b.write(i.operands[0], b.two(i.opcode.split(".")[0], bits, x, y), bits)


@means("not")
def _not(b: Body, i: Instruction, mods: list[str]) -> None:
    _, bits = type_of(mods)
    b.write(i.operands[0], b.two("xor", bits, b.read(i.operands[1], bits), -1), bits)


@means("shl", "shr")
def _shift(b: Body, i: Instruction, mods: list[str]) -> None:
    """By 32 bits of an operand; more than the width is taken for the width."""
    t, bits = type_of(mods)
    _only(i, mods)
    x, by = b.read(i.operands[1], bits), b.read(i.operands[2], 32)
    far = b.two("icmp uge", 32, by, bits)
    near = b.cast("zext", b.select(far, "i32", 0, by), 32, bits)
    kind = "shl" if i.opcode.startswith("shl") else "ashr" if t[0] == "s" else "lshr"
    beyond = b.two("ashr", bits, x, bits - 1) if kind == "ashr" else "0"
    b.write(i.operands[0], b.select(far, f"i{bits}", beyond, b.two(kind, bits, x, near)), bits)


@means("shf")
def _funnel(b: Body, i: Instruction, mods: list[str]) -> None:
    if mods not in (["l", "wrap", "b32"], ["r", "wrap", "b32"]):
        raise Unknown(str(i))
    low, high, by = (b.read(o, 32) for o in i.operands[1:])
    b.write(i.operands[0], b.intrinsic("fshl" if mods[0] == "l" else "fshr", "i32", high, low, by), 32)


@means("bfe")
def _extract(b: Body, i: Instruction, mods: list[str]) -> None:
    """A field of ``c`` bits from bit ``b`` on; beyond the number there are zeros, or signs."""
    t, bits = type_of(mods)
    wide, right = 2 * bits, "ashr" if t[0] == "s" else "lshr"
    x = b.cast("sext" if t[0] == "s" else "zext", b.read(i.operands[1], bits), bits, wide)
    at, size = (b.two("and", 32, b.read(o, 32), 255) for o in i.operands[2:])
    none = b.two("icmp eq", 32, size, 0)
    at, size = b.intrinsic("umin", "i32", at, str(wide - 1)), b.intrinsic("umin", "i32", size, str(wide))
    unused = b.cast("zext", b.select(none, "i32", 0, b.two("sub", 32, str(wide), size)), 32, wide)
    shifted = b.two(right, wide, x, b.cast("zext", at, 32, wide))
    field = b.two(right, wide, b.two("shl", wide, shifted, unused), unused)
    b.write(i.operands[0], b.select(none, f"i{bits}", 0, b.cast("zext", field, wide, bits)), bits)


@means("bfi")
def _insert(b: Body, i: Instruction, mods: list[str]) -> None:
    _, bits = type_of(mods)
    wide, (x, into) = 2 * bits, (b.read(o, bits) for o in i.operands[1:3])
    at, size = (b.intrinsic("umin", "i32", b.two("and", 32, b.read(o, 32), 255), str(bits)) for o in i.operands[3:])
    at, size = (b.cast("zext", v, 32, wide) for v in (at, size))
    mask = b.cast("zext", b.two("shl", wide, b.two("sub", wide, b.two("shl", wide, "1", size), 1), at), wide, bits)
    new = b.two("and", bits, b.cast("zext", b.two("shl", wide, b.cast("zext", x, bits, wide), at), wide, bits), mask)
    b.write(i.operands[0], b.two("or", bits, new, b.two("and", bits, into, b.two("xor", bits, mask, -1))), bits)


@means("popc", "clz", "brev")
def _count(b: Body, i: Instruction, mods: list[str]) -> None:
    _, bits = type_of(mods)
    x, name = b.read(i.operands[1], bits), i.opcode.split(".")[0]
    if name == "brev":
        b.write(i.operands[0], b.intrinsic("bitreverse", f"i{bits}", x), bits)
        return
    if name == "popc":
        found = b.intrinsic("ctpop", f"i{bits}", x)
    else:
        found = b.call(f"i{bits}", f"llvm.ctlz.i{bits}", (f"i{bits}", x), ("i1", "false"))
    b.write(i.operands[0], b.cast("zext", found, bits, 32), 32)


@means("prmt")
def _permute(b: Body, i: Instruction, mods: list[str]) -> None:
    """Bytes chosen by four bits each; the eighth bit of a choice spreads the byte's sign."""
    if mods != ["b32"]:
        raise Unknown(str(i))
    low, high, chosen = (b.read(o, 32) for o in i.operands[1:])
    both = b.two("shl", 64, b.cast("zext", high, 32, 64), 32)
    both = b.two("or", 64, both, b.cast("zext", low, 32, 64))
    total = "0"
    for n in range(4):
        choice = b.two("lshr", 32, chosen, 4 * n)
        at = b.two("shl", 32, b.two("and", 32, choice, 7), 3)
        byte = b.cast("zext", b.two("lshr", 64, both, b.cast("zext", at, 32, 64)), 64, 8)
        is_sign = b.cast("zext", b.two("lshr", 32, choice, 3), 32, 1)
        byte = b.select(is_sign, "i8", b.two("ashr", 8, byte, 7), byte)
        total = b.two("or", 32, total, b.two("shl", 32, b.cast("zext", byte, 8, 32), 8 * n))
    b.write(i.operands[0], total, 32)


def extremum(b: Body, i: Instruction, mods: list[str], name: str) -> None:
    """``min`` and ``max`` of integers."""
    t, bits = type_of(mods)
    _only(i, mods)
    x, y = (b.read(o, bits) for o in i.operands[1:])
    b.write(i.operands[0], b.intrinsic(("s" if t[0] == "s" else "u") + name, f"i{bits}", x, y), bits)


def negated_or_absolute(b: Body, i: Instruction, mods: list[str], name: str) -> None:
    """``neg`` and ``abs`` of integers."""
    _, bits = type_of(mods)
    x = b.read(i.operands[1], bits)
    minus = b.two("sub", bits, "0", x)
    if name == "abs":
        minus = b.select(b.two("icmp slt", bits, x, 0), f"i{bits}", minus, x)
    b.write(i.operands[0], minus, bits)


COMPARED = {"eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge", "lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}  # fmt: skip


def compared(b: Body, i: Instruction, mods: list[str], x: str, y: str) -> str:
    """`i1` of a comparison of integers."""
    t, bits = type_of(mods)
    name = COMPARED[mods[0]]
    if name not in ("eq", "ne"):
        if t[0] == "b":
            raise Unknown(str(i))
        name = ("s" if t[0] == "s" else "u") + name
    return b.two(f"icmp {name}", bits, b.read(x, bits), b.read(y, bits))
