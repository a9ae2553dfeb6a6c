"""Meanings of moves, accesses of memory, atomics, branches, calls, and what lanes do together."""

from __future__ import annotations

import re

from tests.ptx.body import FLOATS, Body, Unknown, means, type_of
from tests.ptx.text import Instruction

_SPACES = {"global", "shared", "local", "param", "const"}
#: of accesses that other threads may see at any time
_ATOMIC = {"relaxed", "acquire", "release", "volatile"}
_SCOPES = {"cta", "gpu", "sys", "cluster"}


def _parts(operand: str) -> list[str]:
    """The elements of ``{a, b}``, or the operand alone."""
    return [p.strip() for p in operand.strip("{}").split(",")] if operand.startswith("{") else [operand]


@means("mov")
def _move(b: Body, i: Instruction, mods: list[str]) -> None:
    """Of a value, or between a register and parts of it, the lowest first."""
    (to, source), (_, bits) = i.operands, type_of(mods)
    if to.startswith("{"):
        targets, word = _parts(to), b.read(source, bits)
        part = bits // len(targets)
        for n, target in enumerate(targets):
            shifted = b.two("lshr", bits, word, n * part)
            b.write(target, b.cast("zext", shifted, bits, part), part)
        return
    if source.startswith("{"):
        sources, total = _parts(source), "0"
        part = bits // len(sources)
        for n, one in enumerate(sources):
            wide = b.cast("zext", b.read(one, part), part, bits)
            total = b.two("or", bits, total, b.two("shl", bits, wide, n * part))
        b.write(to, total, bits)
        return
    b.write(to, b.read(source, bits), bits)


@means("cvta")
def _address(b: Body, i: Instruction, mods: list[str]) -> None:
    """All state spaces are one here."""
    b.write(i.operands[0], b.read(i.operands[1], 64), 64)


def _access(i: Instruction, mods: list[str]) -> tuple[str, int, int, bool]:
    """State space, elements, bits of one, and whether it is atomic."""
    _, bits = type_of(mods)
    rest = set(mods[:-1])
    space = next(iter(rest & _SPACES), "")
    vector = next((int(m[1:]) for m in rest if re.fullmatch(r"v[248]", m)), 1)
    known = _SPACES | _ATOMIC | _SCOPES | {"nc", f"v{vector}"}
    if left := rest - known:
        raise Unknown(f"{i}: {', '.join(sorted(left))}")
    return space, vector, bits, bool(rest & _ATOMIC)


@means("ld")
def _load(b: Body, i: Instruction, mods: list[str]) -> None:
    space, count, bits, atomic = _access(i, mods)
    pointer = b.address(i.operands[1], space)
    size = bits * count // 8
    align = 1 if space == "param" else size
    how, after = ("atomic ", " monotonic") if atomic and count == 1 else ("", "")
    type_ = f"i{bits}" if count == 1 else f"<{count} x i{bits}>"
    found = b.value(f"load {how}{type_}, ptr {pointer}{after}, align {align}")
    for n, target in enumerate(_parts(i.operands[0])):
        one = found if count == 1 else b.value(f"extractelement {type_} {found}, i64 {n}")
        b.write(target, one, bits, signed=mods[-1][0] == "s")


@means("st")
def _store(b: Body, i: Instruction, mods: list[str]) -> None:
    space, count, bits, atomic = _access(i, mods)
    values = [b.read(o, bits) for o in _parts(i.operands[1])]
    pointer = b.address(i.operands[0], space)
    align = 1 if space == "param" else bits * count // 8
    how, after = ("atomic ", " monotonic") if atomic and count == 1 else ("", "")
    value, type_ = values[0], f"i{bits}"
    if count > 1:
        type_, value = f"<{count} x i{bits}>", "poison"
        for n, one in enumerate(values):
            value = b.value(f"insertelement {type_} {value}, i{bits} {one}, i64 {n}")
    b.line(f"store {how}{type_} {value}, ptr {pointer}{after}, align {align}")


_ATOMS = {"add": "add", "and": "and", "or": "or", "xor": "xor", "exch": "xchg"}


@means("atom", "red")
def _atomic(b: Body, i: Instruction, mods: list[str]) -> None:
    t, bits = type_of(mods)
    space = next((m for m in mods if m in _SPACES), "")
    names = [m for m in mods[:-1] if m not in _SPACES | _ATOMIC | _SCOPES | {"acq_rel", "noftz"}]
    target, operands = ("_", i.operands) if i.opcode.startswith("red") else (i.operands[0], i.operands[1:])
    pointer = b.address(operands[0], space)
    if names == ["cas"]:
        old, new = (b.read(o, bits) for o in operands[1:])
        pair = b.value(f"cmpxchg ptr {pointer}, i{bits} {old}, i{bits} {new} monotonic monotonic, align {bits // 8}")
        found = b.value(f"extractvalue {{ i{bits}, i1 }} {pair}, 0")
    elif names == ["add"] and t in ("f32", "f64"):
        kind = FLOATS[bits]
        value = b.bitcast(b.read(operands[1], bits), f"i{bits}", kind)
        old = b.value(f"atomicrmw fadd ptr {pointer}, {kind} {value} monotonic, align {bits // 8}")
        found = b.bitcast(old, kind, f"i{bits}")
    elif names in (["min"], ["max"]) or len(names) == 1 and names[0] in _ATOMS and t[0] != "f":
        name = _ATOMS.get(names[0]) or ("" if t[0] == "s" else "u") + names[0]
        value = b.read(operands[1], bits)
        found = b.value(f"atomicrmw {name} ptr {pointer}, i{bits} {value} monotonic, align {bits // 8}")
    else:
        raise Unknown(str(i))
    b.write(target, found, bits)


# -- control -----------------------------------------------------------------------------------------------------------


@means("bra")
def _branch(b: Body, i: Instruction, mods: list[str]) -> None:
    b.end(f"br label %{label(i.operands[0])}")


@means("brx")
def _branch_by_number(b: Body, i: Instruction, mods: list[str]) -> None:
    index, table = b.read(i.operands[0], 32), b.function.tables[i.operands[1]]
    cases = " ".join(f"i32 {n}, label %{label(name)}" for n, name in enumerate(table))
    b.end(f"switch i32 {index}, label %{label(table[-1])} [ {cases} ]")


@means("ret", "exit")
def _return(b: Body, i: Instruction, mods: list[str]) -> None:
    if i.opcode == "exit" and not b.function.entry:
        raise Unknown("exit from a function")
    b.end("ret void")


def label(name: str) -> str:
    """LLVM's name of a label."""
    return name.replace("$", "ptx.")


@means("call")
def _call(b: Body, i: Instruction, mods: list[str]) -> None:
    groups = [o.strip("() ") for o in i.operands]
    name = next(g for g in groups if g in b.functions)
    at = groups.index(name)
    named = [g for group in (*groups[:at], *groups[at + 1 :]) for g in group.split(",") if g.strip()]
    pointers = ", ".join(f"ptr {b.symbols[g.strip()]}" for g in named)
    b.line(f"call void @{name}({pointers})")


@means("bar", "barrier")
def _barrier(b: Body, i: Instruction, mods: list[str]) -> None:
    mods = [m for m in mods if m not in ("cta", "aligned")]
    if mods == ["warp", "sync"]:
        b.call("void", "llvm.nvvm.bar.warp.sync", ("i32", b.read(i.operands[0], 32)))
    elif mods == ["sync"] and i.operands == ("0",):
        b.call("void", "llvm.nvvm.barrier.cta.sync.aligned.all", ("i32", "0"))
    elif mods in (["sync"], ["arrive"]) and len(i.operands) == 2:
        name = f"llvm.nvvm.barrier.cta.{mods[0]}.aligned.count"
        b.call("void", name, *(("i32", b.read(o, 32)) for o in i.operands))
    else:
        raise Unknown(str(i))


@means("membar", "fence", "nanosleep")
def _nothing(b: Body, i: Instruction, mods: list[str]) -> None:
    """One host thread runs all: memory is coherent."""


# -- lanes -------------------------------------------------------------------------------------------------------------


@means("shfl")
def _shuffle(b: Body, i: Instruction, mods: list[str]) -> None:
    if mods[0] != "sync" or mods[-1] != "b32":
        raise Unknown(str(i))
    target, *predicate = i.operands[0].split("|")
    value, by, clamp, mask = (b.read(o, 32) for o in i.operands[1:])
    arguments = [("i32", v) for v in (mask, value, by, clamp)]
    if not predicate:
        b.write(target, b.call("i32", f"llvm.nvvm.shfl.sync.{mods[1]}.i32", *arguments), 32)
        return
    pair = b.call("{ i32, i1 }", f"llvm.nvvm.shfl.sync.{mods[1]}.i32p", *arguments)
    b.write(target, b.value(f"extractvalue {{ i32, i1 }} {pair}, 0"), 32)
    b.write(predicate[0], b.value(f"extractvalue {{ i32, i1 }} {pair}, 1"), 1)


@means("vote")
def _vote(b: Body, i: Instruction, mods: list[str]) -> None:
    bits = 32 if mods[1] == "ballot" else 1
    arguments = (("i32", b.read(i.operands[2], 32)), ("i1", b.read(i.operands[1], 1)))
    b.write(i.operands[0], b.call(f"i{bits}", f"llvm.nvvm.vote.{mods[1]}.sync", *arguments), bits)


@means("match")
def _match(b: Body, i: Instruction, mods: list[str]) -> None:
    _, bits = type_of(mods)
    if mods[:2] != ["any", "sync"]:
        raise Unknown(str(i))
    arguments = (("i32", b.read(i.operands[2], 32)), (f"i{bits}", b.read(i.operands[1], bits)))
    b.write(i.operands[0], b.call("i32", f"llvm.nvvm.match.any.sync.i{bits}", *arguments), 32)


@means("redux")
def _reduce(b: Body, i: Instruction, mods: list[str]) -> None:
    name = ("u" if mods[-1] == "u32" and mods[1] in ("min", "max") else "") + mods[1]
    arguments = (("i32", b.read(i.operands[1], 32)), ("i32", b.read(i.operands[2], 32)))
    b.write(i.operands[0], b.call("i32", f"llvm.nvvm.redux.sync.{name}", *arguments), 32)


@means("activemask")
def _active(b: Body, i: Instruction, mods: list[str]) -> None:
    b.write(i.operands[0], b.call("i32", "llvm.nvvm.activemask"), 32)
