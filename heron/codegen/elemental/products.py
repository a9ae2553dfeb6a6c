"""dot and convolution as loops in one thread, for small ones inside fusions; large ones are library calls.

`heron.hlo.product_types` has the type that is summed in; the sum becomes the result's type once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from xdsl.ir import SSAValue

from heron.analysis.indexing.expr import Const
from heron.analysis.indexing.hlo_maps import Index, convolution_index, delinearize, dot_index
from heron.analysis.indexing.map import Constraint
from heron.codegen.elemental.arithmetic import binary
from heron.codegen.elemental.constants import scalar_constant
from heron.codegen.elemental.convert import convert
from heron.codegen.elemental.emitter import FunctionEmitter
from heron.codegen.elemental.reducer import contract
from heron.codegen.elemental.registry import rule
from heron.codegen.elemental.values import Value
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import scalar
from heron.hlo.product_types import sum_type_of

#: most products that a CPU kernel adds up without a loop
_STRAIGHT = 16


def _two_operands(i: Instruction) -> str | None:
    return None if len(i.operands) == 2 else "sparse"


@rule("dot", check=_two_operands)
def _dot(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    lhs = i.operands[0].shape.dims
    contracting: Sequence[int] = i.lhs_contracting_dims or ()
    sizes = [lhs[d] for d in contracting]

    def places(variables: Index) -> tuple[Index, Index]:
        return dot_index(i, 0, index, variables), dot_index(i, 1, index, variables)

    return _sum_of_products(e, i, sizes, places)


@rule("convolution")
def _convolution(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    d: int = i.dim_labels.kernel_input
    sizes = [i.operands[1].shape.dims[d], *(w.size for w in i.window)]

    def places(variables: Index) -> tuple[Index, Index]:
        lhs, rhs, _ = convolution_index(i, index, variables[1:], variables[0])
        return lhs, rhs

    def inside(variables: Index) -> Sequence[Constraint]:
        return convolution_index(i, index, variables[1:], variables[0])[2]

    return _sum_of_products(e, i, sizes, places, inside)


def _sum_of_products(
    e: FunctionEmitter,
    i: Instruction,
    sizes: Sequence[int],
    places: Callable[[Index], tuple[Index, Index]],
    inside: Callable[[Index], Sequence[Constraint]] | None = None,
) -> Value:
    t = i.shape.element_type
    wide = sum_type_of(i)
    shape = scalar(wide)
    zero = e.pack(scalar_constant(e, 0, wide), shape)

    def body(variables: Index, carried: Sequence[SSAValue]) -> list[SSAValue]:
        lhs, rhs = (
            convert(e, e.value(o, e.simplify(place)), o.shape.element_type, wide)
            for o, place in zip(i.operands, places(variables), strict=True)
        )
        product = binary(e, "multiply", lhs, rhs, wide)
        total = binary(e, "add", e.unpack(iter(carried), shape), product, wide)
        if e.kernel.straight:
            contract(product, total)
        return e.pack(total, shape)

    if e.kernel.straight and inside is None and prod(sizes) <= _STRAIGHT:
        total = zero  # no loop: the one around vectorises
        for number in range(prod(sizes)):
            total = body(delinearize(Const(number), sizes), total)
    else:
        total = zero if 0 in sizes else e.loop(sizes, zero, body, inside)
    value = e.unpack(iter(total), shape)
    return convert(e, value, wide, t)
