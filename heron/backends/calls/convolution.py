"""Custom calls of convolutions: cuDNN on a GPU, NumPy elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron.backends.calls.host import call, library_call, memory_order
from heron.errors import HeronError
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


def convolution_call(lowering: Lowering, i: Instruction) -> list[Thunk]:
    """A convolution and its epilogue. Raises GEN013 for arrays that do not have features innermost."""
    config, result = convolution.read(i), (i.shape.tuple_shapes or (i.shape,))[0]
    target, operands = i.custom_call_target, len(i.operands)
    routine = Convolution(target, config, i.window, i.dim_labels, i.feature_group_count, operands, result)
    if lowering.target.kind == "cpu":
        return call(lowering, i, routine, "numpy")
    _need_order(i)
    window = i.window
    facts = (
        _KINDS[target],
        tuple((d.pad_low, d.pad_high) for d in window),
        tuple(d.stride for d in window),
        tuple(d.window_dilation for d in window),
    )

    def describe(arrays: tuple) -> Descriptor:
        given = config.activation, config.scale, config.side_scale, config.leak, max(config.algorithm, -1)
        side_by_side = arrays[0].dims[-1] if convolution.in_groups(i) else 1
        return Descriptor(arrays, *facts, operands, i.feature_group_count, *given, side_by_side)

    return library_call(lowering, i, describe, routine)


def _need_order(i: Instruction) -> None:
    """Raise GEN013 unless arrays lie as batch, space, features, and filters as output, space, input features; or with
    features in groups as batch, groups, space, features of a group."""
    d = i.dim_labels
    orders = {
        "input": (d.input_batch, *d.input_spatial, d.input_feature),
        "kernel": (d.kernel_output, *d.kernel_spatial, d.kernel_input),
        "output": (d.output_batch, *d.output_spatial, d.output_feature),
    }
    if convolution.in_groups(i):
        last = i.operands[0].shape.rank - 1
        orders = {
            "input": (d.input_batch, d.input_feature, *d.input_spatial, last),
            "kernel": (d.kernel_output, d.kernel_input, *d.kernel_spatial, last),
            "output": (d.output_batch, d.output_feature, *d.output_spatial, last),
        }
    result = (i.shape.tuple_shapes or (i.shape,))[0]
    x, w = (o.shape for o in i.operands[:2])
    found = {
        convolution.BACKWARD_INPUT: {"output": x, "kernel": w, "input": result},
        convolution.BACKWARD_FILTER: {"input": x, "output": w, "kernel": result},
    }.get(i.custom_call_target, {"input": x, "kernel": w, "output": result})
    for role, shape in found.items():
        if memory_order(shape) != orders[role]:
            raise HeronError(
                "GEN013", f"{role} of '{i.name}' is not laid out with features innermost", where=str(i),
                hint="conv-rewriter makes calls in this form",
            )  # fmt: skip
