"""The writer of LLVM text: modules, functions, values, fields of structures, loops and conditions.

    >>> from heron.codegen.llvm.text import Module
    >>> module = Module()
    >>> with module.function("i64 @sum(ptr %numbers, i64 %count)") as f:
    ...     numbers, count = f.arguments
    ...     total = f.variable("i64", 0)
    ...     with f.loop(0, count) as n:
    ...         total.set(total.get() + f.load("i64", f.at(numbers, n, "i64")))
    ...     f.ret(total.get())

Values have operators that write instructions. Variables and counters are stack slots, which LLVM puts into registers
(`optimize.slots_to_registers`). A function that is called is declared once in its module, unless the module defines it.
"""

from __future__ import annotations

import contextlib
import ctypes
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

from heron.codegen.llvm.declarations import Declarations
from heron.codegen.llvm.values import Value, Variable, View

#: bytes of a cache line
LINE = 64

_SIGNATURE = re.compile(r"(.+?) ?([@%][\w.$]+)\((.*)\)$")


class Repeat:
    """A loop without a counter; see `Function.repeat`."""

    def __init__(self, function: Function, head: str, done: str) -> None:
        self.function, self._head, self._done = function, head, done
        self.is_left = False

    def leave(self) -> None:
        """Go on after the loop."""
        self.is_left = True
        self.function.jump(self._done)

    def again(self) -> None:
        """Begin the next turn."""
        self.function.jump(self._head)


class Function:
    """Collects the lines of one function, or of a piece of one; ``prefix`` keeps the names of a piece apart."""

    def __init__(self, declared: Declarations | None = None, prefix: str = "") -> None:
        self.declared, self.prefix = declared or Declarations(), prefix
        self.lines: list[str] = []
        self.slots: list[str] = []
        self.values = 0
        self.arguments: list[Value] = []
        self.ended = False

    # -- lines and values ----------------------------------------------------------------------------------------------
    def line(self, text: str) -> None:
        assert not self.ended, f"nothing gets here: {text}"
        self.lines.append("  " + text)

    def name(self, hint: str) -> str:
        self.values += 1
        return f"{hint}{self.values}"

    def value(self, text: str) -> str:
        name = self.name(f"%{self.prefix}v")
        self.line(f"{name} = {text}")
        return name

    def op(self, text: str, type_: str) -> Value:
        """The value of an instruction, with its type."""
        return Value(self.value(text), type_, self)

    def slot(self, kind: str) -> str:
        name = self.name("%s")
        self.slots.append(f"  {name} = alloca {kind}, align 64")
        return name

    def variable(self, type_: str, value: Any = None) -> Variable:
        """A variable, with its first value."""
        made = Variable(self, type_)
        if value is not None:
            made.set(value)
        return made

    def integer(self, op: str, a: str | int, b: str | int) -> str:
        return self.value(f"{op} i64 {a}, {b}")

    def least(self, a: str | int, b: str | int) -> Value:
        return self.op(f"call i64 @llvm.umin.i64(i64 {a}, i64 {b})", "i64")

    def select(self, condition: str, yes: Any, no: Any, type_: str = "") -> Value:
        """One of two; the type is told where both are constants."""
        type_ = type_ or next(v.type for v in (yes, no) if isinstance(v, Value))
        return self.op(f"select i1 {condition}, {type_} {yes}, {type_} {no}", type_)

    # -- memory --------------------------------------------------------------------------------------------------------
    def at(self, base: str, offset: str | int, kind: str, index: str = "i64") -> Value:
        """The address of element `offset` of an array of `kind` that begins at `base`."""
        return self.op(f"getelementptr inbounds {kind}, ptr {base}, {index} {offset}", "ptr")

    def view(self, address: str, owner: type[ctypes.Structure], n: str | int | None = None) -> View:
        """A structure at an address; structure `n` of an array of them."""
        if n is not None:
            address = self.at(address, n, f"[{ctypes.sizeof(owner)} x i8]")
        return View(self, address, owner)

    def load(self, type_: str, place: str, *, order: str = "", align: int = 0) -> Value:
        """Load, with `order` atomically."""
        atomic, end = ("atomic ", f" {order}") if order else ("", "")
        return self.op(f"load {atomic}{type_}, ptr {place}{end}{_aligned(type_, order, align)}", type_)

    def store(self, type_: str, value: Any, place: str, *, order: str = "", align: int = 0) -> None:
        """Store, with `order` atomically."""
        atomic, end = ("atomic ", f" {order}") if order else ("", "")
        self.line(f"store {atomic}{type_} {value}, ptr {place}{end}{_aligned(type_, order, align)}")

    def swap(self, type_: str, place: str, old: Any, new: Any, order: str) -> Value:
        """Whether the number at a place was `old` and now is `new`."""
        pair = self.value(f"cmpxchg ptr {place}, {type_} {old}, {type_} {new} {order}")
        return self.op(f"extractvalue {{ {type_}, i1 }} {pair}, 1", "i1")

    def change(self, op: str, type_: str, place: str, value: Any, order: str) -> Value:
        """The number at a place before it was atomically changed by an operation."""
        return self.op(f"atomicrmw {op} ptr {place}, {type_} {value} {order}", type_)

    def copy(self, target: str, origin: str, size: str | int) -> None:
        self.line(f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {origin}, i64 {size}, i1 false)")

    def fill(self, place: str, byte: int, size: str | int) -> None:
        self.line(f"call void @llvm.memset.p0.i64(ptr {place}, i8 {byte}, i64 {size}, i1 false)")

    def fetch_early(self, place: str, is_written: bool = False) -> None:
        """Ask for the cache line at an address, which may be one of nothing."""
        self.line(f"call void @llvm.prefetch.p0(ptr {place}, i32 {int(is_written)}, i32 3, i32 1)")

    # -- calls ---------------------------------------------------------------------------------------------------------
    def call(self, signature: str, *arguments: Any) -> Value:
        """Call ``ptr @name(i64, ptr)``, which is declared, or a pointer: ``void %pointer(ptr)``; gives the result.

        With ``...`` at the end of a signature the arguments there have types of their own: values, or texts with both.
        """
        found = _SIGNATURE.match(signature)
        assert found is not None, signature
        result, callee, kinds = found[1], found[2], [k for k in found[3].split(", ") if k]
        if callee.startswith("@"):
            self.declared.function(signature)
        given = [f"{kind} {a}" for kind, a in zip(kinds, arguments, strict=False) if kind != "..."]
        if "..." in kinds:
            given += [f"{a.type} {a}" if isinstance(a, Value) else a for a in arguments[len(given) :]]
            result = f"{result} ({found[3]})"
        assert len(given) == len(arguments), signature
        text = f"call {result} {callee}({', '.join(given)})"
        if found[1] == "void":
            self.line(text)
            return Value("", "void", self)
        return self.op(text, found[1])

    # -- control -------------------------------------------------------------------------------------------------------
    def jump(self, label: str) -> None:
        """Go to a block; nothing where the present one has ended."""
        if not self.ended:
            self.line(f"br label %{label}")
            self.ended = True

    def start(self, label: str) -> None:
        """Begin a block."""
        self.lines.append(f"{label}:")
        self.ended = False

    def branch(self, condition: str, then: str, other: str) -> None:
        self.line(f"br i1 {condition}, label %{then}, label %{other}")
        self.ended = True

    def ret(self, value: Any = None, type_: str = "") -> None:
        """Return; the type is told where the value is a constant."""
        kind = type_ or getattr(value, "type", "i64")
        self.line("ret void" if value is None else f"ret {kind} {value}")
        self.ended = True

    @contextlib.contextmanager
    def loop(self, start: str | int, stop: str | int, step: int = 1, type_: str = "i64") -> Iterator[Value]:
        """Count from `start` as long as the counter is below `stop`."""
        counter = self.slot(type_)
        self.line(f"store {type_} {start}, ptr {counter}")
        with self.while_below(counter, stop, type_) as n:
            yield n
            if not self.ended:
                self.line(f"store {type_} {n + step}, ptr {counter}")

    @contextlib.contextmanager
    def while_below(self, counter: str, stop: str | int, type_: str = "i64") -> Iterator[Value]:
        """As long as the number in a slot is below `stop`; the block stores a higher one there."""
        head, body, done = self.name("head"), self.name("body"), self.name("done")
        self.jump(head)
        self.start(head)
        n = self.load(type_, counter)
        more = n.below(stop)
        self.branch(more, body, done)
        self.start(body)
        yield n
        self.jump(head)
        self.start(done)

    @contextlib.contextmanager
    def repeat(self) -> Iterator[Repeat]:
        """Again and again, until the block leaves or returns."""
        head, done = self.name("head"), self.name("done")
        self.jump(head)
        self.start(head)
        each = Repeat(self, head, done)
        yield each
        self.jump(head)
        if each.is_left:
            self.start(done)

    @contextlib.contextmanager
    def when(self, condition: str) -> Iterator[None]:
        then, done = self.name("then"), self.name("done")
        self.branch(condition, then, done)
        self.start(then)
        yield
        self.jump(done)
        self.start(done)

    @contextlib.contextmanager
    def unless(self, condition: str) -> Iterator[None]:
        with self.when(self.value(f"xor i1 {condition}, true")):
            yield

    def fork(self, condition: str) -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
        """Two blocks, to be written one after the other: where the condition holds, and where it does not."""
        then, other, done = self.name("then"), self.name("else"), self.name("done")
        self.branch(condition, then, other)
        return self._case(then, done, ""), self._case(other, done, done)

    @contextlib.contextmanager
    def _case(self, label: str, done: str, after: str) -> Iterator[None]:
        self.start(label)
        yield
        self.jump(done)
        if after:
            self.start(after)
        else:
            self.ended = True

    def function(self, head: str) -> str:
        """The text written since the last function, as a function; it returns nothing unless stated."""
        end = [] if self.ended else ["  ret void"]
        text = "\n".join([f"define {head} {{", "entry:", *self.slots, *self.lines, *end, "}"])
        self.lines, self.slots, self.ended = [], [], False
        return text


class Module:
    """A module that is written function by function. ``declared``: what it uses of elsewhere, and its variables."""

    def __init__(self, declared: Declarations | None = None) -> None:
        self.declared = declared or Declarations()
        self.functions: list[str] = []

    @contextlib.contextmanager
    def function(self, head: str) -> Iterator[Function]:
        """A function, ``internal ptr @name(ptr %a, i64 %n) nounwind``; its `arguments` are values."""
        f = Function(self.declared)
        parameters = head[head.index("(") + 1 : head.index(")")]
        for parameter in filter(None, parameters.split(", ")):
            words = parameter.split()
            f.arguments.append(Value(words[-1], words[0], f))
        yield f
        name = head[head.index("@") + 1 : head.index("(")]
        self.declared.define(name)
        self.functions.append(f.function(head))

    def variable(self, definition: str) -> str:
        """A global, ``@name = internal global i64 0``; gives ``@name``."""
        return self.declared.variable(definition)

    def text(self) -> str:
        """The whole module."""
        return "\n\n".join([self.declared.text(), *self.functions, ""])


def _aligned(type_: str, order: str, align: int) -> str:
    """Atomic accesses must say how they are aligned: as their type, if nothing else is known."""
    if not align and order:
        align = 8 if type_ == "ptr" else int(type_[1:]) // 8
    return f", align {align}" if align else ""
