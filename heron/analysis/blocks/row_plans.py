"""Tiles of a row-wise fusion (softmax, norms, reductions): whole rows, several in one tile."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import combinations
from math import prod

from heron.analysis.blocks.config import BlockConfig, power_of_two
from heron.analysis.blocks.cost import Plan
from heron.analysis.blocks.tiling import Refusal, Tiling, used
from heron.analysis.blocks.work import FUNCTION, PLAIN
from heron.analysis.cost.estimate import BLOCK, clock_of
from heron.analysis.indexing.expr import Dim
from heron.analysis.indexing.hlo_maps import Index
from heron.analysis.indexing.linear import linear_terms
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import Trait
from heron.targets import Target

#: bytes of a memory transaction
TRANSACTION = 32
#: 32-bit words of values of a tile that a thread may hold at once, and values of a tile that are alive at once
_WORDS, _ALIVE = 96, 3
#: ops times elements of a thread at most: all are written out
_WORK = 768
_SIDE_BY_SIDE = (1, 2, 4, 8, 16, 32, 64, 128)
_WARPS = (1, 2, 4, 8, 16, 32)


def row_tiling(root: Instruction, inside: Collection[Instruction]) -> Tiling | Refusal:
    """The tiling of a fusion whose reduced rows lie along dimensions of its result, or are reduced away."""
    if not root.shape.rank:
        return Refusal(root, "a single element is no tile")
    plain = Tiling(root, inside)
    if plain.refusals:
        return plain.refusals[0]
    rows = sorted(v.size for v in plain.variables if v.kind == "row")
    if not rows:
        return Refusal(root, "no rows are reduced")
    for count in range(1, min(3, root.shape.rank) + 1):
        for whole in combinations(reversed(range(root.shape.rank)), count):
            if any(root.shape.dims[d] not in rows for d in whole):
                continue
            found = Tiling(root, inside, frozenset(whole))
            if all(v.kind != "row" for v in found.variables):
                return found
    return plain


def row_plans(tiling: Tiling, target: Target) -> list[Plan] | Refusal:
    """All ways to cut it that the machine can hold, the quickest first."""
    found: list[Plan] = []
    refused = Refusal(tiling.root, "a row does not fit into registers")
    for tiles in _tiles(tiling):
        if refusal := _refused(tiling, tiles):
            refused = refusal
            continue
        found += [p for w in _WARPS if (p := _plan(tiling, tiles, w, target)) is not None]
    return sorted(found, key=lambda p: p.seconds) or refused


def fitted_rows(tiling: Tiling, config: BlockConfig, target: Target) -> BlockConfig | Refusal:
    """A config for a tiling of rows that came with a program, with as many warps as its tiles need."""
    if refusal := _refused(tiling, config.tiles):
        return refusal
    for warps in sorted(_WARPS, key=lambda w: (w < config.warps, abs(w - config.warps))):
        if _plan(tiling, config.tiles, warps, target) is not None:
            return replace(config, warps=warps)
    return Refusal(tiling.root, f"a tile of {'x'.join(map(str, config.tiles))} has no room in registers")


def _refused(tiling: Tiling, tiles: tuple[int, ...]) -> Refusal | None:
    sizes = _sizes(tiling, tiles)
    found = (tiling.tile(i, way, sizes) for i, ways in tiling.values.items() for way in ways)
    return next((t for t in found if isinstance(t, Refusal)), None)


def _tiles(tiling: Tiling) -> Iterator[tuple[int, ...]]:
    dims = tiling.root.shape.dims
    rest = [d for d, n in enumerate(dims) if d not in tiling.whole and n > 1]
    for beside in _SIDE_BY_SIDE:
        if beside == 1 or rest and beside <= power_of_two(dims[rest[-1]]):
            cut = {rest[-1]: beside} if rest else {}
            yield tuple(power_of_two(n) if d in tiling.whole else cut.get(d, 1) for d, n in enumerate(dims))


def _sizes(tiling: Tiling, tiles: tuple[int, ...]) -> tuple[int, ...]:
    return (*tiles, *(power_of_two(v.size) for v in tiling.variables[len(tiles) :]))


def _plan(tiling: Tiling, tiles: tuple[int, ...], warps: int, target: Target) -> Plan | None:
    sizes, clock = _sizes(tiling, tiles), clock_of(target)
    programs = prod(-(-n // t) for n, t in zip(tiling.root.shape.dims, tiles, strict=True))
    elements = max(_extent(way, sizes) for ways in tiling.values.values() for way in ways)
    widest = max(i.shape.element_type.byte_size for i in tiling.values)
    if elements * max(1, widest // 4) * _ALIVE > _WORDS * 32 * warps or elements < 32 * warps and warps > 1:
        return None
    if elements * len(tiling.values) > _WORK * 32 * warps:
        return None
    most = clock.most(float(programs * min(elements, BLOCK)))  # a program is on one core
    memory, flops = clock.write(tiling.root.shape.byte_size, most), 0.0
    for i, ways in tiling.values.items():
        if i.opcode == "parameter" or i not in tiling.inside:
            total = programs * sum(_extent(way, sizes) for way in ways) * i.shape.element_type.byte_size
            part = min(_part(i, way, sizes) for way in ways)
            memory += clock.read(float(i.shape.byte_size), float(max(total, i.shape.byte_size)), part, most)
        elif i.op.is_elementwise or i.opcode == "reduce":
            each = FUNCTION if i.has(Trait.TRANSCENDENTAL) or i.opcode == "divide" else PLAIN
            operand = i.operands[0] if i.opcode == "reduce" else i
            flops += each * programs * sum(_extent(way, sizes) for way in tiling.values.get(operand, ways))
    seconds = clock.launch + max(memory, clock.compute(flops, float(programs * elements), double=widest == 8))
    return Plan(BlockConfig(tiles, warps=warps, stages=1), programs, seconds)


def _extent(way: Index, sizes: tuple[int, ...]) -> int:
    return prod(sizes[v] for v in used(way))


def _part(i: Instruction, way: Index, sizes: tuple[int, ...]) -> float:
    """The part of each memory transaction that a tile of a parameter wants."""
    if not way:
        return 1.0
    terms, _ = linear_terms(way[-1])
    side_by_side = max((sizes[a.index] for a, by in terms.items() if isinstance(a, Dim) and by == 1), default=1)
    if side_by_side >= i.shape.dims[-1] and len(way) > 1:
        return 1.0  # whole rows of memory
    return min(1.0, side_by_side * i.shape.element_type.byte_size / TRANSACTION)
