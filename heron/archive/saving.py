"""Writing a compiled program into a file."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heron.archive import container, layout, modules
from heron.archive.plain import encode
from heron.errors import HeronError
from heron.runtime.cpu.executable import CpuExecutable
from heron.runtime.cuda.executable import CudaExecutable
from heron.runtime.sim.executable import SimExecutable

if TYPE_CHECKING:
    from heron.backends.compiler import Stages
    from heron.runtime.executable import Executable

#: stages kept as text, for whoever reads the file
KEPT = ("scheduled", "thunks")


def save(executable: Executable, path: str | Path) -> int:
    """Write a program that `heron.compile` gave into a file; its bytes.

    Raises RUN052 for a program that cannot be written, CLI010 and others of files for the file.
    """
    return container.write(path, *packed(executable))


def packed(executable: Executable, kept: Sequence[str] = KEPT) -> tuple[dict[str, Any], dict[str, bytes]]:
    """What a file of the program says of it, and the file's members; ``kept``: stages it has as text.

    Raises RUN052 for a program that cannot be written.
    """
    stages = executable._stages
    if not hasattr(stages, "done"):
        raise HeronError("RUN052", "the program comes from a file itself", hint="copy the file")
    facts: dict[str, Any] = {
        "name": executable.name,
        "target": executable.target,
        "options": stages.done.options.changed(),
        "signature": encode(executable.signature),
        "kernels": encode(executable.kernels),
        "buffers": layout.to_plain(executable.assignment),
    }
    members = {
        f"constants/{a.number}.npy": container.array_bytes(a.literal.array)
        for a in executable.assignment.allocations
        if a.kind == "constant" and a.literal is not None
    }
    for name in (*kept, *(["graph"] if isinstance(executable, CudaExecutable) else [])):
        if name == "scheduled":
            members |= modules.pack(modules.SCHEDULED, stages.done.scheduled)
        else:
            members[f"stages/{name}.txt"] = stages.text(name).encode()
    match executable:
        case CudaExecutable():
            facts["machine"] = _gpu(executable, members)
        case CpuExecutable():
            facts["machine"] = _cpu(executable, stages, members)
        case SimExecutable():
            facts["machine"] = _sim(stages, members)
        case _:
            raise HeronError("RUN052", f"a {type(executable).__name__} cannot be saved")
    return facts, members


def _plan(members: dict[str, bytes], plan: object) -> None:
    members["plan.json"] = json.dumps(encode(plan), indent=None, separators=(",", ":")).encode()


def _gpu(executable: CudaExecutable, members: dict[str, bytes]) -> dict[str, Any]:
    """Machine code with its PTX, which later machines compile anew."""
    program = executable.program
    images = []
    for n, image in enumerate(program.images):
        members[f"code/{n}.cubin"] = image.code
        members[f"code/{n}.ptx"] = image.ptx
        images.append({"sm": image.sm})
    _plan(members, {"thunks": program.thunks, "kernels": dict(program.kernels), "graphs": program.graphs})
    return {"kind": "cuda", "sm": program.sm, "images": images}


def _cpu(executable: CpuExecutable, stages: Stages, members: dict[str, bytes]) -> dict[str, Any]:
    """Object code, and what is needed to find the addresses it leaves open."""
    from heron.codegen.llvm.jit import host

    if executable.profile is not None:
        raise HeronError("RUN052", "a program that counts its steps cannot be saved", hint="compile without `profile`")
    thunks, uses = stages.done.lowered
    machine = host()
    names = []
    for n, compiled in enumerate(executable.objects):
        members[f"code/{n}.o"] = compiled.code
        names.append(compiled.name)
    kernels = [dataclasses.replace(u.kernel, module=None, notes={}, decision=None) for u in uses.values()]  # type: ignore[arg-type]
    _plan(members, {"thunks": thunks, "kernels": kernels})
    return {
        "kind": "cpu",
        "objects": names,
        "shares": executable.shares,
        "triple": machine.triple,
        "cpu": machine.cpu,
        "features": machine.features,
    }


def _sim(stages: Stages, members: dict[str, bytes]) -> dict[str, Any]:
    """LLVM text of each kernel, which the simulator compiles for the host when it is loaded; Triton's IR of block
    kernels, which it reads."""
    from heron.backends.compiler import Compilation
    from heron.backends.gpu.simulate import facts_of
    from heron.codegen.triton.text import to_ttir
    from heron.trace import Trace

    fresh = Compilation(stages.source, stages.target, stages.options, Trace())
    thunks, uses = fresh.lowered
    kernels = []
    for n, (name, use) in enumerate(uses.items()):
        if use.kernel.emitter == "block":
            members[f"code/{n}.ttir"] = to_ttir(use.kernel.module).encode()
            kernels.append({"name": name, "programs": use.kernel.launch.grid[0], "facts": facts_of(use)})
            continue
        launch = use.kernel.launch
        kernels.append({"name": name, "grid": launch.grid, "block": launch.block, "facts": facts_of(use)})
        members[f"code/{n}.ll"] = fresh.machine.llvm({name: use}).encode()  # type: ignore[attr-defined]
    _plan(members, {"thunks": thunks, "kernels": kernels, "checks": stages.options.sim_check})
    return {"kind": "sim", "count": len(kernels)}
