"""Machine: what differs between kinds of targets: pipelines, buffer rules, how a program is built and shown."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from heron.backends.devices import ONE, Devices
from heron.backends.lower import KernelUse, LoweredProgram
from heron.codegen.llvm import numerics
from heron.codegen.llvm.code_cache import CodeCache
from heron.codegen.merge import merge
from heron.codegen.transforms import pipeline
from heron.codegen.transforms.options import Target as Kind
from heron.codegen.transforms.options import TransformOptions
from heron.errors import HeronError
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import ElementType
from heron.runtime.executable import Executable, ProgramInfo
from heron.runtime.thunks import GemmThunk
from heron.targets import Target

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Operation

    from heron.codegen.llvm.code_cache import Key
    from heron.options import Options
    from heron.passes.framework.pipeline import Pipeline
    from heron.trace import Trace


class Machine(ABC):
    """One kind of machine, for one target and programs on that many devices."""

    #: the kind of code it runs, as the MLIR transforms and the LLVM translation name it
    kind: ClassVar[Kind]
    #: bytes between which buffers begin
    alignment: ClassVar[int]
    #: whether what drives the program counts loops of known length, so that their conditions are not computed
    counts_loops: ClassVar[bool] = False

    def __init__(self, target: Target, options: Options, devices: Devices = ONE) -> None:
        self.target, self.options, self.devices = target, options, devices

    @abstractmethod
    def pipelines(self) -> dict[str, Pipeline]:
        """The HLO pipelines in order, by the stage each one ends: hlo, fused, scheduled."""

    def scratch_bytes(self, i: Instruction) -> int:
        """The scratch memory of an instruction while it runs."""
        return 0

    def scratch_over(self, i: Instruction) -> Instruction | None:
        """The operand that its scratch memory may lie over where nothing else needs that."""
        return None

    # `build`, `text`, `cubin`, `code_keys`, `lower` and `steps_text` use up the MLIR of the kernels
    @abstractmethod
    def build(self, lowered: LoweredProgram, info: ProgramInfo) -> Executable:
        """Machine code and the executable around it."""

    @abstractmethod
    def text(self, stage: str, lowered: LoweredProgram) -> str:
        """The text of a code stage: mlir, llvm, ptx, sass or asm. Raises TGT003 when the machine has no such stage."""

    def graph(self, lowered: LoweredProgram) -> str:
        """The CUDA graphs and steps of the host by which a GPU runs the thunks. Raises TGT003 for other machines."""
        raise no_stage(self.target, "graph")

    def cubin(self, uses: dict[str, KernelUse]) -> bytes:
        """Machine code of all kernels for an NVIDIA GPU. Raises TGT003 for other machines."""
        raise no_stage(self.target, "cubin")

    def code_keys(self, lowered: LoweredProgram, name: str) -> list[tuple[str, Key]]:
        """The modules that LLVM compiles, each with the key of its code in a cache; ``name``: that of the program."""
        return []

    @property
    def code_cache(self) -> CodeCache | None:
        """The cache of machine code, if there is one."""
        return CodeCache() if self.options.cache else None

    def admit(self, uses: dict[str, KernelUse]) -> None:  # noqa: B027
        """Raise TGT006 for a kernel that asks for more than the machine has; a CPU has no such limits."""

    def share_out(self, uses: dict[str, KernelUse], trace: Trace) -> None:  # noqa: B027
        """Set in the launch of each kernel how threads of a CPU share its work; a GPU's launches have that already."""

    @property
    def threads(self) -> int:
        """The number of threads of the host that a library's routine may use."""
        return 1

    @abstractmethod
    def has_gemm(self, operands: ElementType, result: ElementType) -> bool:
        """Whether the machine's matrix library multiplies these types; other products are kernels of our own."""

    def missing_gemm(self, operands: ElementType, result: ElementType) -> str:
        """Why the library that multiplies these types cannot be used; empty where it can, or where there is none."""
        return ""

    def adds_products(self, product: GemmThunk) -> bool:
        """Whether a product can be added to its output in place, with the bits of an addition afterwards."""
        return False

    def lower(self, uses: dict[str, KernelUse]) -> ModuleOp:
        """All kernels in one module, lowered to what the LLVM translation takes."""
        return pipeline.run(merge(use.kernel for use in uses.values()), self.transform_options(uses))

    @abstractmethod
    def translated(self, module: ModuleOp, uses: dict[str, KernelUse], lines: list[Operation | None]) -> str:
        """LLVM text of lowered kernels, from which their code alone can be made; `lines` gets the op of each line."""

    @abstractmethod
    def code_text(self, llvm: str) -> tuple[str, str]:
        """The stage that LLVM makes of such a text, and its text: asm, or ptx. Raises TGT003 where there is none."""

    def block_stages(self, use: KernelUse) -> dict[str, str]:
        """The texts of a block kernel on the way to code, by stage. Raises TGT003 or GEN016 where there are none."""
        raise no_stage(self.target, "ptx")

    def transform_options(self, uses: dict[str, KernelUse]) -> TransformOptions:
        """The options of the MLIR transforms: facts about the machine and the kernels' launches."""
        return TransformOptions(
            target=self.kind,
            approximate=self.kind == "gpu" and numerics.of(self.options).approximate,
            device=self.target,
            launches={name: use.kernel.launch for name, use in uses.items()},
        )

    def steps_text(self, uses: dict[str, KernelUse]) -> str:
        """MLIR text of all kernels as emitted and after each transform; the kernels are used up."""
        module = merge(use.kernel for use in uses.values())
        record = [("emission", str(module))]
        pipeline.run(module, self.transform_options(uses), observe=lambda step, m: record.append((step, str(m))))
        return pipeline.show(record)


def lowered_text(uses: dict[str, KernelUse]) -> str:
    """MLIR text of all kernels as emitted, before any lowering."""
    return "\n".join(str(use.kernel.module) for use in uses.values())


def no_stage(target: Target, stage: str) -> HeronError:
    """The error for a stage that the target's programs do not go through."""
    hint = "--to llvm, or ptx for a target such as sm_90" if target.is_gpu else "--to asm, or --target sm_90"
    return HeronError("TGT003", f"{target.name} has no stage '{stage}'", hint=hint)
