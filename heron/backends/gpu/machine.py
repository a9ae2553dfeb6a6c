"""GPU programs: PTX for NVIDIA GPUs, and the same kernels on the simulator."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from heron.backends.gpu import blocks
from heron.backends.lower import KernelUse
from heron.backends.machine import Machine, lowered_text, no_stage
from heron.backends.memory import GPU_ALIGNMENT
from heron.codegen.llvm import numerics
from heron.codegen.llvm.code_cache import cache_decision
from heron.codegen.native import helpers  # noqa: F401  provides what runtime asks for
from heron.errors import HeronError
from heron.hlo.ir.types import ElementType
from heron.runtime.executable import Executable, Signature
from heron.runtime.memory import HostMemory
from heron.runtime.thunks import Sequence

if TYPE_CHECKING:
    from heron.buffers import BufferAssignment
    from heron.codegen.llvm.code_cache import Key
    from heron.codegen.llvm.numerics import Numerics
    from heron.codegen.llvm.translate import KernelAbi
    from heron.options import Options
    from heron.passes.framework.pipeline import Pipeline
    from heron.trace import Trace


class GpuMachine(Machine):
    """An NVIDIA GPU, present, simulated, or only compiled for."""

    alignment = GPU_ALIGNMENT
    counts_loops = True

    def pipelines(self) -> dict[str, Pipeline]:
        from heron.backends.gpu import pipeline

        return {"hlo": pipeline.hlo(), "fused": pipeline.fuse(), "scheduled": pipeline.schedule()}

    def has_gemm(self, operands: ElementType, result: ElementType) -> bool:
        return False  # gemm-rewriter has made calls of what cuBLASLt does

    def admit(self, uses: dict[str, KernelUse]) -> None:
        from heron.backends.gpu import limits

        for use in uses.values():
            limits.check(use, self.target)

    def abis(self, uses: dict[str, KernelUse]) -> dict[str, KernelAbi]:
        """How each kernel is called and launched."""
        from heron.codegen.llvm.translate import KernelAbi

        kind = "sim" if self.target.sim else "gpu"
        return {
            name: KernelAbi(kind, block=use.kernel.launch.block, grid=use.kernel.launch.grid)
            for name, use in uses.items()
        }

    def llvm(self, uses: dict[str, KernelUse]) -> str:
        """LLVM text of all kernels but block kernels, which Triton compiles."""
        from heron.codegen.llvm.translate import to_llvm

        uses = blocks.without(uses)
        return to_llvm(self.lower(uses), kernels=self.abis(uses), numerics=self.numerics) if uses else ""

    @property
    def numerics(self) -> Numerics:
        """What `Options.math` allows; the simulator computes as IEEE says."""
        return numerics.IEEE if self.target.sim else numerics.of(self.options)

    def build(
        self,
        thunks: Sequence,
        uses: dict[str, KernelUse],
        buffers: BufferAssignment,
        signature: Signature,
        options: Options,
        trace: Trace,
        facts: dict[str, Any],
    ) -> Executable:
        if not self.target.sim:
            with trace.stage("llvm"):
                text = self.llvm(uses)
            with trace.stage("ptx"):
                ptx = self.ptx(text, facts["name"], trace)
            from heron.backends.gpu.compiled import CompiledGpu, entries

            tiled = partial(blocks.codes, blocks.of(uses), self.target, self.code_cache)
            return CompiledGpu(thunks, entries(uses), ptx, self.target.llvm_cpu, options.graphs, tiled, **facts)
        from heron.backends.gpu.simulate import Simulation
        from heron.runtime.sim.executable import Runner, SimExecutable

        runners: dict[str, Runner] = {}
        simulation = Simulation(options.sim_check)
        for name, use in blocks.of(uses).items():
            runners[name] = simulation.block_kernel(use)
        for name, use in blocks.without(uses).items():  # the simulator takes one kernel a module
            with trace.stage("llvm"):
                text = self.llvm({name: use})
            with trace.stage("machine code"):
                runners[name] = simulation.kernel(use, text)
        memory = HostMemory(buffers, signature.arguments, signature.output_arrays)
        return SimExecutable(thunks, runners, memory, **facts)

    def ptx(self, text: str, name: str = "kernels", trace: Trace | None = None) -> str:
        """PTX of all kernels; empty when there are none. A cache keeps it under that name, and the trace says so."""
        from heron.codegen.llvm.nvptx import to_ptx

        if not text:
            return ""

        def make() -> bytes:
            level, flush = self.options.opt_level, self.numerics.flush
            return to_ptx(text, self.target.llvm_cpu, level=level, flush_denormals=flush).encode()

        cache = self.code_cache
        if cache is None:
            return make().decode()
        code, cached = cache.fetch(self._key(text), name, make)
        if trace is not None:
            trace.decide(cache_decision(name, cached))
        return code.decode()

    def _key(self, text: str) -> Key:
        """What PTX of LLVM text is filed under."""
        from heron.codegen.llvm import code_cache, libdevice
        from heron.codegen.llvm.nvptx import machine

        target = machine(self.target.llvm_cpu, self.options.opt_level, "")
        options: dict[str, object] = {"level": self.options.opt_level, "flush_denormals": self.numerics.flush}
        if "@__nv_" in text:
            options["libdevice"] = libdevice.digest()
        return code_cache.key("ptx", text, f"{target.triple} {self.target.llvm_cpu}", "", **options)

    def code_keys(self, thunks: Sequence, uses: dict[str, KernelUse], name: str) -> list[tuple[str, Key]]:
        return [] if self.target.sim or not uses else [(name, self._key(self.llvm(uses)))]

    def graph(self, thunks: Sequence, uses: dict[str, KernelUse]) -> str:
        from heron.backends.gpu.compiled import entries
        from heron.runtime.cuda import plan

        outputs = {name: entry.outputs for name, entry in entries(uses).items()}
        return plan.text(plan.plan(thunks, outputs))

    def cubin(self, uses: dict[str, KernelUse]) -> bytes:
        from heron.codegen.llvm.assemble import assemble

        if self.target.sim:
            raise no_stage(self.target, "cubin")
        if not uses:
            raise HeronError("TGT005", "the program has no kernels", why="a cubin would be empty")
        return assemble(self.ptx(self.llvm(uses)), self.target.llvm_cpu).code

    def steps_text(self, uses: dict[str, KernelUse]) -> str:
        parts = [super().steps_text(native)] if (native := blocks.without(uses)) else []
        return "\n".join([*parts, *blocks.texts(uses)])

    def text(self, stage: str, thunks: Sequence, uses: dict[str, KernelUse]) -> str:
        if stage == "mlir":
            return "\n".join(part for part in (lowered_text(blocks.without(uses)), *blocks.texts(uses)) if part)
        llvm = self.llvm(uses)
        if stage == "llvm":
            return llvm
        if self.target.sim or stage not in ("ptx", "sass"):
            raise no_stage(self.target, stage)
        ptx = self.ptx(llvm)
        codes = blocks.codes(uses, self.target, self.code_cache).values()
        if stage == "ptx":
            return "\n".join(part for part in (ptx, *(c.ptx for c in codes)) if part)
        from heron.codegen.llvm.assemble import assemble
        from heron.codegen.llvm.disassemble import to_sass

        cubins = [assemble(ptx, self.target.llvm_cpu).code] if ptx else []
        return "\n".join(map(to_sass, [*cubins, *(c.cubin for c in codes)]))
