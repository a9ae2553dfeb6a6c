"""``heron reduce``: the smallest program that still shows a fault."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from heron.cli.common import (
    examples,
    file_argument,
    json_option,
    load_module,
    make_options,
    settings_option,
    target_option,
)
from heron.errors import HeronError

if TYPE_CHECKING:
    from heron.options import Options
    from heron.reduce.case import Case
    from heron.reduce.checks import Check


@click.command(
    short_help="Make a program small that shows a fault.",
    epilog=examples(
        "heron reduce model.hlo --differs",
        "heron reduce model.hlo --differs --target sim:sm_90 --against cpu",
        "heron reduce model.hlo --crashes --target cuda -o crash --jobs 4",
        "heron reduce model.hlo --slow-compile 20 --time 600",
        "heron reduce model.hlo --check 'heron run {} --inputs {inputs}' --says RUN044",
    ),
)
@file_argument
@click.option("--differs", is_flag=True, help="The fault: the target gives other values than --against.")
@click.option("--crashes", is_flag=True, help="The fault: the target's compile or run fails, with the same error.")
@click.option("--slow-compile", "slow", type=click.FloatRange(min=0), metavar="N", help="The fault: N s and more.")
@click.option("--check", "command_line", metavar="CMD", help="The fault: CMD fails on {}, with {inputs}.")
@click.option("--says", default="", metavar="REGEX", help="With --check: the output of CMD matches, too.")
@target_option
@click.option("--against", default="evaluator", show_default=True, metavar="M", help="evaluator, xla, sim or a target.")
@click.option("--inputs", metavar="F.npz", help="Read inputs from a file.")
@click.option("--random", type=click.IntRange(min=0), metavar="SEED", help="Make up inputs; 0 where none are given.")
@click.option("-o", "output", metavar="DIR", help="The folder of the result; FILE.reduced by default.")
@click.option("--jobs", type=click.IntRange(min=1), default=2, show_default=True, help="Programs tried at a time.")
@click.option("--time", "seconds", type=click.FloatRange(min=0), metavar="S", help="Stop after this many seconds.")
@click.option("--timeout", type=click.FloatRange(min=1), metavar="S", help="Seconds for one program.")
@click.option("--load", "loads", multiple=True, metavar="PY", help="A Python file with passes or rules of your own.")
@click.option("--once", is_flag=True, help="Only say whether the fault is there: exit code 1 if it is.")
@settings_option
@json_option
def command(file: str, as_json: bool, once: bool, **asked: Any) -> int:
    """Make FILE (HLO or StableHLO, - for standard input) as small as it goes while a fault is still there.

    The smallest program so far is in the folder at every moment, with inputs and a script. Ctrl-C loses nothing: the
    same command goes on. Programs run in processes of their own, which a fault may end.
    """
    from heron.cli import reduce_report as report
    from heron.reduce.reducing import Plan, look, reduce
    from heron.reduce.store import quoted

    options = make_options(asked["settings"])
    check = _check(asked, options)
    extra = quoted("-O", asked["settings"]) + quoted("--load", tuple(str(Path(p).resolve()) for p in asked["loads"]))
    folder = Path(asked["output"] or Path(file if file != "-" else "program").name + ".reduced")
    plan = Plan(folder, asked["jobs"], asked["seconds"], asked["timeout"], asked["loads"], extra)
    start = read_case(file, asked["inputs"], asked["random"])
    if once:
        return report.once(look(start, check, plan), check, as_json)
    with report.shown(start) as show:
        try:
            result = reduce(
                start, check, plan, show, lambda program, inputs: read_case(str(program), str(inputs), None)
            )
        except KeyboardInterrupt:
            report.interrupted(folder)
            raise
    report.tell(result, folder, as_json)
    return 0


def read_case(file: str, inputs: str | None, random: int | None) -> Case:
    """The program of FILE with its inputs. Raises CLI033 if both sorts are given, RUN001 to RUN003 if they misfit."""
    from heron.cli import values
    from heron.reduce.case import Case

    if inputs is not None and random is not None:
        raise HeronError("CLI033", "both --inputs and --random are given", hint="one of them")
    module = load_module(file)
    if inputs is None:
        return Case(module, tuple(values.random(module, random or 0)))
    return Case(module, tuple(values.fit(values.read(inputs).inputs, module, inputs)))


def _check(asked: dict[str, Any], options: Options) -> Check:
    """The one check that is asked for. Raises CLI075 if it is none, or several."""
    from heron.reduce.checks import Command, Crashes, Differs, SlowCompile

    target, against = asked["target"], asked["against"]
    need_machines(target, against)
    made = {
        "--differs": asked["differs"] and Differs(target, against, options),
        "--crashes": asked["crashes"] and Crashes(target, options),
        "--slow-compile": asked["slow"] is not None and SlowCompile(asked["slow"], target, options),
        "--check": asked["command_line"] is not None and Command(asked["command_line"], asked["says"]),
    }
    given = {name: check for name, check in made.items() if check}
    if len(given) != 1:
        what = f"{' and '.join(given)} are given" if given else "no fault is named"
        raise HeronError("CLI075", what, hint=f"one of {', '.join(made)}")
    return next(iter(given.values()))


def need_machines(*names: str) -> None:
    """Raises TGT001 for a name that is no target."""
    from heron import targets
    from heron.reduce.checks import running

    for name in names:
        if name not in (running.EVALUATOR, running.XLA):
            targets.get(running.target_name(name))
