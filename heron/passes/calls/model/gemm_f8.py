"""Products of 8-bit floats: operands that are scaled and widened before a dot, and results that are narrowed after it.

cuBLASLt multiplies them as they are, scales the sum by one number an operand, and stores 8 bits again by one more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron.analysis.values.splat import is_splat, splat_value
from heron.hlo.calls.gemm import GemmConfig
from heron.hlo.facts import combiner, is_scaling, reindexes
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import scalar as scalar_shape
from heron.hlo.ir.types import BF16, F8E4M3FN, F8E5M2, F16, F32, ElementType
from heron.passes.calls.model.gemm import config_of
from heron.passes.rewriting.building import convert, scalar, transpose
from heron.passes.rewriting.expander import home
from heron.records import dataclass

if TYPE_CHECKING:
    from heron.passes.framework.context import PassContext

#: the 8-bit floats cuBLASLt has, with the largest number of each
LARGEST: dict[ElementType, float] = {F8E4M3FN: 448.0, F8E5M2: 57344.0}
#: types of the product
_RESULTS = frozenset({BF16, F16, F32})
#: what all sizes must be multiples of
_MULTIPLE = 16


@dataclass(frozen=True, slots=True)
class Scaled:
    """An 8-bit array, and the number it is multiplied or divided by once it is wide."""

    array: Instruction
    by: Instruction | None = None
    divides: bool = False


@dataclass(frozen=True, slots=True)
class Narrowed:
    """A result stored in 8 bits: the last op, the number it is scaled by before, and, if the program asks for it, its
    largest magnitude before that."""

    root: Instruction
    by: Instruction | None
    divides: bool
    largest: Instruction | None = None


def find_operands(dot: Instruction) -> tuple[Scaled, Scaled] | None:
    """The 8-bit arrays a dot multiplies; None where it multiplies others."""
    if len(dot.operands) != 2:
        return None
    a, b = (_scaled(o) for o in dot.operands)
    return (a, b) if a is not None and b is not None else None


def _scaled(x: Instruction) -> Scaled | None:
    if x.shape.element_type in LARGEST:
        return Scaled(x)
    if x.opcode == "convert" and x.operands[0].shape.element_type in LARGEST:
        return Scaled(x.operands[0])
    if not is_scaling(x):
        return None
    for n, o in enumerate(x.operands if x.opcode == "multiply" else x.operands[:1]):
        by = _number(x.operands[1 - n])
        if by is not None and o.opcode == "convert" and o.operands[0].shape.element_type in LARGEST:
            return Scaled(o.operands[0], by, x.opcode == "divide")
    return None


def _number(i: Instruction) -> Instruction | None:
    """The one number an array repeats."""
    while reindexes(i) and i.operands[0].shape.num_elements == 1:
        i = i.operands[0]
    return i if i.shape.rank == 0 else None


def refusal(dot: Instruction, found: tuple[Scaled, Scaled], ctx: PassContext) -> str:
    """Why cuBLASLt does not multiply these as they are; empty when it does."""
    types = [s.array.shape.element_type for s in found]
    if ctx.target is not None and not all(ctx.target.computes_in("dot", t.name) for t in types):
        return f"{ctx.target.name} has no matrix units for 8-bit floats"
    if types == [F8E5M2, F8E5M2]:
        return "no product of two f8e5m2"
    if dot.shape.element_type not in _RESULTS:
        return f"no product of 8-bit floats to {dot.shape.element_type}"
    sides = (dot.lhs_batch_dims, dot.lhs_contracting_dims), (dot.rhs_batch_dims, dot.rhs_contracting_dims)
    for s, (batch, contracted) in zip(found, sides, strict=True):
        dims = s.array.shape.dims
        free = [d for d in range(len(dims)) if d not in (*batch, *contracted)]
        if len(contracted) != 1 or len(free) != 1 or tuple(batch) != tuple(range(len(batch))):
            return "8-bit floats are multiplied as one matrix a batch"
        if any(dims[d] % _MULTIPLE for d in (*contracted, *free)):
            return f"sizes of 8-bit products are multiples of {_MULTIPLE}"
    if any(s.by is not None for s in found) and not ctx.options.allows("reassociating"):
        return "elements are scaled before they are multiplied, the library scales sums"
    return ""


def operands_of(dot: Instruction, found: tuple[Scaled, Scaled]) -> tuple[list[Instruction], GemmConfig]:
    """Operands and configuration of the call: matrices with what is summed innermost, as it must be, and scales."""
    batch = len(dot.lhs_batch_dims)
    arrays = []
    for s, contracted in zip(found, (dot.lhs_contracting_dims, dot.rhs_contracting_dims), strict=True):
        rank = s.array.shape.rank
        order = [*range(batch), *(d for d in range(batch, rank) if d not in contracted), *contracted]
        arrays.append(transpose(s.array, order))
    plain, last = config_of(dot), batch + 1
    config = GemmConfig(
        (last,), (last,), plain.lhs_batch, plain.rhs_batch, precision=plain.precision, algorithm=plain.algorithm,
        lhs_stride=plain.lhs_stride, rhs_stride=plain.rhs_stride,
    )  # fmt: skip
    return [*arrays, *(_factor(dot, s.by, s.divides) for s in found)], config


def _factor(like: Instruction, by: Instruction | None, divides: bool) -> Instruction:
    """The factor by which the call multiplies, in f32."""
    c = home(like)
    if by is None:
        return scalar(c, F32, 1)
    by = convert(by, F32)
    return c.add("divide", [scalar(c, F32, 1), by], scalar_shape(F32), like=like) if divides else by


def out_factor(like: Instruction, n: Narrowed) -> Instruction:
    """The factor by which the call multiplies its result before the result is stored, in f32."""
    return _factor(like, n.by, n.divides)


def find_narrowed(value: Instruction) -> Narrowed | None:
    """The conversion of `value` to 8 bits, if `value` has no other use than its largest magnitude."""
    if value.is_root:
        return None
    largest = next((m for u in value.users if u.opcode == "abs" and (m := _largest(u)) is not None), None)
    others = [u for u in value.users if largest is None or u is not largest.operands[0]]
    if len(others) != 1 or len(value.users) != 1 + (largest is not None):
        return None
    last, by, divides = others[0], None, False
    if is_scaling(last):
        n = list(last.operands).index(value)
        by, divides = _number(last.operands[1 - n]), last.opcode == "divide"
        if by is None or (divides and n):
            return None
        last = _only_user(last)
    if last is None or last.opcode != "clamp":
        return None
    root = _only_user(last)
    if root is None or root.opcode != "convert" or root.shape.element_type not in LARGEST:
        return None
    bound = LARGEST[root.shape.element_type]
    if not (is_splat(last.operands[0], -bound) and is_splat(last.operands[2], bound)):
        return None
    return Narrowed(root, by, divides, largest)


def _only_user(i: Instruction) -> Instruction | None:
    return next(iter(i.users)) if len(i.users) == 1 and not i.is_root else None


def _largest(magnitudes: Instruction) -> Instruction | None:
    """The greatest of all magnitudes, if nothing else is computed from them."""
    total = _only_user(magnitudes)
    if total is None or total.opcode != "reduce" or total.shape.rank or len(total.operands) != 2:
        return None
    start = splat_value(total.operands[1])
    is_least = start is not None and float(start) <= 0
    return total if is_least and combiner(total.attrs["to_apply"]) == "maximum" else None
