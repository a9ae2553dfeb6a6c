"""Programs for CPUs in files: object code, linked again where the program is loaded."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from heron.archive.parts import Parts
from heron.codegen.llvm.code_cache import CodeCache
from heron.codegen.llvm.jit import Jit, host
from heron.codegen.native import float_mode
from heron.codegen.native.program import ENTRY, ProgramWriter
from heron.errors import HeronError
from heron.runtime.collectives.team import Program
from heron.runtime.cpu.devices import CpuDevices, DeviceHostCalls
from heron.runtime.cpu.executable import CpuExecutable, HostCalls
from heron.runtime.cpu.pool import pool
from heron.runtime.executable import ProgramInfo
from heron.runtime.object_code import Object, Timing

if TYPE_CHECKING:
    from heron.backends.lower import LoweredProgram


def save(executable: CpuExecutable | CpuDevices, lowered: LoweredProgram) -> Parts:
    """The parts of a program.

    Raises RUN052 for a program that was compiled with `Options.profile`.
    """
    if executable.profile is not None:
        raise HeronError("RUN052", "a program that counts its steps cannot be saved", hint="compile without `profile`")
    here = host()
    machine = {
        "kind": "cpu",
        "objects": [compiled.name for compiled in executable.objects],
        "shares": executable.shares,
        "triple": here.triple,
        "cpu": here.cpu,
        "features": here.features,
    }
    if isinstance(executable, CpuDevices):  # threads of each, and how long they wait
        machine["devices"] = [executable.program.threads, executable.program.timeout]
    kernels = [
        dataclasses.replace(use.kernel, module=None, notes={}, decision=None)  # type: ignore[arg-type]
        for use in lowered.kernels.values()
    ]
    members = {f"code/{n}.o": compiled.code for n, compiled in enumerate(executable.objects)}
    return Parts(machine, {"thunks": lowered.thunks, "kernels": kernels}, members)


def load(parts: Parts, info: ProgramInfo, cache: CodeCache | None = None) -> CpuExecutable | CpuDevices:
    """Object code linked here. The addresses that it leaves open (BLAS, the thread pool, host routines) are found as
    when it was compiled: by writing the program around the kernels; the text of that is dropped.

    Args:
        cache: may have the code that programs share.

    Raises RUN051 for code that this machine cannot run.
    """
    machine = parts.machine
    _check_machine(machine)
    devices = info.spread.devices
    threads = pool(2) if machine["shares"] and pool(0) is None else pool(0)
    hosts = HostCalls() if devices == 1 else DeviceHostCalls()
    kernels = {k.name: k for k in parts.plan["kernels"]}
    shared = threads if machine["shares"] else None
    writer = ProgramWriter(kernels, hosts.address, shared, has_tables=False, devices=devices)
    writer.write(parts.plan["thunks"])
    if writer.unmade:
        _check_vectors(machine)
    unmade = {symbol: address(cache) for symbol, address in writer.unmade.items()}
    jit = Jit(symbols={**float_mode.addresses(), **writer.externals, **unmade})
    *others, code = [Object(name, parts.members[f"code/{n}.o"], Timing()) for n, name in enumerate(machine["objects"])]
    jit.link(code, [ENTRY], others)
    objects = (*others, code)
    if isinstance(hosts, DeviceHostCalls):
        program = Program(jit.address(ENTRY), info.spread.partitions, writer.collectives, *machine["devices"])
        return CpuDevices(info, program, list(writer.cliques), objects, hosts)
    return CpuExecutable(info, jit.address(ENTRY), objects, hosts, threads if writer.shares else None)


def _check_machine(machine: dict[str, Any]) -> None:
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


def _check_vectors(machine: dict[str, Any]) -> None:
    here = host()
    if _vectors(machine["features"]) != _vectors(here.features):
        raise HeronError(
            "RUN051",
            f"the program is for a machine with other vectors: {machine['cpu']}",
            why=f"this one is {here.cpu}: products, convolutions and transforms are cut in another way here",
            hint="compile it here, or load it with the HERON_HOST_CPU it was compiled with",
        )


def _vectors(text: str) -> set[str]:
    """The features by which code that programs share is chosen."""
    return {f for f in _features(text) if f.startswith(("avx", "fma"))}


def _features(text: str) -> set[str]:
    return {f[1:] for f in text.split(",") if f.startswith("+")}
