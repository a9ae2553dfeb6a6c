"""The work of a program of a tiled fusion, by the variables of its values: the same for every choice of tiles."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from math import prod
from typing import NamedTuple

from heron.analysis.blocks.tiling import Tiling, holds_rows, split, used
from heron.analysis.cost.code_size import gpu_bytes
from heron.analysis.indexing.hlo_maps import Index
from heron.hlo.facts import contracts
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import Trait
from heron.records import dataclass

#: flops of a function, and of other ops, on an element
FUNCTION, PLAIN = 20.0, 1.0


class Way(NamedTuple):
    """The variables that a value goes along, those of them that are places in rows, and how many loops need it where
    rows are gone through in steps."""

    along: tuple[int, ...]
    rows: tuple[int, ...]
    loops: int


class Product(NamedTuple):
    """A product at one index: the variables of its rows and columns, and the length of its sum."""

    dot: Instruction
    way: Way
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    k: int


class Written(NamedTuple):
    """The place of a value that is computed, and whether it becomes an operand of a product step by step of its sum."""

    way: Way
    operand: bool


class Read(NamedTuple):
    """A value in memory: bytes of an element and of all, and where it is read."""

    ways: tuple[Way, ...]
    width: int
    size: float


@dataclass(frozen=True, slots=True)
class Work:
    """``reduced``: variables of what reductions give; ``flops`` and bytes of machine ``code`` of other ops, for each
    element."""

    products: tuple[Product, ...]
    reduced: tuple[tuple[int, ...], ...]
    flops: Mapping[Way, float]
    code: Mapping[Written, float]
    reads: tuple[Read, ...]


class Cut(NamedTuple):
    """The size of a tile along each variable, that of the variable, how many are the result's, and whether there is a
    loop for each reduction."""

    sizes: tuple[int, ...]
    full: tuple[int, ...]
    results: int
    again: bool

    def extent(self, along: Iterable[int]) -> int:
        """Elements of a tile."""
        return prod([self.sizes[v] for v in along])

    def whole(self, way: Way) -> int:
        """Elements that a program needs of a value, over all steps of its sums."""
        return prod([self.sizes[v] if v < self.results else self.full[v] for v in way.along])

    def times(self, way: Way) -> int:
        """The number of times each is computed."""
        return way.loops if self.again and any(self.sizes[v] < self.full[v] for v in way.rows) else 1

    def steps(self, way: Way) -> int:
        """In how many steps of rows."""
        return prod([-(-self.full[v] // self.sizes[v]) for v in way.rows])


def work_of(tiling: Tiling, loops: Mapping[Instruction, int]) -> Work:
    """The work of a fusion. ``loops``: how many need a value, if more than one."""
    flops: dict[Way, float] = {}
    code: dict[Written, float] = {}
    reads: list[Read] = []
    reduced: dict[tuple[int, ...], None] = {}
    for i, indices in tiling.values.items():
        ways = [way_of(index, tiling, loops.get(i, 1)) for index in indices]
        if i not in tiling.inside or i.opcode == "parameter":
            reads.append(Read(tuple(ways), i.shape.element_type.byte_size, float(i.shape.byte_size)))
        elif i.opcode == "reduce":
            reduced.update(dict.fromkeys(way.along for way in ways))
        elif i.op.is_elementwise:
            each = FUNCTION if i.has(Trait.TRANSCENDENTAL) or i.opcode == "divide" else PLAIN
            size = gpu_bytes(i)
            for way in ways:
                flops[way] = flops.get(way, 0.0) + each
                place = Written(way, any(tiling.variables[v].kind == "sum" for v in way.along))
                code[place] = code.get(place, 0.0) + size
    return Work(tuple(_products(tiling, loops)), tuple(reduced), flops, code, tuple(reads))


def _products(tiling: Tiling, loops: Mapping[Instruction, int]) -> Iterable[Product]:
    for dot, index in tiling.products:
        _, m, n = split(dot, index)
        k = dot.operands[0].shape.dims[dot.lhs_contracting_dims[0]]
        yield Product(dot, way_of(index, tiling, loops.get(dot, 1)), tuple(used(m)), tuple(used(n)), k)


def way_of(index: Index, tiling: Tiling, loops: int = 1) -> Way:
    """The variables that an index depends on."""
    along = tuple(sorted(used(index)))
    return Way(along, tuple(v for v in along if tiling.variables[v].kind == "row"), loops)


def passes_of(values: Iterable[Instruction], inside: Container[Instruction]) -> dict[Instruction, int]:
    """The number of loops that need a value if rows are processed in steps. Each reduction and each product of rows is
    a loop; it recomputes everything except the results of other reductions."""
    found: dict[Instruction, int] = {}
    for i in values:
        if i not in inside or not contracts(i):
            continue
        if i.opcode == "dot" and not any(holds_rows(o, inside) for o in i.operands):
            continue
        seen, stack = set[Instruction](), list(i.operands)
        while stack:
            o = stack.pop()
            if o in seen:
                continue
            seen.add(o)
            found[o] = found.get(o, 0) + 1
            if o in inside and o.opcode != "reduce":
                stack += o.operands
    return found
