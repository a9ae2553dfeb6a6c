"""`emit_kernels`: an instruction of the optimised program becomes kernels."""

from __future__ import annotations

from heron.analysis.fusion.analysis import FusionAnalysis, analyse
from heron.codegen.emitters.table import EMITTERS
from heron.codegen.kernel import Kernel
from heron.errors import HeronError
from heron.hlo.ir.instruction import Instruction
from heron.targets import Target
from heron.trace import Decision


def emit_kernels(i: Instruction, name: str, target: Target) -> list[Kernel]:
    """The kernels that compute `i` one after another: several only for a sort on a GPU (see `emitters.sort`).

    Raises as `emit_fusion`.
    """
    return _emitted(i, analyse(i, target), name, target)


def emit_fusion(i: Instruction, name: str, target: Target, *, in_place: bool = True, parts: int = 0) -> Kernel:
    """The kernel of a fusion, or of any other instruction by itself.

    Args:
        i: a `fusion` (arguments: its operands, then its flat outputs), or a bare instruction (its distinct operands).
        name: of the entry function.
        target: the machine; its facts decide sizes.
        in_place: whether outputs may share buffers with inputs (`KernelArg.alias`).
        parts: see `Fusion`.

    Raises:
        HeronError: GEN001 when an op in it has no rule, GEN002 for a type without a machine type, GEN003 for tuple
            inputs.
    """
    (kernel,) = _emitted(i, analyse(i, target, in_place=in_place, parts=parts), name, target)
    return kernel


def _emitted(i: Instruction, analysis: FusionAnalysis, name: str, target: Target) -> list[Kernel]:
    reason = analysis.reason
    try:
        kernels = EMITTERS[analysis.kind]().emit(analysis, name, target)
    except HeronError as error:
        if analysis.kind != "block" or error.code != "GEN015":
            raise
        analysis = analyse(i, target, tiled=False, parts=analysis.fusion.parts)
        kernels = EMITTERS[analysis.kind]().emit(analysis, name, target)
        reason = f"{analysis.reason}; no tiles: {error.why}"
    hero = analysis.hero.name if analysis.hero is not None else ""
    for kernel in kernels:
        kernel.parts = analysis.fusion.parts
        kernel.notes["reason"] = reason
        kernel.decision = Decision(not analysis.asked, f"{analysis.kind}: {reason}", "emitter", kernel.name, hero)
    return kernels
