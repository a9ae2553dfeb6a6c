"""CPU programs: all kernels and the thunk sequence in one LLVM module, compiled for this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heron.backends.lower import KernelUse
from heron.backends.machine import Machine, lowered_text
from heron.errors import HeronError
from heron.hlo.types import ElementType
from heron.runtime.cpu import blas
from heron.runtime.cpu.executable import CpuExecutable, HostCalls
from heron.runtime.cpu.program import ENTRY, ProgramWriter
from heron.runtime.executable import Executable, Signature
from heron.runtime.memory import HostMemory
from heron.runtime.thunks import HostThunk, Sequence

if TYPE_CHECKING:
    from heron.buffers import BufferAssignment
    from heron.options import Options
    from heron.passes.pipeline import Pipeline
    from heron.trace import Trace


class CpuMachine(Machine):
    """This machine's processor."""

    alignment = 64

    def pipelines(self) -> dict[str, Pipeline]:
        from heron.backends.cpu import pipeline

        return {"hlo": pipeline.optimize(), "fused": pipeline.fuse(), "scheduled": pipeline.schedule()}

    def has_gemm(self, operands: ElementType, result: ElementType) -> bool:
        return operands is result and operands in blas.PREFIX

    def kernels_llvm(self, uses: dict[str, KernelUse]) -> str:
        """LLVM text of all kernels, each called by a plain function."""
        from heron.codegen.llvm.jit import host
        from heron.codegen.llvm.translate import KernelAbi, to_llvm

        module = self.lower(uses)
        abi = KernelAbi("cpu", width=host().width, internal=True)
        return to_llvm(module, kernels=dict.fromkeys(uses, abi), target="cpu")

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
        from heron.codegen.llvm.jit import Jit

        with trace.stage("llvm"):
            text = self.kernels_llvm(uses)
            hosts = HostCalls()
            writer = ProgramWriter({name: use.kernel for name, use in uses.items()}, hosts.address)
            text += writer.write(thunks)
        with trace.stage("machine code"):
            jit = Jit(level=options.opt_level, symbols=writer.externals)
            code = jit.add(text, facts["name"], exports=[ENTRY])
        outputs = [(s.element_type.dtype, s.dims) for s in signature.outputs]
        memory = HostMemory(buffers, signature.arguments, outputs)
        return CpuExecutable(jit.address(ENTRY), code, hosts, memory, **facts)

    def text(self, stage: str, thunks: Sequence, uses: dict[str, KernelUse]) -> str:
        if stage == "mlir":
            return lowered_text(uses)
        if stage == "ptx":
            raise HeronError("TGT003", "the CPU has no ptx", hint="--to asm, or --target sm_90")
        from heron.codegen.llvm.jit import Jit

        writer = ProgramWriter({name: use.kernel for name, use in uses.items()}, _no_address)
        text = self.kernels_llvm(uses) + writer.write(thunks)
        return text if stage == "llvm" else Jit().asm(text)


def _no_address(_: HostThunk) -> int:
    return 0
