"""Long sums in steps: partial results of blocks, and partial results of those.

A sum of n floats one after the other is off by up to n roundings, and stops growing when elements are less than half
its last digit. So a long chain is cut into blocks, each summed from the start value, and the blocks' sums are
added up in as many levels as keep every chain short. Where it is cut depends on lengths alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, log, prod
from typing import TypeAlias

from xdsl.ir import SSAValue

from heron.analysis.indexing.expr import Const, Expr
from heron.analysis.indexing.hlo_maps import Index
from heron.codegen.elemental import FunctionEmitter
from heron.codegen.elemental.reducer import Reducer
from heron.codegen.emitters.reducers import lose_digits, merged, starts
from heron.records import dataclass

#: elements that are added in one go: floats in several vectors of partial sums, complex numbers one after the other
BLOCK, COMPLEX_BLOCK = 1024, 256
#: blocks up to which a sum is not cut
SHORT = 4
#: most partial results that are added one after the other
FAN = 64
#: long blocks have a multiple of this many elements, so that vectors leave no rest
VECTORS = 32

#: takes an index and the carried values, accumulators first, and gives the next ones
Body: TypeAlias = Callable[[Index, Sequence[SSAValue]], Sequence[SSAValue]]
#: a loop over a box: its sizes, the carried values, the body
Loop: TypeAlias = Callable[[Sequence[int], Sequence[SSAValue], Body], Sequence[SSAValue]]


@dataclass(frozen=True, slots=True)
class Accumulators:
    """The first ``count`` carried values: the start of a partial result, and the merge of two."""

    count: int
    start: Callable[[], Sequence[SSAValue]]
    merge: Callable[[Sequence[SSAValue], Sequence[SSAValue]], Sequence[SSAValue]]

    def added(
        self, values: Sequence[SSAValue], part: Callable[[Sequence[SSAValue]], Sequence[SSAValue]]
    ) -> list[SSAValue]:
        """`values` with one more partial result, which `part` makes from fresh accumulators."""
        made = part([*self.start(), *values[self.count :]])
        return [*self.merge(values[: self.count], made[: self.count]), *made[self.count :]]


def summed(
    e: FunctionEmitter,
    sizes: Sequence[int],
    inits: Sequence[SSAValue],
    body: Body,
    sums: Accumulators,
    block: int,
    loop: Loop | None = None,
) -> list[SSAValue]:
    """``body`` at every point of a box of these sizes, outermost first, in partial sums of about ``block`` points.

    ``inits``: the accumulators as they start, then whatever else is carried. ``loop``: the loop of a sum that is short.
    """
    if prod(sizes) <= SHORT * block:
        return list((loop or e.loop)(sizes, inits, body))
    n, *below = sizes
    inner = prod(below)
    (*counts, places), rest = cuts(n, max(1, block // inner))

    def block_from(start: Expr, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        if inner >= block:
            return summed(e, below, values, lambda v, c: body((start, *v), c), sums, block)
        return e.loop([places, *below], values, lambda v, c: body((start + v[0], *v[1:]), c))

    def blocks_from(level: int, start: Expr, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """The sum of all ``counts[level:]`` blocks, of which the first is at `start`."""
        if level == len(counts):
            return block_from(start, values)
        width = prod(counts[level + 1 :]) * places

        def one(v: Index, carried: Sequence[SSAValue]) -> list[SSAValue]:
            return sums.added(carried, lambda fresh: blocks_from(level + 1, start + v[0] * width, fresh))

        return e.loop([counts[level]], values, one)

    values = list(blocks_from(0, Const(0), inits))
    if not rest:
        return values
    return sums.added(
        values,
        lambda fresh: summed(e, [rest, *below], fresh, lambda v, c: body((v[0] + (n - rest), *v[1:]), c), sums, block),
    )


def reduced(
    e: FunctionEmitter,
    reducers: Sequence[Reducer],
    sizes: Sequence[int],
    inits: Sequence[SSAValue],
    body: Body,
    columns: int = 1,
    loop: Loop | None = None,
    block: int = 0,
) -> list[SSAValue]:
    """The result of `summed` for reductions with accumulators in registers, split where that keeps accuracy.

    ``columns``: results that each have accumulators of their own, one's after the other's. ``block``: elements that are
    added in one go; 0: fewer of more columns, which have no vectors of partial sums.
    """
    if not lose_digits(reducers):
        return list((loop or e.loop)(sizes, inits, body))
    n = sum(len(r.types) for r in reducers)

    def start() -> list[SSAValue]:
        return [v for _ in range(columns) for v in starts(e, reducers)]

    def merge(a: Sequence[SSAValue], b: Sequence[SSAValue]) -> list[SSAValue]:
        parts = [slice(k * n, (k + 1) * n) for k in range(columns)]
        return [v for part in parts for v in merged(e, reducers, a[part], b[part])]

    is_complex = any(r.types[0].is_complex for r in reducers)
    block = COMPLEX_BLOCK if is_complex else block or BLOCK // columns
    return summed(e, sizes, inits, body, Accumulators(columns * n, start, merge), block, loop)


def cuts(n: int, places: int) -> tuple[tuple[int, ...], int]:
    """`n` as a product of numbers of at most `FAN`, the last of about `places` instead (1 for 1), and a rest.

    Without a rest where `n` has such divisors.
    """
    unit = VECTORS if places >= 8 * VECTORS else 1
    most = 2 * places if places > 1 else 1
    for last in range(most - most % unit, places // 2, -unit):
        found = _factors(n // last) if n % last == 0 else None
        if found is not None:
            return (*found, last), 0
    count = n // places
    levels = max(1, ceil(log(count, FAN)))
    each = int(count ** (1 / levels))
    last = n // each**levels if places > 1 else 1
    last -= last % unit
    return (*[each] * levels, last), n - last * each**levels


def _factors(n: int) -> tuple[int, ...] | None:
    """`n` as a product of few numbers, each at most `FAN`; None where there is none."""
    found: list[int] = []
    while n > FAN:
        d = next((d for d in range(FAN, 7, -1) if n % d == 0), None)
        if d is None:
            return None
        found.append(d)
        n //= d
    return (*found, n)
