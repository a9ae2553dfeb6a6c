"""CHLO, the client dialect: a function that HLO has an op for becomes that op; the others are expanded."""

from __future__ import annotations

import math
from collections.abc import Callable

from heron.frontends.stablehlo.block import Block, Rule, rule
from heron.frontends.stablehlo.lower.elementwise import SAME_BINARY, compared, opcode
from heron.frontends.stablehlo.lower.movement import broadcast_in_dim
from heron.frontends.stablehlo.sizes import sized
from heron.frontends.stablehlo.special.bessel import bessel_i1e
from heron.frontends.stablehlo.special.error import erf_inv, erfc
from heron.frontends.stablehlo.special.expression import Expression
from heron.frontends.stablehlo.special.gamma import digamma, lgamma
from heron.frontends.stablehlo.special.next_after import next_after
from heron.frontends.stablehlo.special.zeta import polygamma, zeta
from heron.frontends.stablehlo.syntax import Operation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape

Function = Callable[..., Expression]


def _op(code: str) -> Rule:
    return lambda b, op, operands: b.add(code, operands)


for _name in ("acos", "acosh", "asin", "asinh", "atanh", "cosh", "erf", "mulhi", "sinh", "tan"):
    rule(f"chlo.{_name}")(_op(_name))


def _formula(function: Function) -> Rule:
    return lambda b, op, operands: function(*(Expression(b, x) for x in operands)).i


def _atan(x: Expression) -> Expression:
    return x.apply("atan2", 1.0)


def _is_pos_inf(x: Expression) -> Expression:
    return x.equals(math.inf)


def _is_neg_inf(x: Expression) -> Expression:
    return x.equals(-math.inf)


def _is_inf(x: Expression) -> Expression:
    return abs(x).equals(math.inf)


def _square(x: Expression) -> Expression:
    return x * x


def _conj(x: Expression) -> Expression:
    if not x.type.is_complex:
        return x
    return x.named("real").apply("complex", -x.named("imag"))


_FORMULAS: dict[str, Function] = {
    "atan": _atan,
    "bessel_i1e": bessel_i1e,
    "conj": _conj,
    "digamma": digamma,
    "erf_inv": erf_inv,
    "erfc": erfc,
    "is_inf": _is_inf,
    "is_neg_inf": _is_neg_inf,
    "is_pos_inf": _is_pos_inf,
    "lgamma": lgamma,
    "next_after": next_after,
    "polygamma": polygamma,
    "square": _square,
    "zeta": zeta,
}
for _name, _function in _FORMULAS.items():
    rule(f"chlo.{_name}")(_formula(_function))


@rule("chlo.top_k")
def _top_k(b: Block, op: Operation, operands: list[Instruction]) -> list[Instruction]:
    return b.parts(b.add("topk", operands, k=op.integer("k"), largest=True))


@rule("chlo.constant_like")
def _constant_like(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    value = op.find("value")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        op.wrong("value", "a number")
    return b.full(value, operands[0].shape.with_type(op.types[0].element_type))


# -- binary operations with NumPy's broadcasting ---------------------------------------------------------------------
def _broadcasting(code: str) -> Rule:
    def lower(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
        x, y = _stretched(b, op, operands)
        if code == "compare":
            return compared(b, op, x, y)
        return b.add(code, (x, y))

    return lower


def _broadcasting_formula(function: Function) -> Rule:
    def lower(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
        return function(*(Expression(b, x) for x in _stretched(b, op, operands))).i

    return lower


for _name in ("next_after", "polygamma", "zeta"):
    rule(f"chlo.broadcast_{_name}")(_broadcasting_formula(_FORMULAS[_name]))


@rule("chlo.broadcast_select")
def _broadcast_select(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    return b.add("select", _stretched(b, op, operands))


@rule("chlo._asin_acos_kernel")
def _asin_acos_kernel(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    op.fail("SHLO005", f"{op.name} is not supported", why="it is a step inside XLA's own expansion of asin and acos")


def _stretched(b: Block, op: Operation, operands: list[Instruction]) -> list[Instruction]:
    """Operands with the result's dimensions: trailing ones match, those of size 1 stretch."""
    places = [_places(op, x.shape) for x in operands]
    to = op.types[0]
    if to.is_unbounded:
        sizes = [1] * to.rank
        for x, dims in zip(operands, places, strict=True):
            for n, d in zip(x.shape.dims, dims, strict=True):
                sizes[d] = n if sizes[d] == 1 else sizes[d]
        to = sized(op, to, sizes)
    pairs = zip(operands, places, strict=True)
    return [broadcast_in_dim(b, op, x, to.with_type(x.shape.element_type), dims) for x, dims in pairs]


def _places(op: Operation, shape: Shape) -> tuple[int, ...]:
    """The dimension of the result for each dimension of an operand."""
    rank = op.types[0].rank
    if op.find("broadcast_dimensions") is not None and shape.rank < rank:
        return op.ints("broadcast_dimensions")
    return tuple(range(rank - shape.rank, rank))


for _name in (*SAME_BINARY, "compare"):
    rule(f"chlo.broadcast_{_name}")(_broadcasting(opcode(_name)))
