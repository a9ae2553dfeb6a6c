"""Code of products of a few vectors with the lines of a matrix, see `thin_gemm.py`.

Where the elements of a line lie side by side, a vector register goes along a line, and its sums are added up last.
Where neighbouring lines do, a register has an element of many lines. Sums of long stretches are added to the total one
after the other, so that they round less.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from heron.codegen.llvm.code_cache import CodeCache
from heron.codegen.llvm.text import LINE, Function
from heron.codegen.llvm.values import Value
from heron.codegen.native import common_code
from heron.hlo.ir.types import ElementType
from heron.records import dataclass

#: what a function is told of a product, in this order, as i64: sizes, and distances in elements
FIELDS = (
    "lines", "k", "blocks", "few.vector", "few.k", "many.step", "few.batch", "many.batch", "out.batch",
)  # fmt: skip
#: elements of a vector that are rearranged on the stack
PACKED = 4096
#: steps after which sums are added to the total
_STRETCH = 512
#: elements of the summed dimension that neighbouring lines are asked for ahead: a processor does not foresee rows of
#: which it reads parts
_AHEAD = 8
#: sums that are added to side by side, so that none waits for the one before, and those of more than a few vectors,
#: which need no more reads for each
_SUMS, _MANY_SUMS, _FEW = 8, 24, 3
#: those of more than a few vectors across lines
_ACROSS = 20
#: those of a machine with 16 registers, and across lines beside the elements of more vectors
_FEW_REGISTERS, _FEWER_REGISTERS = 12, 10


@dataclass(frozen=True, slots=True)
class ThinForm:
    """``along``: the elements of a line lie side by side, else neighbouring lines do. ``is_packed``: those of a vector
    do not, and are rearranged. ``interleaved``: the results of a line lie side by side, else those of a vector do.
    """

    element: ElementType
    lanes: int
    vectors: int
    along: bool
    is_packed: bool
    interleaved: bool

    @property
    def name(self) -> str:
        kind = ("along" if self.along else "across") + "_packed" * self.is_packed + "_mixed" * self.interleaved
        return f"heron_thin_{self.element.name}_{self.vectors}_{kind}"

    @property
    def block(self) -> int:
        """Lines of a work item."""
        return 128 if self.along else self.lanes * self.registers

    @property
    def is_wide(self) -> bool:
        """Whether the machine has 32 registers of 512 bits."""
        return self.lanes * self.element.bits == 512

    @property
    def registers(self) -> int:
        """Of lines that are done at once."""
        if not self.is_wide:
            return max(1, (_FEW_REGISTERS if self.vectors <= _FEW + 1 else _FEWER_REGISTERS) // self.vectors)
        return _SUMS if self.vectors <= _FEW else max(1, _ACROSS // self.vectors)

    @property
    def together(self) -> int:
        """Lines whose sums are taken at once, where a register goes along a line."""
        many = _MANY_SUMS if self.is_wide else _FEW_REGISTERS
        return max(1, (_SUMS if self.vectors <= _FEW else many) // self.vectors)


def address(f: ThinForm, cache: CodeCache | None) -> int:
    """The address of ``void f(ptr args, i64 lo, i64 hi)``, which does work items lo to hi; ``args`` points to the
    vectors, the matrix, the results and the `FIELDS`."""
    return common_code.address_of(f.name, lambda: _ThinWriter(f).text(), f, cache=cache, shaped=True)


class _ThinWriter(Function):
    def __init__(self, f: ThinForm) -> None:
        super().__init__()
        self.f = f
        self.scalar = "float" if f.element.bits == 32 else "double"
        self.register = f"<{f.lanes} x {self.scalar}>"
        self.suffix = f"v{f.lanes}f{f.element.bits}"

    def text(self) -> str:
        f = self.f
        few, many, out, sizes = (self.load("ptr", self.at("%args", n, "ptr")) for n in range(4))
        self.field = {name: self.load("i64", self.at(sizes, n, "i64")) for n, name in enumerate(FIELDS)}
        self.k, lines, blocks = self.field["k"], self.field["lines"], self.field["blocks"]
        self.packed = self.slot(f"[{f.vectors * PACKED} x {self.scalar}]") if f.is_packed else ""
        self.mixed = self.slot(f"[{f.vectors * f.lanes} x {self.scalar}]") if f.interleaved else ""
        with self.loop("%lo", "%hi") as item:
            matrix, first = item // blocks, item % blocks * f.block
            self.few = self.element(few, matrix * self.field["few.batch"])
            self.many = self.element(many, matrix * self.field["many.batch"])
            self.out = self.element(out, matrix * self.field["out.batch"])
            last = self.least(first + f.block, lines)
            if f.along:
                self._along(first, last)
            else:
                self._across(first, last)
        return self.function(f"void @{f.name}(ptr %args, i64 %lo, i64 %hi) nounwind")

    # -- pieces --------------------------------------------------------------------------------------------------------
    def element(self, base: str, n: Value | int) -> Value:
        return self.at(base, n, self.scalar)

    def _mask(self, count: Value) -> str:
        """The first `count` lanes."""
        lanes = self.f.lanes
        few = self.least(count, lanes).cast("trunc", "i32")
        every = self._repeated(few, "i32")
        return self.value(f"icmp ult <{lanes} x i32> <{', '.join(f'i32 {n}' for n in range(lanes))}>, {every}")

    def _repeated(self, number: str, kind: str) -> str:
        whole = f"<{self.f.lanes} x {kind}>"
        one = self.value(f"insertelement {whole} poison, {kind} {number}, i64 0")
        return self.value(f"shufflevector {whole} {one}, {whole} poison, <{self.f.lanes} x i32> zeroinitializer")

    def _get(self, place: str, mask: str) -> str:
        size = self.f.element.byte_size
        if not mask:
            return self.load(self.register, place, align=size)
        args = f"ptr align {size} {place}, <{self.f.lanes} x i1> {mask}, {self.register} zeroinitializer"
        return self.value(f"call {self.register} @llvm.masked.load.{self.suffix}.p0({args})")

    def _put(self, value: str, place: str, mask: str) -> None:
        size = self.f.element.byte_size
        if not mask:
            self.store(self.register, value, place, align=size)
            return
        args = f"{self.register} {value}, ptr align {size} {place}, <{self.f.lanes} x i1> {mask}"
        self.line(f"call void @llvm.masked.store.{self.suffix}.p0({args})")

    def _sum(self, a: str, b: str) -> str:
        return self.value(f"fadd {self.register} {a}, {b}")

    def _add_product(self, slot: str, a: str, b: str) -> None:
        product = self.value(f"fmul contract {self.register} {a}, {b}")
        total = self.load(self.register, slot)
        self.store(self.register, self.value(f"fadd contract {self.register} {total}, {product}"), slot)

    def _summed(self, count: int, step: int, add: Callable[[Sequence[str], Value, Value], None]) -> list[str]:
        """Totals of `count` sums over the summed dimension. ``add`` adds to slots a stretch, from one element to
        another; `step` elements at a time."""
        totals, parts = ([self.slot(self.register) for _ in range(count)] for _ in range(2))
        for slot in totals:
            self.store(self.register, "zeroinitializer", slot)
        with self.loop(0, self.k, _STRETCH * step) as start:
            for slot in parts:
                self.store(self.register, "zeroinitializer", slot)
            add(parts, start, self.least(start + _STRETCH * step, self.k))
            for total, part in zip(totals, parts, strict=True):
                both = self._sum(self.load(self.register, total), self.load(self.register, part))
                self.store(self.register, both, total)
        return [self.load(self.register, slot) for slot in totals]

    # -- along lines ---------------------------------------------------------------------------------------------------
    def _along(self, first: Value, last: Value) -> None:
        if self.f.is_packed:
            self._pack()
        together = self.f.together
        begun = self.variable("i64", first)
        with self.while_below(begun.slot, last - (last - first) % together) as line:
            self._lines_along(line, together)
            begun.set(line + together)
        with self.while_below(begun.slot, last) as line:
            self._lines_along(line, 1)
            begun.set(line + 1)

    def _pack(self) -> None:
        with self.loop(0, self.k) as k:
            for vector in range(self.f.vectors):
                place = self.element(self.few, k * self.field["few.k"] + vector)
                self.store(self.scalar, self.load(self.scalar, place), self.element(self.packed, k + vector * PACKED))

    def _vector(self, n: int) -> Value:
        """The address of a vector's elements, side by side."""
        if self.f.is_packed:
            return self.element(self.packed, n * PACKED)
        return self.element(self.few, self.field["few.vector"] * n)

    def _lines_along(self, line: Value, together: int) -> None:
        lanes, vectors = self.f.lanes, range(self.f.vectors)
        few = [self._vector(n) for n in vectors]
        many = [self.element(self.many, (line + n) * self.field["many.step"]) for n in range(together)]

        def add(parts: Sequence[str], start: Value, stop: Value) -> None:
            def step(k: Value, mask: str) -> None:
                xs = [self._get(self.element(place, k), mask) for place in few]
                for n, place in enumerate(many):
                    y = self._get(self.element(place, k), mask)
                    for vector in vectors:
                        self._add_product(parts[n * len(vectors) + vector], xs[vector], y)

            whole = stop - (stop - start) % lanes
            with self.loop(start, whole, lanes) as k:
                step(k, "")
            with self.when(whole.below(stop)):
                step(whole, self._mask(stop - whole))

        totals = self._summed(together * len(vectors), lanes, add)
        for n in range(together):
            for vector in vectors:
                total = totals[n * len(vectors) + vector]
                reduce = f"@llvm.vector.reduce.fadd.{self.suffix}({self.scalar} -0.0, {self.register} {total})"
                result = self.value(f"call reassoc {self.scalar} {reduce}")
                self.store(self.scalar, result, self._place(line + n, vector))

    def _place(self, line: Value, vector: int) -> Value:
        if self.f.interleaved:
            return self.element(self.out, line * self.f.vectors + vector)
        return self.element(self.out, line + self.field["lines"] * vector)

    # -- across lines --------------------------------------------------------------------------------------------------
    def _across(self, first: Value, last: Value) -> None:
        most, lanes = self.f.registers, self.f.lanes
        whole, rest = self.fork((last - first).eq(most * lanes))
        with whole:
            self._lines_across(first, most)
        with rest:
            needed = (last - first + (lanes - 1)) // lanes
            for registers in range(1, most + 1):
                with self.when(needed.eq(registers)):
                    self._lines_across(first, registers, last - first - (registers - 1) * lanes)

    def _lines_across(self, line: Value, registers: int, count: Value | None = None) -> None:
        """The lines of some registers, of which the last one has `count` if not as many as there are lanes."""
        masks = [""] * (registers - 1) + ["" if count is None else self._mask(count)]
        lanes, vectors = self.f.lanes, range(self.f.vectors)
        ways = max(1, _SUMS // (registers * len(vectors)))

        def add(parts: Sequence[str], start: Value, stop: Value) -> None:
            def step(k: Value, way: int) -> None:
                ys = self.element(self.many, k * self.field["many.step"] + line)
                if not self.f.is_wide:
                    ahead = self.element(ys, self.field["many.step"] * _AHEAD)
                    for n in range(0, registers * lanes * self.f.element.byte_size, LINE):
                        self.fetch_early(self.at(ahead, n, "i8"))
                place = k * self.field["few.k"]
                xs = [
                    self._repeated(self.load(self.scalar, self._few(place, vector)), self.scalar) for vector in vectors
                ]
                for n, mask in enumerate(masks):
                    y = self._get(self.element(ys, n * lanes), mask)
                    for vector in vectors:
                        self._add_product(parts[(way * registers + n) * len(vectors) + vector], xs[vector], y)

            share = (stop - start) // ways
            with self.loop(start, start + share) as k:
                for way in range(ways):
                    step(k + share * way, way)
            with self.loop(start + share * ways, stop) as k:
                step(k, 0)

        totals = self._summed(ways * registers * len(vectors), 1, add)
        size = registers * len(vectors)
        while len(totals) > size:
            half = len(totals) // 2
            totals = [self._sum(a, b) for a, b in zip(totals[:half], totals[half:], strict=True)]
        for n, mask in enumerate(masks):
            results = totals[n * len(vectors) : (n + 1) * len(vectors)]
            self._store(line + n * lanes, results, mask, count if mask else None)

    def _few(self, place: Value, vector: int) -> Value:
        return self.element(self.few, place + self.field["few.vector"] * vector)

    def _store(self, line: Value, results: Sequence[str], mask: str, count: Value | None) -> None:
        """The results of neighbouring lines, `count` of them if not as many as there are lanes."""
        lanes = self.f.lanes
        if not self.f.interleaved:
            for vector, result in enumerate(results):
                self._put(result, self._place(line, vector), mask)
            return
        for vector, result in enumerate(results):
            self.store(self.register, result, self.element(self.mixed, vector * lanes), align=64)
        with self.loop(0, lanes if count is None else self.least(count, lanes)) as n:
            for vector in range(len(results)):
                number = self.load(self.scalar, self.element(self.mixed, n + vector * lanes))
                self.store(self.scalar, number, self._place(line + n, vector))
