"""The emitter of block-level fusions: products and their neighbours; one program computes a tile of the result.

The pass `gemm-fusion` forms these fusions and writes the sizes of their tiles into their backend config. The kernel
is Triton's IR (docs/understand/triton.md), which Triton compiles, and the simulated GPU interprets.
"""

from __future__ import annotations

from dataclasses import replace

from heron.analysis.blocks.config import BlockConfig
from heron.analysis.blocks.engine import has_engine
from heron.codegen.emitters.base import Emitter, Frame
from heron.codegen.kernel import Kernel, KernelArg, Launch
from heron.codegen.triton.rows import emitter_of
from heron.targets import WARP


class BlockEmitter(Emitter[BlockConfig]):
    """Programs of the grid each compute a tile."""

    kind = "block"

    def emit_cpu(self, frame: Frame, form: BlockConfig) -> list[Kernel]:
        raise AssertionError("block kernels are for GPUs")

    def emit_gpu(self, frame: Frame, form: BlockConfig) -> list[Kernel]:
        """The kernel, which `triton` builds. Raises GEN015 for an op with no form on tiles."""
        if form.tma and not has_engine(frame.target):
            form = replace(form, tma=False, specialized=False)
        fusion = frame.fusion
        emitter = emitter_of(fusion, form, frame.name)
        module, programs = emitter.emit()
        args = [KernelArg(p.shape, "in", n) for n, p in enumerate(fusion.inputs)]
        args += [KernelArg(o.shape, "out", n) for n, o in enumerate(fusion.outputs)]
        launch = Launch(grid=(programs, 1, 1), block=(WARP * form.warps, 1, 1))
        notes = {"tile": "x".join(map(str, form.tiles)), "step": str(form.block_k), "stages": str(form.stages)}
        if form.tma:
            notes["tma"] = "; ".join(f"{i.name}: {why or 'by descriptor'}" for i, why in emitter.engine.items())
        return [Kernel(frame.name, module, tuple(args), launch, self.kind, notes)]
