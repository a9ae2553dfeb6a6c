"""Programs for NVIDIA GPUs: one module of all kernels, which LLVM makes PTX of."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from heron.backends.gpu import blocks, limits, pipeline
from heron.backends.gpu.compiled import CompiledGpu, entries
from heron.backends.lower import KernelUse, LoweredProgram
from heron.backends.machine import Machine, lowered_text, no_stage
from heron.buffers.assign import ALIGNMENT
from heron.codegen.llvm import code_cache, libdevice, numerics
from heron.codegen.llvm.assemble import assemble
from heron.codegen.llvm.code_cache import Key, cache_decision
from heron.codegen.llvm.disassemble import to_sass
from heron.codegen.llvm.numerics import Numerics
from heron.codegen.llvm.nvptx import machine, to_ptx
from heron.codegen.llvm.translate import KernelAbi, to_llvm
from heron.codegen.native import helpers  # noqa: F401  provides what runtime asks for
from heron.errors import HeronError
from heron.hlo.ir.types import ElementType
from heron.runtime.cuda import plan
from heron.runtime.cuda.devices import CudaDevices
from heron.runtime.cuda.program import GpuProgram
from heron.runtime.executable import Executable, ProgramInfo

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Operation

    from heron.passes.framework.pipeline import Pipeline
    from heron.trace import Trace


class GpuMachine(Machine):
    """An NVIDIA GPU, present or only compiled for."""

    kind = "gpu"
    alignment = ALIGNMENT["gpu"]
    counts_loops = True

    def pipelines(self) -> dict[str, Pipeline]:
        return {"hlo": pipeline.hlo(), "fused": pipeline.fuse(), "scheduled": pipeline.schedule()}

    def has_gemm(self, operands: ElementType, result: ElementType) -> bool:
        return False  # gemm-rewriter has made calls of what cuBLASLt does

    def admit(self, uses: dict[str, KernelUse]) -> None:
        for use in uses.values():
            limits.check(use, self.target)

    @property
    def numerics(self) -> Numerics:
        """The arithmetic that `Options.math` allows."""
        return numerics.of(self.options)

    def llvm(self, uses: dict[str, KernelUse]) -> str:
        """LLVM text of all kernels but block kernels, which Triton compiles."""
        uses = blocks.without(uses)
        if not uses:
            return ""
        return to_llvm(self.lower(uses), kernels=self.abis(uses), numerics=self.numerics)

    def translated(self, module: ModuleOp, uses: dict[str, KernelUse], lines: list[Operation | None]) -> str:
        return to_llvm(module, kernels=self.abis(uses), numerics=self.numerics, lines=lines)

    def code_text(self, llvm: str) -> tuple[str, str]:
        return "ptx", self.ptx(llvm)

    def block_stages(self, use: KernelUse) -> dict[str, str]:
        return blocks.stages(use, self.target)

    def abis(self, uses: dict[str, KernelUse]) -> dict[str, KernelAbi]:
        """The calling convention and the launch of each kernel, by its name."""
        launches = {name: use.kernel.launch for name, use in uses.items()}
        return {name: KernelAbi(self.kind, block=k.block, grid=k.grid) for name, k in launches.items()}

    def build(self, lowered: LoweredProgram, info: ProgramInfo) -> Executable:
        with info.trace.stage("llvm"):
            text = self.llvm(lowered.kernels)
        with info.trace.stage("ptx"):
            ptx = self.ptx(text, info.name, info.trace)
        plain = GpuProgram(lowered.thunks, entries(lowered.kernels), (), self.target.llvm_cpu, self.options.graphs)
        tiled = partial(blocks.codes, blocks.of(lowered.kernels), self.target, self.code_cache)
        code = CompiledGpu(info, plain, ptx, tiled)
        if self.devices.count == 1:
            return code
        captured, by_host = plan.exchanges(plan.plan(plain.thunks, plain.outputs))
        where = "CUDA graphs" if self.options.graphs else "streams"
        info.trace.note(f"collectives by NCCL: {captured} in {where}, {by_host} whose sizes the host reads")
        return CudaDevices(info, code, self.options.device_timeout)

    def ptx(self, text: str, name: str = "kernels", trace: Trace | None = None) -> str:
        """PTX of all kernels; empty when there are none. A cache keeps it under that name, and the trace says so."""
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
        """The key of the PTX of LLVM text in a cache."""
        target = machine(self.target.llvm_cpu, self.options.opt_level, "")
        options: dict[str, object] = {"level": self.options.opt_level, "flush_denormals": self.numerics.flush}
        if "@__nv_" in text:
            options["libdevice"] = libdevice.digest()
        return code_cache.key("ptx", text, f"{target.triple} {self.target.llvm_cpu}", "", **options)

    def code_keys(self, lowered: LoweredProgram, name: str) -> list[tuple[str, Key]]:
        return [(name, self._key(self.llvm(lowered.kernels)))] if lowered.kernels else []

    def graph(self, lowered: LoweredProgram) -> str:
        outputs = {name: entry.outputs for name, entry in entries(lowered.kernels).items()}
        return plan.text(plan.plan(lowered.thunks, outputs))

    def cubin(self, uses: dict[str, KernelUse]) -> bytes:
        if not uses:
            raise HeronError("TGT005", "the program has no kernels", why="a cubin would be empty")
        return assemble(self.ptx(self.llvm(uses)), self.target.llvm_cpu).code

    def steps_text(self, uses: dict[str, KernelUse]) -> str:
        parts = [super().steps_text(native)] if (native := blocks.without(uses)) else []
        return "\n".join([*parts, *blocks.texts(uses)])

    def text(self, stage: str, lowered: LoweredProgram) -> str:
        uses = lowered.kernels
        if stage == "mlir":
            return "\n".join(part for part in (lowered_text(blocks.without(uses)), *blocks.texts(uses)) if part)
        if stage == "llvm":
            return self.llvm(uses)
        if stage not in ("ptx", "sass"):
            raise no_stage(self.target, stage)
        ptx = self.ptx(self.llvm(uses))
        codes = blocks.codes(uses, self.target, self.code_cache).values()
        if stage == "ptx":
            return "\n".join(part for part in (ptx, *(c.ptx for c in codes)) if part)
        cubins = [assemble(ptx, self.target.llvm_cpu).code] if ptx else []
        return "\n".join(map(to_sass, [*cubins, *(c.cubin for c in codes)]))
