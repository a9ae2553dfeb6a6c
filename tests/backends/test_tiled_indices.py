"""Kernels that read several arrays over and over: indices that are the low bits of counters."""

from __future__ import annotations

import ctypes
import itertools
from math import prod

import numpy as np
import pytest

import heron
from heron import targets
from heron.codegen.llvm.hidden_masks import hide_masks
from heron.codegen.llvm.jit import Jit
from heron.compiling import compile
from heron.evaluator import evaluate

RNG = np.random.default_rng(4)


def tiled(name: str, size: int, shape: tuple[int, ...], along: tuple[int, ...]) -> str:
    """An array of that size over and over, along these dimensions of a shape."""
    total = prod(shape[d] for d in along)
    copies = -(-total // size)
    part, whole = (",".join(map(str, dims)) for dims in ([shape[d] for d in along], shape))
    return f"""  {name}b = f32[{copies},{size}] broadcast({name}), dimensions={{1}}
  {name}r = f32[{copies * size}] reshape({name}b)
  {name}s = f32[{total}] slice({name}r), slice={{[0:{total}]}}
  {name}p = f32[{part}] reshape({name}s)
  {name}t = f32[{whole}] broadcast({name}p), dimensions={{{",".join(map(str, along))}}}
"""


def program(shape: tuple[int, int], sizes: tuple[int, int], along: tuple[int, ...], reduced: int | None) -> str:
    of = ",".join(map(str, shape))
    end = f"  ROOT r = f32[{of}] negate(v)"
    if reduced is not None:
        left = shape[1 - reduced]
        end = f"  z = f32[] constant(0)\n  ROOT r = f32[{left}] reduce(v, z), dimensions={{{reduced}}}, to_apply=add"
    return f"""HloModule m
add {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }}
ENTRY e {{
  x = f32[{sizes[0]}] parameter(0)
  y = f32[{sizes[1]}] parameter(1)
  w = f32[{of}] parameter(2)
{tiled("x", sizes[0], shape, (0, 1))}{tiled("y", sizes[1], shape, along)}  u = f32[{of}] multiply(xt, yt)
  v = f32[{of}] multiply(u, w)
{end}
}}"""


@pytest.mark.parametrize("reduced", [None, 0, 1])
@pytest.mark.parametrize("along", [(0, 1), (1,)])
@pytest.mark.parametrize("shape", [(17, 17), (5, 33), (9, 100), (40, 24)])
def test_two_tiled_arrays(shape: tuple[int, int], along: tuple[int, ...], reduced: int | None) -> None:
    """LLVM took the check that one index does not wrap for that of the other, and read past the end of the array."""
    for sizes in itertools.product((4, 8, 32, 128), (4, 8, 32, 128)):
        text = program(shape, sizes, along, reduced)
        dims = [(n,) for n in sizes]
        arrays = [RNG.integers(-4, 5, d).astype(np.float32) for d in (*dims, shape)]
        found = compile(heron.parse(text), targets.get("cpu")).run(arrays)[0]
        np.testing.assert_array_equal(found, evaluate(heron.parse(text), *arrays)[0], err_msg=str(sizes))


def test_one_width_stays() -> None:
    """The vectors of a kernel with one tiled array read neighbours; of two, one that LLVM knows no counter of."""
    one, two = (program((9, 100), sizes, (0, 1), 1) for sizes in ((32, 32), (32, 8)))
    assert "asm" not in compile(heron.parse(one), "cpu").stage("llvm")
    assert compile(heron.parse(two), "cpu").stage("llvm").count(' asm "", "=r,0"') == 2


SIGNED = """define i32 @f(ptr %a, i32 %x, i32 %y) nounwind {
entry:
  %p = srem i32 %x, 8
  %q = and i32 %y, 63
  %d = and i32 %y, 15
  %r = add i32 %p, %q
  %s = getelementptr i8, ptr %a, i32 %r
  ret i32 %r
}"""


def test_remainders_of_negative_numbers_and_masks_of_data() -> None:
    out = list[str](SIGNED.splitlines())
    hide_masks(out)
    text = "\n".join(out)
    assert "srem" not in text and "%q = and i32 %y, %mask.32.63" in text and "%d = and i32 %y, 15" in text
    code = Jit(level=3).add(text, "masks")
    call = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32)(code.addresses["f"])
    for x in (-(2**31), -9, -8, -1, 0, 7, 8, 2**31 - 1):
        assert call(None, x, 200) == int(np.fmod(x, 8)) + 200 % 64
