"""cudnn-fused-mha-rewriter: attention becomes a call of cuDNN."""

from __future__ import annotations

from pathlib import PurePath

import ml_dtypes
import numpy as np

from heron.hlo.calls.attention import AttentionConfig
from heron.hlo.ir import shape as shapes
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.types import BF16, F16, U8, ElementType
from heron.passes.calls.model.attention import Attention, find_attention, spread_of
from heron.passes.calls.model.choice import absent
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array, convert, is_static, reshape, splat, transpose
from heron.passes.rewriting.expander import home
from heron.records import dataclass

#: cuDNN's heads: multiples of that, so many elements at most
_MULTIPLE, _MOST = 8, 256


@register
@dataclass(frozen=True)
class CudnnFusedMhaRewriter(Pass):
    """Rewrites attention, a softmax between two products of bf16 or f16, to the call of cuDNN that JAX makes.

    It takes in a scale, a bias, a causal mask, and any other mask, which goes as a bias that is very low where the mask
    is false. Attention with dropout stays, as the library draws numbers of its own, and one whose weights a derivative
    reads. No pipeline has it: it rounds where the program does not and the other way round, and `attention-fusion`
    makes kernels of heron's own of the same.

    add {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    largest {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] maximum(a, b)
    }

    s = f32[2,4,16,16] dot(bf16[2,4,16,8] q, bf16[2,4,16,8] k), lhs_batch_dims={0,1}, lhs_contracting_dims={3},
      rhs_batch_dims={0,1}, rhs_contracting_dims={3}
    low = f32[] constant(-inf)
    m = f32[2,4,16] reduce(s, low), dimensions={3}, to_apply=largest
    ms = f32[2,4,16,16] broadcast(m), dimensions={0,1,2}
    c = f32[2,4,16,16] subtract(s, ms)
    e = f32[2,4,16,16] exponential(c)
    zero = f32[] constant(0)
    t = f32[2,4,16] reduce(e, zero), dimensions={3}, to_apply=add
    ts = f32[2,4,16,16] broadcast(t), dimensions={0,1,2}
    p = f32[2,4,16,16] divide(e, ts)
    w = bf16[2,4,16,16] convert(p)
    ROOT y = bf16[2,4,16,8] dot(w, bf16[2,4,16,8] v), lhs_batch_dims={0,1}, lhs_contracting_dims={3},
      rhs_batch_dims={0,1}, rhs_contracting_dims={2}
    ->
    ...
    """

    name = "cudnn-fused-mha-rewriter"
    constraints = (
        Constraint("cudnn-fused-mha-rewriter", "attention-expander", "that would write its calls out again"),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        missing = absent("cudnn", ctx)
        changed = False
        for c in module.computations_to_rewrite():
            for i in [i for i in c.instructions if i.opcode == "dot" and len(i.operands) == 2]:
                found = find_attention(i) if i.parent is c else None
                if found is None:
                    continue
                if why := missing or _refusal(found):
                    ctx.decide(False, why, subject=i.name, object="cudnn")
                    continue
                if not ctx.may_fire("attention", _HERE, i):
                    return changed
                ctx.fired("attention", _HERE)
                words = (("bias", found.bias), ("a causal mask", found.causal), ("a mask", found.mask))
                with_ = [word for word, there in words if there]
                ctx.decide(True, "with " + " and ".join(with_) if with_ else "as it is", subject=i.name, object="cudnn")
                c.replace(i, _call(found))
                changed = True
        return changed


def _refusal(a: Attention) -> str:
    """Why the library does not compute it; empty when it does."""
    if a.between is not None:
        return f"'{a.between.name}' stands between weights and their product, as dropout does"
    if a.is_used_elsewhere:
        return "its scores or weights are read by others, as by a derivative"
    if not is_static(a.first) or not is_static(a.second):
        return "its sizes are known only when it runs"
    q, k, v = *a.first.operands, a.second.operands[1 - a.weights]
    if {o.shape.element_type for o in (q, k, v)} not in ({BF16}, {F16}):
        return "cuDNN's attention is one of bf16 or of f16"
    if a.second.shape.element_type is not q.shape.element_type:
        return f"its result is {a.second.shape.element_type}"
    if not 3 <= a.first.shape.rank <= 4 or any(_order(*side) is None for side in _sides(a)):
        return "its products are not one matrix a batch and head"
    if _is_turned(a):
        return "its weights are not rows for queries"
    if refused := _refused_head(a, q):
        return refused
    if any(x is not None and spread_of(x, a.first) is None for x in (a.bias, a.mask)):
        return "its bias or mask has its dimensions in another order than the scores"
    if a.mask is not None and np.isfinite(a.low) and q.shape.element_type is F16:
        return "f16 has no number as low as a masked score's"
    return ""


def _refused_head(a: Attention, q: Instruction) -> str:
    head = q.shape.dims[a.first.lhs_contracting_dims[0]]
    values = a.second.shape.dims[-1 - a.weights]
    if head == values and head % _MULTIPLE == 0 and head <= _MOST:
        return ""
    return f"heads of {head} and {values} elements: cuDNN has multiples of {_MULTIPLE} up to {_MOST}, all alike"


def _sides(a: Attention) -> list[tuple[Instruction, tuple[int, ...], tuple[int, ...]]]:
    """q, k and v with their batch dimensions and those that are summed."""
    first = a.first
    return [
        (first.operands[0], first.lhs_batch_dims, first.lhs_contracting_dims),
        (first.operands[1], first.rhs_batch_dims, first.rhs_contracting_dims),
        _side(a.second, 1 - a.weights),
    ]


def _side(dot: Instruction, n: int) -> tuple[Instruction, tuple[int, ...], tuple[int, ...]]:
    """An operand of a product with its batch dimensions and those that are summed."""
    left = (dot.lhs_batch_dims, dot.lhs_contracting_dims)
    return (dot.operands[n], *(left if n == 0 else (dot.rhs_batch_dims, dot.rhs_contracting_dims)))


def _order(x: Instruction, batch: tuple[int, ...], summed: tuple[int, ...]) -> list[int] | None:
    """Batch, what stays, what is summed; None where that is no matrix a batch."""
    free = [d for d in range(x.shape.rank) if d not in (*batch, *summed)]
    return [*batch, *free, *summed] if len(free) == len(summed) == 1 else None


def _is_turned(a: Attention) -> bool:
    """Whether the second product sums over anything but keys, or has batches in another order than the first."""
    rank = a.first.shape.rank
    _, batch, summed = _side(a.second, a.weights)
    return tuple(batch) != tuple(range(rank - 2)) or tuple(summed) != (rank - 1,)


def _call(a: Attention) -> Instruction:
    """The output of the call, in the shape of the second product."""
    c, second = home(a.second), a.second
    operands = []
    for n, (x, batch, summed) in enumerate(_sides(a)):
        order = _order(x, batch, summed)
        assert order is not None
        operands.append(_with_heads(transpose(x, order if n < 2 else [*order[:-2], order[-1], order[-2]])))
    t = second.shape.element_type
    if a.bias is not None or a.mask is not None:
        operands.append(_with_heads(_bias(a, t)))
    config = AttentionConfig(a.scale, a.causal, has_bias=len(operands) > 3)
    whole = array(t, (*operands[0].shape.dims[:3], operands[2].shape.dims[-1]))
    result = shapes.tuple_([whole, array(U8, (0,))])
    made = c.add("custom-call", operands, result, like=second, custom_call_target=config.target)
    made.extras["backend_config"] = str(config)
    rows = c.add("get-tuple-element", [made], whole, like=second, index=0)
    if a.weights == 0:
        return reshape(rows, second.shape.dims)
    *batch, width, queries = second.shape.dims
    turned = [*range(len(batch)), len(batch) + 1, len(batch)]
    return transpose(reshape(rows, (*batch, queries, width)), turned)


def _bias(a: Attention, t: ElementType) -> Instruction:
    """The array added to scores: the bias, and a very low value where the mask is false. Broadcast dimensions have size
    1."""
    c, sizes, rank = home(a.second), a.first.shape.dims, a.first.shape.rank
    found = [spread_of(x, a.first) for x in (a.bias, a.mask) if x is not None]
    dims = sorted({rank - 2, rank - 1, *(d for x in found if x is not None for d in x[1])})

    def wide(x: Instruction) -> Instruction:
        spread = spread_of(x, a.first)
        assert spread is not None
        source, along = spread
        shape = array(source.shape.element_type, [sizes[d] for d in dims])
        if tuple(along) == tuple(dims):
            return source
        return c.add("broadcast", [source], shape, like=x, dimensions=tuple(dims.index(d) for d in along))

    shape = array(t, [sizes[d] for d in dims])
    bias = splat(c, shape, 0) if a.bias is None else convert(wide(a.bias), t)
    if a.mask is not None:
        low = splat(c, shape, max(a.low, float(ml_dtypes.finfo(t.dtype).min)) if np.isfinite(a.low) else a.low)
        bias = c.add("select", [wide(a.mask), bias, low], shape, like=a.mask)
    return reshape(bias, [n if d in dims else 1 for d, n in enumerate(sizes)])


def _with_heads(x: Instruction) -> Instruction:
    """One head where there is none."""
    dims = x.shape.dims
    return x if len(dims) == 4 else reshape(x, (dims[0], 1, *dims[1:]))


_HERE = f"{PurePath(__file__).name}:{CudnnFusedMhaRewriter.run.__code__.co_firstlineno}"
