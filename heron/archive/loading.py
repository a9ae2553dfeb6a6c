"""A program from a file, ready to call where its machine is, with a reason where it is not."""

from __future__ import annotations

import json
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heron.archive import container, layout, modules
from heron.archive.plain import decode
from heron.codegen.native import helpers  # noqa: F401  provides what runtime asks for
from heron.errors import HeronError
from heron.runtime.cuda.executable import CudaExecutable
from heron.runtime.cuda.program import GpuProgram, Image
from heron.runtime.executable import Executable
from heron.runtime.memory import HostMemory
from heron.trace import Trace

if TYPE_CHECKING:
    from heron.codegen.llvm.code_cache import CodeCache

_MAX_NAME = 4096


def load(source: str | bytes | Path, **how: Any) -> Any:
    """What is in a file: the `Executable` of a saved program, else the `Module` of `heron.frontends.load`, which takes
    texts, bytes and further arguments, too.

    Raises what `load_program` and `heron.frontends.load` raise.
    """
    if isinstance(source, (str, Path)) and is_program(source):
        return load_program(source)
    from heron import frontends

    return frontends.load(source, **how)


def is_program(path: str | Path) -> bool:
    """Whether a path names a file that begins as saved programs do."""
    if isinstance(path, str) and ("\n" in path or len(path) > _MAX_NAME):
        return False
    try:
        with open(path, "rb") as stream:
            return container.is_archive(stream.read(4))
    except (OSError, ValueError):
        return False


def load_program(path: str | Path) -> Executable:
    """The executable in a file that `save` wrote.

    A program for a GPU loads anywhere, and looks for its device when it is called. The file holds machine code, which
    runs as it is: load only what you trust.

    Raises:
        HeronError: CLI010 (no file), RUN050 (no saved program, or damaged), RUN051 (another format, or code for another
            CPU).
    """
    return made(*container.read(path), path)


def made(
    manifest: dict[str, Any], members: dict[str, bytes], path: str | Path, cache: CodeCache | None = None
) -> Executable:
    """The executable of a saved program's members; ``path`` is for errors, ``cache`` may have the code that programs
    share. Raises what `load_program` raises.
    """
    try:
        return _made(manifest, members, str(path), cache)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise HeronError(
            "RUN050",
            f"'{path}' is no saved program, or it is damaged",
            why=f"{type(error).__name__}: {error}",
            hint="save the program again with this version of heron",
        ) from error


def _made(manifest: dict[str, Any], members: dict[str, bytes], path: str, code: CodeCache | None) -> Executable:
    constants = {
        int(Path(name).stem): container.bytes_array(data)
        for name, data in members.items()
        if name.startswith("constants/")
    }
    trace = Trace(manifest["name"], manifest["target"])
    trace.options = manifest["options"]
    facts: dict[str, Any] = {
        "name": manifest["name"],
        "target": manifest["target"],
        "signature": decode(manifest["signature"]),
        "kernels": list(decode(manifest["kernels"])),
        "assignment": layout.from_plain(manifest["buffers"], constants),
        "trace": trace,
        "stages": SavedStages(path, members),
    }
    machine, plan = manifest["machine"], decode(json.loads(members["plan.json"]))
    make = {"cuda": _gpu, "cpu": partial(_cpu, code), "sim": _sim}[machine["kind"]]
    return make(machine, plan, members, facts)


class SavedStages:
    """The texts a file has of a program's stages."""

    def __init__(self, path: str, members: dict[str, bytes]) -> None:
        self.path = path
        self._texts = {Path(n).stem: data for n, data in members.items() if n.startswith("stages/")}
        self._members = members
        code = [data for n, data in members.items() if n.endswith(".ptx")]
        if code:
            self._texts["ptx"] = b"\n".join(code)

    def text(self, name: str) -> str:
        """A stage. Raises RUN053 for one that the file has not."""
        if name == "scheduled" and modules.SCHEDULED in self._members:
            return modules.in_full(modules.SCHEDULED, self._members)
        found = self._texts.get(name)
        if found is None:
            has = ", ".join(self._texts)
            raise HeronError("RUN053", f"'{self.path}' has no stage '{name}'", why=f"it has {has}")
        return found.decode()


class SavedGpu(CudaExecutable):
    """A program for a GPU, from a file."""

    def __init__(self, program: GpuProgram, **facts: Any) -> None:
        super().__init__(**facts)
        self._program = program

    @cached_property
    def program(self) -> GpuProgram:
        return self._program


def _gpu(machine: dict[str, Any], plan: dict[str, Any], members: dict[str, bytes], facts: dict[str, Any]) -> Executable:
    images = tuple(
        Image(members[f"code/{n}.cubin"], image["sm"], members[f"code/{n}.ptx"])
        for n, image in enumerate(machine["images"])
    )
    return SavedGpu(GpuProgram(plan["thunks"], plan["kernels"], images, machine["sm"], plan["graphs"]), **facts)


def _cpu(
    cache: CodeCache | None,
    machine: dict[str, Any],
    plan: dict[str, Any],
    members: dict[str, bytes],
    facts: dict[str, Any],
) -> Executable:
    """Object code linked here. What it calls (BLAS, the thread pool, host routines) is found as when it was compiled:
    by writing the program around the kernels, whose text nobody needs."""
    from heron.codegen.llvm.jit import Jit, host
    from heron.codegen.native.program import ENTRY, ProgramWriter
    from heron.runtime.cpu.executable import CpuExecutable, HostCalls
    from heron.runtime.cpu.pool import pool
    from heron.runtime.object_code import Object, Timing

    here = host()
    lacks = sorted(_features(machine["features"]) - _features(here.features))
    if machine["triple"] != here.triple or lacks:
        why = f"this one is {here.triple}, {here.cpu}" + (f", without {', '.join(lacks[:6])}" if lacks else "")
        raise HeronError(
            "RUN051",
            f"the program is for another machine: {machine['triple']}, {machine['cpu']}",
            why=why,
            hint="compile it here, or with HERON_HOST_CPU=x86-64-v3 where it was made",
        )
    threads = pool(2) if machine["shares"] and pool(0) is None else pool(0)
    hosts = HostCalls()
    kernels = {k.name: k for k in plan["kernels"]}
    writer = ProgramWriter(kernels, hosts.address, threads if machine["shares"] else None, has_tables=False)
    writer.write(plan["thunks"])
    if writer.unmade and _vectors(machine["features"]) != _vectors(here.features):
        raise HeronError(
            "RUN051",
            f"the program is for a machine with other vectors: {machine['cpu']}",
            why=f"this one is {here.cpu}: products, convolutions and transforms are cut in another way here",
            hint="compile it here, or load it with the HERON_HOST_CPU it was compiled with",
        )
    made = {symbol: address(cache) for symbol, address in writer.unmade.items()}
    jit = Jit(symbols=writer.externals | made)
    *others, code = [Object(name, members[f"code/{n}.o"], Timing()) for n, name in enumerate(machine["objects"])]
    jit.link(code, [ENTRY], others)
    signature = facts["signature"]
    memory = HostMemory(facts["assignment"], signature.arguments, signature.output_arrays)
    shared = threads if writer.shares else None
    return CpuExecutable(jit.address(ENTRY), (*others, code), hosts, memory, shared, None, **facts)


def _vectors(text: str) -> set[str]:
    """The features by which code that programs share is chosen."""
    return {f for f in _features(text) if f.startswith(("avx", "fma"))}


def _features(text: str) -> set[str]:
    return {f[1:] for f in text.split(",") if f.startswith("+")}


def _sim(machine: dict[str, Any], plan: dict[str, Any], members: dict[str, bytes], facts: dict[str, Any]) -> Executable:
    from heron.codegen.sim import native
    from heron.codegen.sim.kernel import compile_kernel
    from heron.runtime.sim.blocks import BlockKernel
    from heron.runtime.sim.executable import Runner, SimExecutable

    compiler = cache(native.compiler)
    runners: dict[str, Runner] = {}
    for n, k in enumerate(plan["kernels"]):
        if "programs" in k:
            text = members[f"code/{n}.ttir"].decode()
            runners[k["name"]] = BlockKernel(text, k["programs"], plan["checks"], k["facts"])
            continue
        text = members[f"code/{n}.ll"].decode()
        runners[k["name"]] = compile_kernel(
            text, k["name"], k["grid"], k["block"], checks=plan["checks"], facts=k["facts"], compiler=compiler
        )
    signature = facts["signature"]
    memory = HostMemory(facts["assignment"], signature.arguments, signature.output_arrays)
    return SimExecutable(plan["thunks"], runners, memory, **facts)
