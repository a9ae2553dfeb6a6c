"""From a dot, or its custom call, to matrix products in memory: batch, m, n and k, and who is transposed."""

from __future__ import annotations

from math import prod

from heron.errors import HeronError
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape
from heron.records import dataclass

#: dimension numbers of a dot: lhs batch, lhs contracting, rhs batch, rhs contracting
Numbers = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class GemmShape:
    """``out[b] = op(lhs[b]) @ op(rhs[b])`` over batches of row-major matrices; see `GemmThunk` for the flags.

    ``out_transposed``: out is stored [batch, n, m].
    """

    batch: int
    m: int
    n: int
    k: int
    lhs_transposed: bool
    rhs_transposed: bool
    out_transposed: bool = False

    def __str__(self) -> str:
        """``2x[8,16]@[16,4]``, with ``^T`` where a matrix is stored transposed."""
        lhs, rhs, out = ("^T" * t for t in (self.lhs_transposed, self.rhs_transposed, self.out_transposed))
        batch = f"{self.batch}x" if self.batch > 1 else ""
        return f"{batch}[{self.m},{self.k}]{lhs}@[{self.k},{self.n}]{rhs}" + (f"->{out}" if out else "")


def gemm_shape(dot: Instruction) -> GemmShape:
    """The product a dot stands for. Raises GEN010 for a dot `dot-decomposer` would have changed."""
    numbers = dot.lhs_batch_dims, dot.lhs_contracting_dims, dot.rhs_batch_dims, dot.rhs_contracting_dims
    found = product_shape(dot.operands[0].shape, dot.operands[1].shape, dot.shape, numbers)
    if found is None or found.out_transposed:
        raise HeronError(
            "GEN010", "this dot is not in the form a matrix library takes", where=str(dot), hint="run dot-decomposer"
        )
    return found


def product_shape(lhs: Shape, rhs: Shape, out: Shape, numbers: Numbers) -> GemmShape | None:
    """The product in memory, for any layouts; None if an operand is not one matrix for each batch element."""
    left = _side(*_in_memory(lhs, numbers[0], numbers[1]))
    right = _side(*_in_memory(rhs, numbers[2], numbers[3]))
    if left is None or right is None:
        return None
    batch = prod(lhs.dims[d] for d in numbers[0])
    m, k, contracted_first = left
    n, _, rhs_contracted_first = right
    count, free = len(numbers[0]), len(lhs.dims) - len(numbers[0]) - len(numbers[1])
    rows = tuple(range(count, count + free))
    # of the result, rows are what is "free", columns what is "contracted"
    stored = _side(*_in_memory(out, tuple(range(count)), tuple(range(count + free, out.rank))))
    if stored is None and rows:
        return None
    return GemmShape(batch, m, n, k, contracted_first, not rhs_contracted_first, stored is not None and stored[2])


def _in_memory(
    shape: Shape, batch: tuple[int, ...], contracting: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Dimensions and dimension numbers in the order of memory, slowest first."""
    if shape.layout is None:
        return shape.dims, tuple(batch), tuple(contracting)
    order = shape.layout.minor_to_major[::-1]
    dims = tuple([shape.dims[d] for d in order])
    return dims, tuple([order.index(d) for d in batch]), tuple([order.index(d) for d in contracting])


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
