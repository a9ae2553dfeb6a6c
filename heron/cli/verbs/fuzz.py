"""``heron fuzz``: looks for programs on which two machines differ, and files them reduced."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from heron.cli.common import (
    examples,
    json_option,
    make_options,
    print_json,
    print_text,
    settings_option,
    target_option,
)
from heron.cli.main import DIFFERENT, INTERRUPTED, OK
from heron.errors import HeronError

if TYPE_CHECKING:
    from heron.fuzz.filing import Files
    from heron.fuzz.searching import Tally
    from heron.reduce.case import Case

_COUNT = 200  # programs, where neither a number nor a time is given
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}
_SUFFIXES = (".hlo", ".mlir")


class Duration(click.ParamType):
    """Seconds, or a number with s, m or h."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", value)
        if found is None:
            self.fail(f"'{value}' is not a time such as 30, 90s, 10m or 2h", param, ctx)
        return float(found[1]) * _UNITS[found[2]]


@click.command(
    short_help="Look for programs on which two machines differ.",
    epilog=examples(
        "heron fuzz --time 10m",
        "heron fuzz --against xla --seed 7 --count 1000",
        "heron fuzz --target sim:sm_90 --corpus programs --time 1h -o found",
    ),
)
@target_option
@click.option("--against", default="evaluator", show_default=True, metavar="M", help="evaluator, xla, sim or a target.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Other programs for each seed.")
@click.option("--count", type=click.IntRange(min=1), metavar="N", help=f"Programs to try; {_COUNT} without --time.")
@click.option("--time", "seconds", type=Duration(), metavar="T", help="How long to search: 90s, 10m, 2h.")
@click.option("--corpus", metavar="DIR", help="Change the programs in a folder instead of making new ones.")
@click.option("--ops", type=click.IntRange(min=1), default=14, show_default=True, help="Steps of a program, at most.")
@click.option("-o", "output", default="fuzz", show_default=True, metavar="DIR", help="The folder of findings.")
@click.option("--jobs", type=click.IntRange(min=1), default=2, show_default=True, help="Programs tried at a time.")
@click.option("--timeout", type=Duration(), default="60s", show_default=True, metavar="T", help="For one program.")
@click.option(
    "--reduce", "reducing", type=Duration(), default="60s", show_default=True, metavar="T", help="For one finding."
)
@click.option("--load", "loads", multiple=True, metavar="PY", help="A Python file with passes or rules of your own.")
@settings_option
@json_option
def command(output: str, reducing: float, as_json: bool, **asked: Any) -> int:
    """Try programs on the target and against another machine; reduce and file those that differ or fail.

    Each finding is a folder with the smallest program, its inputs, a README and a script. The same seed tries the same
    programs. The exit code is 1 if something was found, 130 after Ctrl-C.
    """
    from heron.cli.progress import at_step
    from heron.cli.tasks.reduce import need_machines
    from heron.fuzz.filing import Files
    from heron.fuzz.searching import Hunt, Tally, hunt
    from heron.reduce.reducing import other_fault
    from heron.reduce.store import quoted

    need_machines(asked["target"], asked["against"])
    plan = Hunt(
        target=asked["target"],
        against=asked["against"],
        settings=make_options(asked["settings"]),
        seed=asked["seed"],
        count=asked["count"] or (None if asked["seconds"] else _COUNT),
        seconds=asked["seconds"],
        timeout=asked["timeout"],
        jobs=asked["jobs"],
        ops=asked["ops"],
        corpus=_corpus(asked["corpus"]),
        loads=asked["loads"],
    )
    extra = quoted("-O", asked["settings"]) + quoted("--load", tuple(str(Path(p).resolve()) for p in asked["loads"]))
    found, tally, code = Files(Path(output), plan, reducing, extra), Tally(), OK
    try:
        with at_step("searching") as say:
            for trial, finding in hunt(plan, tally, lambda t: say(f"{t.tried} programs, {len(found.filed)} findings")):
                if finding.kind == "load":
                    raise other_fault(finding)
                click.echo(f"program {trial.number}: {finding.text}; making it smaller", err=True)
                filed = found.file(trial, finding)
                click.echo(f"  {'one like it is filed' if filed is None else filed.folder}", err=True)
    except KeyboardInterrupt:
        click.echo("\ninterrupted", err=True)
        code = INTERRUPTED
    _tell(found, tally, as_json)
    return code or (DIFFERENT if found.filed else OK)


def _corpus(folder: str | None) -> tuple[Case, ...]:
    """The programs of a folder, with random inputs. Raises CLI078 if there is none that can be read."""
    from heron.cli.tasks.reduce import read_case

    if folder is None:
        return ()
    found, refused = [], []
    for path in sorted(p for p in Path(folder).rglob("*") if p.suffix in _SUFFIXES):
        try:
            case = read_case(str(path), None, None)
        except HeronError as error:
            refused.append(f"{path.name}: {error.code}")
            continue
        devices = case.module.replica_count * case.module.num_partitions
        if devices > 1:  # a case has the values of one
            refused.append(f"{path.name}: for {devices} devices")
        else:
            found.append(case)
    if not found:
        why = "; ".join(refused[:5]) or f"no file in it ends with {' or '.join(_SUFFIXES)}"
        raise HeronError("CLI078", f"'{folder}' has no programs", why=why, hint="a folder of HLO or StableHLO files")
    return tuple(found)


def _tell(found: Files, tally: Tally, as_json: bool) -> None:
    if as_json:
        facts = {"tried": tally.tried, "refused": tally.refused, "seconds": tally.seconds, "again": found.again}
        facts["excused"] = dict(tally.excused)
        print_json({**facts, "findings": [f.to_json() for f in found.filed]})
        return
    agree = "" if found.filed or tally.excused else "; the others agree"
    lines = [f"{tally.tried} programs in {tally.seconds:.0f} s, {tally.refused} of them refused{agree}"]
    lines += [f"{count} differ where XLA:CPU is known to be wrong: {why}" for why, count in tally.excused.items()]
    for f in found.filed:
        lines += [f"{f.folder}: {f.case.count} instructions, {f.finding.text}"]
    print_text("\n".join(lines))
