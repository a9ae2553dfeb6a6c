"""``heron extract``: one instruction, fusion or kernel of a program as a program of its own."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING

import click

from heron.cli.common import (
    examples,
    file_argument,
    json_option,
    make_options,
    print_json,
    print_text,
    settings_option,
    target_option,
)
from heron.errors import HeronError

if TYPE_CHECKING:
    from heron.hlo.ir.instruction import Instruction
    from heron.options import Options
    from heron.reduce.case import Case

_PROGRAM, _VALUES = "program.hlo", "values.npz"


@click.command(
    short_help="Make one instruction or kernel a program of its own.",
    epilog=examples(
        "heron extract model.hlo %dot.1",
        "heron extract model.hlo --kernel loop_fusion_2 --target sm_90 --random 7",
        "heron extract model.hlo %fusion.3 --stage fused --inputs in.npz -o fusion",
    ),
)
@file_argument
@click.argument("name", metavar="%NAME", required=False)
@click.option("--kernel", metavar="K", help="The instruction that this kernel computes; `heron compile` lists kernels.")
@click.option("--stage", type=click.Choice(["hlo", "fused", "scheduled"]), help="Take %NAME from the program there.")
@target_option
@click.option("--inputs", metavar="F.npz", help="Read the program's inputs from a file.")
@click.option("--random", type=click.IntRange(min=0), metavar="SEED", help="Make up inputs; 0 where none are given.")
@click.option("-o", "output", metavar="DIR", help="The folder of the result; NAME.extracted by default.")
@settings_option
@json_option
def command(
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
    """Write the instruction %NAME of FILE, with all it calls and the values it has, as a program that runs.

    The folder gets the program and its values: inputs, as the evaluator computes them on the way to the instruction,
    and the output. In a loop they are those of the first round.
    """
    from heron import files
    from heron.cli import values
    from heron.cli.progress import evaluation
    from heron.cli.verbs.reduce import read_case
    from heron.evaluator import evaluate
    from heron.reduce.extracting import extract

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
    run = f"heron run {folder / _PROGRAM} --expect {folder / _VALUES} --target {target}"
    if as_json:
        print_json({"folder": str(folder), "instruction": chosen.name, "program": found.text, "run": run})
    else:
        print_text(f"{found.text}\n{run}")
    return 0


def _make(folder: Path) -> None:
    from heron import files

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise files.os_error("CLI012", f"cannot make the folder '{folder}'", error) from None


def _kernel(case: Case, kernel: str, target: str, options: Options) -> tuple[Case, str]:
    """The scheduled program and the name of the instruction that a kernel computes. Raises CLI076 for another name."""
    from heron.cli.progress import progress
    from heron.compiling import compile
    from heron.hlo.text import parse
    from heron.reduce.case import Case
    from heron.trace import Trace

    trace = Trace()
    with progress(trace, f"compiling {case.module.name} for {target}"):
        executable = compile(case.module, target, options, trace)
    found = {k.name: k for k in executable.kernels}
    if kernel not in found or not found[kernel].instructions:
        hint = _nearest(kernel, list(found))
        raise HeronError("CLI076", f"the program has no kernel '{kernel}'", where=case.module.name, hint=hint)
    return Case(parse(executable.stage("scheduled")), case.inputs), found[kernel].instructions[0]


def _at_stage(case: Case, stage: str, target: str, options: Options) -> Case:
    from heron import targets
    from heron.backends.compiler import Compilation
    from heron.cli.progress import progress
    from heron.reduce.case import Case
    from heron.trace import Trace

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
