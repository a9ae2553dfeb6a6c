"""Options of the transforms: facts about the machine that will run a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal, TypeAlias

from heron.codegen.kernel import Launch
from heron.records import dataclass
from heron.runtime.memory import ARGUMENT_ALIGNMENT
from heron.targets import Target as Device

Target: TypeAlias = Literal["cpu", "gpu", "sim"]


@dataclass(frozen=True, slots=True)
class TransformOptions:
    """Options of every transform.

    Args:
        target: `cpu`, `gpu` (NVPTX) or `sim` (GPU kernels run on the host).
        alignment: byte alignment the runtime promises for every buffer argument.
        inline_ops: private functions of at most this many operations are inlined at every call.
        approximate: f32 functions may be the hardware's approximations (NVPTX).
        device: facts of the GPU the kernels are for, where they are known.
        vector_bits: bits of a CPU's vectors, where it has no instructions for a part of one; else 0.
        gathers: the features of a CPU whose gather instructions LLVM would not use, with these; else empty.
        launches: how each kernel is launched, by name, where it is known.
        verify: check the module after each transform (tests, `--verify`).
    """

    target: Target = "cpu"
    alignment: int = ARGUMENT_ALIGNMENT
    inline_ops: int = 64
    approximate: bool = False
    device: Device | None = None
    launches: Mapping[str, Launch] = field(default_factory=dict)
    vector_bits: int = 0
    gathers: str = ""
    verify: bool = False

    @property
    def is_gpu(self) -> bool:
        """Whether kernels have threads, barriers and shuffles."""
        return self.target != "cpu"
