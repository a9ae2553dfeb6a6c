"""Programs for NVIDIA GPUs in files: machine code, with its PTX for machines that came later."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from heron.archive.parts import Parts
from heron.runtime.cuda.devices import CudaDevices
from heron.runtime.cuda.executable import CudaExecutable
from heron.runtime.cuda.program import GpuProgram, Image
from heron.runtime.executable import ProgramInfo


def save(executable: CudaExecutable | CudaDevices) -> Parts:
    """The parts of a program. Raises what making its machine code raises."""
    program = executable.program
    members = {}
    for n, image in enumerate(program.images):
        members |= {f"code/{n}.cubin": image.code, f"code/{n}.ptx": image.ptx}
    machine: dict[str, Any] = {
        "kind": "cuda",
        "sm": program.sm,
        "images": [{"sm": image.sm} for image in program.images],
    }
    if isinstance(executable, CudaDevices):  # how long devices wait for each other
        machine["timeout"] = executable.timeout
    plan = {"thunks": program.thunks, "kernels": dict(program.kernels), "graphs": program.graphs}
    return Parts(machine, plan, members)


def load(parts: Parts, info: ProgramInfo) -> SavedGpu | CudaDevices:
    """The program, which looks for its device when it is called."""
    machine, plan, code = parts.machine, parts.plan, parts.members
    images = tuple(
        Image(code[f"code/{n}.cubin"], image["sm"], code[f"code/{n}.ptx"]) for n, image in enumerate(machine["images"])
    )
    saved = SavedGpu(info, GpuProgram(plan["thunks"], plan["kernels"], images, machine["sm"], plan["graphs"]))
    return saved if info.spread.devices == 1 else CudaDevices(info, saved, machine["timeout"])


class SavedGpu(CudaExecutable):
    """A program for a GPU, from a file."""

    def __init__(self, info: ProgramInfo, program: GpuProgram) -> None:
        super().__init__(info)
        self._program = program

    @cached_property
    def program(self) -> GpuProgram:
        return self._program
