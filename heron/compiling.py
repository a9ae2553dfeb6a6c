"""``heron.compile``: the one way from a program to an executable.

Every compile goes through `compile_module`. It reads the whole program from the cache if it is there; otherwise it
verifies the module, compiles it, and writes it to the cache if the options ask for one.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, overload

from heron import targets
from heron.collector import collector_paused
from heron.errors import HeronError
from heron.hlo.ir.module import Module
from heron.options import Options
from heron.targets import Target
from heron.trace import Trace

if TYPE_CHECKING:
    from heron.runtime.executable import Executable
    from heron.specializing import Specialized


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
        module: a program, which is not changed; or what `heron.load` takes. Of StableHLO that leaves sizes open (``?``)
            a `Specialized` is made: it compiles when it is called, for the sizes of the arguments.
        target: a name (`cpu`, `sm_90`, `sim:sm_90`, …; `heron targets` lists them) or a `Target`.
        options: defaults and `HERON_*` variables when None.
        trace: the record to write into; a fresh one when None (found at `executable.trace`).

    Raises HeronError with the code of the rule that the module breaks, or of the stage that refused.
    """
    machine = targets.get(target) if isinstance(target, str) else target
    options = options or Options.from_env()
    loaded = module if isinstance(module, Module) else _loaded(module, machine, options)
    return compile_module(loaded, machine, options, trace) if isinstance(loaded, Module) else loaded


def _loaded(source: str | bytes | Path, target: Target, options: Options) -> Module | Specialized:
    """The module of a program in any form `heron.load` takes; one with open sizes waits for its arguments."""
    from heron.frontends import loading

    try:
        return loading.load(source, verify=True, platform="cuda" if target.is_gpu else "cpu")
    except HeronError as error:
        found = loading.stablehlo_text(source) if error.code == loading.OPEN_SIZES else None
        if found is None:
            raise
    from heron.specializing import Specialized

    return Specialized(*found, partial(compile_module, target=target, options=options))


def compile_module(module: Module, target: Target, options: Options, trace: Trace | None = None) -> Executable:
    """The executable of a module. With a `trace` it is always compiled, never read from the cache."""
    with collector_paused():
        if trace is not None or not options.cache:
            return _compiled(module, target, options, trace if trace is not None else Trace())
        from heron import caching

        kept = caching.Kept(module, target, options) if caching.applies(target, options) else None
        found = kept.read() if kept is not None else None
        if found is not None:
            return found
        program = _compiled(module, target, options, Trace())
        if kept is not None:
            kept.write(program)
        return program


def _compiled(module: Module, target: Target, options: Options, trace: Trace) -> Executable:
    """The executable of a module, compiled now. Verification takes 1 to 2 % of the time, once for each module."""
    from heron.backends.compiler import Compilation
    from heron.hlo.verifier import verify_once

    verify_once(module)
    return Compilation(module, target, options, trace).executable()


def recorded(executable: Executable) -> Trace:
    """The record of a compile with all that questions need: the scheduled program, the buffers, the memory.

    A program that came from the cache has no such record: it is compiled again up to its buffers.
    """
    from heron.buffers.report import to_json
    from heron.hlo.text.record import record

    compilation = executable.stages.compilation  # type: ignore[union-attr]
    trace = executable.trace if executable.trace.passes else compilation.trace
    trace.module, trace.target = trace.module or executable.name, trace.target or str(executable.target)
    trace.memory = trace.memory or dict(executable.memory)
    trace.program = trace.program or record(compilation.scheduled)
    trace.buffers = trace.buffers or to_json(compilation.buffers)
    return trace
