"""Control words: memory by which the blocks of a launch, and the kernels of one instruction, speak to each other."""

from __future__ import annotations

from xdsl.ir import SSAValue

from heron.analysis.fusion.fusion import Fusion, Output
from heron.analysis.fusion.partition import partition
from heron.analysis.indexing.hlo_maps import Index
from heron.codegen.elemental import FunctionEmitter
from heron.codegen.emitters.base import Frame
from heron.codegen.emitters.loops import gpu_loops, plan_gpu
from heron.codegen.ir.dialects.xla_gpu import FetchAddOp
from heron.codegen.ir.types import I32
from heron.codegen.kernel import Kernel
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.shape import Shape, array
from heron.hlo.ir.types import U32
from heron.targets import Target


def control_shape(words: int) -> Shape:
    """So many words of 32 bits."""
    return array(U32, (words,)).with_default_layout()


def add(e: FunctionEmitter, value: SSAValue, tensor: SSAValue, at: Index) -> tuple[SSAValue, SSAValue]:
    """Adds to a word, which other threads do too: what was there, and the tensor."""
    old, new = e.b.add(FetchAddOp(value, tensor, e.index_values(e.simplify(at)))).results
    return old, new


def emit_clear(words: int, emitter: str, name: str, target: Target) -> Kernel:
    """The kernel that makes `words` control words 0. ``emitter``: of the kernels it is for."""
    c = Computation(name)
    c.root = c.add_parameter(0, control_shape(words))
    fusion = Fusion(c, (), (Output(c.root, None, c.root.shape),))
    frame = Frame.of(fusion, partition([]), name, target)
    plan, zero = plan_gpu(words, 32, target), frame.e.b.integer(0, I32)
    frame.outputs[:] = gpu_loops(
        frame, [words], plan, frame.outputs, lambda index, t: [frame.e.insert(zero, t[0], index)]
    )
    return frame.finish(plan.launch, emitter, {"form": "clears control words"})
