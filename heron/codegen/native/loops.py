"""Writing LLVM text of nested loops by hand: for code whose shape is known, so that nothing has to be found out."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

#: bytes of a cache line
LINE = 64


class Loops:
    """Collects the lines of one function. Counters and sums are stack slots, which LLVM puts into registers."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.slots: list[str] = []
        self.values = 0

    def line(self, text: str) -> None:
        self.lines.append("  " + text)

    def name(self, hint: str) -> str:
        self.values += 1
        return f"{hint}{self.values}"

    def value(self, text: str) -> str:
        name = self.name("%v")
        self.line(f"{name} = {text}")
        return name

    def slot(self, kind: str) -> str:
        name = self.name("%s")
        self.slots.append(f"  {name} = alloca {kind}, align 64")
        return name

    def integer(self, op: str, a: str | int, b: str | int) -> str:
        return self.value(f"{op} i64 {a}, {b}")

    def least(self, a: str | int, b: str | int) -> str:
        return self.value(f"call i64 @llvm.umin.i64(i64 {a}, i64 {b})")

    def at(self, base: str, offset: str | int, kind: str) -> str:
        return self.value(f"getelementptr inbounds {kind}, ptr {base}, i64 {offset}")

    def fetch_early(self, place: str, is_written: bool = False) -> None:
        """Ask for the cache line at an address, which may be one of nothing."""
        self.line(f"call void @llvm.prefetch.p0(ptr {place}, i32 {int(is_written)}, i32 3, i32 1)")

    @contextlib.contextmanager
    def loop(self, start: str | int, stop: str | int, step: int = 1) -> Iterator[str]:
        counter = self.slot("i64")
        self.line(f"store i64 {start}, ptr {counter}")
        with self.while_below(counter, stop) as n:
            yield n
            self.line(f"store i64 {self.integer('add', n, step)}, ptr {counter}")

    @contextlib.contextmanager
    def while_below(self, counter: str, stop: str | int) -> Iterator[str]:
        """As long as the number in a slot is below `stop`; what is inside stores a higher one there."""
        head, body, done = self.name("head"), self.name("body"), self.name("done")
        self.line(f"br label %{head}")
        self.lines.append(f"{head}:")
        n = self.value(f"load i64, ptr {counter}")
        more = self.value(f"icmp ult i64 {n}, {stop}")
        self.line(f"br i1 {more}, label %{body}, label %{done}")
        self.lines.append(f"{body}:")
        yield n
        self.line(f"br label %{head}")
        self.lines.append(f"{done}:")

    @contextlib.contextmanager
    def when(self, condition: str) -> Iterator[None]:
        then, done = self.name("then"), self.name("done")
        self.line(f"br i1 {condition}, label %{then}, label %{done}")
        self.lines.append(f"{then}:")
        yield
        self.line(f"br label %{done}")
        self.lines.append(f"{done}:")

    @contextlib.contextmanager
    def unless(self, condition: str) -> Iterator[None]:
        with self.when(self.value(f"xor i1 {condition}, true")):
            yield

    def function(self, head: str) -> str:
        """What was written since the last one, as a function."""
        text = "\n".join([f"define {head} {{", "entry:", *self.slots, *self.lines, "  ret void", "}"])
        self.lines, self.slots = [], []
        return text
