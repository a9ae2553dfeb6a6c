"""How to cut a block-level fusion into tiles, and the seconds that takes: a model of matrix units, caches and cores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from heron.analysis.blocks.config import BlockConfig, power_of_two
from heron.analysis.blocks.tiling import Refusal, Tiling, split, used
from heron.analysis.cost.estimate import clock_of
from heron.analysis.indexing.hlo_maps import Index
from heron.hlo.instruction import Instruction
from heron.hlo.op import Trait
from heron.targets import Target

#: the part of the matrix units' peak that a block of so many results keeps busy; libraries' kernels reach a little more
EFFICIENCY = ((128 * 128, 0.75), (64 * 128, 0.6), (64 * 64, 0.45), (64 * 32, 0.3), (0, 0.1))
LIBRARY_LEAD = 0.85 / 0.75
#: how much faster than memory the cache that all cores share delivers what another program has read
SHARED_CACHE = 1.5
#: programs that a core runs side by side: one's products fill the other's gaps
BESIDE = 2
#: flops of a function, and of other ops, on an element
FUNCTION, PLAIN = 20.0, 1.0
#: elements a thread may hold of sums and rows: half its registers
_HELD = 128
#: rows of a matrix unit's smallest product
LEAST = 16
_TILES = (16, 32, 64, 128, 256)


@dataclass(frozen=True, slots=True)
class Plan:
    """The config of a block kernel, the programs of its grid, and what the model says of it."""

    config: BlockConfig
    programs: int
    seconds: float


def plans(tiling: Tiling, target: Target) -> list[Plan] | Refusal:
    """All ways to cut a tiled fusion that the machine can hold, the quickest first."""
    roles = _roles(tiling)
    if isinstance(roles, Refusal):
        return roles
    first = next(_sizes(tiling, *roles))
    if refusal := _refused(tiling, _all_sizes(tiling, first, LEAST)):  # sizes above 1 make no difference to it
        return refusal
    found = [p for sizes in _sizes(tiling, *roles) if (p := _plan(tiling, sizes, target)) is not None]
    if not found:
        return Refusal(tiling.root, "no tiles of it fit into registers and shared memory")
    return sorted(found, key=lambda p: p.seconds)


def library_seconds(dot: Instruction, target: Target) -> float:
    """A product alone by a library: cut as well as ours, its kernels a little nearer to the peak."""
    key = (target, dot.shape, tuple(o.shape for o in dot.operands), str(dot.attrs))
    known = _LIBRARY.get(key)
    if known is None:
        if len(_LIBRARY) >= 1 << 12:
            _LIBRARY.clear()
        known = _LIBRARY[key] = _library_seconds(dot, target)
    return known


#: by the shapes of the product: layers of a model have the same ones
_LIBRARY: dict[object, float] = {}


def _library_seconds(dot: Instruction, target: Target) -> float:
    own = plans(Tiling(dot, frozenset({dot})), target)
    clock = clock_of(target)
    if isinstance(own, Refusal):
        flops = 2.0 * dot.shape.num_elements * dot.operands[0].shape.dims[dot.lhs_contracting_dims[0]]
        return clock.launch + flops / target.flops_of(_unit(dot))
    return clock.launch + (own[0].seconds - clock.launch) / LIBRARY_LEAD


# -- which dimensions are cut ------------------------------------------------------------------------------------------


def _roles(tiling: Tiling) -> tuple[int, int] | Refusal:
    """The variables of the result that are cut: one along rows, one along columns of its products."""
    roles: dict[int, str] = {}
    for dot, index in tiling.products:
        for role, part in zip("bmn", split(dot, index), strict=True):
            if role != "b" and not used(part):
                return Refusal(dot, "it has a single row or column: no work for matrix units")
            for v in used(part):
                if roles.setdefault(v, role) != role and tiling.variables[v].kind == "result":
                    return Refusal(dot, f"dimension {v} of the result has two parts in products")
    cut = {}
    for role in "mn":
        mine = [v for v, r in roles.items() if r == role and tiling.variables[v].kind == "result"]
        if not mine:
            return Refusal(tiling.root, "the result does not go along rows and columns of a product")
        cut[role] = max(mine)
    return cut["m"], cut["n"]


def _sizes(tiling: Tiling, m: int, n: int) -> Iterator[tuple[int, ...]]:
    """The sizes of tiles along the result's dimensions that are worth a look."""
    rank = tiling.root.shape.rank
    for rows in _up_to(tiling.variables[m].size):
        for columns in _up_to(tiling.variables[n].size):
            yield tuple(rows if d == m else columns if d == n else 1 for d in range(rank))


def _up_to(size: int) -> list[int]:
    most = max(LEAST, power_of_two(size))
    return [t for t in _TILES if t <= most]


# -- what a cut costs --------------------------------------------------------------------------------------------------


def _plan(tiling: Tiling, tiles: tuple[int, ...], target: Target) -> Plan | None:
    dims = tiling.root.shape.dims
    programs = prod(-(-n // t) for n, t in zip(dims, tiles, strict=True))
    warps = 8 if prod(tiles) >= 128 * 128 else 4
    block_k = 32 if prod(tiles) > 128 * 128 else _step(tiling)
    sizes = _all_sizes(tiling, tiles, block_k)
    turns = -(-programs // target.cores)
    held, shared, matrix = 0.0, 0.0, 0.0
    for dot, index in tiling.products:
        _, m, n = split(dot, index)
        area = _extent(m, sizes) * _extent(n, sizes)
        k = dot.operands[0].shape.dims[dot.lhs_contracting_dims[0]]
        held += area
        shared = max(shared, (_extent(m, sizes) + _extent(n, sizes)) * min(block_k, k) * _width(dot))
        busy = min(EFFICIENCY[0][1], _busy(_extent(m, sizes), _extent(n, sizes)) * min(turns, BESIDE))
        rate = target.flops_of(_unit(dot)) / target.cores * busy
        matrix += 2.0 * area * -(-k // block_k) * block_k / rate
    held += max((_elements(ways, sizes) for i, ways in tiling.values.items() if i.opcode == "reduce"), default=0)
    if held > _HELD * 32 * warps:
        return None
    stages = 4
    while stages > 1 and shared * stages > target.shared_bytes_per_block * 0.9:
        stages -= 1
    if shared * stages > target.shared_bytes_per_block * 0.9:
        return None
    seconds = turns * (matrix + _elementwise(tiling, sizes, target) / min(turns, BESIDE))
    clock = clock_of(target)
    seconds = clock.launch + max(seconds, _memory(tiling, sizes, programs, target))
    return Plan(BlockConfig(tiles, block_k, warps, stages), programs, seconds)


def _busy(rows: int, columns: int) -> float:
    """The part of a core's matrix units that a tile of a product keeps busy; below 64 they do it piecewise."""
    if max(rows, columns) < 64:
        return EFFICIENCY[-1][1]
    return next(part for least, part in EFFICIENCY if rows * columns >= least and (rows >= 64 or not least))


def _step(tiling: Tiling) -> int:
    """Elements of a sum done at once: 128 bytes of each row, but no more than there are."""
    width = max((_width(dot) for dot, _ in tiling.products), default=2)
    longest = max((v.size for v in tiling.variables if v.kind == "sum"), default=LEAST)
    return max(2 * LEAST, min(128 // width, power_of_two(longest)))


def _all_sizes(tiling: Tiling, tiles: tuple[int, ...], block_k: int) -> tuple[int, ...]:
    """The size of a tile along every variable. Rows are whole; so are sums over what a row was made for."""
    rest = tiling.variables[len(tiles) :]
    return (*tiles, *(block_k if v.kind == "sum" and v.size > block_k else power_of_two(v.size) for v in rest))


def _refused(tiling: Tiling, sizes: tuple[int, ...]) -> Refusal | None:
    tiles = (tiling.tile(i, way, sizes) for i, ways in tiling.values.items() for way in ways)
    return next((t for t in tiles if isinstance(t, Refusal)), None)


def _extent(index: Index, sizes: tuple[int, ...]) -> int:
    return prod(sizes[v] for v in used(index))


def _elements(ways: list[Index], sizes: tuple[int, ...]) -> int:
    return max(_extent(way, sizes) for way in ways)


def _whole(index: Index, tiling: Tiling, sizes: tuple[int, ...]) -> float:
    """Elements of a value that a program needs at one of its indices, over all steps of its sums."""
    results = tiling.root.shape.rank
    return float(prod(sizes[v] if v < results else tiling.variables[v].size for v in used(index)))


def _elementwise(tiling: Tiling, sizes: tuple[int, ...], target: Target) -> float:
    """Seconds a core needs for a program's ops outside matrix units."""
    flops = 0.0
    for i, ways in tiling.values.items():
        if i.op.is_elementwise and i in tiling.inside:
            each = FUNCTION if i.has(Trait.TRANSCENDENTAL) or i.opcode == "divide" else PLAIN
            flops += each * sum(_whole(way, tiling, sizes) for way in ways)
    return flops / (target.flops_of("f32") / target.cores)


def _memory(tiling: Tiling, sizes: tuple[int, ...], programs: int, target: Target) -> float:
    clock = clock_of(target)
    seconds = tiling.root.shape.byte_size / clock.bandwidth
    for i, ways in tiling.values.items():
        if i in tiling.inside and i.opcode != "parameter":
            continue
        width, size = i.shape.element_type.byte_size, float(i.shape.byte_size)
        total = programs * sum(_whole(way, tiling, sizes) for way in ways) * width
        distinct = min(size, total)
        seconds += (distinct + (total - distinct) / SHARED_CACHE) / clock.bandwidth
    return seconds


def _width(dot: Instruction) -> int:
    return max(o.shape.element_type.byte_size for o in dot.operands[:2])


def _unit(dot: Instruction) -> str:
    """The name of the rate of the matrix units for a product."""
    name = dot.operands[0].shape.element_type.name
    return "f8" if name.startswith("f8") else name


__all__ = ["Plan", "library_seconds", "plans"]
