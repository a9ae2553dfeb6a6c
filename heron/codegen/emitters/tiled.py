"""The emitter of block-level fusions: products with what is around them, a tile of the result by one program.

Which fusions and how they are cut is decided by the pass `gemm-fusion`, and written in their backend config. The kernel
is Triton's IR (docs/understand/triton.md), which Triton compiles, and the simulated GPU interprets.
"""

from __future__ import annotations

from dataclasses import replace

from heron.analysis.blocks.config import BlockConfig
from heron.analysis.blocks.engine import has_engine
from heron.analysis.fusion.analysis import FusionAnalysis
from heron.codegen.emitters.base import check, hero
from heron.codegen.kernel import Kernel, KernelArg, Launch
from heron.codegen.triton.rows import emitter_of
from heron.targets import WARP, Target


@hero("block")
class BlockHero:
    """Programs of the grid each compute a tile."""

    def emit(self, analysis: FusionAnalysis, name: str, target: Target) -> Kernel:
        """The kernel of a fusion with a config. Raises GEN015 for an op with no form on tiles."""
        fusion, config = analysis.fusion, analysis.form
        assert isinstance(config, BlockConfig)
        check(fusion, target)
        if config.tma and not has_engine(target):
            config = replace(config, tma=False, specialized=False)
        emitter = emitter_of(fusion, config, name)
        module, programs = emitter.emit()
        args = [KernelArg(p.shape, "in", n) for n, p in enumerate(fusion.inputs)]
        args += [KernelArg(o.shape, "out", n) for n, o in enumerate(fusion.outputs)]
        launch = Launch(grid=(programs, 1, 1), block=(WARP * config.warps, 1, 1))
        notes = {"tile": "x".join(map(str, config.tiles)), "step": str(config.block_k), "stages": str(config.stages)}
        if config.tma:
            notes["tma"] = "; ".join(f"{i.name}: {why or 'by descriptor'}" for i, why in emitter.engine.items())
        return Kernel(name, module, tuple(args), launch, "block", notes)
