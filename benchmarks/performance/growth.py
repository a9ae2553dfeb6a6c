"""How time grows with size: programs of one op, from what caches hold to what they do not.

Before each run other data fills the caches: arrays twice as large as the last cache would else be half in it, which
looks as if time grew faster than size.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

import heron
from heron.cli import values
from heron.targets import get

#: elements of the arrays: 16 Ki to 64 Mi, of which the last ones fit no cache
SIZES = tuple(1 << n for n in range(14, 27, 2))
#: bytes of other data over those of the last cache
_OTHER = 4
#: ops that do more for an element than to pass it on stop here
_SLOW = {"sort of rows": 1 << 24}


@dataclass(frozen=True, slots=True)
class Growth:
    """Seconds of one op by number of elements."""

    op: str
    sizes: tuple[int, ...]
    seconds: tuple[float, ...]

    @property
    def exponent(self) -> float:
        """Time grows as size to this power, from the first size that no cache holds."""
        last = len(self.sizes) - 1
        beyond = [n for n, size in enumerate(self.sizes) if 4 * size > get("cpu").l3_bytes]
        first = min([*beyond, last - 1])
        return math.log(self.seconds[last] / self.seconds[first]) / math.log(self.sizes[last] / self.sizes[first])


def _unary(op: str) -> Callable[[int], str]:
    return lambda n: f"x = f32[{n}] parameter(0)\n  ROOT r = f32[{n}] {op}(x)"


def _rows(n: int) -> tuple[int, int]:
    """A matrix of `n` elements, about as wide as high."""
    high = 1 << (n.bit_length() - 1) // 2
    return high, n // high


def _sum(dimension: int) -> Callable[[int], str]:
    def body(n: int) -> str:
        a, b = _rows(n)
        kept = b if dimension == 0 else a
        return (
            f"x = f32[{a},{b}] parameter(0)\n  z = f32[] constant(0)\n"
            f"  ROOT r = f32[{kept}] reduce(x, z), dimensions={{{dimension}}}, to_apply=sum"
        )

    return body


def _transpose(n: int) -> str:
    a, b = _rows(n)
    turned = f"t = f32[{b},{a}] transpose(x), dimensions={{1,0}}"
    return f"x = f32[{a},{b}] parameter(0)\n  {turned}\n  ROOT r = f32[{b},{a}] negate(t)"


def _cumsum(n: int) -> str:
    a, b = _rows(n)
    return (
        f"x = f32[{a},{b}] parameter(0)\n  z = f32[] constant(0)\n  ROOT r = f32[{a},{b}] reduce-window(x, z),"
        f" window={{size=1x{b} pad=0_0x{b - 1}_0}}, to_apply=sum"
    )


def _gather(n: int) -> str:
    rows = n // 64
    return (
        f"x = f32[{rows},64] parameter(0)\n  i = s32[{rows},1] iota(), iota_dimension=0\n"
        f"  k = s32[] constant({rows - 1})\n  b = s32[{rows},1] broadcast(k), dimensions={{}}\n"
        f"  j = s32[{rows},1] subtract(b, i)\n  ROOT r = f32[{rows},64] gather(x, j), offset_dims={{1}},"
        f" collapsed_slice_dims={{0}}, start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1,64}}"
    )


def _sort(n: int) -> str:
    shape = f"f32[{n // 4096},4096]"
    return f"x = {shape} parameter(0)\n  ROOT r = {shape} sort(x), dimensions={{1}}, to_apply=less"


#: name → lines of an entry computation for so many elements
OPS: dict[str, Callable[[int], str]] = {
    "exponential": _unary("exponential"),
    "negate": _unary("negate"),
    "sum of rows": _sum(1),
    "sum of columns": _sum(0),
    "transpose": _transpose,
    "running sum": _cumsum,
    "gather of rows": _gather,
    "sort of rows": _sort,
}

_HEAD = """HloModule growth

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT
}
"""


def measure(op: str, sizes: Sequence[int] = SIZES, seconds: float = 0.25) -> Growth:
    """Times of one op with none of its data in a cache, each the best of runs in turn within some seconds a size."""
    sizes = [n for n in sizes if n <= _SLOW.get(op, n)]
    other = np.zeros(_OTHER * get("cpu").l3_bytes // 8)
    runs = []
    for n in sizes:
        module = heron.parse(f"{_HEAD}\nENTRY e {{\n  {OPS[op](n)}\n}}\n")
        arrays = values.random(module, 0)
        program = heron.compile(module, target="cpu")
        program(*arrays), program(*arrays)
        runs.append((program, arrays))
    best, end = [math.inf] * len(sizes), time.perf_counter() + seconds * len(sizes)
    while math.inf in best or time.perf_counter() < end:
        for n, (program, arrays) in enumerate(runs):
            other += 1
            start = time.perf_counter()
            program(*arrays)
            best[n] = min(best[n], time.perf_counter() - start)
    return Growth(op, tuple(sizes), tuple(best))
