"""``heron.compile``: compiles a program, or with the option `cache` reads the whole result of an earlier compile."""

from __future__ import annotations

import contextlib
import os
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from heron import backends
from heron.errors import HeronError
from heron.hlo.ir.module import Module
from heron.options import Options
from heron.trace import Trace

if TYPE_CHECKING:
    from heron.backends.compiler import Stages
    from heron.codegen.llvm.code_cache import Key
    from heron.runtime.executable import Executable
    from heron.specializing import Specialized
    from heron.targets import Target

#: options that do not change what a program does
_SILENT = ("cache", "compile_timeout")


@overload
def compile(
    module: Module, target: str | Target = "cpu", options: Options | None = None, trace: Trace | None = None
) -> Executable: ...
@overload
def compile(
    module: str | bytes | Path, target: str | Target = "cpu", options: Options | None = None, trace: Trace | None = None
) -> Executable | Specialized: ...
def compile(
    module: Module | str | bytes | Path,
    target: str | Target = "cpu",
    options: Options | None = None,
    trace: Trace | None = None,
) -> Executable | Specialized:
    """Compile a module for a target.

    With ``Options.cache`` a program for the CPU that was compiled before is read from a file, passes and all; its trace
    says so and little else. To have the record of a compile give a `trace`, or leave `cache` out.

    Args:
        module: a verified program, which is not changed; or what `heron.load` takes. Of StableHLO that leaves sizes
            open (``?``) a `Specialized` is made: it compiles when it is called, for the sizes of the arguments.
        target: a name (`cpu`, `sm_90`, `sim:sm_90`, …; `heron targets` lists them) or a `Target`.
        options: defaults and `HERON_*` variables when None.
        trace: the record to write into; a fresh one when None (found at `executable.trace`).

    Raises HeronError with a code of the stage that refused.
    """
    from heron import targets

    machine = targets.get(target) if isinstance(target, str) else target
    options = options or Options.from_env()
    if not isinstance(module, Module):
        from heron.specializing import compiled

        return compiled(module, machine, options, trace)
    watched = trace is not None or options.check or options.dump_dir or options.profile
    if not options.cache or watched or machine.kind != "cpu":
        return backends.compile(module, target=machine, options=options, trace=trace)
    return _kept(module, machine, options) or _compiled(module, machine, options)


def program_key(module: Module, target: Target, options: Options) -> Key:
    """The key of a whole program in the cache: its identity, the machine, the options, and heron's own code."""
    from heron.codegen.llvm.code_cache import key
    from heron.codegen.llvm.jit import host
    from heron.hlo.text.printer import identity
    from heron.runtime.cpu.pool import thread_count

    here = host()
    told = {name: value for name, value in options.changed().items() if name not in _SILENT}
    told |= {"threads": str(thread_count(options.threads)), "sources": sources()}
    return key("program", f"{target}\n{identity(module)}", f"{here.triple} {here.cpu}", here.features, **told)


def _kept(module: Module, target: Target, options: Options) -> Executable | None:
    """The program from the cache; None if it is missing or cannot be read."""
    from heron.archive import container
    from heron.archive.loading import made
    from heron.backends.collector import collector_paused
    from heron.codegen.llvm.code_cache import CodeCache, cache_decision

    with collector_paused():
        kept = CodeCache()
        found = kept.get(program_key(module, target, options))
        if found is None:
            return None
        try:
            program = made(*container.unpack(found, "cache"), "cache", kept)
        except HeronError:  # of another format, or for a machine with other features
            return None
        program.trace.decide(cache_decision(module.name, True))
        program.trace.note("the whole program is from the cache: no pass ran, no kernel was compiled")
        program._stages = _Remade(module, target, options)
        return program


class _Remade:
    """The stages of a program from the cache: the program is compiled when a stage is asked for."""

    def __init__(self, module: Module, target: Target, options: Options) -> None:
        self._given = module, target, options

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stages, name)

    @cached_property
    def _stages(self) -> Stages:
        from heron.backends.compiler import Compilation, Stages

        return Stages(*self._given, Compilation(*self._given, Trace()))


def _compiled(module: Module, target: Target, options: Options) -> Executable:
    """The compiled program; it is also written to the cache if possible."""
    from heron.archive import container
    from heron.archive.saving import packed
    from heron.codegen.llvm.code_cache import CodeCache

    key = program_key(module, target, options)
    program = backends.compile(module, target=target, options=options)
    with contextlib.suppress(HeronError):  # it holds what has no form in a file
        CodeCache().put(key, container.pack(*packed(program, kept=()), level=0), module.name)
    return program


@cache
def sources() -> str:
    """A digest of what heron's own files are: after a change of the compiler nothing it made before fits."""
    from heron.codegen.llvm.code_cache import digest

    rows = []
    folders = [Path(__file__).parent]
    while folders:
        for entry in os.scandir(folders.pop()):
            if entry.is_dir():
                folders.append(Path(entry.path))
            elif entry.name.endswith((".py", ".toml")):
                status = entry.stat()
                rows.append(f"{entry.path} {status.st_size} {status.st_mtime_ns}")
    return digest("\n".join(sorted(rows)).encode())[:16]
