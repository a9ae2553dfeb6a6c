"""Traces that a command line names: saved ones, and those of programs that are compiled for the question."""

from __future__ import annotations

from heron import targets
from heron.cli.common import load_module, make_options
from heron.cli.progress import progress
from heron.trace import Trace


def trace_of(file: str, target: str, settings: tuple[str, ...], texts: bool = False) -> Trace:
    """The trace in `file`, or of compiling the program in it: with ``texts`` with the program after every pass and each
    kernel's texts. Raises CLI010 and CLI013 for a file that is no trace."""
    if file.endswith(".trace"):
        return Trace.load(file)
    from heron.backends.compiler import Compilation
    from heron.view.record.recording import Recording

    machine, options = targets.get(target), make_options(settings)
    module = load_module(file, target)
    trace = Trace(module.name, target)
    trace.options = options.changed()
    recording = Recording(trace, texts)
    with progress(trace, f"compiling {module.name} for {target}"):
        compilation = Compilation(module, machine, options, trace)
        compilation.executable().examine()
        recording.finish(compilation)
    return trace
