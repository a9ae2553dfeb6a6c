"""Kernels of every kind beside kernels of every kind: whatever fusion makes of two, there is an emitter for it."""

from __future__ import annotations

import re

import pytest

from heron import Options
from heron.backends.compiler import Compilation
from heron.compiling import compile
from heron.evaluator import evaluate
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.passes.framework.checks import difference, random_inputs
from heron.targets import get as target
from heron.trace import Trace

COMPUTATIONS = """
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
last { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(b, b) }
less { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = pred[] compare(a, b), direction=LT }
two {
  a = f32[] parameter(0)  b = f32[] parameter(1)  c = f32[] parameter(2)  d = f32[] parameter(3)
  x = f32[] add(a, c)  y = f32[] maximum(b, d)  ROOT r = (f32[], f32[]) tuple(x, y)
}
firsts {
  a = f32[] parameter(0)  b = f32[] parameter(1)  c = f32[] parameter(2)  d = f32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=LT
}
"""
ROWS = "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1"
#: a kernel of each kind; N is its name, and its result. It reads x and y (f32[64,96]) or nothing, and changes no array
#: that others read but by a copy
KERNELS = {
    "loop": "N.t = f32[64,96] tanh(x)  N = f32[64,96] add(N.t, y)",
    "other loop": "N.t = f32[96] exponential(v)  N = f32[96] negate(N.t)",
    "fill": "N = f32[64,96] broadcast(half), dimensions={}",
    "count": "N.i = s32[500] iota(), iota_dimension=0  N.f = f32[500] convert(N.i)  N = f32[500] sine(N.f)",
    "constant": "N = f32[4] constant({1, 2, 3, 5})",
    "copy": "N = f32[64,96] copy(x)",
    "rows": "N.m = f32[64,96] multiply(x, y)  N = f32[64] reduce(N.m, zero), dimensions={1}, to_apply=add",
    "columns": "N = f32[96] reduce(x, zero), dimensions={0}, to_apply=add",
    "all": "N.m = f32[64,96] abs(x)  N = f32[] reduce(N.m, zero), dimensions={0,1}, to_apply=add",
    "two sums": "N = (f32[64], f32[64]) reduce(x, y, zero, zero), dimensions={1}, to_apply=two",
    "sums turned": "N = (f32[64], f32[64]) reduce(y, x, zero, zero), dimensions={1}, to_apply=two",
    "sum of nothing": "N.b = f32[70,90] broadcast(half), dimensions={}  N.c = f32[70,90] cosine(N.b)\n"
    "N = f32[70] reduce(N.c, zero), dimensions={1}, to_apply=add",
    "softmax": "N.r = f32[64] reduce(x, zero), dimensions={1}, to_apply=add\n"
    "N.b = f32[64,96] broadcast(N.r), dimensions={0}  N = f32[64,96] divide(x, N.b)",
    "transpose": "N.n = f32[64,96] negate(x)  N = f32[96,64] transpose(N.n), dimensions={1,0}",
    "transpose of nothing": "N.i = f32[64,96] iota(), iota_dimension=1  N.c = f32[64,96] cosine(N.i)\n"
    "N = f32[96,64] transpose(N.c), dimensions={1,0}",
    "concatenate": "N = f32[128,96] concatenate(x, y), dimensions={0}",
    "slices": "N.a = f32[32,96] slice(x), slice={[0:32], [0:96]}  N.b = f32[32,96] slice(x), slice={[32:64], [0:96]}\n"
    "N = (f32[32,96], f32[32,96]) tuple(N.a, N.b)",
    "pad": "N = f32[70,96] pad(x, half), padding=3_3x0_0",
    "update": "N.n = f32[64] negate(u)  N.u = f32[1,64] reshape(N.n)  N.x = f32[96,64] copy(z)\n"
    "N = f32[96,64] dynamic-update-slice(N.x, N.u, k, k)",
    "update of nothing": "N.z = f32[96,64] broadcast(half), dimensions={}  N.u = f32[1,64] broadcast(zero), dimensions={}\n"
    "N = f32[96,64] dynamic-update-slice(N.z, N.u, k, k)",
    "gather": "N = f32[5,96] gather(x, places), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
    "index_vector_dim=1, slice_sizes={1,96}",
    "scatter": f"N = f32[64,96] scatter(x, places, some), {ROWS}, to_apply=add",
    "scatter of nothing": "N.z = f32[9000] broadcast(half), dimensions={}  N.i = s32[3000,1] iota(), iota_dimension=0\n"
    "N.j = s32[3000,1] add(N.i, N.i)  N.u = f32[3000] broadcast(zero), dimensions={}\n"
    "N = f32[9000] scatter(N.z, N.j, N.u), update_window_dims={}, inserted_window_dims={0}, "
    "scatter_dims_to_operand_dims={0}, index_vector_dim=1, indices_are_sorted=true, to_apply=last",
    "sort": "N = f32[64,96] sort(x), dimensions={1}, to_apply=less",
    "sort of two": "N = (f32[64,96], f32[64,96]) sort(x, y), dimensions={1}, to_apply=firsts",
    "sort of nothing": "N.i = f32[700] iota(), iota_dimension=0  N.c = f32[700] cosine(N.i)\n"
    "N = f32[700] sort(N.c), dimensions={0}, to_apply=less",
    "scan": "N = f32[64,96] reduce-window(x, zero), window={size=1x96 pad=0_0x95_0}, to_apply=add",
    "scan of nothing": "N.i = f32[700] iota(), iota_dimension=0  N.c = f32[700] cosine(N.i)\n"
    "N = f32[700] reduce-window(N.c, zero), window={size=700 pad=699_0}, to_apply=add",
}  # fmt: skip
GIVEN = """
  x = f32[64,96] parameter(0)
  y = f32[64,96] parameter(1)
  z = f32[96,64] parameter(2)
  u = f32[64] parameter(3)
  v = f32[96] parameter(4)
  some = f32[5,96] parameter(5)
  half = f32[] constant(0.5)
  zero = f32[] constant(0)
  k = s32[] constant(0)
  places = s32[5,1] constant({{3}, {1}, {4}, {1}, {5}})
"""


def module_of(*names: str) -> Module:
    """A program of kernels beside each other, all of them results."""
    lines, results, shapes = [], [], []
    for n, name in enumerate(names):
        lines.append(re.sub(r"\bN\b", f"n{n}", KERNELS[name]))
        results.append(f"n{n}")
        found = re.search(rf"(?:^|  |\n)n{n} = (\(.*?\)|\S+) ", lines[-1])
        assert found is not None
        shapes.append(found[1])
    lines.append(f"ROOT all = ({', '.join(shapes)}) tuple({', '.join(results)})")
    return parse("HloModule m\n" + COMPUTATIONS + "ENTRY e {" + GIVEN + "\n".join(lines) + "\n}\n")


@pytest.mark.parametrize("machine", ["cpu", "sm_90"])
@pytest.mark.parametrize("first", KERNELS)
def test_pairs(machine: str, first: str) -> None:
    """Kernels are emitted for any two, and for twice the same."""
    for second in list(KERNELS)[list(KERNELS).index(first) :]:
        assert Compilation(module_of(first, second), target(machine), Options(), Trace()).lowered


@pytest.mark.parametrize("machine", ["cpu", "sim:sm_90"])
def test_all_together(machine: str) -> None:
    module = module_of(*KERNELS)
    inputs = random_inputs(module, 2)
    found = compile(module, machine).run(inputs)
    names = [name for name, text in KERNELS.items() for _ in range(1 + (" = (" in text))]
    leaves = [leaf for part in evaluate(module, *inputs) for leaf in (part if isinstance(part, tuple) else (part,))]
    for name, ours, theirs in zip(names, found, leaves, strict=True):
        assert difference(theirs, ours) is None, name
