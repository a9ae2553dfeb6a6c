"""``heron compile``: compile a program and summarise the result, or print it at a stage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from heron import files, targets
from heron.backends.stages import Stages
from heron.backends.watchdog import watched
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
from heron.cli.devices import devices_option, with_counts
from heron.cli.progress import kept_when_interrupted, progress
from heron.collector import collector_paused
from heron.errors import HeronError
from heron.records import dataclass
from heron.trace import Trace

if TYPE_CHECKING:
    from heron.backends.compiler import Compilation
    from heron.runtime.executable import Executable
    from heron.view.record.recording import Recording

STAGES = (
    *("sharded", "partitioned", "hlo", "fused", "scheduled", "buffers", "thunks", "graph"),
    *("mlir", "llvm", "ptx", "sass", "asm"),
)
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
        "heron compile model.hlo --view model.html",
        "heron compile model.hlo --target sm_90 -o model.heron",
    ),
)
@file_argument
@target_option
@devices_option
@click.option("--to", "stage", type=click.Choice((*STAGES, *BINARY)), help="Print the program at this stage.")
@click.option(
    "-o", "output", metavar="OUT", help="Write to OUT: the stage's text, the trace (.trace) or the program (.heron)."
)
@click.option("--kernel", metavar="NAME", help="With --to mlir: only this kernel.")
@click.option("--print-after-all", "steps", is_flag=True, help="With --to mlir: print kernels after every transform.")
@click.option(
    "--full", "is_full", is_flag=True, help="With -o OUT.trace: keep the texts of all passes and kernels too."
)
@click.option("--view", metavar="OUT.html", help="Write a page that shows the whole compile; `heron view` explains it.")
@memory_limit_option
@timeout_option
@settings_option
@json_option
def command(
    file: str,
    target: str,
    memory_limit: str | None,
    timeout: int | None,
    settings: tuple[str, ...],
    devices: tuple[int | None, int] | None,
    **asked: Any,
) -> None:
    """Compile FILE (HLO text, - for standard input) and summarise: kernels, library calls, memory, time by stage."""
    wanted = Wanted(**asked)
    wanted.check()
    machine, options = targets.get(target), make_options(settings, memory_limit, timeout)
    module = with_counts(load_module(file, target), devices)
    trace = Trace(module.name, target)
    trace.options = options.changed()
    recording = wanted.recording(trace)
    kept = kept_when_interrupted(trace, wanted.output if wanted.is_trace else None)
    with kept, progress(trace, f"compiling {module.name} for {target}"):
        if wanted.stage is None or wanted.keeps_facts:
            from heron.compiling import compile_module

            executable = compile_module(module, machine, options, trace)
            executable.examine()
        else:  # no further than the stage asked for
            from heron.backends.compiler import Compilation

            compilation, executable = Compilation(module, machine, options, trace), None
            stage = watched(lambda: wanted.printed(compilation), options.compile_timeout, compilation.late)
    if executable is not None:
        wanted.report(executable, recording)
    else:
        wanted.give(stage)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The request of the command line: a summary, a file of the program or of its trace, or a stage.

    ``kernel``, ``steps``: of the stage mlir one kernel only, or also every transform. ``is_full``: the trace has all
    texts. ``view``: the file of a page about the compile.
    """

    stage: str | None
    output: str | None
    kernel: str | None
    steps: bool
    as_json: bool
    is_full: bool = False
    view: str | None = None

    @property
    def keeps_facts(self) -> bool:
        """Whether a file gets all that the trace can hold."""
        return self.is_trace or self.view is not None

    @property
    def is_trace(self) -> bool:
        """Whether the file is for the trace."""
        return self.output is not None and self.output.endswith(".trace")

    @property
    def is_program(self) -> bool:
        """Whether the file is for the program."""
        return self.output is not None and self.output.endswith(".heron") and self.stage is None

    def check(self) -> None:
        """Raise CLI034 and CLI045 for options that do not go together."""
        stage = self.stage
        if self.output is not None and stage is None and not (self.is_trace or self.is_program):
            hint = "--to STAGE, or a name that ends in .trace or .heron"
            raise HeronError("CLI034", f"nothing to write to '{self.output}'", hint=hint)
        self._check_page()
        if stage in BINARY and (self.output is None or self.is_trace):
            raise HeronError(
                "CLI034", f"{stage} is binary: it needs an output file", hint=f"--to {stage} -o model.{stage}"
            )
        if (stage != "mlir" or self.is_trace) and (self.kernel is not None or self.steps):
            option = "--print-after-all" if self.steps else "--kernel"
            raise HeronError("CLI045", f"{option} prints MLIR", hint=f"--to mlir {option}, without a trace")

    def _check_page(self) -> None:
        if self.is_full and not self.is_trace:
            raise HeronError("CLI045", "--full says what a trace holds", hint="-o model.trace --full")
        if self.view is None:
            return
        if not self.view.endswith(".html"):
            raise HeronError("CLI034", f"'{self.view}' is not a page", hint="--view OUT.html")
        if self.stage is not None:
            raise HeronError("CLI045", "--view shows all stages", hint="--view OUT.html without --to")

    def recording(self, trace: Trace) -> Recording | None:
        """The recording of the compile that is about to begin; None where no file asks for one."""
        if not self.keeps_facts:
            return None
        from heron.view.record.recording import Recording

        return Recording(trace, full=self.is_full or self.view is not None)

    def printed(self, compilation: Compilation) -> str | bytes:
        """The stage that is asked for."""
        assert self.stage is not None
        if self.stage in BINARY:
            return compilation.cubin()
        return compilation.mlir(self.kernel, self.steps) if self.stage == "mlir" else compilation.text(self.stage)

    def give(self, stage: str | bytes) -> None:
        """Write a stage to its file, or print it."""
        if isinstance(stage, bytes):
            files.write_bytes(str(self.output), stage)
            if self.as_json:
                print_json({"stage": self.stage, "file": self.output, "bytes": len(stage)})
            return
        output = None if self.is_trace else self.output
        if output is not None:
            files.write_text(output, stage if stage.endswith("\n") else stage + "\n")
        if self.as_json:
            print_json({"stage": self.stage, "file": output} if output else {"stage": self.stage, "text": stage})
        elif output is None:
            print_text(stage)

    def report(self, executable: Executable, recording: Recording | None) -> None:
        """Write the program or the trace to its file; print the summary, or the stage beside a trace."""
        trace = executable.trace
        trace.memory = trace.memory or dict(executable.memory)
        if self.is_program:
            from heron import archive

            archive.save(executable, str(self.output))
        if recording is not None:
            with collector_paused():  # its walk over the compiled program would take longer than the writing
                self._keep(recording, executable)
        if self.stage is not None:
            self.give(executable.stage(self.stage))
        elif self.as_json:
            print_json(trace.to_json())
        else:
            print_text(trace.summary())

    def _keep(self, recording: Recording, executable: Executable) -> None:
        """Write the trace, the page or both."""
        assert isinstance(executable.stages, Stages)
        recording.finish(executable.stages.compilation)
        if self.is_trace:
            executable.trace.save(str(self.output))
        if self.view is not None:
            from heron.view.page import write

            write(executable.trace, self.view)
