"""The iteration space of a loop nest: its dimensions, the reads at each point, and the dimensions merged into one loop.

A loop over a shape in memory order reads every operand at an index that is a function of the loop's dimensions. If a
reshape makes that function divide (`x[j // 64, j % 64]`), the loop's dimension is split in two, so that every address
is a sum of multiples of loop variables: the innermost loop then has no division and LLVM can vectorise it. Neighbouring
dimensions with a common stride in every access are merged again, so that the innermost loop is long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import NamedTuple

from heron.analysis.fusion.fusion import Output
from heron.analysis.fusion.partition import Partition
from heron.analysis.indexing.expr import Add, BinaryExpr, Const, Dim, Expr, FloorDiv, Mod, Mul, dims
from heron.analysis.indexing.hlo_maps import (
    Index,
    delinearize,
    from_memory,
    linearize,
    memory_sizes,
    moves_elements,
    operand_index,
    pad_index,
    to_memory,
)
from heron.analysis.indexing.positions import position_sum
from heron.analysis.indexing.simplify import Simplifier, simplifier
from heron.hlo.facts import is_given, is_tuple_op
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape
from heron.records import dataclass

#: a shorter innermost loop than this is not worth a loop variable without division
MIN_INNER = 8


class Read(NamedTuple):
    """An instruction that every point of a loop reads, and where, as expressions over the loop's dimensions.

    ``address``: the offset in memory, for parameters and constants; for a dynamic slice of one, the offset from where
    the slice begins. None for values computed from the index.
    ``position``: the value itself, where it is a sum of indices.
    """

    instruction: Instruction
    index: Index
    address: Expr | None
    position: Expr | None = None


@dataclass(frozen=True, slots=True)
class Space:
    """The iteration space of a loop nest.

    ``sizes`` of its dimensions, ``index``: where it stands in the loop's shape, as expressions over its dimensions;
    ``runs``: neighbouring dimensions that are walked as one.
    """

    sizes: tuple[int, ...]
    index: Index
    reads: tuple[Read, ...]
    runs: tuple[tuple[int, ...], ...]

    def at(self, place: Sequence[Expr]) -> Index:
        """The index into the loop's shape at a point of the space."""
        return tuple(e.substitute(place) for e in self.index)

    @property
    def lengths(self) -> tuple[int, ...]:
        """The number of points of each run."""
        return tuple(prod(self.sizes[d] for d in run) for run in self.runs)


def dimension_index(sizes: Sequence[int], runs: Sequence[Sequence[int]], run_index: Sequence[Expr]) -> Index:
    """The index by dimension where each run of dimensions stands at its variable."""
    index: list[Expr] = [Const(0)] * len(sizes)
    for run, e in zip(runs, run_index, strict=False):
        for d, part in zip(run, delinearize(e, [sizes[k] for k in run]), strict=True):
            index[d] = part
    return tuple(index)


def output_space(
    outputs: Sequence[Output], shape: Shape, partition: Partition, *places: Callable[[Index], Index]
) -> Space:
    """The space of a loop over `shape` in memory order that stores `outputs`: equal dimensions, any layouts.

    ``places``: where an index of the loop is in the outputs, when `shape` is a part of theirs; several when the loop
    stores several elements at each of its points. The space's index is that of the first.
    """
    sizes = memory_sizes(shape)
    inside = from_memory(shape, dims(len(sizes)))
    at = [place(inside) for place in places] or [inside]
    roots = list(dict.fromkeys(o.instruction for o in outputs))
    reads = [r for index in at for r in walk(roots, index, sizes, partition)]
    factors = _refined(sizes, reads)
    if factors is not None:
        at = [_over_factors(index, factors) for index in at]
        sizes = tuple(size for parts in factors for size in parts)
        reads = [r for index in at for r in walk(roots, index, sizes, partition)]
    stores = [linearize(to_memory(o.shape, at[0]), memory_sizes(o.shape)) for o in outputs]
    runs = joined_runs(reads, sizes, stores)
    return Space(sizes, at[0], tuple(reads), tuple(tuple(run) for run in runs))


def contiguous_runs(
    roots: Iterable[Instruction], index: Index, sizes: tuple[int, ...], partition: Partition
) -> list[list[int]]:
    """Runs of neighbouring dimensions of a loop over `sizes`, which computes `roots` at `index`, that all reads step
    through as one dimension."""
    return joined_runs(walk(roots, index, sizes, partition), sizes)


# -- what is read ------------------------------------------------------------------------------------------------------


def walk(
    roots: Iterable[Instruction],
    index: Index,
    sizes: tuple[int, ...],
    partition: Partition,
    stop: Callable[[Instruction, Index], bool] | None = None,
) -> list[Read]:
    """The reads when `roots` are computed at `index`, an index over dimensions of `sizes`.

    Ends at parameters, constants, calls of the partition's functions, at ops that do not just move elements, and where
    `stop` says so.
    """
    ranges = simplifier(tuple((0, n - 1) for n in sizes))
    start = tuple(ranges.simplify(e) for e in index)
    found: list[Read] = []
    seen: set[tuple[Instruction, Index]] = set()
    stack = [(r, start) for r in roots]
    while stack:
        i, at = stack.pop()
        if (i, at) in seen:
            continue
        seen.add((i, at))
        called = i in partition.functions and i.opcode != "parameter"
        step = Read(i, at, None) if called else _step(i, at, ranges, stop)
        if isinstance(step, Read):
            found.append(step)
        else:
            stack.extend(step)
    return found


def _step(
    i: Instruction, at: Index, ranges: Simplifier, stop: Callable[[Instruction, Index], bool] | None
) -> Read | list[tuple[Instruction, Index]]:
    """The read that the walk ends with at `i`, or the operands it goes on to, and where these are read."""
    if is_tuple_op(i):
        return [(o, at) for o in i.operands]
    if is_given(i):
        return Read(i, at, _address(i, at, ranges))
    if i.opcode == "dynamic-slice" and is_given(i.operands[0]):
        return Read(i, at, _address(i.operands[0], at, ranges))
    part = _PARTS[i.opcode](i, at, ranges) if i.opcode in _PARTS else None
    if part is not None:
        return [part]
    position = _position(i, at) if stop is None else None
    if position is not None:
        return Read(i, at, None, ranges.simplify(position))
    if not moves_elements(i) or (stop is not None and stop(i, at)):
        return Read(i, at, None)
    return [(o, tuple(ranges.simplify(e) for e in operand_index(i, n, at))) for n, o in enumerate(i.operands)]


def _address(i: Instruction, at: Index, ranges: Simplifier) -> Expr:
    return ranges.simplify(linearize(to_memory(i.shape, at), memory_sizes(i.shape)))


def concatenated_part(i: Instruction, at: Index, ranges: Simplifier) -> tuple[Instruction, Index] | None:
    """The operand of a concatenation that all points of index `at` lie in, and where; None when there are several."""
    (d,) = i.dimensions
    low, high = ranges.range_of(at[d])
    offset = 0
    for operand in i.operands:
        size = operand.shape.dims[d]
        if offset <= low and high < offset + size:
            return operand, (*at[:d], ranges.simplify(at[d] - Const(offset)), *at[d + 1 :])
        offset += size
    return None


def _position(i: Instruction, at: Index) -> Expr | None:
    """The value of an iota, or of a sum of iotas, as an expression of the index."""
    return at[i.attrs["iota_dimension"]] if i.opcode == "iota" else position_sum(i, at)


def _padded_part(i: Instruction, at: Index, ranges: Simplifier) -> tuple[Instruction, Index] | None:
    """The operand of a pad that all points of index `at` show, and where; None when they show both."""
    source, padding = i.operands
    where, constraints = pad_index(i, at)
    shows_all = True
    for e, least, most in constraints:
        low, high = ranges.range_of(ranges.simplify(e))
        if high < least or low > most:
            return padding, ()
        shows_all &= least <= low and high <= most
    return (source, tuple(ranges.simplify(e) for e in where)) if shows_all else None


_PARTS = {"concatenate": concatenated_part, "pad": _padded_part}


# -- cutting dimensions ------------------------------------------------------------------------------------------------


def _refined(sizes: Sequence[int], reads: Sequence[Read]) -> list[tuple[int, ...]] | None:
    """Each dimension as the sizes it is cut into; None when no division asks for a cut."""
    divisors: dict[int, set[int]] = {}
    for read in reads:
        for e in read.index if read.address is None else (read.address,):
            _add_divisors(e, divisors)
    last = max((d for d, size in enumerate(sizes) if size > 1), default=0)
    factors = [_factors(size, divisors.get(d, set()), d == last) for d, size in enumerate(sizes)]
    return factors if any(len(parts) > 1 for parts in factors) else None


def _add_divisors(e: Expr, divisors: dict[int, set[int]]) -> None:
    """Note by what `e` divides single dimensions."""
    if not isinstance(e, BinaryExpr):
        return
    _add_divisors(e.lhs, divisors)
    _add_divisors(e.rhs, divisors)
    if not isinstance(e, (FloorDiv, Mod)) or not isinstance(e.rhs, Const):
        return
    inner, factor = e.lhs, 1
    if isinstance(inner, FloorDiv) and isinstance(inner.rhs, Const):
        inner, factor = inner.lhs, inner.rhs.value
    if isinstance(inner, Dim):
        divisors.setdefault(inner.index, set()).add(e.rhs.value * factor)


def _factors(size: int, divisors: set[int], innermost: bool) -> tuple[int, ...]:
    """`size` cut at `divisors` when each divides the next, outermost first."""
    factors: list[int] = []
    previous = 1
    for c in [*sorted(c for c in divisors if 1 < c < size), size]:
        if c % previous:
            return (size,)
        factors.append(c // previous)
        previous = c
    if innermost and factors[0] < MIN_INNER:
        return (size,)
    return tuple(reversed(factors))


def _over_factors(index: Index, factors: Sequence[tuple[int, ...]]) -> Index:
    """`index` over the cut dimensions."""
    whole: list[Expr] = []
    n = 0
    for parts in factors:
        whole.append(linearize([Dim(n + k) for k in range(len(parts))], parts))
        n += len(parts)
    return tuple(e.substitute(whole) for e in index)


# -- joining dimensions ------------------------------------------------------------------------------------------------


def joined_runs(reads: Iterable[Read], sizes: tuple[int, ...], stores: Sequence[Expr] = ()) -> list[list[int]]:
    """Runs of neighbouring dimensions that all accesses step through as one; dimensions of size 1 join any run."""
    joined = [True] * max(len(sizes) - 1, 0)
    for address in stores:
        _keep_joined(joined, sizes, address)
    for read in reads:
        stepped = read.address if read.address is not None else read.position
        if stepped is not None:
            _keep_joined(joined, sizes, stepped)
            continue
        for e in read.index:
            _keep_apart(joined, e)
    runs: list[list[int]] = [[0]] if sizes else []
    for d in range(1, len(sizes)):
        if joined[d - 1] or sizes[d] == 1:
            runs[-1].append(d)
        elif all(sizes[k] == 1 for k in runs[-1]):
            runs[-1].append(d)
        else:
            runs.append([d])
    return runs


def _keep_apart(joined: list[bool], e: Expr) -> None:
    """The dimensions `e` reads are wanted one by one."""
    for v in e.variables():
        for d in (v.index - 1, v.index):  # type: ignore[attr-defined]
            if 0 <= d < len(joined):
                joined[d] = False


def _keep_joined(joined: list[bool], sizes: Sequence[int], address: Expr) -> None:
    """Cut between dimensions that `address` does not step through as one."""
    found = steps(address, len(sizes))
    if found is None:
        _keep_apart(joined, address)
        return
    real = [d for d, size in enumerate(sizes) if size != 1]
    for a, b in zip(real, real[1:], strict=False):
        if found[a] != found[b] * sizes[b]:
            for d in range(a, b):
                joined[d] = False


def steps(e: Expr, rank: int) -> list[int] | None:
    """The step of `e` when each of `rank` dimensions moves by one; None if it is not affine in them."""
    found = [0] * rank
    return found if _add_steps(e, 1, found) else None


def _add_steps(e: Expr, factor: int, found: list[int]) -> bool:
    if isinstance(e, Const):
        return True
    if isinstance(e, Dim):
        found[e.index] += factor
        return True
    if isinstance(e, Add):
        return _add_steps(e.lhs, factor, found) and _add_steps(e.rhs, factor, found)
    if isinstance(e, Mul) and isinstance(e.rhs, Const):
        return _add_steps(e.lhs, factor * e.rhs.value, found)
    return False
