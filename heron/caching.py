"""Whole programs from the cache: with the option `cache` the executable that an earlier compile kept."""

from __future__ import annotations

import contextlib
import os
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from heron.archive import container
from heron.archive.loading import made
from heron.backends.stages import Stages
from heron.codegen.llvm.code_cache import CodeCache, Key, cache_decision, digest, key
from heron.codegen.llvm.jit import host
from heron.errors import HeronError
from heron.hlo.ir.module import Module
from heron.hlo.text.printer import identity
from heron.options import Options
from heron.records import dataclass
from heron.runtime.cpu.pool import thread_count
from heron.targets import Target
from heron.trace import Trace

if TYPE_CHECKING:
    from heron.backends.compiler import Compilation
    from heron.runtime.executable import Executable

#: options that do not change what a program does
_SILENT = ("cache", "compile_timeout")


def applies(target: Target, options: Options) -> bool:
    """Whether whole programs are kept: for the CPU, unless the passes or the run are to be watched."""
    return options.cache and not (target.is_gpu or options.check or options.dump_dir or options.profile)


@dataclass
class Kept:
    """The place of one program in the cache."""

    module: Module
    target: Target
    options: Options

    @cached_property
    def key(self) -> Key:
        return program_key(self.module, self.target, self.options)

    def read(self) -> Executable | None:
        """The program; None when it is not there, or cannot be read."""
        kept = CodeCache()
        found = kept.get(self.key)
        if found is None:
            return None
        try:
            program = made(*container.unpack(found, "cache"), "cache", kept)
        except HeronError:  # of another format, or for a machine with other features
            return None
        program.trace.decide(cache_decision(self.module.name, True))
        program.trace.note("the whole program is from the cache: no pass ran, no kernel was compiled")
        program.stages = Stages(self._compilation)
        return program

    def write(self, program: Executable) -> None:
        """Keep a program, where it has a form in a file."""
        from heron.archive.saving import packed

        with contextlib.suppress(HeronError):
            CodeCache().put(self.key, container.pack(*packed(program, kept=()), level=0), self.module.name)

    def _compilation(self) -> Compilation:
        from heron.backends.compiler import Compilation

        return Compilation(self.module, self.target, self.options, Trace())


def program_key(module: Module, target: Target, options: Options) -> Key:
    """The key of a whole program: its identity, the machine, the options, and heron's own code."""
    here = host()
    told = {name: value for name, value in options.changed().items() if name not in _SILENT}
    told |= {"threads": str(thread_count(options.threads)), "sources": sources()}
    return key("program", f"{target}\n{identity(module)}", f"{here.triple} {here.cpu}", here.features, **told)


@cache
def sources() -> str:
    """A digest of heron's own files: after a change of the compiler nothing it made before fits."""
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
