"""Batch normalisation."""

from __future__ import annotations

from heron.hlo.op import Attr, AttrKind, Op, op

ATTRIBUTES = {"epsilon": Attr(AttrKind.FLOAT, required=True), "feature_index": Attr(AttrKind.INT, required=True)}


@op("batch-norm-training")
class BatchNormTraining(Op):
    operands = ("operand", "scale", "offset")
    attributes = ATTRIBUTES


@op("batch-norm-inference")
class BatchNormInference(Op):
    operands = ("operand", "scale", "offset", "mean", "variance")
    attributes = ATTRIBUTES


@op("batch-norm-grad")
class BatchNormGrad(Op):
    operands = ("operand", "scale", "mean", "variance", "grad_output")
    attributes = ATTRIBUTES
