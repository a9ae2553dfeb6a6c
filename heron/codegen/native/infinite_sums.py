"""Infinite sums of complex matrix products by BLAS.

BLAS multiplies each complex sum by a factor, 1 + 0i here, and makes NaN of ``inf + 0i`` that way. After each call the
result is searched for NaN, and elements that have one are summed again by the rule for complex products. The search
takes little beside the product, and sums that are finite stay as BLAS made them.
"""

from __future__ import annotations

from heron.codegen.llvm.declarations import Declarations
from heron.codegen.llvm.text import Function
from heron.codegen.llvm.values import Value
from heron.codegen.native import tile_code
from heron.hlo.ir.types import ElementType
from heron.records import dataclass

#: what the function is given; steps are in elements, to the next row, column or element of a sum
POINTERS = ("lhs", "rhs", "out")
SIZES = ("rows", "columns", "k", "lhs_row", "lhs_next", "rhs_column", "rhs_next", "out_row")

#: pairs of registers that are searched in a turn
_PAIRS = 4


@dataclass(frozen=True, slots=True)
class InfiniteSums:
    """A function for an element type, in LLVM text; for all sizes and orders, so that a program needs one."""

    element: ElementType

    @property
    def part(self) -> str:
        """LLVM's type of the real part."""
        return "float" if self.element.component.bits == 32 else "double"

    @property
    def name(self) -> str:
        return f"heron_infinite_sums_{self.element.name}"

    def text(self, declared: Declarations) -> str:
        """The function of `POINTERS` and `SIZES`."""
        f = Function(declared)
        # rows that lie side by side are searched as one line
        joined = f.op("icmp eq i64 %columns, %out_row", "i1")
        length = f.select(joined, f.integer("mul", "%rows", "%columns"), "%columns", "i64")
        with f.loop("0", f.select(joined, "1", "%rows", "i64")) as line:
            start = f.at("%out", f.integer("mul", line, "%out_row"), self._pair)
            searched, found = self._search(f, start, length)
            with f.loop(f.select(found, "0", searched, "i64"), length) as n:
                place = f.at(start, n, self._pair)
                re, im = self._load(f, place)
                with f.when(f.op(f"fcmp uno {self.part} {re}, {im}", "i1")):
                    at = line * length + n
                    self._sum(f, at // "%columns", at % "%columns", place)
        arguments = [f"ptr %{name}" for name in POINTERS] + [f"i64 %{name}" for name in SIZES]
        return f.function(f"internal void @{self.name}({', '.join(arguments)}) nounwind")

    @property
    def _pair(self) -> str:
        return f"[2 x {self.part}]"

    def _search(self, f: Function, line: str, length: Value) -> tuple[Value, Value]:
        """Up to where a line is searched, its end unless it is short, and whether there is a NaN."""
        lanes = tile_code.lanes(self.element.component)
        register, flags, chunk = f"<{lanes} x {self.part}>", f"<{lanes} x i1>", 2 * _PAIRS * lanes
        found = f.variable(flags, "zeroinitializer")
        numbers = length * 2
        searched = f.select(numbers.reaches(chunk), length, "0")
        with f.loop("0", searched * 2, chunk) as n:
            first = f.at(line, f.least(n, numbers - chunk), self.part)  # the last turn begins in the one before
            total = found.get()
            for k in range(_PAIRS):
                places = (f.at(first, (2 * k + side) * lanes, self.part) for side in range(2))
                one, other = (f.load(register, p, align=self.element.component.byte_size) for p in places)
                total = total | f.op(f"fcmp uno {register} {one}, {other}", flags)
            found.set(total)
        return searched, f.call(f"i1 @llvm.vector.reduce.or.v{lanes}i1({flags})", found.get())

    def _sum(self, f: Function, row: Value, column: Value, place: str) -> None:
        """Sum the products of an element in double precision, and round once."""
        total = [f.variable("double", "0.0") for _ in range(2)]
        lhs = f.at("%lhs", f.integer("mul", row, "%lhs_row"), self._pair)
        rhs = f.at("%rhs", f.integer("mul", column, "%rhs_column"), self._pair)
        with f.loop("0", "%k") as n:
            a = self._wide(f, self._load(f, f.at(lhs, f.integer("mul", n, "%lhs_next"), self._pair)))
            b = self._wide(f, self._load(f, f.at(rhs, f.integer("mul", n, "%rhs_next"), self._pair)))
            for part, op, (x, y), (z, w) in (
                (0, "fsub", (a[0], b[0]), (a[1], b[1])),
                (1, "fadd", (a[0], b[1]), (a[1], b[0])),
            ):
                one, other = f.op(f"fmul double {x}, {y}", "double"), f.op(f"fmul double {z}, {w}", "double")
                product = f.op(f"{op} double {one}, {other}", "double")
                total[part].set(f.op(f"fadd double {total[part].get()}, {product}", "double"))
        for n, sum_ in enumerate(total):
            value = sum_.get() if self.part == "double" else sum_.get().cast("fptrunc", self.part)
            f.store(self.part, value, f.at(place, n, self.part))

    def _load(self, f: Function, place: str) -> tuple[Value, Value]:
        return f.load(self.part, place), f.load(self.part, f.at(place, 1, self.part))

    def _wide(self, f: Function, z: tuple[Value, Value]) -> tuple[Value, Value]:
        if self.part == "double":
            return z
        return z[0].cast("fpext", "double"), z[1].cast("fpext", "double")
