"""A dot without a library as a reduction, the form in which a CPU kernel of it vectorises.

    dot(a[m,k], b[k,n])
    ->
    reduce(multiply(broadcast(a), broadcast(b)) over [m,k,n], dimensions={1}, add)

Where the right operand lies with its summed dimension innermost, that dimension comes last in the product as well.
`heron.hlo.product_types` has the type that is summed in.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from heron.analysis.fusion.fusion import Fusion, fusion_of
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.literal import Literal
from heron.hlo.ir.shape import Shape, array, scalar
from heron.hlo.ir.types import F32, F64
from heron.hlo.product_types import sum_type_of

#: a shorter sum is written as a loop for each element
MIN_SUMMED = 64
#: the same where columns lie side by side: LLVM would take vectors along the sum, which gather one of the operands
MIN_SUMMED_ACROSS = 17
#: elements of a matrix that caches do not hold
_LARGE = 1 << 20


def reads_large_matrix_once(i: Instruction) -> bool:
    """Whether a dot is a product of a vector and a matrix of f32 or f64 that caches do not hold.

    Memory bounds its time. A kernel walks over the rows as they lie; BLAS copies parts of them first.
    """
    if len(i.operands) != 2 or any(o.shape.element_type is not i.shape.element_type for o in i.operands):
        return False
    sizes = sorted(o.shape.num_elements for o in i.operands)
    count = prod(i.operands[0].shape.dims[d] for d in i.lhs_contracting_dims or ())
    is_vector = sizes[0] == count and MIN_SUMMED <= count and not i.lhs_batch_dims
    return is_vector and i.shape.element_type in (F32, F64) and sizes[1] >= _LARGE


def as_reduction(fusion: Fusion) -> Fusion:
    """The fusion of a lone dot with a long sum as a fusion with a reduce; any other as it is."""
    dot = fusion.computation.root
    if dot.opcode != "dot" or len(dot.operands) != 2 or any(o.opcode != "parameter" for o in dot.operands):
        return fusion
    lhs, rhs = (o.shape.dims for o in dot.operands)
    summed = tuple(dot.lhs_contracting_dims or ()), tuple(dot.rhs_contracting_dims or ())
    batch = tuple(dot.lhs_batch_dims or ()), tuple(dot.rhs_batch_dims or ())
    count = prod(lhs[d] for d in summed[0])
    last = bool(rhs) and len(rhs) - 1 in summed[1]
    if count < (MIN_SUMMED if last else MIN_SUMMED_ACROSS) or not dot.shape.num_elements:
        return fusion
    free = [
        [d for d in range(len(dims)) if d not in summed[n] and d not in batch[n]] for n, dims in enumerate((lhs, rhs))
    ]
    places, sums = _places(batch, summed, free, last)
    sizes = [0] * (len(batch[0]) + len(free[0]) + len(free[1]) + len(sums))
    for dims, at in zip((lhs, rhs), places, strict=True):
        for d, place in at.items():
            sizes[place] = dims[d]
    return fusion_of(_computation(dot, places, tuple(sizes), tuple(sums)))


def _places(
    batch: Sequence[Sequence[int]], summed: Sequence[Sequence[int]], free: Sequence[Sequence[int]], last: bool
) -> tuple[tuple[dict[int, int], dict[int, int]], range]:
    """The dimensions of the product that those of each operand become, and which of them are summed over.

    ``batch``, ``summed``, ``free``: dimensions of both operands; ``last``: the summed ones come last.
    """
    rows, columns, sums, batches = len(free[0]), len(free[1]), len(summed[0]), len(batch[0])
    first_sum = batches + rows + (columns if last else 0)
    first_column = batches + rows + (0 if last else sums)
    places = ({}, {})
    for n, starts in enumerate((batches, first_column)):
        places[n].update(zip(batch[n], range(batches), strict=True))
        places[n].update(zip(summed[n], range(first_sum, first_sum + sums), strict=True))
        places[n].update(zip(free[n], range(starts, starts + len(free[n])), strict=True))
    return places, range(first_sum, first_sum + sums)


def _computation(
    dot: Instruction, places: tuple[dict[int, int], dict[int, int]], sizes: tuple[int, ...], summed: tuple[int, ...]
) -> Computation:
    wide = sum_type_of(dot)
    result = dot.shape.with_type(wide)
    computation = Computation(dot.name)
    parameters = sorted({o.number: o for o in dot.operands}.values(), key=lambda p: p.number)
    known = {p: computation.add_parameter(p.number, p.shape) for p in parameters}
    factors: list[Instruction] = []
    for operand, place in zip(dot.operands, places, strict=True):
        value = known[operand]
        if operand.shape.element_type is not wide:
            value = computation.add("convert", [value], operand.shape.with_type(wide))
        dimensions = tuple(place[d] for d in range(operand.shape.rank))
        factors.append(computation.add("broadcast", [value], array(wide, sizes), dimensions=dimensions))
    product = computation.add("multiply", factors, array(wide, sizes))
    zero = computation.add("constant", [], scalar(wide), literal=Literal(scalar(wide), np.zeros((), wide.dtype)))
    total = computation.add("reduce", [product, zero], result, dimensions=summed, to_apply=_sum(scalar(wide)))
    if dot.shape.element_type is not wide:
        total = computation.add("convert", [total], dot.shape)
    computation.root = total
    return computation


def _sum(shape: Shape) -> Computation:
    computation = Computation("sum")
    a, b = (computation.add_parameter(n, shape) for n in range(2))
    computation.root = computation.add("add", [a, b], shape)
    return computation
