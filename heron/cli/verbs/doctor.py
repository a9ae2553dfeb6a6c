"""``heron doctor``: the state of this installation."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from heron.cli.common import examples, json_option, print_json, print_table, print_text
from heron.trace.summary import table

if TYPE_CHECKING:
    from heron.doctor.finding import Finding


@click.command(
    short_help="Show what is installed, what is missing, and whether it works.",
    epilog=examples("heron doctor", "heron doctor --no-trial", "heron doctor --json"),
)
@click.option("--no-trial", is_flag=True, help="Leave the self-test out.")
@json_option
def command(no_trial: bool, as_json: bool) -> int:
    """Show the packages, extras, GPU, libraries and MPI of this installation: the version of each, its use, and the
    cure of what is missing. Then compile and run a small program, in less than 10 seconds.

    The exit code is 1 if a part that heron needs is missing or does not work.
    """
    found: list[Finding] = []
    for title, findings in _groups(not no_trial):
        rows = list(findings)
        found += rows
        if not as_json:
            _show(title, rows)
    broken = [f for f in found if f.is_required and f.state != "ok"]
    if as_json:
        print_json({"ok": not broken, "findings": [dataclasses.asdict(f) for f in found]})
    else:
        print_text(_verdict(broken))
    return 1 if broken else 0


def _groups(with_trials: bool) -> Iterator[tuple[str, Iterator[Finding]]]:
    from heron.doctor import machine, packages

    yield "this machine", machine.machine()
    yield "packages that heron needs", packages.needed()
    yield "extras", packages.extras()
    yield "GPU", machine.gpu()
    if with_trials:
        from heron.doctor import trials

        yield "self-test", trials.trials()


def _show(title: str, findings: list[Finding]) -> None:
    made = table(title, "state", "found", "use, or cure")
    for f in findings:
        made.add_row(f.part, f.state, f.found, f.gives if f.state == "ok" else _cure(f))
    print_table(made)
    print_text("")


def _cure(f: Finding) -> str:
    return f"for {f.gives}: {f.cure}" if f.gives and f.cure else f.cure or f.gives


def _verdict(broken: list[Finding]) -> str:
    if not broken:
        return "heron works here"
    return "heron does not work here: " + ", ".join(f"{f.part} is {f.state}" for f in broken)
