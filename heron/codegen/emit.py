"""`emit_fusion`: an instruction of the optimised program becomes a kernel."""

from __future__ import annotations

from dataclasses import replace

from heron.analysis.fusion import select
from heron.analysis.fusion.fusion import Fusion, as_fusion
from heron.codegen.emitters.base import load
from heron.codegen.emitters.reduction.products import as_reduction
from heron.codegen.emitters.sort.emitter import emit_sort
from heron.codegen.kernel import Kernel
from heron.errors import HeronError
from heron.hlo.ir.instruction import Instruction
from heron.targets import Target
from heron.trace import Decision


def emit_kernels(i: Instruction, name: str, target: Target) -> list[Kernel]:
    """The kernels that compute `i` one after another: one, but for what holds a sort (see `heroes.sort`)."""
    if i.opcode == "sort" or (i.opcode == "fusion" and any(o.opcode == "sort" for o in i.calls.instructions)):
        return emit_sort(i, name, target)
    return [emit_fusion(i, name, target)]


def emit_fusion(i: Instruction, name: str, target: Target, *, in_place: bool = True, parts: int = 0) -> Kernel:
    """The kernel of a fusion, or of any other instruction by itself.

    Args:
        i: a `fusion` (arguments: its operands, then its flat outputs), or a bare instruction (its distinct operands).
        name: of the entry function.
        target: `kind` decides between work items and threads; the machine's facts decide sizes.
        in_place: whether outputs may share buffers with inputs (`KernelArg.alias`, see `heroes.dus`).
        parts: see `Fusion`.

    Raises:
        HeronError: GEN001 when an op in it has no rule, GEN002 for a type without a machine type, GEN003 for tuple
            inputs.
    """
    fusion, why = replace(as_fusion(i), parts=parts), ""
    if i.opcode == "dot" and target.kind == "cpu":
        fusion = as_reduction(fusion)
    if fusion.blocks is not None:
        made, why = _tiled(fusion, name, target)
        if made is not None:
            return made
        fusion = replace(fusion, blocks=None)
    choice = select.choose(fusion, in_place)
    kernel = load()[choice.emitter].emit(fusion, name, target)
    kernel.parts = parts
    reason = kernel.notes.setdefault("reason", f"{choice.reason}; {why}" if why else choice.reason)
    return _decided(kernel, choice, reason)


def _tiled(fusion: Fusion, name: str, target: Target) -> tuple[Kernel | None, str]:
    """The block kernel of a fusion that states tiles; or why there is none, and another emitter does it."""
    if target.kind != "gpu":
        return None, "block kernels are for GPUs"
    choice = select.choose(fusion)
    try:
        kernel = load()[choice.emitter].emit(fusion, name, target)
    except HeronError as error:
        if error.code != "GEN015":
            raise
        return None, f"no tiles: {error.why}"
    return _decided(kernel, choice, kernel.notes.setdefault("reason", choice.reason)), ""


def _decided(kernel: Kernel, choice: select.Choice, reason: str) -> Kernel:
    hero = choice.hero.name if choice.hero is not None else ""
    text = f"{kernel.emitter}: {reason}"
    kernel.decision = Decision(kernel.emitter == choice.wanted, text, "hero-emitter", kernel.name, hero)
    return kernel
