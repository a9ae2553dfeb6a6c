"""How to cut a block-level fusion into tiles, and the seconds that takes: a model of matrix units, caches and cores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from heron.analysis.blocks.config import WHOLE, BlockConfig, Precision, power_of_two
from heron.analysis.blocks.engine import ALIGNED, address_of, descriptor_of, has_engine
from heron.analysis.blocks.tiling import Refusal, Tiling, holds_rows, split, used, whole_dims
from heron.analysis.cost.estimate import clock_of
from heron.analysis.indexing.hlo_maps import Index
from heron.hlo.instruction import Instruction
from heron.hlo.op import Trait
from heron.targets import Target

#: the part of the matrix units' peak that a block of so many results keeps busy; libraries' kernels reach a little more
EFFICIENCY = ((128 * 128, 0.75), (64 * 128, 0.6), (64 * 64, 0.45), (64 * 32, 0.3), (0, 0.1))
LIBRARY_LEAD = 0.85 / 0.75
#: the part of plain arithmetic's peak that products of types with no matrix units reach here, and in a library
PLAIN_PRODUCT, LIBRARY_PRODUCT = 0.4, 0.8
#: multiply-adds of a product that a thread does in a row at most: they are written out one by one
UNROLLED = 2048
#: parts of a row that are worth a look, where rows are gone through in steps
ROWS = (32, 64, 128)
#: how much faster than memory the cache that all cores share delivers what another program has read
SHARED_CACHE = 1.5
#: programs that a core runs side by side: one's products fill the other's gaps
BESIDE = 2
#: flops of a function, and of other ops, on an element
FUNCTION, PLAIN = 20.0, 1.0
#: instructions of a thread for the address and the load of 16 bytes, which the copy engine saves, and seconds until a
#: program has written a descriptor for it: both estimates
ADDRESSES, DESCRIPTOR = 6.0, 5e-7
#: elements a thread may hold of sums and rows: half its registers
_HELD = 128
#: rows of a matrix unit's smallest product
LEAST = 16
_TILES = (16, 32, 64, 128, 256)


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
    """What a kernel may do beside the plain thing. ``steps``: go through rows in steps, ``online``: and that once;
    ``parts``: multiply f32 as sums of parts that matrix units take. ``engine``: let the copy engine fetch operands
    where that is quicker (``auto``), wherever it can (``on``), also with warps of their own (``specialized``), or never
    (``off``)."""

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
    roles = _roles(tiling)
    if isinstance(roles, Refusal):
        return roles
    first = next(_sizes(tiling, *roles))
    if refusal := _refused(tiling, _all_sizes(tiling, BlockConfig(first, LEAST))):  # sizes above 1 are all the same
        return refusal
    steps = [0, *ROWS] if free.steps and _goes_in_steps(tiling) else [0]
    precision: Precision = "tf32x3" if free.parts else "ieee"
    passes = _passes(tiling) if len(steps) > 1 else {}
    found: list[Plan] = []
    for sizes in _sizes(tiling, *roles):
        for row in steps:
            config = BlockConfig(sizes, row=row, online=free.online and row > 0, precision=precision)
            plan = _plan(tiling, config, target, passes)
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


def _with_places(tiling: Tiling, found: list[Plan], beside: Sequence[Instruction]) -> list[Plan]:
    """The plans by which each tile of the result has its own part of other results."""
    held = [whole_dims(tiling.root.shape.dims, p.config.tiles) for p in found]
    tilings = {whole: Tiling(tiling.root, tiling.inside, whole) for whole in held}
    places = {whole: all(t.place_of(i) is not None for i in beside) for whole, t in tilings.items()}
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


def _roles(tiling: Tiling) -> tuple[int, int] | Refusal:
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


def _plan(tiling: Tiling, config: BlockConfig, target: Target, passes: Mapping[Instruction, int]) -> Plan | None:
    """The config with the rest filled in, and its seconds; None when a program of it has no room."""
    dims, tiles, row = tiling.root.shape.dims, config.tiles, config.row
    programs = prod(-(-n // t) for n, t in zip(dims, tiles, strict=True))
    warps = 8 if prod(tiles) >= 128 * 128 or row and prod(tiles) >= 128 * 64 else 4
    config = replace(config, block_k=32 if prod(tiles) > 128 * 128 else _step(tiling), warps=warps, stages=4)
    sizes = _all_sizes(tiling, config)
    again = passes if row and not config.online else {}
    turns = -(-programs // target.cores)
    held, shared, matrix = 0.0, 0.0, 0.0
    for dot, index in tiling.products:
        _, m, n = split(dot, index)
        rows, columns = _extent(m, sizes), _extent(n, sizes)
        area, k = rows * columns, dot.operands[0].shape.dims[dot.lhs_contracting_dims[0]]
        step = config.block_k if not row else max(config.block_k, row)
        held += area
        here = (rows + columns) * min(step, k) * _width(dot)
        shared = shared + here if row else max(shared, here)
        at_once = k if k <= WHOLE else min(step, k)
        if not _has_matrix_units(dot, config.precision) and area * at_once > UNROLLED * 32 * warps:
            return None
        matrix += (
            _times(dot, index, tiling, sizes, again)
            * 2.0
            * _steps_of(index, tiling, sizes)
            * area
            * -(-k // step)
            * step
            / _rate(dot, rows, columns, turns, target, config)
        )
    held += max((_elements(ways, sizes) for i, ways in tiling.values.items() if i.opcode == "reduce"), default=0)
    if held > _HELD * 32 * warps:
        return None
    stages = config.stages
    while stages > 1 and shared * stages > target.shared_bytes_per_block * 0.9:
        stages -= 1
    if shared * stages > target.shared_bytes_per_block * 0.9:
        return None
    seconds = turns * (matrix + _elementwise(tiling, sizes, target, again) / min(turns, BESIDE))
    clock = clock_of(target)
    memory = _memory(tiling, sizes, programs, target, again)
    return Plan(replace(config, stages=stages), programs, clock.launch + max(seconds, memory), memory)


def _with_engine(plan: Plan, tiling: Tiling, engine: str, target: Target) -> Plan:
    """The plan with operands fetched by the copy engine; as it is where none can be, or where that is no quicker."""
    sizes = _all_sizes(tiling, plan.config)
    fetched = [_whole(way, tiling, sizes) * i.shape.element_type.byte_size for i, way in _fetched(tiling, sizes)]
    turns = -(-plan.programs // target.cores)
    addresses = sum(fetched) / ALIGNED * ADDRESSES / (target.flops_of("f32") / target.cores)
    saved = turns * (addresses - len(fetched) * DESCRIPTOR) / min(turns, BESIDE)
    least = clock_of(target).launch + plan.memory
    seconds = max(least, plan.seconds - saved)
    if not fetched or engine == "auto" and seconds >= plan.seconds:
        return plan
    config = replace(plan.config, tma=True)
    if engine == "specialized" and prod(config.tiles) <= 128 * 128:
        config = replace(config, warps=4, specialized=True)  # Triton 3.6 does it for no others on sm_90
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


def _rate(dot: Instruction, rows: int, columns: int, turns: int, target: Target, config: BlockConfig) -> float:
    """Flops a second of a core's product of a tile."""
    if not _has_matrix_units(dot, config.precision):
        return target.flops_of(_unit(dot)) / target.cores * PLAIN_PRODUCT
    busy = min(EFFICIENCY[0][1], _busy(rows, columns) * min(turns, BESIDE))
    peak = target.flops_of("tf32") / 3 if _unit(dot) == "f32" else target.flops_of(_unit(dot))
    return peak / target.cores * busy


def _has_matrix_units(dot: Instruction, precision: Precision = "ieee") -> bool:
    return dot.operands[0].shape.element_type.byte_size < 4 or precision == "tf32x3" and _unit(dot) == "f32"


def _passes(tiling: Tiling) -> dict[Instruction, int]:
    """How many loops need a value, where rows are gone through in steps: each reduction and each product of them is
    one, in which all is computed again but what other reductions give."""
    found: dict[Instruction, int] = {}
    for i in tiling.values:
        if i not in tiling.inside or i.opcode not in ("reduce", "dot"):
            continue
        if i.opcode == "dot" and not any(holds_rows(o, tiling.inside) for o in i.operands):
            continue
        seen, stack = set[Instruction](), list(i.operands)
        while stack:
            o = stack.pop()
            if o in seen:
                continue
            seen.add(o)
            found[o] = found.get(o, 0) + 1
            if o in tiling.inside and o.opcode != "reduce":
                stack += o.operands
    return found


def _times(
    i: Instruction, index: Index, tiling: Tiling, sizes: tuple[int, ...], passes: Mapping[Instruction, int]
) -> int:
    """How often each element of a value is computed at an index."""
    return passes.get(i, 1) if _is_stepped(index, tiling, sizes) else 1


def _is_stepped(index: Index, tiling: Tiling, sizes: tuple[int, ...]) -> bool:
    """Whether a value goes along a row that is gone through in steps."""
    return any(tiling.variables[v].kind == "row" and sizes[v] < tiling.variables[v].size for v in used(index))


def _steps_of(index: Index, tiling: Tiling, sizes: tuple[int, ...]) -> int:
    """In how many steps of rows a value is computed."""
    rows = [v for v in used(index) if tiling.variables[v].kind == "row"]
    return prod(-(-tiling.variables[v].size // sizes[v]) for v in rows)


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


def _elementwise(tiling: Tiling, sizes: tuple[int, ...], target: Target, passes: Mapping[Instruction, int]) -> float:
    """Seconds a core needs for a program's ops outside matrix units."""
    flops = 0.0
    for i, ways in tiling.values.items():
        if i.op.is_elementwise and i in tiling.inside:
            each = FUNCTION if i.has(Trait.TRANSCENDENTAL) or i.opcode == "divide" else PLAIN
            again = (_times(i, way, tiling, sizes, passes) for way in ways)
            flops += each * sum(_whole(way, tiling, sizes) * n for way, n in zip(ways, again, strict=True))
    return flops / (target.flops_of("f32") / target.cores)


def _memory(
    tiling: Tiling, sizes: tuple[int, ...], programs: int, target: Target, passes: Mapping[Instruction, int]
) -> float:
    clock = clock_of(target)
    seconds = tiling.root.shape.byte_size / clock.bandwidth
    for i, ways in tiling.values.items():
        if i in tiling.inside and i.opcode != "parameter":
            continue
        width, size = i.shape.element_type.byte_size, float(i.shape.byte_size)
        again = (_times(i, way, tiling, sizes, passes) for way in ways)
        total = programs * sum(_whole(way, tiling, sizes) * n for way, n in zip(ways, again, strict=True)) * width
        distinct = min(size, total)
        seconds += (distinct + (total - distinct) / SHARED_CACHE) / clock.bandwidth
    return seconds


def _width(dot: Instruction) -> int:
    return max(o.shape.element_type.byte_size for o in dot.operands[:2])


def _unit(dot: Instruction) -> str:
    """The name of the rate of the matrix units for a product."""
    name = dot.operands[0].shape.element_type.name
    return "f8" if name.startswith("f8") else name


__all__ = ["Freedom", "Plan", "library_seconds", "plans"]
