"""Writing a compiled program into a file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heron.archive import container, cpu, cuda, layout, modules, sim
from heron.archive.parts import Parts
from heron.archive.plain import encode
from heron.backends.stages import Stages
from heron.errors import HeronError
from heron.runtime.cpu.devices import CpuDevices
from heron.runtime.cpu.executable import CpuExecutable
from heron.runtime.cuda.devices import CudaDevices
from heron.runtime.cuda.executable import CudaExecutable
from heron.runtime.sim.devices import SimDevices
from heron.runtime.sim.executable import SimExecutable

if TYPE_CHECKING:
    from heron.backends.compiler import Compilation
    from heron.runtime.executable import Executable

#: stages kept as text, for whoever reads the file
KEPT = ("scheduled", "thunks")


def save(executable: Executable, path: str | Path) -> int:
    """Write a program that `heron.compile` gave into a file; its bytes.

    Raises RUN052 for a program that cannot be written, CLI010 and others of files for the file.
    """
    return container.write(path, *packed(executable))


def packed(executable: Executable, kept: Sequence[str] = KEPT) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The manifest and members of a program's file; ``kept``: stages it holds as text.

    Raises RUN052 for a program that cannot be written.
    """
    stages = executable.stages
    if not isinstance(stages, Stages):
        raise HeronError("RUN052", "the program comes from a file itself", hint="copy the file")
    compilation = stages.compilation
    facts: dict[str, Any] = {
        "name": executable.name,
        "target": executable.target,
        "options": compilation.options.changed(),
        "signature": encode(executable.signature),
        "kernels": encode(executable.kernels),
        "buffers": layout.to_plain(executable.assignment),
        "spread": encode(executable.spread),
    }
    members = {
        f"constants/{a.number}.npy": container.array_bytes(a.literal.array)
        for a in executable.assignment.allocations
        if a.kind == "constant" and a.literal is not None
    }
    for name in (*kept, *(["graph"] if isinstance(executable, (CudaExecutable, CudaDevices)) else [])):
        if name == "scheduled":
            members |= modules.pack(modules.SCHEDULED, compilation.scheduled)
        else:
            members[f"stages/{name}.txt"] = stages.text(name).encode()
    parts = _parts(executable, compilation)
    members |= parts.members
    members["plan.json"] = json.dumps(encode(parts.plan), indent=None, separators=(",", ":")).encode()
    return {**facts, "machine": parts.machine}, members


def _parts(executable: Executable, compilation: Compilation) -> Parts:
    match executable:
        case CudaExecutable() | CudaDevices():
            return cuda.save(executable)
        case CpuExecutable() | CpuDevices():
            return cpu.save(executable, compilation.lowered)
        case SimExecutable() | SimDevices():
            return sim.save(compilation)
        case _:
            raise HeronError("RUN052", f"a {type(executable).__name__} cannot be saved")
