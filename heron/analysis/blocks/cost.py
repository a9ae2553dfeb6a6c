"""Tiles of a block-level fusion, and its estimated seconds: a model of matrix units, caches and cores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

from heron.analysis.blocks.config import WHOLE, BlockConfig, Precision, power_of_two
from heron.analysis.blocks.engine import ALIGNED, address_of, descriptor_of, has_engine
from heron.analysis.blocks.tiling import Refusal, Tiling, split, used, whole_dims
from heron.analysis.blocks.work import Cut, Way, Work, passes_of, way_of, work_of
from heron.analysis.cost.estimate import Clock, clock_of
from heron.analysis.indexing.hlo_maps import Index
from heron.hlo.ir.instruction import Instruction
from heron.records import dataclass
from heron.targets import Target

#: the part of the matrix units' peak that a block of so many results keeps busy; libraries' kernels reach a little more
EFFICIENCY = ((128 * 128, 0.75), (64 * 128, 0.6), (64 * 64, 0.45), (64 * 32, 0.3), (0, 0.1))
LIBRARY_LEAD = 0.85 / 0.75
#: the part of plain arithmetic's peak that products of types with no matrix units reach here, and in a library
PLAIN_PRODUCT, LIBRARY_PRODUCT = 0.4, 0.8
#: bytes of machine code for a multiply-add outside of matrix units, which are written out one by one, and for its loads
MULTIPLY_ADD = 24
#: the same for an element that goes between registers and the memory of products
MOVED = 48
#: rows of a product that tensor memory holds
LANES = 128
#: parts of a row that are worth a look, where rows are gone through in steps
ROWS = (32, 64, 128)
#: how much faster than memory the cache that all cores share delivers what another program has read
SHARED_CACHE = 1.5
#: programs that a core runs side by side: one's products fill the other's gaps
BESIDE = 2
#: instructions of a thread for the address and the load of 16 bytes, which the copy engine saves, and seconds until a
#: program has written a descriptor for it: both estimates
ADDRESSES, DESCRIPTOR = 6.0, 5e-7
#: elements a thread may hold of sums and rows: half its registers
_HELD = 128
#: rows of a matrix unit's smallest product
LEAST = 16
#: columns of a product that a warp takes at least, and rows that a group of warps takes
WARP_COLUMNS, GROUP_ROWS = 32, 64
_TILES = (16, 32, 64, 128, 256)
#: warps of a program that are worth a look
_WARPS = (2, 4, 8, 16)


@dataclass(frozen=True, slots=True)
class Plan:
    """The config of a block kernel, the programs of its grid, and what the model says of it: ``seconds`` in all, and
    those of its ``memory`` alone."""

    config: BlockConfig
    programs: int
    seconds: float
    memory: float = 0.0


@dataclass(frozen=True, slots=True)
class Freedom:
    """The techniques that a kernel may use. ``steps``: process rows in steps, ``online``: in a single pass. ``parts``:
    multiply f32 as sums of parts for matrix units. ``engine``: load operands by the copy engine where that is faster
    (``auto``), wherever it can (``on``), also with dedicated warps (``specialized``), or never (``off``)."""

    steps: bool = False
    online: bool = False
    parts: bool = False
    engine: str = "off"


def plans(
    tiling: Tiling, target: Target, free: Freedom | None = None, beside: Sequence[Instruction] = ()
) -> list[Plan] | Refusal:
    """All ways to cut a tiled fusion that the machine can hold, the quickest first. ``beside``: what is a result, too,
    so that each tile has to have its own part of it."""
    free = free or Freedom()
    cut_along = roles(tiling)
    if isinstance(cut_along, Refusal):
        return cut_along
    first = next(_sizes(tiling, *cut_along))
    if refusal := _refused(tiling, _all_sizes(tiling, BlockConfig(first, LEAST))):  # sizes above 1 are all the same
        return refusal
    longest = max((v.size for v in tiling.variables if v.kind == "row"), default=0)
    steps = [0, *(n for n in ROWS if n < longest)] if free.steps and _goes_in_steps(tiling) else [0]
    precision: Precision = "tf32x3" if free.parts else "ieee"
    work = work_of(tiling, passes_of(tiling.values, tiling.inside) if len(steps) > 1 else {})
    found: list[Plan] = []
    block_k = _step(tiling)
    for sizes in _sizes(tiling, *cut_along):
        for row in steps:
            config = BlockConfig(sizes, block_k, row=row, online=free.online and row > 0, precision=precision)
            plan = _plan(tiling, work, config, target)
            found += [plan] if plan is not None else []
    if found and beside:
        found = _with_places(tiling, found, beside)
        if not found:
            return Refusal(beside[0], f"its elements do not follow the tiles of '{tiling.root.name}'")
    if not found:
        return Refusal(tiling.root, "no tiles of it fit into registers and shared memory")
    if free.engine != "off" and has_engine(target):
        found = [_with_engine(p, tiling, free.engine, target) for p in found]
    return sorted(found, key=lambda p: p.seconds)


def fitted(tiling: Tiling, config: BlockConfig, target: Target) -> BlockConfig | Refusal:
    """A config for a tiling with products that came with a program: as the machine has room for it, with fewer steps
    loaded ahead if need be."""
    found = roles(tiling)
    if isinstance(found, Refusal):
        return found
    if min(config.block_k, *(config.tiles[d] for d in found)) < LEAST:
        return Refusal(tiling.root, f"a matrix unit multiplies {LEAST} rows and columns at least")
    if refusal := _refused(tiling, _all_sizes(tiling, config)):
        return refusal
    if not has_engine(target) or not may_specialize(config):
        config = replace(config, specialized=False)
    work = work_of(tiling, passes_of(tiling.values, tiling.inside) if config.row else {})
    for stages in range(config.stages, 0, -1):
        if _plan(tiling, work, made := replace(config, stages=stages), target, given=True) is not None:
            return made
    return Refusal(tiling.root, f"a tile of {'x'.join(map(str, config.tiles))} has no room in registers or memory")


def may_specialize(config: BlockConfig) -> bool:
    """Whether warps of their own may fetch operands: Triton 3.6 does it for no other tiles on sm_90.

    A tile wider than 128 is split over two groups of warps, which Triton 3.9 refuses.
    """
    return (
        max(config.tiles) <= 128
        and prod(config.tiles) <= 128 * 128
        and min((t for t in config.tiles if t > 1), default=0) >= 64
    )


def _with_places(tiling: Tiling, found: list[Plan], beside: Sequence[Instruction]) -> list[Plan]:
    """The plans by which each tile of the result has its own part of other results."""
    dims = tiling.root.shape.dims
    held = [whole_dims(dims, p.config.tiles) for p in found]
    places = {whole: all(tiling.place_of(i, whole) is not None for i in beside) for whole in set(held)}
    return [p for p, whole in zip(found, held, strict=True) if places[whole]]


def _goes_in_steps(tiling: Tiling) -> bool:
    """Whether there are rows that may be gone through in steps: each reduction is along one dimension."""
    rows = any(v.kind == "row" for v in tiling.variables)
    return rows and all(len(i.dimensions) == 1 for i in tiling.values if i.opcode == "reduce" and i in tiling.inside)


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
    if not _has_matrix_units(dot):
        moved = (dot.shape.byte_size + sum(o.shape.byte_size for o in dot.operands)) / clock.bandwidth
        return clock.launch + max(moved, (own[0].seconds - clock.launch) * PLAIN_PRODUCT / LIBRARY_PRODUCT)
    return clock.launch + (own[0].seconds - clock.launch) / LIBRARY_LEAD


# -- which dimensions are cut ------------------------------------------------------------------------------------------


def roles(tiling: Tiling) -> tuple[int, int] | Refusal:
    """The variables of the result that are cut: one along rows, one along columns of its products."""
    roles: dict[int, str] = {}
    for dot, index in tiling.products:
        parts = dict(zip("bmn", split(dot, index), strict=True))
        for role, part in parts.items():
            if role != "b" and not used(part):
                return Refusal(dot, "it has a single row or column: no work for matrix units")
            for v in used(part):
                known = roles.setdefault(v, role)  # what is a row of one product may be a column of another
                if (known == "b") != (role == "b") and tiling.variables[v].kind == "result":
                    return Refusal(dot, f"dimension {v} of the result has two parts in products")
        if both := used(parts["m"]) & used(parts["n"]):
            return Refusal(dot, f"dimension {min(both)} is its rows and its columns")
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


def _plan(tiling: Tiling, work: Work, config: BlockConfig, target: Target, given: bool = False) -> Plan | None:
    """The config with warps and stages filled in, unless it is ``given``, and its seconds; None when a program has no
    room."""
    tiles, row = config.tiles, config.row
    programs = prod(-(-n // t) for n, t in zip(tiling.root.shape.dims, tiles, strict=True))
    if not given:
        warps = 8 if prod(tiles) >= 128 * 128 or row and prod(tiles) >= 128 * 64 else 4
        block_k = 32 if prod(tiles) > 128 * 128 else config.block_k
        config = replace(config, block_k=block_k, warps=warps, stages=4)
    cut = Cut(
        _all_sizes(tiling, config), tuple(v.size for v in tiling.variables), len(tiles), bool(row and not config.online)
    )
    turns = -(-programs // target.cores)
    products = _products(work, config, cut, turns, target)
    if products is None:
        return None
    held, shared, matrix = products
    held += max(map(cut.extent, work.reduced), default=0)
    if held > _HELD * 32 * config.warps:
        return None
    stages = config.stages
    while not given and stages > 1 and shared * stages > target.shared_bytes_per_block * 0.9:
        stages -= 1
    if shared * stages > target.shared_bytes_per_block * 0.9:
        return None
    flops = sum(each * cut.whole(way) * cut.times(way) for way, each in work.flops.items())
    seconds = turns * (matrix + flops / (target.flops_of("f32") / target.cores) / min(turns, BESIDE))
    clock = clock_of(target)
    memory = _memory(tiling.root, work, cut, programs, clock)
    if stages != config.stages:
        config = replace(config, stages=stages)
    return Plan(config, programs, clock.launch + max(seconds, memory), memory)


def _products(
    work: Work, config: BlockConfig, cut: Cut, turns: int, target: Target
) -> tuple[float, float, float] | None:
    """Of the products of a program: elements held in registers, bytes of shared memory for a stage, and seconds of
    matrix units; None when all that is written out would become too much code."""
    held, shared, matrix, row = 0.0, 0.0, 0.0, config.row
    code = _written(work, config, cut, target)
    for product in work.products:
        dot, k = product.dot, product.k
        rows, columns = cut.extent(product.rows), cut.extent(product.columns)
        area, step = rows * columns, config.block_k if not row else max(config.block_k, row)
        held += area
        here = (rows + columns) * min(step, k) * _width(dot)
        shared = shared + here if row else max(shared, here)
        at_once = k if k <= WHOLE else min(step, k)
        each = area * cut.times(product.way) / (32 * config.warps)
        if not _has_matrix_units(dot, config.precision):
            code += each * at_once * MULTIPLY_ADD
        elif target.tensor_memory:
            code += each * MOVED
        steps = cut.times(product.way) * cut.steps(product.way) * -(-k // step)
        matrix += 2.0 * steps * step * area / _rate(dot, rows, columns, turns, target, config)
    if code > target.code_bytes:
        return None
    return held, shared, matrix


def _written(work: Work, config: BlockConfig, cut: Cut, target: Target) -> float:
    """Bytes of machine code of elementwise ops: those of all elements of a thread are written out, in each loop.

    Matrix units that read registers have each warp compute the operands of its part of the result, so that warps
    beside each other compute the same rows. Those of tensor memory give each of its lanes a row.
    """
    code, threads = 0.0, 32 * config.warps
    for (way, operand), each in work.code.items():
        elements = -(-cut.extent(way.along) // threads)
        if operand:
            elements *= _alike(work, config, cut, way, target)
        elif target.tensor_memory:
            elements *= _in_lanes(work, config, cut, way)
        code += each * elements * cut.times(way)
    return code


def _in_lanes(work: Work, config: BlockConfig, cut: Cut, way: Way) -> int:
    """The number of threads that have the same element of a product, whose rows are fewer than lanes."""
    held = [p for p in work.products if _has_matrix_units(p.dot, config.precision)]
    rows = [cut.extent(p.rows) for p in held if not set(p.rows).isdisjoint(way.along)]
    return max(1, LANES // max(rows)) if rows else 1


def _alike(work: Work, config: BlockConfig, cut: Cut, way: Way, target: Target) -> int:
    """The number of warps that compute the same operand."""
    product = next((p for p in work.products if not {*p.rows, *p.columns}.isdisjoint(way.along)), None)
    if product is None:
        return 1
    rows, columns = cut.extent(product.rows), cut.extent(product.columns)
    if target.shared_operands and rows >= GROUP_ROWS:
        return 1
    of_rows = not set(product.rows).isdisjoint(way.along)
    return max(1, min(config.warps, columns // WARP_COLUMNS if of_rows else rows // LEAST))


def variants(plan: Plan, tiling: Tiling, target: Target) -> list[Plan]:
    """Other ways to run the tiles of a plan, which only measurements tell apart: a step more or less loaded ahead,
    twice or half as many warps, operands by the copy engine or not; as far as registers and shared memory have room."""
    c = plan.config
    work = work_of(tiling, passes_of(tiling.values, tiling.inside) if c.row else {})
    plain = replace(c, tma=False, specialized=False)
    others = [replace(plain, stages=n) for n in (c.stages, c.stages - 1, c.stages + 1) if n > 0]
    others += [replace(plain, warps=n) for n in (c.warps * 2, c.warps // 2) if n in _WARPS]
    found = [made for config in others if (made := _plan(tiling, work, config, target, given=True)) is not None]
    if has_engine(target):
        found += [_with_engine(p, tiling, way, target) for p in found[:1] for way in ("on", "specialized")]
    return list({p.config: p for p in found if p.config != c}.values())


def _with_engine(plan: Plan, tiling: Tiling, engine: str, target: Target) -> Plan:
    """The plan with operands fetched by the copy engine; as it is where none can be, or where that is no quicker."""
    cut = _cut(tiling, plan.config)
    ways = ((i, way_of(way, tiling)) for i, way in _fetched(tiling, cut.sizes))
    fetched = [cut.whole(way) * i.shape.element_type.byte_size for i, way in ways]
    turns = -(-plan.programs // target.cores)
    addresses = sum(fetched) / ALIGNED * ADDRESSES / (target.flops_of("f32") / target.cores)
    saved = turns * (addresses - len(fetched) * DESCRIPTOR) / min(turns, BESIDE)
    least = clock_of(target).launch + plan.memory
    seconds = max(least, plan.seconds - saved)
    if not fetched or engine == "auto" and seconds >= plan.seconds:
        return plan
    config = replace(plan.config, tma=True)
    if engine == "specialized" and may_specialize(config):
        config = replace(config, warps=4, specialized=True)
    return replace(plan, config=config, seconds=min(seconds, plan.seconds))  # being told to costs no fusion


def _fetched(tiling: Tiling, sizes: tuple[int, ...]) -> Iterator[tuple[Instruction, Index]]:
    """The operands of loops that the copy engine can fetch."""
    for i, ways in tiling.values.items():
        for way in ways if i.opcode == "parameter" or i not in tiling.inside else ():
            stepped = any(tiling.variables[v].kind == "sum" and sizes[v] < tiling.variables[v].size for v in used(way))
            if stepped:
                (address,) = tiling.simplify((address_of(i, way),))
                if not isinstance(descriptor_of(i, address, sizes.__getitem__), str):
                    yield i, way


def _memory(root: Instruction, work: Work, cut: Cut, programs: int, clock: Clock) -> float:
    """Seconds of what is read and written; what another program has read comes from the cache."""
    moved = float(root.shape.byte_size)
    for read in work.reads:
        total = programs * sum(cut.whole(way) * cut.times(way) for way in read.ways) * read.width
        distinct = min(read.size, total)
        moved += distinct + (total - distinct) / SHARED_CACHE
    return moved / clock.bandwidth


def _cut(tiling: Tiling, config: BlockConfig) -> Cut:
    again = config.row > 0 and not config.online
    return Cut(_all_sizes(tiling, config), tuple([v.size for v in tiling.variables]), len(config.tiles), again)


def _rate(dot: Instruction, rows: int, columns: int, turns: int, target: Target, config: BlockConfig) -> float:
    """Flops a second of a core's product of a tile."""
    if not _has_matrix_units(dot, config.precision):
        return target.flops_of(_unit(dot)) / target.cores * PLAIN_PRODUCT
    busy = min(EFFICIENCY[0][1], _busy(rows, columns) * min(turns, BESIDE))
    peak = target.flops_of("tf32") / 3 if _unit(dot) == "f32" else target.flops_of(_unit(dot))
    return peak / target.cores * busy


def _has_matrix_units(dot: Instruction, precision: Precision = "ieee") -> bool:
    return dot.operands[0].shape.element_type.byte_size < 4 or precision == "tf32x3" and _unit(dot) == "f32"


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


def _all_sizes(tiling: Tiling, config: BlockConfig) -> tuple[int, ...]:
    """The size of a tile along every variable. Rows are whole unless the config says otherwise; so are sums over what
    a row was made for."""
    longest = {"sum": config.block_k, "row": config.row}
    rest = ((v.size, longest[v.kind]) for v in tiling.variables[len(config.tiles) :])
    return (*config.tiles, *(most if most and size > most else power_of_two(size) for size, most in rest))


def _refused(tiling: Tiling, sizes: tuple[int, ...]) -> Refusal | None:
    tiles = (tiling.tile(i, way, sizes, packed=True) for i, ways in tiling.values.items() for way in ways)
    return next((t for t in tiles if isinstance(t, Refusal)), None)


def _width(dot: Instruction) -> int:
    return max(o.shape.element_type.byte_size for o in dot.operands[:2])


def _unit(dot: Instruction) -> str:
    """The name of the rate of the matrix units for a product."""
    name = dot.operands[0].shape.element_type.name
    return "f8" if name.startswith("f8") else name


__all__ = ["Freedom", "Plan", "library_seconds", "plans"]
