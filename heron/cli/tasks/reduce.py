"""The work of ``heron reduce``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from heron import targets
from heron.cli import reduce_report as report
from heron.cli import values
from heron.cli.common import load_module, make_options
from heron.errors import HeronError
from heron.options import Options
from heron.reduce.case import Case
from heron.reduce.checks import Check, Command, Crashes, Differs, SlowCompile, running
from heron.reduce.reducing import Plan, look, reduce
from heron.reduce.store import quoted


def run(file: str, as_json: bool, once: bool, **asked: Any) -> int:
    """Make FILE (HLO or StableHLO, - for standard input) as small as it goes while a fault is still there."""
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
    if inputs is not None and random is not None:
        raise HeronError("CLI033", "both --inputs and --random are given", hint="one of them")
    module = load_module(file)
    if inputs is None:
        return Case(module, tuple(values.random(module, random or 0)))
    return Case(module, tuple(values.fit(values.read(inputs).inputs, module, inputs)))


def _check(asked: dict[str, Any], options: Options) -> Check:
    """The one check that is asked for. Raises CLI075 if it is none, or several."""
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
    for name in names:
        if name not in (running.EVALUATOR, running.XLA):
            targets.get(running.target_name(name))
