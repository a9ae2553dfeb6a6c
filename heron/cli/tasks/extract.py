"""The work of ``heron extract``."""

from __future__ import annotations

import difflib
from pathlib import Path

from heron import files, targets
from heron.backends.compiler import Compilation
from heron.cli import values
from heron.cli.common import make_options, print_json, print_text
from heron.cli.progress import evaluation, progress
from heron.cli.tasks.reduce import read_case
from heron.compiling import compile
from heron.errors import HeronError
from heron.evaluator import evaluate
from heron.hlo.ir.instruction import Instruction
from heron.hlo.text import parse
from heron.options import Options
from heron.reduce.case import Case
from heron.reduce.extracting import extract
from heron.trace import Trace

_PROGRAM, _VALUES = "program.hlo", "values.npz"


def run(
    file: str,
    name: str | None,
    kernel: str | None,
    stage: str | None,
    target: str,
    inputs: str | None,
    random: int | None,
    output: str | None,
    settings: tuple[str, ...],
    as_json: bool,
) -> int:
    """Write the instruction %NAME of FILE, with all it calls and the values it has, as a program that runs."""
    if (name is None) == (kernel is None):
        raise HeronError("CLI076", "no instruction is named, or two", hint="either %NAME or --kernel K")
    case, options = read_case(file, inputs, random), make_options(settings)
    if kernel is not None:
        case, name = _kernel(case, kernel, target, options)
    elif stage is not None:
        case = _at_stage(case, stage, target, options)
    chosen = _named(case, name or "")
    with evaluation(case.module.name) as on_value:
        found = extract(case, chosen, on_value)
        outputs = evaluate(found.module, *found.inputs, on_value=on_value) if found.module.replica_count == 1 else []
    folder = Path(output or f"{chosen.name}.extracted")
    _make(folder)
    files.write_text(folder / _PROGRAM, found.text)
    values.write(str(folder / _VALUES), found.inputs, outputs)
    rerun = f"heron run {folder / _PROGRAM} --expect {folder / _VALUES} --target {target}"
    if as_json:
        print_json({"folder": str(folder), "instruction": chosen.name, "program": found.text, "run": rerun})
    else:
        print_text(f"{found.text}\n{rerun}")
    return 0


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise files.os_error("CLI012", f"cannot make the folder '{folder}'", error) from None


def _kernel(case: Case, kernel: str, target: str, options: Options) -> tuple[Case, str]:
    """The scheduled program and the name of the instruction that a kernel computes. Raises CLI076 for another name."""
    trace = Trace()
    with progress(trace, f"compiling {case.module.name} for {target}"):
        executable = compile(case.module, target, options, trace)
    found = {k.name: k for k in executable.kernels}
    if kernel not in found or not found[kernel].instructions:
        hint = _nearest(kernel, list(found))
        raise HeronError("CLI076", f"the program has no kernel '{kernel}'", where=case.module.name, hint=hint)
    return Case(parse(executable.stage("scheduled")), case.inputs), found[kernel].instructions[0]


def _at_stage(case: Case, stage: str, target: str, options: Options) -> Case:
    trace = Trace()
    with progress(trace, f"compiling {case.module.name} for {target}"):
        module = Compilation(case.module, targets.get(target), options, trace).passes(stage)
    return Case(module.clone(), case.inputs)


def _named(case: Case, name: str) -> Instruction:
    wanted = name.removeprefix("%")
    found = {i.name: i for i in case.module.instructions()}
    if wanted not in found:
        hint = _nearest(wanted, list(found))
        raise HeronError("CLI039", f"no instruction is called '{wanted}'", where=case.module.name, hint=hint)
    return found[wanted]


def _nearest(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, 3)
    return f"near it are {', '.join(near)}" if near else f"there are {', '.join(known[:5])}, …"
