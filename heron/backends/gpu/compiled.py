"""A program just compiled for an NVIDIA GPU: its PTX, the machine code made of it when first wanted, its kernels."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING

from heron.backends.gpu.story import story
from heron.backends.lower import KernelUse
from heron.codegen.llvm import assemble, tools
from heron.runtime.cuda.executable import CudaExecutable
from heron.runtime.cuda.program import GpuProgram, Image, KernelEntry
from heron.runtime.executable import ProgramInfo

if TYPE_CHECKING:
    from heron.codegen.llvm.cubin import Cubin
    from heron.codegen.triton.compile import BlockCode


def entries(uses: dict[str, KernelUse]) -> dict[str, KernelEntry]:
    """The launch of each kernel, its outputs, and its HLO."""
    return {name: _entry(name, use) for name, use in uses.items()}


def _entry(name: str, use: KernelUse) -> KernelEntry:
    launch = use.kernel.launch
    outputs = frozenset(n for n, a in enumerate(use.kernel.args) if a.kind == "out")
    return KernelEntry(name, launch.grid, launch.block, outputs, story=story(use.instruction))


def made_for(ptx: str) -> str:
    """The machine PTX names; Triton's is for all that one machine has, ``sm_90a``, which no other runs."""
    found = re.search(r"^\s*\.target\s+(\w+)", ptx, re.M)
    assert found is not None
    return found[1]


class CompiledGpu(CudaExecutable):
    """A program for a GPU: it runs where there is one; its code and its facts are there on any machine.

    Args:
        plain: the program without machine code.
        blocks: makes the machine code of block kernels, by name.
    """

    def __init__(
        self, info: ProgramInfo, plain: GpuProgram, ptx: str, blocks: Callable[[], dict[str, BlockCode]]
    ) -> None:
        super().__init__(info)
        self._plain, self._make_blocks = plain, blocks
        self.ptx, self.sm = ptx, plain.sm

    @cached_property
    def cubin(self) -> Cubin:
        """Machine code and what each kernel uses. Raises LLVM024 with no assembler, LLVM025 when it refuses the PTX."""
        return assemble.assemble(self.ptx, self.sm)

    @cached_property
    def program(self) -> GpuProgram:
        """The program with machine code where an assembler is here, else with PTX, which the driver compiles."""
        code = self.cubin.code if self.ptx and assemble.knows(self.sm) else b""
        images = [Image(code, self.sm, self.ptx.encode())] if self.ptx else []
        table = dict(self._plain.kernels)
        for name, block in self.blocks.items():
            entry = table[name]
            table[name] = replace(
                entry,
                image=len(images),
                block=(32 * block.warps, 1, 1),
                shared=block.shared,
                zeros=block.scratch_pointers,
                scratch=block.scratch * prod(entry.grid),
            )
            images.append(Image(block.cubin, made_for(block.ptx), block.ptx.encode()))
        return replace(self._plain, kernels=table, images=tuple(images))

    @cached_property
    def blocks(self) -> dict[str, BlockCode]:
        """Block kernels, by name. Raises GEN016 without Triton, or when it refuses one."""
        return self._make_blocks()

    def examine(self) -> None:
        unknown = "registers, shared memory, spills: not known: "
        if not self.ptx:
            return
        if tools.find_nvjitlink() is None and tools.find_ptxas() is None:
            self.trace.note(unknown + "no assembler (pip install nvidia-nvjitlink)")
            return
        if not assemble.knows(self.sm):
            self.trace.note(f"{unknown}the assembler makes no code for {self.sm}")
            return
        with self.trace.stage("assembly"):
            used = self.cubin.resources
        for kernel in self.trace.kernels:
            if (resources := used.get(kernel.name)) is not None:
                kernel.resources, kernel.code_size = resources.to_json(), resources.code_bytes
        if not used:
            self.trace.note(f"{unknown}{self.cubin.tool} does not tell them")
