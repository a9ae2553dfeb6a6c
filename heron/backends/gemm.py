"""From an HLO dot to a matrix product of a library: which dimensions are batch, m, n and k, and who is transposed."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from heron.errors import HeronError
from heron.hlo.instruction import Instruction


@dataclass(frozen=True, slots=True)
class GemmShape:
    """A product over row-major batches; see `GemmThunk` for the meaning of the flags."""

    batch: int
    m: int
    n: int
    k: int
    lhs_transposed: bool
    rhs_transposed: bool


def _side(dims: tuple[int, ...], batch: tuple[int, ...], contracting: tuple[int, ...]) -> tuple[int, int, bool] | None:
    """Free size, contracted size, and whether the contracted dimensions come first; None if not one matrix a batch."""
    if batch != tuple(range(len(batch))):
        return None
    rest = range(len(batch), len(dims))
    free = [d for d in rest if d not in contracting]
    inner = list(contracting)
    if inner != sorted(inner):
        return None
    sizes = prod(dims[d] for d in free), prod(dims[d] for d in inner)
    if free + inner == list(rest):
        return *sizes, False
    if inner + free == list(rest):
        return *sizes, True
    return None


def gemm_shape(dot: Instruction) -> GemmShape:
    """The product a dot stands for. Raises GEN010 for a dot `dot-decomposer` would have changed."""
    lhs, rhs = (o.shape for o in dot.operands[:2])
    left = _side(lhs.dims, dot.lhs_batch_dims, dot.lhs_contracting_dims)
    right = _side(rhs.dims, dot.rhs_batch_dims, dot.rhs_contracting_dims)
    if left is None or right is None:
        raise HeronError(
            "GEN010", "this dot is not in the form a matrix library takes", where=str(dot), hint="run dot-decomposer"
        )
    batch = prod(lhs.dims[d] for d in dot.lhs_batch_dims)
    m, k, contracted_first = left
    n, _, rhs_contracted_first = right
    return GemmShape(batch, m, n, k, contracted_first, not rhs_contracted_first)
