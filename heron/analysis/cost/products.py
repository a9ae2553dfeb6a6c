"""Seconds of a product of matrices by a GPU's library: tiles of the result, a core for each, in waves.

A library has kernels for several sizes of tiles and may cut sums into parts, so that small results keep more cores
busy; the quickest way counts. The figures were fitted to published times of 375 products in bf16 on an sm_90
(docs/reference/published.md).
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from heron.hlo.calls import gemm
from heron.hlo.calls.declared import declaration
from heron.hlo.ir.instruction import Instruction
from heron.targets import Target

#: rows and columns of tiles, and the part of the matrix units' peak that a core with such a tile reaches
TILES = ((256, 128, 0.8), (128, 256, 0.8), (128, 128, 0.75), (128, 64, 0.55), (64, 128, 0.55), (64, 64, 0.35))
#: the same for arithmetic outside of matrix units, whatever the tile
PLAIN = 0.8
#: seconds until a product's first sums, and from its last sums to its end; seconds that each tile adds, until loads are
#: under way and for its results
START, TILE = 3e-6, 7e-7
#: numbers of parts that sums may be cut into
PARTS = (1, 2, 4, 8)
#: bytes of a partial sum, and how much faster than memory the cache is that holds them
_PARTIAL, _CACHE = 4, 2.5


class Product(NamedTuple):
    """``batch`` products of ``rows`` times ``k`` with ``k`` times ``columns``.

    ``type``: the one that elements are multiplied in.
    """

    batch: int
    rows: int
    columns: int
    k: float
    type: str

    @property
    def flops(self) -> float:
        return 2.0 * self.batch * self.rows * self.columns * self.k


def product_of(i: Instruction) -> Product | None:
    """The product that an instruction is; None for any other, and for a convolution outside of a library's call."""
    if i.opcode == "dot":
        lhs, rhs = i.operands[0].shape.dims, i.operands[1].shape.dims
        batch = prod(lhs[d] for d in i.attrs.get("lhs_batch_dims") or ())
        k = prod(lhs[d] for d in i.attrs.get("lhs_contracting_dims") or ())
        done = max(1, batch * k)
        return Product(batch, prod(lhs) // done, prod(rhs) // done, k, _type(i, i.attrs.get("algorithm") or ""))
    call = declaration(i.attrs["custom_call_target"]) if i.opcode == "custom-call" else None
    if call is None or call.flops is None:
        return None
    shape = i.shape.tuple_shapes[0] if i.shape.tuple_shapes else i.shape
    dims, is_gemm = (1, 1, *shape.dims), call is gemm.CALL
    batch = prod(dims[:-2]) if is_gemm else 1
    name = _type(i, gemm.read(i).algorithm.lower() if is_gemm else "")
    return Product(batch, shape.num_elements // max(1, batch * dims[-1]), dims[-1], call.flops(i) / 2.0, name)


def _type(i: Instruction, algorithm: str) -> str:
    """The type that elements are multiplied in: for f32 a narrower one where the program names it."""
    name = i.operands[0].shape.element_type.name
    narrow = next((t for t in ("tf32", "bf16") if f"dot_{t}_{t}" in algorithm), name)
    return narrow if name == "f32" else name


def product_seconds(p: Product, rate: float, has_units: bool, target: Target) -> float:
    """Seconds of its sums by all cores, by the quickest of the ways a library has; ``rate``: peak flops a second.

    Neither the start of the kernel nor memory is in it.
    """
    if not rate:
        return 0.0
    each, best = rate / target.cores, float("inf")
    for rows, columns, reached in TILES:
        programs = p.batch * -(-p.rows // rows) * -(-p.columns // columns)
        sums = 2.0 * rows * columns * p.k / (each * (reached if has_units else PLAIN))
        for parts in PARTS:
            seconds = -(-programs * parts // target.cores) * (sums / parts + TILE)
            if parts > 1:
                partial = 2.0 * _PARTIAL * parts * p.batch * p.rows * p.columns
                seconds += TILE + partial / (_CACHE * target.memory_bandwidth)
            best = min(best, seconds)
    return best
