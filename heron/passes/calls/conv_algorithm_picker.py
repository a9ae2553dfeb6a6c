"""conv-algorithm-picker: which of the library's algorithms a convolution is computed by."""

from __future__ import annotations

import dataclasses

from heron.hlo.calls import convolution
from heron.hlo.ir.module import Module
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.measured import CUDNN, algorithm
from heron.passes.framework.registry import register
from heron.records import dataclass

#: implicit products with indices computed ahead, and derivatives by such: they take every convolution, and give the
#: same bits each time
_EVERY = 1


@register
@dataclass(frozen=True)
class ConvAlgorithmPicker(Pass):
    """Notes on convolutions which of cuDNN's algorithms is taken: what the lock file has, else the one that takes all.

    `heron tune` asks cuDNN on the device which ones there are and measures those that give the same bits each time.

    c = (f32[8,26,26,16], u8[0]) custom-call(f32[8,28,28,4] x, f32[16,3,3,4] w), window={size=3x3},
      dim_labels=b01f_o01i->b01f, custom_call_target="__cudnn$convForward"
    ROOT r = f32[8,26,26,16] get-tuple-element(c), index=0
    ->
    ...
    c = (f32[8,26,26,16], u8[0]) custom-call(x, w), window={size=3x3}, dim_labels=b01f_o01i->b01f,
      custom_call_target="__cudnn$convForward"
    ROOT r = f32[8,26,26,16] get-tuple-element(c), index=0
    """

    name = "conv-algorithm-picker"
    constraints = (
        Constraint("conv-rewriter", "conv-algorithm-picker", "it goes on from the calls made there"),
        Constraint("cudnn-pad-for-convolutions", "conv-algorithm-picker", "sizes decide which is quickest"),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for i in [i for i in module.instructions() if i.opcode == "custom-call"]:
            if i.custom_call_target not in convolution.TARGETS:
                continue
            config = convolution.read(i)
            if config.algorithm >= 0:
                continue
            chosen = algorithm(i, CUDNN, _EVERY, ctx)
            i.extras["backend_config"] = str(dataclasses.replace(config, algorithm=chosen))
            i.mark_changed()
            changed = True
        return changed
