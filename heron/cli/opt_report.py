"""Reports of ``heron opt``: changes after each pass, statistics, and the result of a bisection."""

from __future__ import annotations

import contextlib
import shlex
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heron import files
from heron.cli.common import print_table, print_text
from heron.cli.progress import counted
from heron.errors import HeronError
from heron.hlo.text import print_module
from heron.passes.framework.changes import diff
from heron.trace.summary import passes, table

if TYPE_CHECKING:
    from heron.hlo.ir.module import Module
    from heron.passes.framework.bisect import Check, Culprit
    from heron.passes.framework.context import PassContext


class ChangePrinter:
    """Prints the program after each pass that changed it, whole or as a difference."""

    def __init__(self, module: Module, as_diff: bool) -> None:
        self._as_diff, self._before = as_diff, print_module(module)

    def __call__(self, pass_name: str, module: Module) -> None:
        after = print_module(module)
        shown = diff(self._before, after, ("before", f"after {pass_name}")) if self._as_diff else after
        count = module.instruction_count()
        print_text(f"// after {pass_name}: {count} instruction{'s' * (count != 1)}\n{shown}\n")
        self._before = after


def print_statistics(context: PassContext) -> None:
    """Tables on standard error: passes, rules by source line; then the loops that did not settle."""

    print_table(passes(context.trace, most=len(context.trace.passes)), err=True)
    if context.rules:
        rules = table("rule", "source", "pass", "fired>")
        for (pass_name, rule, line), times in Counter(context.rules).most_common():
            rules.add_row(rule, line, pass_name, str(times))
        print_table(rules, err=True)
    for loop in context.unsettled:
        print_text(f"{loop.loop}: {loop.what}; from one state to the next:\n{loop.difference}\n", err=True)
    for note in context.trace.notes:
        print_text(note, err=True)


def command_check(command: str) -> Check:
    """A check by a command in which ``{}`` stands for a file with the program; exit code 0 means that it passes.

    Raises CLI037 when the command has no ``{}``, or cannot be run.
    """
    words = shlex.split(command)
    if not any("{}" in word for word in words):
        raise HeronError("CLI037", f"'{command}' does not take the program", hint="write {} where the file's name goes")

    def check(module: Module) -> str | None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "module.hlo"
            files.write_text(path, print_module(module) + "\n")
            argv = [word.replace("{}", str(path)) for word in words]
            try:
                done = subprocess.run(argv, capture_output=True, text=True, errors="replace", check=False)
            except OSError as error:
                raise files.os_error("CLI037", f"cannot run '{argv[0]}'", error) from None
        if done.returncode == 0:
            return None
        said = (done.stderr or done.stdout).strip().splitlines()
        return f"exit code {done.returncode}" + (f": {said[-1]}" if said else "")

    return check


@contextlib.contextmanager
def probes_shown() -> Iterator[Callable[[int, int], None]]:
    """A progress bar for a bisection, on a terminal."""
    with counted("bisecting") as say:
        yield lambda done, expected: say(done, "tries", expected)


def print_culprit(c: Culprit | None) -> None:
    """Print the result of a bisection as text."""
    if c is None:
        print_text("the check holds after every pass")
        return
    where = f" of {c.pipeline}" if c.pipeline else ""
    lines = [f"broken by {c.pass_name}, run {c.run} of {c.runs}{where}"]
    if c.rule:
        lines += [
            f"      by {c.rule} ({c.source_line}), rewrite {c.rewrite} of {c.rewrites} in that run",
            f"      on {c.instruction}",
        ]
    lines += [f"     why {c.problem}", "  change", *(f"    {line}" for line in c.change.splitlines()[2:])]
    print_text("\n".join(lines))


def culprit_json(c: Culprit | None) -> dict[str, Any]:
    """The same facts as plain JSON values."""
    from dataclasses import asdict

    return {"holds": c is None, "culprit": None if c is None else asdict(c)}
