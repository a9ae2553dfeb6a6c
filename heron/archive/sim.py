"""Programs for the simulated GPU in files: LLVM text of each kernel, and Triton's IR of block kernels."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from heron.archive.parts import Parts
from heron.codegen.sim import native
from heron.codegen.sim.kernel import compile_kernel
from heron.runtime.executable import ProgramInfo
from heron.runtime.sim.blocks import BlockKernel
from heron.runtime.sim.devices import SimDevices
from heron.runtime.sim.executable import Runner, SimExecutable

if TYPE_CHECKING:
    from heron.backends.compiler import Compilation


def save(compilation: Compilation) -> Parts:
    """The parts of a program."""
    from heron.backends.gpu.simulated import kernel_text

    kernels, members = [], {}
    lowered = compilation.take_lowered()
    for n, use in enumerate(lowered.kernels.values()):
        suffix, text, facts = kernel_text(compilation.machine, use)
        members[f"code/{n}.{suffix}"] = text.encode()
        kernels.append(facts)
    plan = {"thunks": lowered.thunks, "kernels": kernels, "checks": compilation.options.sim_check}
    return Parts({"kind": "sim", "count": len(kernels)}, plan, members)


def load(parts: Parts, info: ProgramInfo) -> SimExecutable | SimDevices:
    """The program, its kernels compiled for this machine's CPU or read by the interpreter of tiles."""
    plan = parts.plan
    compiler = cache(native.compiler)
    runners: dict[str, Runner] = {}
    for n, k in enumerate(plan["kernels"]):
        if "programs" in k:
            text = parts.members[f"code/{n}.ttir"].decode()
            runners[k["name"]] = BlockKernel(text, k["programs"], plan["checks"], k["facts"])
            continue
        text = parts.members[f"code/{n}.ll"].decode()
        runners[k["name"]] = compile_kernel(
            text, k["name"], k["grid"], k["block"], checks=plan["checks"], facts=k["facts"], compiler=compiler
        )
    made = SimExecutable if info.spread.devices == 1 else SimDevices
    return made(info, plan["thunks"], runners)
