"""convolution and select-and-scatter: products by BLAS where that is faster, else kernels of our own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron.backends.library.strided_products import cost, strided_products
from heron.hlo.instruction import Instruction
from heron.runtime.cpu import blas
from heron.runtime.thunks import ConvolutionThunk, Thunk
from heron.trace import Decision

if TYPE_CHECKING:
    from heron.backends.lower import Lowering


def convolution(lowering: Lowering, i: Instruction) -> list[Thunk]:
    """On the CPU matrix products in place, if they are estimated faster than a kernel that sums window by window."""
    if lowering.target.kind != "cpu":
        return lowering.alone(i)
    lhs, rhs = i.operands
    t = i.shape.element_type
    if t not in blas.PREFIX or any(o.shape.element_type is not t for o in i.operands):
        lowering.trace.decide(Decision(False, f"BLAS has no {t}", "convolution", i.name, "blas"))
        return lowering.alone(i)
    products, before = strided_products(i)
    if products is None:
        reason = "no two dimensions of an operand make a matrix"
        lowering.trace.decide(Decision(False, reason, "convolution", i.name, "blas"))
        return lowering.alone(i)
    after = cost(products)
    size = f"{products.longest(products.m)}x{products.n}x{products.longest(products.k)}"
    reason = f"{products.products} products of {size}"
    if not lowering.trace.decide(Decision(after < before, reason, "convolution", i.name, "blas", before, after)):
        return lowering.alone(i)
    out = lowering.slice(i)
    return [ConvolutionThunk(lowering.slice(lhs), lowering.slice(rhs), out, products, t, i.name)]


def select_and_scatter(lowering: Lowering, i: Instruction) -> list[Thunk]:
    """One kernel: each operand element sums the sources of the windows that select it."""
    return lowering.alone(i)
