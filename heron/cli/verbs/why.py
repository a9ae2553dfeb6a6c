"""``heron why``: the reasons of a compile's decisions, from its trace."""

from __future__ import annotations

import click

from heron import targets
from heron.cli.common import (
    examples,
    file_argument,
    json_option,
    load_module,
    make_options,
    print_json,
    print_text,
    settings_option,
    target_option,
)
from heron.cli.progress import progress
from heron.errors import HeronError
from heron.trace import Decision, Trace


@click.command(
    short_help="Ask why: fusions, copies, layouts, buffers, order, shardings.",
    epilog=examples(
        "heron compile model.hlo --target sm_90 -o model.trace",
        "heron why model.trace --fused add.4 reduce.1",
        "heron why model.trace --copy copy.2",
        "heron why model.hlo --target sm_90 --about add.4",
        "heron why sharded.mlir --sharding dot.1",
    ),
)
@file_argument
@click.option("--about", metavar="X", help="Show every decision about an instruction or kernel.")
@click.option("--fused", nargs=2, metavar="A B", help="Explain why two instructions are in one kernel, or are not.")
@click.option("--copy", metavar="C", help="Explain why this copy exists.")
@click.option("--layout", metavar="X", help="Explain why an instruction has its layout.")
@click.option("--buffer", metavar="X", help="Show the memory of a value, its live range, and the values that share it.")
@click.option("--order", nargs=2, metavar="A B", help="Explain why one instruction runs before another.")
@click.option("--sharding", metavar="X", help="Explain why a value is spread over devices as it is.")
@target_option
@settings_option
@json_option
def command(
    file: str,
    about: str | None,
    fused: tuple[str, str] | None,
    copy: str | None,
    layout: str | None,
    buffer: str | None,
    order: tuple[str, str] | None,
    sharding: str | None,
    target: str,
    settings: tuple[str, ...],
    as_json: bool,
) -> None:
    """Answer one question about a compile. FILE is a trace from `heron compile -o x.trace`, or a program, which is
    compiled first."""
    from heron.trace import why

    asked = {
        "about": about, "fused": fused, "copy": copy, "layout": layout, "buffer": buffer, "order": order,
        "sharding": sharding,
    }  # fmt: skip
    questions = {name: value for name, value in asked.items() if value}
    if len(questions) != 1:
        said = "none was asked" if not questions else "asked were " + ", ".join(f"--{q}" for q in questions)
        raise HeronError("CLI052", "ask one question at a time", why=said, hint="--" + ", --".join(asked))
    ((question, value),) = questions.items()
    if sharding is not None and not file.endswith(".trace"):
        from heron.cli.sharding_report import ShardingReport

        module = load_module(file, target)
        trace = Trace(module.name, target)
        with progress(trace, f"sharding {module.name}"):
            report = ShardingReport.of(module, target=targets.get(target), trace=trace)
        answer = report.why(sharding)
    else:
        trace = _trace(file, target, settings, question in _OF_KERNELS)
        answer = getattr(why, question)(trace, *([value] if isinstance(value, str) else value))
    if as_json:
        print_json(answer.to_json())
        return
    print_text("\n".join([answer.text, *(f"  {line}" for line in answer.lines), *map(_line, answer.decisions)]))


#: questions that need kernels; for the others, compilation stops earlier
_OF_KERNELS = ("about", "fused")


def _trace(file: str, target: str, settings: tuple[str, ...], kernels: bool) -> Trace:
    """The trace in `file`, or of compiling the program in it up to its buffers or (`kernels`) its kernels."""

    if file.endswith(".trace"):
        return Trace.load(file)
    from heron.backends.compiler import Compilation
    from heron.buffers.report import to_json
    from heron.compiling import compile_module
    from heron.hlo.text.record import record

    module = load_module(file, target)
    trace = Trace(module.name, target)
    with progress(trace, f"compiling {module.name} for {target}"):
        machine, options = targets.get(target), make_options(settings)
        if kernels:
            compile_module(module, machine, options, trace)
            return trace
        compilation = Compilation(module, machine, options, trace)
        trace.program, trace.buffers = record(compilation.scheduled), to_json(compilation.buffers)
    return trace


def _line(d: Decision) -> str:
    """``yes  instruction-fusion: add.4 -> reduce.1: its only reader (6000012 -> 4)``."""
    cost = "" if d.cost_before is None or d.cost_after is None else f" ({d.cost_before:.6g} -> {d.cost_after:.6g})"
    into = f" -> {d.object}" if d.object else ""
    return f"  {'yes' if d.ok else 'no '}  {d.rule}: {d.subject}{into}: {d.reason}{cost}"
