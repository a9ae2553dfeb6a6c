"""Batch normalisation over all dimensions but the feature one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from heron.hlo.ir.op import Attr, AttrKind, Op, op, reject
from heron.hlo.ir.shape import Shape, tuple_
from heron.hlo.meaning.numeric import precise
from heron.hlo.ops.rules import array, attr, default, need_arrays, need_dim, need_kind, need_same_type
from heron.hlo.ops.unary import FLOAT

if TYPE_CHECKING:
    from heron.hlo.ir.evaluation import Evaluation
    from heron.hlo.ir.instruction import Instruction

ATTRIBUTES = {"epsilon": Attr(AttrKind.FLOAT, required=True), "feature_index": Attr(AttrKind.INT, required=True)}


def need_features(i: Instruction, x: Shape, *vectors: Shape) -> Shape:
    """Checks the operand and its vectors of one value a feature; gives such a vector's shape."""
    need_arrays(i, x, *vectors)
    need_kind(i, x, FLOAT)
    attr(i, "epsilon")
    need_dim(i, "feature_index", attr(i, "feature_index"), x.rank)
    features = x.dims[i.feature_index]
    for n, v in enumerate(vectors, 1):
        need_same_type(i, x, v)
        if v.dims != (features,):
            reject(i, f"operand {n} must have one value for each of {features} features", f"it is {v}")
    return array(x.element_type, (features,))


def _spread(i: Instruction, x: np.ndarray, *vectors: np.ndarray) -> tuple[tuple[int, ...], list[np.ndarray]]:
    """The dimensions averaged over, and operand and vectors in f64, ready to be combined."""
    f = i.feature_index
    dims = [-1 if d == f else 1 for d in range(x.ndim)]
    over = tuple(d for d in range(x.ndim) if d != f)
    return over, [precise(x), *(precise(v).reshape(dims) for v in vectors)]


BATCH_NORMS = frozenset({"batch-norm-training", "batch-norm-inference", "batch-norm-grad"})


@op("batch-norm-training")
class BatchNormTraining(Op):
    """(normalised, mean, variance), by the batch's own mean and (biased) variance.

    Shape: a tuple: the operand's, and twice one dimension of features.
    """

    operands = ("operand", "scale", "offset")
    attributes = ATTRIBUTES

    def shape(self, i: Instruction, x: Shape, scale: Shape, offset: Shape) -> Shape:
        vector = need_features(i, x, scale, offset)
        return tuple_((default(x), vector, vector))

    def evaluate(
        self, ev: Evaluation, i: Instruction, x: np.ndarray, scale: np.ndarray, offset: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        over, (value, by, plus) = _spread(i, x, scale, offset)
        mean, variance = value.mean(over, keepdims=True), value.var(over, keepdims=True)
        result = (value - mean) / np.sqrt(variance + i.epsilon) * by + plus
        return tuple(a.astype(x.dtype) for a in (result, mean.reshape(-1), variance.reshape(-1)))


@op("batch-norm-inference")
class BatchNormInference(Op):
    """Normalised by the mean and variance given.

    Shape: the operand's.
    """

    operands = ("operand", "scale", "offset", "mean", "variance")
    attributes = ATTRIBUTES

    def shape(self, i: Instruction, x: Shape, *vectors: Shape) -> Shape:
        need_features(i, x, *vectors)
        return default(x)

    def evaluate(self, ev: Evaluation, i: Instruction, x: np.ndarray, *vectors: np.ndarray) -> np.ndarray:
        _, (value, scale, offset, mean, variance) = _spread(i, x, *vectors)
        return ((value - mean) / np.sqrt(variance + i.epsilon) * scale + offset).astype(x.dtype)


@op("batch-norm-grad")
class BatchNormGrad(Op):
    """Gradients of batch-norm-training: (operand's, scale's, offset's).

    Shape: a tuple: the operand's, and twice one dimension of features.
    """

    operands = ("operand", "scale", "mean", "variance", "grad_output")
    attributes = ATTRIBUTES

    def shape(self, i: Instruction, x: Shape, scale: Shape, mean: Shape, variance: Shape, gradient: Shape) -> Shape:
        vector = need_features(i, x, scale, mean, variance)
        if gradient.bare is not x.bare:
            reject(i, "operand 4 must have operand 0's type and dimensions", f"{gradient} and {x}")
        return tuple_((default(x), vector, vector))

    def evaluate(
        self,
        ev: Evaluation,
        i: Instruction,
        x: np.ndarray,
        scale: np.ndarray,
        mean: np.ndarray,
        variance: np.ndarray,
        gradient: np.ndarray,
    ) -> tuple[np.ndarray, ...]:
        over, (value, by, centre, spread) = _spread(i, x, scale, mean, variance)
        g = precise(gradient)
        root = np.sqrt(spread + i.epsilon)
        normal = (value - centre) / root
        for_offset = g.sum(over, keepdims=True)
        for_scale = (g * normal).sum(over, keepdims=True)
        count = x.size // max(1, x.shape[i.feature_index])
        for_operand = by / root * (g - (for_offset + normal * for_scale) / count)
        return tuple(a.astype(x.dtype) for a in (for_operand, for_scale.reshape(-1), for_offset.reshape(-1)))
