"""cublas-pad-for-gemms: products in sizes that tensor cores take whole."""

from __future__ import annotations

from math import prod

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.types import BF16, F16, S8, ElementType
from heron.passes.calls.model.choice import CUBLASLT, absent
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array, is_static, scalar
from heron.passes.rewriting.expander import home
from heron.records import dataclass

#: what sizes must be multiples of; without, 16-bit floats are slow (by `_SLOWER`), and s8 is not done at all
_MULTIPLES: dict[ElementType, int] = {BF16: 8, F16: 8, S8: 4}
_SLOWER = 2.0


@register
@dataclass(frozen=True)
class CublasPadForGemms(Pass):
    """Pads matrices of products with zeros to sizes that are multiples of 4 (s8) or 8 (16-bit floats).

    s8 in other sizes is no product of cuBLASLt's. Floats are padded where a model says that the quicker product pays
    for moving them; products with a vector stay.

    ROOT r = s32[8,16] dot(s8[8,30] x, s8[30,16] y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ->
    zero = s8[] constant(0)
    xs = s8[8,32] pad(x, zero), padding=0_0x0_2
    zero.1 = s8[] constant(0)
    ys = s8[32,16] pad(y, zero.1), padding=0_2x0_0
    ROOT r = s32[8,16] dot(xs, ys), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    """

    name = "cublas-pad-for-gemms"
    constraints = (Constraint("cublas-pad-for-gemms", "gemm-rewriter", "it pads dots", all_runs=True),)

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.computations_to_rewrite():
            for i in [i for i in c.instructions if i.opcode == "dot" and is_static(i) and len(i.operands) == 2]:
                multiple = _MULTIPLES.get(i.operands[0].shape.element_type)
                if multiple is None or not _is_ragged(i, multiple) or not _is_worth_it(i, multiple, ctx):
                    continue
                c.replace(i, _padded(i, multiple))
                changed = True
        return changed


def _dims(i: Instruction) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Of both operands the dimensions that are padded: contracted ones, and free ones."""
    found = []
    for side, x in zip(("lhs", "rhs"), i.operands, strict=True):
        batch, contracted = i.attrs.get(f"{side}_batch_dims", ()), i.attrs[f"{side}_contracting_dims"]
        found.append((contracted, tuple(d for d in range(x.shape.rank) if d not in (*batch, *contracted))))
    return found


def _is_ragged(i: Instruction, multiple: int) -> bool:
    """Whether both sides are matrices and a size is no multiple."""
    sides = _dims(i)
    if any(len(contracted) != 1 or len(free) != 1 for contracted, free in sides):
        return False
    sizes = [x.shape.dims[d] for x, (k, f) in zip(i.operands, sides, strict=True) for d in (*k, *f)]
    return all(sizes) and any(n % multiple for n in sizes)


def _is_worth_it(i: Instruction, multiple: int, ctx: PassContext) -> bool:
    if missing := absent(CUBLASLT, ctx):
        return ctx.decide(False, missing, subject=i.name).ok
    x, y = i.operands
    if x.shape.element_type is S8:
        return ctx.decide(True, f"s8 is done in multiples of {multiple} only", subject=i.name).ok
    target = ctx.target
    if target is None:
        return False
    ((k,), _), _ = _dims(i)
    flops = 2.0 * i.shape.num_elements * x.shape.dims[k]
    moved = sum(2.0 * o.shape.byte_size for o in (x, y, i)) / target.memory_bandwidth + 3 * target.launch_seconds
    quick = flops / max(target.flops_of(x.shape.element_type.name), 1.0)
    before, after = _SLOWER * quick, quick + moved
    why = f"padding to multiples of {multiple} against a product in odd sizes"
    return ctx.decide(after < before, why, subject=i.name, cost_before=before * 1e6, cost_after=after * 1e6).ok


def _padded(i: Instruction, multiple: int) -> Instruction:
    c = home(i)
    operands = [_pad(x, (*k, *f), multiple) for x, (k, f) in zip(i.operands, _dims(i), strict=True)]
    batch = len(i.attrs.get("lhs_batch_dims", ()))
    dims = [*i.shape.dims[:batch], *(-(-n // multiple) * multiple for n in i.shape.dims[batch:])]
    made = c.add("dot", operands, array(i.shape.element_type, dims), like=i, **i.attrs)
    if prod(dims) == i.shape.num_elements:
        return made
    return c.add("slice", [made], i.shape, like=i, slice=tuple([(0, n, 1) for n in i.shape.dims]))


def _pad(x: Instruction, dims: tuple[int, ...], multiple: int) -> Instruction:
    """`x` with zeros behind these dimensions."""
    c, sizes = home(x), list(x.shape.dims)
    for d in dims:
        sizes[d] = -(-sizes[d] // multiple) * multiple
    if tuple(sizes) == x.shape.dims:
        return x
    padding = tuple([(0, new - old, 0) for new, old in zip(sizes, x.shape.dims, strict=True)])
    t = x.shape.element_type
    return c.add("pad", [x, scalar(c, t, 0)], array(t, sizes), like=x, padding=padding)
