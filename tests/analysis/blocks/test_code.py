"""Tiles of block kernels know how much machine code they become: all elements of a thread are written out."""

from __future__ import annotations

import dataclasses

import pytest

import heron
from heron import targets
from heron.analysis.blocks.cost import Freedom, Plan, plans
from heron.analysis.blocks.tiling import Refusal, Tiling
from heron.codegen.llvm.assemble import knows
from heron.codegen.llvm.cubin import code_sizes
from heron.hlo.text import parse
from heron.options import Options
from heron.targets import Target
from heron.targets.triton import missing

#: a matrix is rounded to bytes on the way into the product, by quotients that take some 500 bytes each
QUANTISED = """
HloModule m
ENTRY e {
  x = f32[2048,1024] parameter(0)
  s = f32[2048] parameter(1)
  w = s8[1024,2048] parameter(2)
  sb = f32[2048,1024] broadcast(s), dimensions={0}
  q = f32[2048,1024] divide(x, sb)
  r = f32[2048,1024] round-nearest-even(q)
  c = s8[2048,1024] convert(r)
  ROOT d = s32[2048,2048] dot(c, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""
#: a softmax between two products of f32, which are written out, in as many loops as need them
ATTENTION = """
HloModule m

larger {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT m = f32[] maximum(a, b)
}

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

ENTRY e {
  q = f32[8,512,64] parameter(0)
  k = f32[8,512,64] parameter(1)
  v = f32[8,512,64] parameter(2)
  s = f32[8,512,512] dot(q, k), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={2}
  low = f32[] constant(-inf)
  m = f32[8,512] reduce(s, low), dimensions={2}, to_apply=larger
  mb = f32[8,512,512] broadcast(m), dimensions={0,1}
  d = f32[8,512,512] subtract(s, mb)
  e = f32[8,512,512] exponential(d)
  zero = f32[] constant(0)
  t = f32[8,512] reduce(e, zero), dimensions={2}, to_apply=sum
  tb = f32[8,512,512] broadcast(t), dimensions={0,1}
  p = f32[8,512,512] divide(e, tb)
  ROOT o = f32[8,512,64] dot(p, v), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}
}
"""


def found(text: str, target: Target, free: Freedom | None = None) -> list[Plan]:
    """All plans of a program as one kernel; none where it is refused."""
    entry = parse(text).entry
    plans_ = plans(Tiling(entry.root, frozenset(entry.instructions)), target, free)
    return [] if isinstance(plans_, Refusal) else plans_


def most(found_: list[Plan]) -> int:
    """Elements of the largest tile."""
    return max(p.config.tiles[-1] * p.config.tiles[-2] for p in found_)


def test_warps_that_read_registers_compute_the_same_operands() -> None:
    ada, hopper = ({p.config.tiles for p in found(QUANTISED, targets.get(sm))} for sm in ("sm_89", "sm_90"))
    unlimited = {
        p.config.tiles for p in found(QUANTISED, dataclasses.replace(targets.get("sm_89"), code_bytes=1 << 30))
    }
    assert ada < unlimited and (64, 256) in (unlimited & hopper) - ada


#: what follows a product is written out for each element of a thread
FOLLOWED = """
HloModule m

ENTRY e {
  x = bf16[2048,1024] parameter(0)
  w = bf16[1024,2048] parameter(1)
  d = f32[2048,2048] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  a = f32[2048,2048] tanh(d)
  b = f32[2048,2048] log-plus-one(a)
  ROOT c = f32[2048,2048] cosine(b)
}
"""


def _fits_alone(sm: str, tall: tuple[int, int], flat: tuple[int, int]) -> bool:
    """Whether some bound of code admits tall tiles and refuses flat ones of as many elements."""
    for kib in range(8, 512, 4):
        tiles = {p.config.tiles for p in found(FOLLOWED, dataclasses.replace(targets.get(sm), code_bytes=kib << 10))}
        if tall in tiles:
            return flat not in tiles
    return False


def test_lanes_of_tensor_memory_without_a_row_repeat_another_lanes() -> None:
    assert _fits_alone("sm_100", (128, 64), (64, 128))
    assert not _fits_alone("sm_90", (128, 64), (64, 128))


def test_products_without_matrix_units_have_no_lanes() -> None:
    """f32 is multiplied by plain units, on every machine: as many plans fit the same code."""
    tiles = [
        {p.config.tiles for p in found(ATTENTION, targets.get(sm), Freedom(steps=True))} for sm in ("sm_90", "sm_100")
    ]
    assert tiles[0] == tiles[1] != set()


def test_code_of_each_loop_counts() -> None:
    """Three loops read the first product unless one pass does: so much more is written out."""
    target, steps, online = targets.get("sm_90"), Freedom(steps=True), Freedom(steps=True, online=True)
    assert most(found(ATTENTION, target, steps)) < most(found(ATTENTION, target, online))


@pytest.mark.skipif(bool(missing()), reason=f"block kernels need Triton: {missing()}")
@pytest.mark.skipif(not knows("sm_89"), reason="no assembler for sm_89 is here (pip install '.[ptx]')")
@pytest.mark.parametrize("text", [QUANTISED, ATTENTION], ids=["quantised", "attention"])
def test_machine_code_of_block_kernels_stays_within_bounds(text: str) -> None:
    target = targets.get("sm_89")
    made = heron.compile(parse(text), target, Options(triton="on"))
    sizes = [n for image in made.program.images for n in code_sizes(image.code).values()]  # type: ignore[attr-defined]
    assert 0 < max(sizes) <= target.code_bytes
