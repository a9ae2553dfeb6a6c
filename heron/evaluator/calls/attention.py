"""The meaning of cuDNN's attention calls: computed in a wide type, rounded once.

Source: https://docs.nvidia.com/deeplearning/cudnn (scaled dot-product attention, forward and backward).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from heron.evaluator.calls.table import evaluates, with_scratch
from heron.hlo.calls import attention
from heron.hlo.calls.attention import AttentionConfig
from heron.hlo.meaning import products

if TYPE_CHECKING:
    from heron.hlo.ir.instruction import Instruction


@evaluates(attention.CALL)
def attend(i: Instruction, *operands: np.ndarray) -> Any:
    """The arrays; workspace is zero."""
    shapes = i.shape.tuple_shapes or (i.shape,)
    values = compute(attention.read(i), operands, [s.dims for s in shapes])
    found = [products.finish(v, s.element_type) for v, s in zip(values, shapes, strict=False)]
    return with_scratch(i, found)


def compute(given: AttentionConfig, operands: tuple[np.ndarray, ...], results: list[tuple[int, ...]]) -> list[Any]:
    """The results of a call, of these sizes, in f64; workspace left out."""
    q, k, v, *more = (o.astype(np.float64) for o in operands)
    q, k, v = (x if given.heads_first else x.swapaxes(1, 2) for x in (q, k, v))
    group = q.shape[1] // max(1, k.shape[1])
    k, v = (np.repeat(x, group, 1) for x in (k, v))
    bias = more[-1] if given.has_bias else None
    scores = given.scale * np.einsum("bntd,bnsd->bnts", q, k)
    scores = scores if bias is None else scores + bias
    if given.causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    if not given.backward:
        largest = scores.max(-1, keepdims=True)
        weights = np.exp(scores - largest)
        total = weights.sum(-1, keepdims=True)
        statistics = (largest + np.log(total))[..., 0]
        return [np.einsum("bnts,bnsd->bntd", weights / total, v), statistics][: max(1, len(results) - 1)]
    return _derivative(given, (q, k, v), scores, more, results, group, bias)


def _derivative(
    given: AttentionConfig,
    qkv: tuple[np.ndarray, ...],
    scores: np.ndarray,
    more: list[np.ndarray],
    results: list[tuple[int, ...]],
    group: int,
    bias: np.ndarray | None,
) -> list[Any]:
    q, k, v = qkv
    statistics, dy, y = more[0], *(x if given.heads_first else x.swapaxes(1, 2) for x in more[1:3])
    weights = np.exp(scores - statistics[..., None])
    dweights = np.einsum("bntd,bnsd->bnts", dy, v)
    dscores = weights * (dweights - (dy * y).sum(-1, keepdims=True))
    dq = given.scale * np.einsum("bnts,bnsd->bntd", dscores, k)
    dk = given.scale * np.einsum("bnts,bntd->bnsd", dscores, q)
    dv = np.einsum("bnts,bntd->bnsd", weights, dy)
    b, heads, length, size = dk.shape
    dk, dv = (x.reshape(b, heads // group, group, length, size).sum(2) for x in (dk, dv))
    found = [dq, dk, dv]
    if bias is not None and len(results) > 3 and len(results[3]) == 4:
        kept = tuple(d for d in range(4) if bias.shape[d] == 1 != dscores.shape[d])
        found.append(dscores.sum(kept, keepdims=True))
    return found
