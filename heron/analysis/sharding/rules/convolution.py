"""Convolutions: batch and output features pass through, input features are summed, windows reach into neighbours."""

from __future__ import annotations

from heron.analysis.sharding.rule import FactorKind, OpRule
from heron.analysis.sharding.rules.builder import RuleBuilder
from heron.analysis.sharding.rules.registry import rule
from heron.hlo.ir.instruction import Instruction


@rule("convolution")
def convolution(i: Instruction) -> OpRule:
    """Groups are the major factor of the dimensions that have them."""
    dims = i.dim_labels
    b = RuleBuilder.of(i)
    (_, k), (y,) = b.operands, b.results
    batch_groups, groups = i.batch_group_count, i.feature_group_count
    if batch_groups > 1:
        b.add(batch_groups, (dims.input_batch, dims.kernel_output), dims.output_feature)
    b.add(y[dims.output_batch], (dims.input_batch, None), dims.output_batch)
    for n in range(len(dims.input_spatial)):
        _spatial(i, b, n)
    if groups > 1:
        b.add(groups, (dims.input_feature, dims.kernel_output), dims.output_feature)
    b.add(k[dims.kernel_input], (dims.input_feature, dims.kernel_input), None, FactorKind.REDUCTION, reducer="add")
    features = y[dims.output_feature] // (batch_groups * groups)
    if features > 1:
        b.add(features, (None, dims.kernel_output), dims.output_feature)
    return b.build()


def _spatial(i: Instruction, b: RuleBuilder, n: int) -> None:
    """Factors of spatial dimension `n`: the places of windows, and the elements of a window, the more of them major."""
    x, k, y = i.dim_labels.input_spatial[n], i.dim_labels.kernel_spatial[n], i.dim_labels.output_spatial[n]
    left = b.operands[0][x]
    places, reach = b.results[0][y], b.operands[1][k]
    for is_window in (False, True) if places >= reach else (True, False):
        size = min(left, reach if is_window else places)
        if size < 2:
            continue
        left //= size
        if is_window:
            b.add(size, (x, k), None, FactorKind.REDUCTION, reducer="add", is_positional=True)
        else:
            b.add(size, (x, None), y, FactorKind.PERMUTATION)
