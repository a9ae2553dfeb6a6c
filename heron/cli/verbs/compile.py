"""``heron compile``: compile a program and summarise the result, or print it at a stage."""

from __future__ import annotations

import click

from heron.cli.common import (
    examples,
    file_argument,
    json_option,
    load_module,
    make_options,
    memory_limit_option,
    print_json,
    print_text,
    settings_option,
    target_option,
    timeout_option,
)
from heron.errors import HeronError

STAGES = ("hlo", "fused", "scheduled", "buffers", "thunks", "graph", "mlir", "llvm", "ptx", "sass", "asm")
BINARY = ("cubin",)  # stages that are no text


@click.command(
    short_help="Compile a program and summarise it, or print a stage.",
    epilog=examples(
        "heron compile model.hlo",
        "heron compile model.hlo --target sm_90 --to ptx -o model.ptx",
        "heron compile model.hlo --target sm_90 --to cubin -o model.cubin",
        "heron compile model.hlo --target sm_90 --to mlir --print-after-all --kernel loop_add_fusion",
        "heron compile model.hlo --target sm_90 --to graph",
        "heron compile model.hlo -o model.trace",
        "heron compile model.hlo --target sm_90 -o model.heron",
    ),
)
@file_argument
@target_option
@click.option("--to", "stage", type=click.Choice((*STAGES, *BINARY)), help="Print the program at this stage.")
@click.option(
    "-o", "output", metavar="OUT", help="Write to OUT: the stage's text, the trace (.trace) or the program (.heron)."
)
@click.option("--kernel", metavar="NAME", help="With --to mlir: only this kernel.")
@click.option("--print-after-all", "steps", is_flag=True, help="With --to mlir: print kernels after every transform.")
@memory_limit_option
@timeout_option
@settings_option
@json_option
def command(
    file: str,
    target: str,
    stage: str | None,
    output: str | None,
    kernel: str | None,
    steps: bool,
    memory_limit: str | None,
    timeout: int | None,
    settings: tuple[str, ...],
    as_json: bool,
) -> None:
    """Compile FILE (HLO text, - for standard input) and summarise: kernels, library calls, memory, time by stage."""
    from heron import targets
    from heron.backends.watchdog import watched
    from heron.cli.progress import progress
    from heron.trace import Trace

    wants_trace = output is not None and output.endswith(".trace")
    wants_program = output is not None and output.endswith(".heron") and stage is None
    if output is not None and stage is None and not (wants_trace or wants_program):
        hint = "--to STAGE, or a name that ends in .trace or .heron"
        raise HeronError("CLI034", f"nothing to write to '{output}'", hint=hint)
    if stage in BINARY and (output is None or wants_trace):
        raise HeronError("CLI034", f"{stage} is no text: it needs a file", hint=f"--to {stage} -o model.{stage}")
    if (stage != "mlir" or wants_trace) and (kernel is not None or steps):
        option = "--print-after-all" if steps else "--kernel"
        raise HeronError("CLI045", f"{option} prints MLIR", hint=f"--to mlir {option}, without a trace")
    machine, options = targets.get(target), make_options(settings, memory_limit, timeout)
    module = load_module(file, target)
    trace = Trace(module.name, target)
    trace.options = options.changed()
    what = f"compiling {module.name} for {target}"
    if stage is not None and not wants_trace:
        from heron.backends.compiler import Compilation, Stages

        compilation = Compilation(module, machine, options, trace)
        stages = Stages(module, machine, options, compilation)

        def printed() -> str | bytes:
            if stage in BINARY:
                return stages.cubin()
            return stages.mlir(kernel, steps) if stage == "mlir" else stages.text(stage)

        with progress(trace, what):  # no further than the stage asked for
            result = watched(printed, options.compile_timeout, compilation.late)
        if isinstance(result, bytes):
            _give_bytes(result, stage, str(output), as_json)
        else:
            _give(result, stage, output, as_json)
        return

    from heron import backends
    from heron.hlo.text.printer import identity

    with progress(trace, what):
        executable = backends.compile(module, target=machine, options=options, trace=trace)
        executable.examine()
    trace.memory = trace.memory or dict(executable.memory)
    if wants_program:
        from heron import archive

        archive.save(executable, str(output))
    elif output is not None:
        trace.program, trace.buffers = identity(executable._stages.done.scheduled), executable.assignment.to_json()
        trace.save(output)
    if stage is not None:
        _give(executable.stage(stage), stage, None, as_json)
    elif as_json:
        print_json(trace.to_json())
    else:
        print_text(trace.summary())


def _give_bytes(data: bytes, stage: str, output: str, as_json: bool) -> None:
    """Write a binary stage to its file."""
    from heron import files

    files.write_bytes(output, data)
    if as_json:
        print_json({"stage": stage, "file": output, "bytes": len(data)})


def _give(text: str, stage: str, output: str | None, as_json: bool) -> None:
    """Write the stage's text to its file or to standard output."""
    from heron import files

    if output is not None:
        files.write_text(output, text if text.endswith("\n") else text + "\n")
    if as_json:
        print_json({"stage": stage, "file": output} if output else {"stage": stage, "text": text})
    elif output is None:
        print_text(text)
