"""Machine: what differs between kinds of targets: pipelines, buffer rules, how a program is built and shown."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from heron.backends.lower import KernelUse
from heron.errors import HeronError
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import ElementType
from heron.runtime.executable import Executable, Signature
from heron.runtime.thunks import GemmThunk, Sequence
from heron.targets import Target

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from heron.buffers.assignment import BufferAssignment
    from heron.codegen.llvm.code_cache import CodeCache, Key
    from heron.codegen.transforms.options import TransformOptions
    from heron.options import Options
    from heron.passes.framework.pipeline import Pipeline
    from heron.trace import Trace


class Machine(ABC):
    """One kind of machine, for one target."""

    alignment: ClassVar[int]
    #: whether what drives the program counts loops of known length, so that their conditions are not computed
    counts_loops: ClassVar[bool] = False

    def __init__(self, target: Target, options: Options) -> None:
        self.target, self.options = target, options

    @abstractmethod
    def pipelines(self) -> dict[str, Pipeline]:
        """The HLO pipelines in order, by the stage each one ends: hlo, fused, scheduled."""

    def scratch_bytes(self, i: Instruction) -> int:  # noqa: ARG002
        """What an instruction needs while it runs, beside its operands and its result."""
        return 0

    @abstractmethod
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
        """Machine code and the executable around it."""

    @abstractmethod
    def text(self, stage: str, thunks: Sequence, uses: dict[str, KernelUse]) -> str:
        """The text of a code stage: mlir, llvm, ptx, sass or asm. Raises TGT003 when the machine has no such stage."""

    def graph(self, thunks: Sequence, uses: dict[str, KernelUse]) -> str:
        """How a GPU runs the thunks: as graphs, with steps of the host. Raises TGT003 where there are none."""
        raise no_stage(self.target, "graph")

    def cubin(self, uses: dict[str, KernelUse]) -> bytes:
        """Machine code of all kernels for an NVIDIA GPU. Raises TGT003 where kernels are for something else."""
        raise no_stage(self.target, "cubin")

    def code_keys(self, thunks: Sequence, uses: dict[str, KernelUse], name: str) -> list[tuple[str, Key]]:
        """The modules LLVM compiles, each with what a cache files its code under; the kernels are used up.

        Args:
            name: what the modules are called after.
        """
        return []

    @property
    def code_cache(self) -> CodeCache | None:
        """Where code is kept, if it is."""
        from heron.codegen.llvm.code_cache import CodeCache

        return CodeCache() if self.options.cache else None

    def admit(self, uses: dict[str, KernelUse]) -> None:  # noqa: B027
        """Raise TGT006 for a kernel that asks for more than the machine has; a CPU has no such limits."""

    def share_out(self, uses: dict[str, KernelUse], options: Options, trace: Trace) -> None:  # noqa: B027
        """Say in the launch of each kernel how threads share its work; a GPU's launches say it already."""

    def threads(self, options: Options) -> int:
        """How many threads of the host a library's routine may use."""
        return 1

    @abstractmethod
    def has_gemm(self, operands: ElementType, result: ElementType) -> bool:
        """Whether the machine's matrix library multiplies these types; other products are kernels of our own."""

    def adds_products(self, t: GemmThunk) -> bool:
        """Whether its products can be added to what is there, and have the bits of an addition afterwards."""
        return False

    def lower(self, uses: dict[str, KernelUse]) -> ModuleOp:
        """All kernels in one module, lowered to what the LLVM translation takes."""
        from heron.codegen.merge import merge
        from heron.codegen.transforms import pipeline

        return pipeline.run(merge(use.kernel for use in uses.values()), self.transform_options(uses))

    def transform_options(self, uses: dict[str, KernelUse]) -> TransformOptions:
        """What the MLIR transforms know of the machine and of the kernels' launches."""
        from heron.codegen.llvm import numerics
        from heron.codegen.transforms.options import TransformOptions

        kind = "cpu" if self.target.kind == "cpu" else "sim" if self.target.sim else "gpu"
        return TransformOptions(
            target=kind,
            approximate=numerics.of(self.options).approximate and kind == "gpu",
            device=self.target,
            launches={name: use.kernel.launch for name, use in uses.items()},
        )

    def steps_text(self, uses: dict[str, KernelUse]) -> str:
        """MLIR text of all kernels as emitted and after each transform; the kernels are used up."""
        from heron.codegen.merge import merge
        from heron.codegen.transforms import pipeline

        module = merge(use.kernel for use in uses.values())
        record = [("emission", str(module))]
        pipeline.run(module, self.transform_options(uses), observe=lambda step, m: record.append((step, str(m))))
        return pipeline.show(record)


def lowered_text(uses: dict[str, KernelUse]) -> str:
    """MLIR text of all kernels as emitted, before any lowering."""
    return "\n".join(str(use.kernel.module) for use in uses.values())


def no_stage(target: Target, stage: str) -> HeronError:
    """The error for a stage that the target's programs do not go through."""
    hint = "--to asm, or --target sm_90" if target.kind == "cpu" else "--to llvm, or ptx for a target such as sm_90"
    return HeronError("TGT003", f"{target.name} has no stage '{stage}'", hint=hint)


def machine_for(target: Target, options: Options) -> Machine:
    """The machine of a target."""
    if target.kind == "cpu":
        from heron.backends.cpu.machine import CpuMachine

        return CpuMachine(target, options)
    from heron.backends.gpu.machine import GpuMachine

    return GpuMachine(target, options)
