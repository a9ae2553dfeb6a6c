"""Programs of randomly chosen ops that move and combine elements keep their values through simplification."""

from __future__ import annotations

import numpy as np
import pytest

from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import row_major
from heron.hlo.ir.types import F32, PRED, S32, ElementType
from heron.hlo.verifier import verify
from heron.options import Options
from heron.passes.framework import registry
from heron.passes.framework.context import PassContext
from heron.passes.rewriting.building import applied, scalar, splat

Rng = np.random.Generator


def _dims(rng: Rng, rank: int) -> tuple[int, ...]:
    return tuple(int(d) for d in rng.choice([1, 1, 2, 3, 4], rank))


def _move(c: Computation, x: Instruction, rng: Rng) -> Instruction:
    """One op that moves `x`'s elements about."""
    dims, t, rank = x.shape.dims, x.shape.element_type, x.shape.rank
    match rng.integers(9):
        case 0:
            new = [d for size in dims for d in _factors(size, rng)]
            for _ in range(rng.integers(2)):
                new.insert(int(rng.integers(len(new) + 1)), 1)
            return c.add("reshape", [x], row_major(t, *new))
        case 1:
            flat = int(np.prod(dims, dtype=int))
            return c.add("reshape", [x], row_major(t, flat))
        case 2:
            order = tuple(int(d) for d in rng.permutation(rank))
            return c.add("transpose", [x], row_major(t, *(dims[d] for d in order)), dimensions=order)
        case 3 if rank < 5:
            at = int(rng.integers(rank + 1))
            kept = tuple(d + (d >= at) for d in range(rank))
            new_dims = [*dims[:at], int(rng.choice([1, 2, 3])), *dims[at:]]
            return c.add("broadcast", [x], row_major(t, *new_dims), dimensions=kept)
        case 4:
            parts = []
            for size in dims:
                low = int(rng.integers(size))
                parts.append((low, int(rng.integers(low + 1, size + 1)), int(rng.choice([1, 1, 2]))))
            sizes = [-(-(high - low) // stride) for low, high, stride in parts]
            return c.add("slice", [x], row_major(t, *sizes), slice=tuple(parts))
        case 5:
            padding = tuple((int(rng.integers(2)), int(rng.integers(-1, 2)) if d > 2 else 0, 0) for d in dims)
            sizes = [d + low + high for d, (low, high, _) in zip(dims, padding, strict=True)]
            return c.add("pad", [x, scalar(c, t, rng.integers(2))], row_major(t, *sizes), padding=padding)
        case 6 if rank:
            return c.add("reverse", [x], x.shape, dimensions=(int(rng.integers(rank)),))
        case 7 if rank:
            d = int(rng.integers(rank))
            sizes = list(dims)
            sizes[d] *= 2
            return c.add("concatenate", [x, x], row_major(t, *sizes), dimensions=(d,))
        case _ if rank:
            over = tuple(sorted(int(d) for d in rng.choice(rank, int(rng.integers(1, rank + 1)), replace=False)))
            op = str(rng.choice(["maximum", "add"]))
            assert c.module is not None
            init = scalar(c, t, 0 if op == "add" or t is PRED else -np.inf if t is F32 else -(1 << 31))
            sizes = [size for d, size in enumerate(dims) if d not in over]
            if t is PRED:
                op = "or"
            return c.add(
                "reduce",
                [x, init],
                row_major(t, *sizes),
                dimensions=over,
                to_apply=applied(c.module, op, t),
            )
    return x


def _factors(size: int, rng: Rng) -> list[int]:
    return [2, size // 2] if size % 2 == 0 and rng.integers(2) else [size]


def _combine(c: Computation, x: Instruction, rng: Rng) -> Instruction:
    """One elementwise op on `x` and itself, a constant, or a moved form of it."""
    t = x.shape.element_type
    other = splat(c, x.shape, rng.choice([0, 1, 2])) if rng.integers(2) else x
    if t is PRED:
        op = str(rng.choice(["and", "or", "xor", "not"]))
        return c.add(op, [x] if op == "not" else [x, other], x.shape)
    match rng.integers(9):
        case 6:
            low, high = scalar(c, t, 0), scalar(c, t, rng.integers(3))
            return c.add("clamp", [low, x, high], x.shape)
        case 7:
            one = c.add("compare", [scalar(c, S32, rng.integers(2)), c.parameters[-1]], direction="LT")
            return c.add("select", [one, x, other], x.shape)
        case 8 if x.shape.rank:
            starts = [scalar(c, S32, rng.integers(-1, 3)) for _ in x.shape.dims]
            sizes = tuple(int(rng.integers(1, d + 1)) for d in x.shape.dims)
            part = c.add("dynamic-slice", [x, *starts], row_major(t, *sizes), dynamic_slice_sizes=sizes)
            moved = [c.parameters[-1], *starts[1:]]
            return c.add("dynamic-update-slice", [x, part, *(moved if rng.integers(2) else starts)], x.shape)
        case 0:
            return c.add("negate", [x], x.shape)
        case 1:
            to = S32 if t is F32 else F32
            small = c.add("minimum", [x, splat(c, x.shape, 1000)], x.shape)
            return c.add("convert", [small], row_major(to, *x.shape.dims))
        case 2:
            direction = str(rng.choice(["LT", "GE", "EQ", "NE"]))
            test = c.add("compare", [x, other], row_major(PRED, *x.shape.dims), direction=direction)
            return c.add("select", [test, x, other], x.shape)
        case 3:
            return c.add(str(rng.choice(["maximum", "minimum"])), [x, other], x.shape)
        case _:
            return c.add(str(rng.choice(["add", "subtract", "multiply"])), [x, other], x.shape)


def random_program(rng: Rng) -> Module:
    module = Module("random")
    c = module.add_computation(Computation("main"), entry=True)
    t: ElementType = (F32, S32, PRED)[int(rng.integers(3))]
    values = [c.add_parameter(n, row_major(t, *_dims(rng, int(rng.integers(4))))) for n in range(2)]
    c.add_parameter(2, row_major(S32))
    for _ in range(int(rng.integers(4, 14))):
        x = values[-1 - int(rng.integers(min(3, len(values))))]
        if x.shape.num_elements < 400:
            values.append((_move if rng.integers(3) else _combine)(c, x, rng))
    c.root = c.add("tuple", values[-3:])
    return module


@pytest.mark.parametrize("seed", range(60))
def test_values(seed: int) -> None:
    for n in range(5):
        module = random_program(np.random.default_rng([seed, n]))
        verify(module)
        ctx = PassContext(Options(check="values"))
        ctx.run_pass(registry.pipeline("simplify"), module)
        verify(module)
        assert not ctx.trace.notes, str(module)
