"""Custom calls of convolutions: cuDNN on a GPU, NumPy elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron.backends.calls.host import call, library_call, need_orders
from heron.hlo.calls import convolution
from heron.hlo.ir.instruction import Instruction
from heron.runtime.cuda.libraries.cudnn import Convolution as Descriptor
from heron.runtime.host.convolution import Convolution
from heron.runtime.thunks import Thunk

if TYPE_CHECKING:
    from heron.backends.lower import Lowering

_KINDS = {
    convolution.FORWARD: "forward",
    convolution.FUSED: "fused",
    convolution.BACKWARD_INPUT: "backward input",
    convolution.BACKWARD_FILTER: "backward filter",
}


def lower(lowering: Lowering, i: Instruction) -> list[Thunk]:
    """A convolution and its epilogue. Raises GEN013 for arrays in none of the layouts that cuDNN takes."""
    config, result = convolution.read(i), (i.shape.tuple_shapes or (i.shape,))[0]
    target, operands = i.custom_call_target, len(i.operands)
    routine = Convolution(target, config, i.window, i.dim_labels, i.feature_group_count, operands, result)
    if not lowering.target.is_gpu:
        return call(lowering, i, routine, "numpy")
    need_orders(i, convolution.CALL)
    window = i.window
    facts = (
        _KINDS[target],
        tuple((d.pad_low, d.pad_high) for d in window),
        tuple(d.stride for d in window),
        tuple(d.window_dilation for d in window),
    )

    def describe(arrays: tuple) -> Descriptor:
        given = config.activation, config.scale, config.side_scale, config.leak, max(config.algorithm, -1)
        wide = convolution.in_groups(i)
        side_by_side, is_outside = arrays[0].dims[-1] if wide else 1, not wide and convolution.has_features_outside(i)
        return Descriptor(arrays, *facts, operands, i.feature_group_count, *given, side_by_side, is_outside)

    return library_call(lowering, i, describe, routine)
