"""The LLVM text of one PTX function: registers are stack slots of integers, which LLVM makes values of."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.ptx.text import Function, Instruction, Variable, bits_of

FLOATS = {16: "half", 32: "float", 64: "double"}


class Unknown(Exception):
    """An instruction without a meaning here: nothing is left out silently."""


Meaning = Callable[["Body", Instruction, "list[str]"], None]
MEANINGS: dict[str, Meaning] = {}


def means(*names: str) -> Callable[[Meaning], Meaning]:
    """Register the meaning of instructions whose names begin so."""

    def register(meaning: Meaning) -> Meaning:
        for name in names:
            assert name not in MEANINGS, name
            MEANINGS[name] = meaning
        return meaning

    return register


@dataclass
class Body:
    """``symbols``: what names of memory stand for, as LLVM's pointers; ``called``: signatures of what is called."""

    function: Function
    symbols: dict[str, str]
    functions: dict[str, Function]
    called: set[str] = field(default_factory=set)
    slots: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    count: int = 0
    ended: bool = False
    #: makes a pointer of an address that may lie in any array, for the simulator to check
    anywhere: str = ""

    # -- lines ---------------------------------------------------------------------------------------------------------
    def line(self, text: str) -> None:
        if self.ended:
            self.label(self.fresh("ptx.dead"))
        self.lines.append("  " + text)

    def fresh(self, hint: str) -> str:
        self.count += 1
        return f"{hint}{self.count}"

    def value(self, text: str) -> str:
        name = "%" + self.fresh("ptx.v")
        self.line(f"{name} = {text}")
        return name

    def two(self, kind: str, bits: int, x: str, y: str | int) -> str:
        """An instruction on two integers."""
        return self.value(f"{kind} i{bits} {x}, {y}")

    def cast(self, kind: str, value: str, source: int, target: int) -> str:
        """An integer of another width: ``zext`` or ``sext`` where that is larger."""
        if source == target:
            return value
        return self.value(f"{kind if target > source else 'trunc'} i{source} {value} to i{target}")

    def select(self, condition: str, type_: str, yes: str | int, no: str | int) -> str:
        return self.value(f"select i1 {condition}, {type_} {yes}, {type_} {no}")

    def bitcast(self, value: str, source: str, target: str) -> str:
        return self.value(f"bitcast {source} {value} to {target}")

    def label(self, name: str) -> None:
        if not self.ended and self.lines:
            self.lines.append(f"  br label %{name}")
        self.lines.append(f"{name}:")
        self.ended = False

    def end(self, text: str) -> None:
        self.line(text)
        self.ended = True

    def call(self, result: str, name: str, *arguments: tuple[str, str]) -> str:
        self.called.add(f"{result} @{name}({', '.join(t for t, _ in arguments)})")
        text = f"call {result} @{name}({', '.join(f'{t} {v}' for t, v in arguments)})"
        if result != "void":
            return self.value(text)
        self.line(text)
        return ""

    def intrinsic(self, name: str, type_: str, *values: str) -> str:
        """An overloaded intrinsic on values of one type."""
        suffix = {"half": "f16", "float": "f32", "double": "f64"}.get(type_, type_)
        return self.call(type_, f"llvm.{name}.{suffix}", *((type_, v) for v in values))

    # -- registers -----------------------------------------------------------------------------------------------------
    def read(self, operand: str, bits: int) -> str:
        """The low bits of an operand as an integer."""
        if operand in self.function.registers:
            width = self.function.registers[operand]
            if width < bits:
                raise Unknown(f"{operand} has {width} bits, not {bits}")
            found = self.value(f"load i{width}, ptr {self.slot_of(operand)}")
            return self.cast("zext", found, width, bits)
        if operand.startswith("%"):
            return self.special(operand[1:])
        if match := re.fullmatch(r"0[fd]([0-9A-Fa-f]+)", operand):
            return self.number(int(match.group(1), 16), bits)
        if re.fullmatch(r"-?(0x[0-9a-fA-F]+|\d+)U?", operand):
            return self.number(int(operand.rstrip("U"), 0), bits)
        if operand in self.symbols:
            return self.value(f"ptrtoint ptr {self.symbols[operand]} to i{bits}")
        raise Unknown(f"operand {operand}")

    def number(self, value: int, bits: int) -> str:
        value %= 1 << bits
        return str(value - (1 << bits) if value >> (bits - 1) and bits > 1 else value)

    def special(self, name: str) -> str:
        if not re.fullmatch(r"(n?tid|n?ctaid)\.[xyz]|laneid", name):
            raise Unknown(f"register %{name}")
        return self.call("i32", f"llvm.nvvm.read.ptx.sreg.{name}")

    def slot_of(self, register: str) -> str:
        return "%ptx.r" + re.sub(r"[^\w.]", ".", register)

    def write(self, register: str, value: str, bits: int, *, signed: bool = False) -> None:
        """A value of so many bits; a wider register gets it extended."""
        if register == "_":
            return
        width = self.function.registers[register]
        if width < bits:
            raise Unknown(f"{bits} bits for {register}")
        if width > bits:
            value = self.cast("sext" if signed else "zext", value, bits, width)
        self.line(f"store i{width} {value}, ptr {self.slot_of(register)}")

    # -- floats --------------------------------------------------------------------------------------------------------
    def read_float(self, operand: str, type_: str) -> str:
        """A float operand; of 16 bits as LLVM's float, which holds it exactly."""
        bits = 16 if type_ in ("f16", "bf16") else int(type_[1:])
        word = self.read(operand, bits)
        if type_ == "bf16":
            return self.bitcast(self.two("shl", 32, self.cast("zext", word, 16, 32), 16), "i32", "float")
        found = self.bitcast(word, f"i{bits}", FLOATS[bits])
        return self.value(f"fpext half {found} to float") if bits == 16 else found

    def write_float(self, register: str, value: str, type_: str) -> None:
        """A float, rounded from LLVM's float where the type has 16 bits."""
        if type_ in ("f16", "bf16"):
            self.write(register, self.rounded(value, type_), 16)
            return
        bits = int(type_[1:])
        self.write(register, self.bitcast(value, FLOATS[bits], f"i{bits}"), bits)

    def rounded(self, value: str, type_: str) -> str:
        """The bits of a float rounded to f16 or bf16, to nearest even; NaN is all ones."""
        if type_ == "f16":
            word = self.bitcast(self.value(f"fptrunc float {value} to half"), "half", "i16")
        else:
            bits = self.bitcast(value, "float", "i32")
            odd = self.two("and", 32, self.two("lshr", 32, bits, 16), 1)
            total = self.two("add", 32, bits, self.two("add", 32, odd, 32767))
            word = self.cast("zext", self.two("lshr", 32, total, 16), 32, 16)
        return self.select(self.value(f"fcmp uno float {value}, 0.0"), "i16", 32767, word)

    # -- memory --------------------------------------------------------------------------------------------------------
    def address(self, operand: str, space: str) -> str:
        """A pointer to what ``[register+offset]`` names."""
        match = re.fullmatch(r"\[\s*([%\w$.]+)\s*(?:\+\s*(-?\d+))?\s*\]", operand)
        if match is None:
            raise Unknown(f"address {operand}")
        base, offset = match.group(1), int(match.group(2) or 0)
        if base in self.symbols:
            pointer = self.symbols[base]
            return self.value(f"getelementptr i8, ptr {pointer}, i64 {offset}") if offset else pointer
        number = self.read(base, self.function.registers.get(base, 64))
        if self.function.registers.get(base) == 32:
            number = self.cast("zext", number, 32, 64)
        number = self.two("add", 64, number, offset) if offset else number
        on_stack = space == "local" or not space and self.function.locals_
        if on_stack or not self.anywhere:
            return self.value(f"inttoptr i64 {number} to ptr")
        start = self.value(f"ptrtoint ptr {self.anywhere} to i64")
        return self.value(f"getelementptr i8, ptr {self.anywhere}, i64 {self.two('sub', 64, number, start)}")

    def declare(self, variable: Variable) -> None:
        """Memory of a thread."""
        name = "%" + self.fresh("ptx.m")
        self.slots.append(f"  {name} = alloca [{max(variable.size, 1)} x i8], align {variable.align}")
        self.symbols[variable.name] = name


def type_of(mods: list[str]) -> tuple[str, int]:
    """The type that an instruction ends in, and its bits."""
    t = mods[-1]
    return t, 16 if t == "bf16" else bits_of(t)
